//! Signatures with an account key: `SharedKey` and `SharedKeyLite` in the form for tables.
//!
//! `Authorization: SharedKey account:signature`, where the signature is HMAC-SHA-256 over a text made of
//! the request ([`super::canonical`]). Other Azure services sign all `x-ms-` headers; the table service
//! signs only what that text has. A signature is good from 15 minutes before the date that it covers until
//! 15 minutes after it.

use rangehold_map::Timestamp;

use super::key::{AccountKey, is_signed};
use super::{AuthRequest, Principal, canonical, failed};
use crate::error::{ErrorCode, TableError};
use crate::table::limits::CLOCK_SKEW_SECONDS_MAX;
use crate::time::{http_date, parse_http_date, parse_iso};

/// Checks the `Authorization` header of a request to `account`. `keys` are the account's keys, and empty
/// if there is no such account. Fails with `AuthenticationFailed`.
pub fn authenticate(
    request: &AuthRequest<'_>,
    account: &str,
    keys: &[AccountKey],
    now: Timestamp,
) -> Result<Principal, TableError> {
    let unproven = || TableError::from(ErrorCode::AuthenticationFailed);
    let (scheme, credential) =
        request.authorization.and_then(|header| header.split_once(' ')).ok_or_else(unproven)?;
    let (name, signature) = credential.trim().split_once(':').ok_or_else(unproven)?;
    let date = request.x_ms_date.or(request.date).unwrap_or_default();
    let texts = if scheme.eq_ignore_ascii_case("SharedKey") {
        canonical::shared_key(request, account, date)
    } else if scheme.eq_ignore_ascii_case("SharedKeyLite") {
        canonical::shared_key_lite(request, account, date)
    } else {
        return Err(failed(
            "Use one of the schemes SharedKey, SharedKeyLite and Bearer, or a shared access signature.",
        ));
    };
    // The signature is computed before the name is compared, so that both failures take the same time.
    let signed = is_signed(keys, texts, signature);
    if !signed || name != account {
        return Err(unproven());
    }
    check_date(date, now)?;
    Ok(Principal::Owner)
}

/// The header `Authorization` with which a client proves that it holds `key`. The request must name its date in
/// `x-ms-date` or `Date`, and its path as it is sent.
pub fn authorization(request: &AuthRequest<'_>, account: &str, key: &AccountKey) -> String {
    let date = request.x_ms_date.or(request.date).unwrap_or_default();
    let signature = key.sign(&canonical::shared_key_as_sent(request, account, date));
    format!("SharedKey {account}:{signature}")
}

fn check_date(date: &str, now: Timestamp) -> Result<(), TableError> {
    let Some(signed) = parse_http_date(date).or_else(|| parse_iso(date)) else {
        return Err(failed(format!(
            "The request's date {date:?} is missing or malformed; send x-ms-date as {}.",
            http_date(now)
        )));
    };
    if signed.unix_seconds().abs_diff(now.unix_seconds()) > CLOCK_SKEW_SECONDS_MAX.unsigned_abs() {
        return Err(failed(format!(
            "The request's date {date} is more than {} minutes from the server's, {}.",
            CLOCK_SKEW_SECONDS_MAX / 60,
            http_date(now)
        )));
    }
    Ok(())
}
