//! SAS for a table: `sv tn [sp se st si sip spr spk srk epk erk] sig`.
//!
//! A token may name a stored access policy of its table (`si`), which then gives the fields that the token
//! leaves out. So a token is checked in two steps: [`TableSas::authenticate`] checks the signature, and
//! when the caller has read the policies, [`TableSas::resolve`] decides what the token allows. When a policy
//! is deleted, the tokens that name it allow nothing any more.

use rangehold_map::Timestamp;

use super::{Version, check_origin, check_signature, check_times, field, filled, time_field};
use crate::auth::{AccountKey, AuthRequest, Principal, failed};
use crate::error::TableError;
use crate::letters::Letters;
use crate::table::acl::{AccessPolicy, PERMISSIONS};
use crate::table::key_bounds::{KeyBounds, KeyEdge};

/// A token for a table with a right signature. What it allows is known only after
/// [`TableSas::resolve`].
#[derive(Debug, Clone)]
pub struct TableSas {
    table: String,
    policy_id: Option<String>,
    permissions: Option<String>,
    start: Option<Timestamp>,
    expiry: Option<Timestamp>,
    bounds: KeyBounds,
}

impl TableSas {
    /// Checks the signature of the token in a request to `account`, and reads its fields. `keys` are the
    /// account's keys, and empty if there is no such account. Fails with `AuthenticationFailed`.
    pub fn authenticate(
        request: &AuthRequest<'_>,
        account: &str,
        keys: &[AccountKey],
    ) -> Result<Self, TableError> {
        let query = request.query;
        let table = field(query, "tn").to_lowercase();
        let version = Version::of(query).filter(|version| *version >= Version::FIRST);
        let text = string_to_sign(request, account, &table, version.unwrap_or(Version::WITH_ADDRESS));
        check_signature(query, keys, text)?;
        if version.is_none() {
            return Err(failed("sv is not a version since 2012-02-12; write it as 2019-02-02."));
        }
        Ok(Self {
            table,
            policy_id: filled(query, "si").map(str::to_owned),
            permissions: filled(query, "sp").map(str::to_owned),
            start: time_field(query, "st")?,
            expiry: time_field(query, "se")?,
            bounds: bounds(request)?,
        })
    }

    /// The table that the token is for, in lower case.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The stored access policy that the token refers to.
    pub fn policy_id(&self) -> Option<&str> {
        self.policy_id.as_deref()
    }

    /// What the token allows at `now`, given the stored policies of its table.
    ///
    /// Fails with `AuthenticationFailed` if the named policy does not exist, if the token and the policy
    /// both give one field, if neither gives the permissions or the expiry, or if `now` is before the start
    /// or not before the expiry. Fails with `AuthorizationSourceIPMismatch` or
    /// `AuthorizationProtocolMismatch` where the token is for another client address or protocol.
    pub fn resolve(
        &self,
        policies: &[AccessPolicy],
        request: &AuthRequest<'_>,
        now: Timestamp,
    ) -> Result<Principal, TableError> {
        let policy = match self.policy_id() {
            None => None,
            Some(id) => Some(
                policies
                    .iter()
                    .find(|policy| policy.id == id)
                    .ok_or_else(|| failed(format!("The table has no stored access policy {id:?}.")))?,
            ),
        };
        let permissions = one_of(
            "sp",
            self.permissions.as_deref(),
            policy.and_then(|policy| policy.permission.as_deref()),
        )?;
        let start = one_of("st", self.start, policy.and_then(|policy| policy.start))?;
        let expiry = one_of("se", self.expiry, policy.and_then(|policy| policy.expiry))?;
        let permissions = permissions.unwrap_or_default();
        let permissions = Letters::parse(permissions, PERMISSIONS).ok_or_else(|| {
            failed(format!(
                "The permissions {permissions:?} are missing or malformed; they take letters of raud, each once."
            ))
        })?;
        let expiry = expiry.ok_or_else(|| failed("se, the time of expiry, is missing."))?;
        check_times(start, expiry, now)?;
        check_origin(request)?;
        Ok(Principal::TableSas { table: self.table.clone(), permissions, bounds: self.bounds.clone() })
    }
}

/// The value of a field that the token or its policy gives. Giving it in both is an error, so that the
/// owner of a policy can rely on what the policy says.
fn one_of<T>(name: &str, token: Option<T>, policy: Option<T>) -> Result<Option<T>, TableError> {
    match (token, policy) {
        (Some(_), Some(_)) => Err(failed(format!(
            "{name} is given by the token and by its stored access policy; one of them must leave it out."
        ))),
        (one, None) | (None, one) => Ok(one),
    }
}

/// The keys that the token reaches, both ends included. A bound without a RowKey includes the whole
/// partition; with a RowKey it ends inside a partition.
fn bounds(request: &AuthRequest<'_>) -> Result<KeyBounds, TableError> {
    let end = |partition: &str, row: &str| match (request.query.get(partition), filled(request.query, row)) {
        (None, Some(_)) => Err(failed(format!("{row} is given without {partition}."))),
        (partition_key, row_key) => Ok((partition_key, row_key)),
    };
    let low = match end("spk", "srk")? {
        (None, _) => KeyEdge::start(),
        (Some(partition_key), None) => KeyEdge::before_partition(partition_key),
        (Some(partition_key), Some(row_key)) => KeyEdge::before_row(partition_key, row_key),
    };
    let high = match end("epk", "erk")? {
        (None, _) => KeyEdge::end(),
        (Some(partition_key), None) => KeyEdge::after_partition(partition_key),
        (Some(partition_key), Some(row_key)) => KeyEdge::after_row(partition_key, row_key),
    };
    Ok(KeyBounds { low, high })
}

fn string_to_sign(request: &AuthRequest<'_>, account: &str, table: &str, version: Version<'_>) -> String {
    let resource = if version >= Version::WITH_SERVICE {
        format!("/table/{account}/{table}")
    } else {
        format!("/{account}/{table}")
    };
    let of = |name: &str| field(request.query, name);
    let mut lines = vec![of("sp"), of("st"), of("se"), resource.as_str(), of("si")];
    if version >= Version::WITH_ADDRESS {
        lines.extend([of("sip"), of("spr")]);
    }
    lines.extend(["sv", "spk", "srk", "epk", "erk"].map(of));
    lines.join("\n")
}
