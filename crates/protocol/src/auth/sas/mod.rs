//! Shared access signatures: URIs that carry a permission, signed with an account key.
//!
//! An [`AccountSas`] is for services and resource types of an account, a [`TableSas`] for the
//! entities of one table. The token's fields are query parameters; they are signed decoded, one a
//! line, in an order that depends on the version `sv`. Nothing of a token is believed before its
//! signature proved right, so what is said about a bad token helps its owner only.
//!
//! Later versions than are known here are taken as the latest form, since an SDK's update must
//! not break its users.

use std::net::IpAddr;

use rangehold_map::Timestamp;

use super::key::{AccountKey, is_signed};
use super::{AuthRequest, failed};
use crate::error::{ErrorCode, TableError};
use crate::time::{iso7, parse_iso};
use crate::uri::Query;

mod account;
mod table;

pub use account::AccountSas;
pub use table::TableSas;

/// The version of storage services whose rules a token follows: a date such as `2019-02-02`, which
/// orders as its text does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version<'a>(&'a str);

impl<'a> Version<'a> {
    /// The form that is signed with `sip` and `spr`; account SAS begin here.
    const WITH_ADDRESS: Self = Self("2015-04-05");
    /// The form whose resource names the service.
    const WITH_SERVICE: Self = Self("2015-02-21");
    /// The form of an account SAS that is signed with `ses`.
    const WITH_ENCRYPTION_SCOPE: Self = Self("2020-12-06");
    /// The first version with SAS for tables.
    const FIRST: Self = Self("2012-02-12");

    fn of(query: &'a Query) -> Option<Self> {
        let text = query.get("sv")?;
        let well_formed = text.len() == 10
            && text.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        well_formed.then_some(Self(text))
    }
}

/// A field of a token, empty where it is absent, as it is signed.
fn field<'a>(query: &'a Query, name: &str) -> &'a str {
    query.get(name).unwrap_or_default()
}

/// A field of a token, if it says something.
fn filled<'a>(query: &'a Query, name: &str) -> Option<&'a str> {
    query.get(name).filter(|value| !value.is_empty())
}

/// Checks that the request's `sig` is over one of `texts`.
fn check_signature(query: &Query, keys: &[AccountKey], texts: &[String]) -> Result<(), TableError> {
    if is_signed(keys, texts, field(query, "sig")) {
        Ok(())
    } else {
        Err(ErrorCode::AuthenticationFailed.into())
    }
}

/// A point in time of a token; none where the field is absent.
fn time_field(query: &Query, name: &str) -> Result<Option<Timestamp>, TableError> {
    filled(query, name)
        .map(|text| {
            parse_iso(text).ok_or_else(|| {
                failed(format!("{name}={text:?} is no time; write it as 2030-01-31T00:00:00Z."))
            })
        })
        .transpose()
}

/// Checks that `now` lies in the token's time: from `start` on, if there is one, and before `expiry`.
fn check_times(start: Option<Timestamp>, expiry: Timestamp, now: Timestamp) -> Result<(), TableError> {
    if start.is_some_and(|start| now < start) || now >= expiry {
        let start = start.map_or_else(|| "always".to_owned(), iso7);
        return Err(failed(format!(
            "Signature not valid in the specified time frame: Start [{start}] - Expiry [{}] - Current [{}].",
            iso7(expiry),
            iso7(now)
        )));
    }
    Ok(())
}

/// Checks `sip` and `spr`: from where the token may come, and over what.
fn check_origin(request: &AuthRequest<'_>) -> Result<(), TableError> {
    match filled(request.query, "spr") {
        None | Some("https,http" | "http,https") => {}
        Some("https") if request.https => {}
        Some("https") => return Err(ErrorCode::AuthorizationProtocolMismatch.into()),
        Some(other) => return Err(failed(format!("spr={other:?} is neither https nor https,http."))),
    }
    let Some(range) = filled(request.query, "sip") else {
        return Ok(());
    };
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    let (Ok(low), Ok(high)) = (low.trim().parse::<IpAddr>(), high.trim().parse::<IpAddr>()) else {
        return Err(failed(format!("sip={range:?} is neither an IP address nor two with '-' between them.")));
    };
    // A connection to a socket of both families shows IPv4 in the form of IPv6.
    let client = request.client.to_canonical();
    let same_family = low.is_ipv4() == client.is_ipv4() && high.is_ipv4() == client.is_ipv4();
    if same_family && low <= client && client <= high {
        Ok(())
    } else {
        Err(TableError::new(
            ErrorCode::AuthorizationSourceIPMismatch,
            format!(
                "This request is not authorized to perform this operation using this source IP {client}."
            ),
        ))
    }
}
