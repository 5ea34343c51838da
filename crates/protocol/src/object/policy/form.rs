//! Policy documents: what a form may upload.
//!
//! A web page lets its visitors upload files by a form. The form carries a policy that the owner of the bucket signed:
//!
//! ```json
//! {"expiration": "2020-01-23T04:35:40Z",
//!  "conditions": [{"bucket": "b"},
//!                 ["eq", "$content-type", "text/plain"],
//!                 ["starts-with", "$key", "user/7/"],
//!                 ["content-length-range", 0, 1048576]]}
//! ```
//!
//! Each condition must hold. And each field of the form must be named by a condition, so that a visitor cannot add one;
//! only the fields of the signature, the file and `x-ignore-...` need none. Names are compared without regard to case.
//! The length of the file is checked by the caller, who receives it last: see [`Policy::length`].

use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rangehold_map::Timestamp;
use serde_json::Value;

use crate::time::{iso, parse_iso};

/// Bytes of a policy, in base64.
pub const POLICY_BYTES_MAX: usize = 64 * 1024;
/// Conditions of a policy.
pub const CONDITIONS_MAX: usize = 100;
/// Fields that no condition needs to name.
const FREE_FIELDS: [&str; 5] = ["policy", "file", "x-goog-signature", "signature", "googleaccessid"];

/// A policy document that was read. Its signature is checked elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    expiration: Timestamp,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Equal { field: String, value: String },
    StartsWith { field: String, prefix: String },
    Length(RangeInclusive<u64>),
}

/// Why a form was refused: 400, `InvalidPolicyDocument`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The document cannot be read.
    #[error("Invalid policy document: {0}.")]
    Malformed(String),
    /// It was valid until then.
    #[error("The policy expired at {}.", iso(*.0))]
    Expired(Timestamp),
    /// A condition does not hold.
    #[error("Failed condition: {0}")]
    Failed(String),
    /// No condition names these fields of the form.
    #[error("Policy did not reference these fields: {0}")]
    NotReferenced(String),
}

impl Policy {
    /// Reads the field `policy`: JSON in base64.
    ///
    /// # Errors
    /// [`PolicyError::Malformed`].
    pub fn parse(encoded: &str) -> Result<Self, PolicyError> {
        if encoded.len() > POLICY_BYTES_MAX {
            return Err(malformed(format!("it has more than {POLICY_BYTES_MAX} bytes")));
        }
        let json = BASE64_STANDARD.decode(encoded.trim()).map_err(|_| malformed("it is not base64"))?;
        let document: Value = serde_json::from_slice(&json).map_err(|error| malformed(error.to_string()))?;
        let expiration = document["expiration"].as_str().and_then(parse_iso);
        let expiration = expiration.ok_or_else(|| malformed("'expiration' is not a time in ISO 8601"))?;
        let conditions = document["conditions"].as_array();
        let conditions = conditions.ok_or_else(|| malformed("'conditions' is not a list"))?;
        if conditions.len() > CONDITIONS_MAX {
            return Err(malformed(format!("it has more than {CONDITIONS_MAX} conditions")));
        }
        let mut read = Vec::new();
        for condition in conditions {
            Condition::read(condition, &mut read)
                .ok_or_else(|| malformed(format!("the condition {condition} has no known form")))?;
        }
        Ok(Self { expiration, conditions: read })
    }

    /// Checks the form's fields, names and values, except the file. `bucket` is the bucket of the request.
    ///
    /// # Errors
    /// [`PolicyError::Expired`], [`PolicyError::Failed`] and [`PolicyError::NotReferenced`].
    pub fn check(
        &self,
        bucket: &str,
        fields: &[(String, String)],
        now: Timestamp,
    ) -> Result<(), PolicyError> {
        if now > self.expiration {
            return Err(PolicyError::Expired(self.expiration));
        }
        let value = |name: &str| match fields.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)) {
            Some((_, value)) => value.as_str(),
            None if name.eq_ignore_ascii_case("bucket") => bucket,
            None => "",
        };
        if let Some(failed) = self.conditions.iter().find(|condition| !condition.holds(value)) {
            return Err(PolicyError::Failed(failed.show()));
        }
        let named = |name: &str| self.conditions.iter().any(|condition| condition.names(name));
        let free = |name: &str| {
            let name = name.to_ascii_lowercase();
            FREE_FIELDS.contains(&name.as_str()) || name.starts_with("x-ignore-")
        };
        let unknown: Vec<&str> =
            fields.iter().map(|(name, _)| name.as_str()).filter(|name| !named(name) && !free(name)).collect();
        match unknown.as_slice() {
            [] => Ok(()),
            names => Err(PolicyError::NotReferenced(names.join(", "))),
        }
    }

    /// How many bytes the file may have. The range is empty if the policy's own ranges exclude each other.
    pub fn length(&self) -> RangeInclusive<u64> {
        let ranges = self.conditions.iter().filter_map(|condition| match condition {
            Condition::Length(range) => Some(range),
            _ => None,
        });
        ranges.fold(0..=u64::MAX, |all, one| *all.start().max(one.start())..=*all.end().min(one.end()))
    }

    /// The error that a file of `bytes` does not have a length in [`length`](Self::length).
    pub fn wrong_length(&self, bytes: u64) -> PolicyError {
        let range = self.length();
        PolicyError::Failed(format!(
            "[\"content-length-range\", {}, {}], the file has {bytes} bytes",
            range.start(),
            range.end()
        ))
    }
}

