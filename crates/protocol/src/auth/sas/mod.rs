//! Shared access signatures: URIs that carry a permission, signed with an account key.
//!
//! An [`AccountSas`] is for services and resource types of an account, a [`TableSas`] for the
//! entities of one table. The token's fields are query parameters. What is signed are their decoded
//! values, one on each line, in an order that depends on the version `sv`. The signature is checked before
//! any other field. Only a holder of the key can make a signature, so an error about another field tells a
//! stranger nothing.
//!
//! A version later than the known ones is read in the latest known form, so that an update of an SDK does
//! not lock its users out.

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

/// The version of storage services whose rules a token follows: a date such as `2019-02-02`. The texts
/// have the order of the dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version<'a>(&'a str);

impl<'a> Version<'a> {
    /// From here on `sip` and `spr` are signed, and there are account SAS.
    const WITH_ADDRESS: Self = Self("2015-04-05");
    /// From here on the signed resource names the service.
    const WITH_SERVICE: Self = Self("2015-02-21");
    /// From here on the `ses` of an account SAS is signed.
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

/// A field of a token. An absent field is empty, and is signed as an empty line.
fn field<'a>(query: &'a Query, name: &str) -> &'a str {
    query.get(name).unwrap_or_default()
}

/// A field of a token, unless it is absent or empty.
fn filled<'a>(query: &'a Query, name: &str) -> Option<&'a str> {
    query.get(name).filter(|value| !value.is_empty())
}

/// Checks that the request's `sig` is the signature of `text`.
fn check_signature(query: &Query, keys: &[AccountKey], text: String) -> Result<(), TableError> {
    if is_signed(keys, [text], field(query, "sig")) {
        Ok(())
    } else {
        Err(ErrorCode::AuthenticationFailed.into())
    }
}

/// A field of a token that is a time; `None` where it is absent.
fn time_field(query: &Query, name: &str) -> Result<Option<Timestamp>, TableError> {
    filled(query, name)
        .map(|text| {
            parse_iso(text).ok_or_else(|| {
                failed(format!("{name}={text:?} is not a time; write it as 2030-01-31T00:00:00Z."))
            })
        })
        .transpose()
}

/// Checks that `now` is before `expiry`, and not before `start` if there is one.
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

/// Checks `sip` and `spr`: the client addresses and the protocols that the token allows.
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
        return Err(failed(format!(
            "sip={range:?} is neither an IP address nor two addresses with '-' between them."
        )));
    };
    // A socket that accepts IPv4 and IPv6 shows an IPv4 address in the form of IPv6.
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
