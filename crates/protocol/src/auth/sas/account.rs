//! SAS for an account: `sv ss srt sp se [st sip spr ses] sig`.

use rangehold_map::Timestamp;

use super::{Version, check_origin, check_signature, check_times, field, time_field};
use crate::auth::{AccountKey, AuthRequest, Principal, failed};
use crate::error::{ErrorCode, TableError};
use crate::letters::Letters;

/// Services of an account: blobs, queues, tables, files.
const SERVICES: &str = "bqtf";
/// Types of resources: services, containers (tables), objects (entities).
const RESOURCE_TYPES: &str = "sco";
/// Permissions of all services. The table service uses `r w d l a c u` of them.
const PERMISSIONS: &str = "rwdylacuptfxmeoi";

/// The account SAS in a request's query.
pub struct AccountSas;

impl AccountSas {
    /// Checks the token of a request to `account` at `now`. `keys` are the account's keys, and empty if
    /// there is no such account. Fails with `AuthenticationFailed`, and with an error of its own where the
    /// token is for another client address, protocol or service.
    pub fn authenticate(
        request: &AuthRequest<'_>,
        account: &str,
        keys: &[AccountKey],
        now: Timestamp,
    ) -> Result<Principal, TableError> {
        let query = request.query;
        let version = Version::of(query).filter(|version| *version >= Version::WITH_ADDRESS);
        check_signature(query, keys, string_to_sign(request, account, version))?;
        if version.is_none() {
            return Err(failed("sv is not a version since 2015-04-05; write it as 2019-02-02."));
        }
        let letters = |name: &str, allowed| {
            let text = field(query, name);
            Letters::parse(text, allowed).ok_or_else(|| {
                failed(format!(
                    "{name}={text:?} is missing or malformed; it takes letters of {allowed:?}, each once."
                ))
            })
        };
        let services = letters("ss", SERVICES)?;
        let resource_types = letters("srt", RESOURCE_TYPES)?;
        let permissions = letters("sp", PERMISSIONS)?;
        let expiry = time_field(query, "se")?.ok_or_else(|| failed("se, the time of expiry, is missing."))?;
        check_times(time_field(query, "st")?, expiry, now)?;
        check_origin(request)?;
        if !services.has('t') {
            return Err(ErrorCode::AuthorizationServiceMismatch.into());
        }
        Ok(Principal::AccountSas { resource_types, permissions })
    }
}

fn string_to_sign(request: &AuthRequest<'_>, account: &str, version: Option<Version<'_>>) -> String {
    let query = request.query;
    let mut text = format!("{account}\n");
    for name in ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] {
        text.push_str(field(query, name));
        text.push('\n');
    }
    if version.is_some_and(|version| version >= Version::WITH_ENCRYPTION_SCOPE) {
        text.push_str(field(query, "ses"));
        text.push('\n');
    }
    text
}