impl Condition {
    /// Reads one entry of the list; `None` if it has no known form.
    fn read(entry: &Value, into: &mut Vec<Self>) -> Option<()> {
        match entry {
            Value::Object(members) => {
                for (field, value) in members {
                    into.push(Self::Equal { field: field.clone(), value: text(value)? });
                }
            }
            Value::Array(parts) => {
                let [operator, first, second] = parts.as_slice() else { return None };
                let field = || first.as_str().and_then(|field| field.strip_prefix('$')).map(str::to_owned);
                into.push(match operator.as_str()?.to_ascii_lowercase().as_str() {
                    "eq" => Self::Equal { field: field()?, value: text(second)? },
                    "starts-with" => Self::StartsWith { field: field()?, prefix: text(second)? },
                    "content-length-range" => Self::Length(number(first)?..=number(second)?),
                    _ => return None,
                });
            }
            _ => return None,
        }
        Some(())
    }

    fn holds<'a>(&self, value: impl Fn(&str) -> &'a str) -> bool {
        match self {
            Self::Equal { field, value: wanted } => value(field) == wanted,
            Self::StartsWith { field, prefix } => value(field).starts_with(prefix.as_str()),
            Self::Length(_) => true,
        }
    }

    fn names(&self, name: &str) -> bool {
        match self {
            Self::Equal { field, .. } | Self::StartsWith { field, .. } => field.eq_ignore_ascii_case(name),
            Self::Length(_) => false,
        }
    }

    /// The condition as the policy may have written it.
    fn show(&self) -> String {
        match self {
            Self::Equal { field, value } => Value::from(vec!["eq", &format!("${field}"), value]).to_string(),
            Self::StartsWith { field, prefix } => {
                Value::from(vec!["starts-with", &format!("${field}"), prefix]).to_string()
            }
            Self::Length(range) => format!("[\"content-length-range\",{},{}]", range.start(), range.end()),
        }
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn malformed(why: impl Into<String>) -> PolicyError {
    PolicyError::Malformed(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"expiration":"2020-01-23T04:35:40Z","conditions":[{"bucket":"b"},
        ["eq","$Content-Type","text/plain"],["starts-with","$key","user/7/"],["starts-with","$x-goog-meta-a",""],
        ["content-length-range",2,"10"]]}"#;

    fn policy(document: &str) -> Result<Policy, PolicyError> {
        Policy::parse(&BASE64_STANDARD.encode(document))
    }

    fn check(bucket: &str, fields: &[(&str, &str)], now: &str) -> Result<(), String> {
        let fields: Vec<(String, String)> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let policy = policy(DOCUMENT).expect("a policy");
        policy.check(bucket, &fields, parse_iso(now).expect("a time")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_form_that_meets_all_conditions_is_accepted() {
        let fields = [
            ("key", "user/7/a"),
            ("content-type", "text/plain"),
            ("X-Goog-Meta-A", "anything"),
            ("policy", "..."),
            ("x-goog-signature", "..."),
            ("x-ignore-me", "..."),
        ];
        assert_eq!(check("b", &fields, "2020-01-23T04:35:40Z"), Ok(()));
        assert_eq!(
            check("b", &fields, "2020-01-23T04:35:41Z"),
            Err("The policy expired at 2020-01-23T04:35:40Z.".to_owned())
        );
        let failed = |text: &str| Err(format!("Failed condition: {text}"));
        assert_eq!(check("c", &fields, "2020-01-01"), failed(r#"["eq","$bucket","b"]"#));
        assert_eq!(check("b", &fields[1..], "2020-01-01"), failed(r#"["starts-with","$key","user/7/"]"#));
        assert_eq!(check("b", &fields[..1], "2020-01-01"), failed(r#"["eq","$Content-Type","text/plain"]"#));
    }

    #[test]
    fn a_field_that_no_condition_names_is_refused() {
        let fields =
            [("key", "user/7/a"), ("content-type", "text/plain"), ("x-goog-random", "1"), ("acl", "2")];
        let refused = check("b", &fields, "2020-01-01");
        assert_eq!(refused, Err("Policy did not reference these fields: x-goog-random, acl".to_owned()));
    }

    #[test]
    fn ranges_of_lengths_are_combined() {
        assert_eq!(policy(DOCUMENT).expect("a policy").length(), 2..=10);
        let two = r#"{"expiration":"2020-01-01","conditions":[["content-length-range",2,10],["content-length-range",0,5]]}"#;
        assert_eq!(policy(two).expect("a policy").length(), 2..=5);
        let none = r#"{"expiration":"2020-01-01","conditions":[]}"#;
        assert_eq!(policy(none).expect("a policy").length(), 0..=u64::MAX);
    }

    #[test]
    fn other_documents_are_refused() {
        for document in [
            "",
            "{",
            "[]",
            r#"{"expiration":"soon","conditions":[]}"#,
            r#"{"expiration":"2020-01-01"}"#,
            r#"{"expiration":"2020-01-01","conditions":[1]}"#,
            r#"{"expiration":"2020-01-01","conditions":[["eq","key","a"]]}"#,
            r#"{"expiration":"2020-01-01","conditions":[["ne","$key","a"]]}"#,
            r#"{"expiration":"2020-01-01","conditions":[["content-length-range",-1,2]]}"#,
            r#"{"expiration":"2020-01-01","conditions":[{"key":["a"]}]}"#,
        ] {
            assert!(matches!(policy(document), Err(PolicyError::Malformed(_))), "{document}");
        }
        assert!(matches!(Policy::parse("*"), Err(PolicyError::Malformed(_))));
    }
}
