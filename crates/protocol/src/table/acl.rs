//! Stored access policies of a table: `?comp=acl`.
//!
//! A shared access signature may take its times and permissions from a policy that is stored with the
//! table. Changing or deleting the policy then changes or revokes the signature. A table has at most five
//! policies. Each has an id, and any other field may be absent.

use rangehold_map::Timestamp;
use serde::{Deserialize, Serialize};

use super::limits::{POLICIES_MAX, POLICY_ID_UNITS_MAX};
use super::xml::{self, Element, Writer, invalid};
use crate::error::{ErrorCode, TableError};
use crate::letters::Letters;
use crate::time::{iso7, parse_iso};

/// Permissions of a table that a policy or a SAS can give: read, add, update, delete.
pub const PERMISSIONS: &str = "raud";

/// A stored access policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessPolicy {
    /// 1 to 64 characters, unique in the table.
    pub id: String,
    /// The time from which signatures are good.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks")]
    pub start: Option<Timestamp>,
    /// The time from which signatures are no longer good.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks")]
    pub expiry: Option<Timestamp>,
    /// Letters of [`PERMISSIONS`], in the order in which the client gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
}

/// Points in time as they are stored: ticks of 100 ns since 1970.
mod ticks {
    use rangehold_map::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Option<Timestamp>, out: S) -> Result<S::Ok, S::Error> {
        time.map(Timestamp::ticks).serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<i64>::deserialize(from)?.map(Timestamp::from_ticks))
    }
}

/// Reads the body of a request that sets policies; an empty one sets none. Fails with
/// `InvalidXmlDocument`.
pub fn parse(body: &[u8]) -> Result<Vec<AccessPolicy>, TableError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let root = xml::parse(body, "SignedIdentifiers")?;
    if root.children.len() > POLICIES_MAX {
        // Recorded without a reason.
        return Err(ErrorCode::InvalidXmlDocument.into());
    }
    let mut policies: Vec<AccessPolicy> = Vec::new();
    for element in &root.children {
        let policy = parse_policy(element)?;
        if policies.iter().any(|earlier| earlier.id == policy.id) {
            return Err(invalid(format!("the id {} twice; give each id once", policy.id)));
        }
        policies.push(policy);
    }
    Ok(policies)
}

fn parse_policy(element: &Element) -> Result<AccessPolicy, TableError> {
    if element.name != "SignedIdentifier" {
        return Err(element.unexpected());
    }
    let mut policy = AccessPolicy { id: String::new(), start: None, expiry: None, permission: None };
    for part in &element.children {
        match part.name.as_str() {
            "Id" => policy.id = part.text().to_owned(),
            "AccessPolicy" => part.children.iter().try_for_each(|field| read_field(&mut policy, field))?,
            _ => return Err(part.unexpected()),
        }
    }
    let units = policy.id.encode_utf16().count();
    if units == 0 || units > POLICY_ID_UNITS_MAX {
        return Err(invalid(format!("an id of {units} characters; it has 1 to {POLICY_ID_UNITS_MAX}")));
    }
    Ok(policy)
}

fn read_field(policy: &mut AccessPolicy, field: &Element) -> Result<(), TableError> {
    let text = field.text();
    let time = || match text {
        "" => Ok(None),
        _ => parse_iso(text)
            .map(Some)
            .ok_or_else(|| invalid(format!("{} {text:?}, which is not a time", field.name))),
    };
    match field.name.as_str() {
        "Start" => policy.start = time()?,
        "Expiry" => policy.expiry = time()?,
        "Permission" if text.is_empty() => policy.permission = None,
        "Permission" => {
            Letters::parse(text, PERMISSIONS)
                .ok_or_else(|| invalid(format!("Permission {text:?}, which is not of {PERMISSIONS}")))?;
            policy.permission = Some(text.to_owned());
        }
        _ => return Err(field.unexpected()),
    }
    Ok(())
}

/// The body of the reply to a request for the policies of a table.
pub fn write(policies: &[AccessPolicy]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.element("SignedIdentifiers", |writer| {
        for policy in policies {
            writer.element("SignedIdentifier", |writer| write_policy(writer, policy));
        }
    });
    writer.finish()
}

fn write_policy(writer: &mut Writer, policy: &AccessPolicy) {
    writer.text("Id", &policy.id);
    if policy.start.is_none() && policy.expiry.is_none() && policy.permission.is_none() {
        return;
    }
    writer.element("AccessPolicy", |writer| {
        for (name, time) in [("Start", policy.start), ("Expiry", policy.expiry)] {
            if let Some(time) = time {
                writer.text(name, &iso7(time));
            }
        }
        if let Some(permission) = &policy.permission {
            writer.text("Permission", permission);
        }
    });
}
