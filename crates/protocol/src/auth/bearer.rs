//! Bearer tokens: what their claims must say, and how a client is asked for one.
//!
//! A token is a JSON Web Token of Microsoft Entra ID, or of another issuer that the settings name. The
//! server checks the signature, because it knows the issuers' keys. This module has the rules about the
//! claims, which apply whether or not signatures are checked.

use std::collections::BTreeSet;

use rangehold_map::Timestamp;
use serde::Deserialize;

use super::Principal;
use crate::error::{ErrorCode, TableError};

/// Seconds by which an issuer's clock may differ from ours.
const SKEW_SECONDS_MAX: i64 = 5 * 60;

/// The audience of Azure Storage that the SDKs ask for.
const STORAGE_AUDIENCE: &str = "https://storage.azure.com";
/// The same audience as an application id, which is what tokens of the second version have.
const STORAGE_APPLICATION: &str = "e406a681-f3d4-42a8-90b6-c2b029497af1";

/// The audience of Google Cloud Storage.
const OBJECTS_AUDIENCE: &str = "https://storage.googleapis.com";
/// The issuer of Google's own tokens.
const GOOGLE_ISSUER: &str = "https://accounts.google.com";

/// What stands before and after the tenant in the `iss` of tokens of Microsoft Entra ID: of both its
/// versions, and of the national clouds.
const ISSUERS: [(&str, &str); 5] = [
    ("https://sts.windows.net/", "/"),
    ("https://sts.windows-ppe.net/", "/"),
    ("https://sts.chinacloudapi.cn/", "/"),
    ("https://login.microsoftonline.com/", "/v2.0"),
    ("https://login.microsoftonline.us/", "/v2.0"),
];

/// The first version of storage services in which a refused token is answered with a challenge.
const CHALLENGED_SINCE: &str = "2019-12-12";
/// The first version in which a token may read and change the access policies of tables (recorded).
const POLICIES_SINCE: &str = "2025-07-05";

/// The claims that are checked. Others are ignored.
#[derive(Debug, Clone, Deserialize)]
pub struct Claims {
    /// The service that the token is for.
    pub aud: Audience,
    /// The issuer.
    pub iss: String,
    /// The time from which the token is good, in seconds since 1970.
    #[serde(default)]
    pub nbf: Option<f64>,
    /// The time from which the token is no longer good, in seconds since 1970.
    pub exp: f64,
    /// The account, in tokens for objects.
    #[serde(default)]
    pub email: Option<String>,
}

/// `aud`, which is one text or a list of texts.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// One text.
    One(String),
    /// A list; one text that is accepted is enough.
    Several(Vec<String>),
}

/// What the claims must say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// Accepted issuers; empty accepts the forms of Microsoft Entra ID.
    pub issuers: BTreeSet<String>,
    /// Accepted audiences; empty accepts those of Azure Storage and of the account.
    pub audiences: BTreeSet<String>,
}

/// Whether a token with these claims is good for `account` at `now`.
pub fn check(claims: &Claims, expected: &Expected, account: &str, now: Timestamp) -> bool {
    let audience = |given: &str| {
        given == STORAGE_AUDIENCE
            || given == STORAGE_APPLICATION
            || given == format!("https://{account}.table.core.windows.net")
    };
    is_in_time(claims, now) && is_audience(claims, expected, audience) && is_issuer(&claims.iss, expected)
}

/// Whether a token with these claims is good for objects at `now`. If no issuer is expected, it must be Google's; if
/// no audience is, it must be that of Google Cloud Storage.
pub fn check_for_objects(claims: &Claims, expected: &Expected, now: Timestamp) -> bool {
    let issuer = match expected.issuers.is_empty() {
        true => claims.iss == GOOGLE_ISSUER,
        false => expected.issuers.contains(&claims.iss),
    };
    is_in_time(claims, now) && is_audience(claims, expected, |given| given == OBJECTS_AUDIENCE) && issuer
}

fn is_in_time(claims: &Claims, now: Timestamp) -> bool {
    let seconds = now.unix_seconds() as f64;
    let skew = SKEW_SECONDS_MAX as f64;
    claims.exp.is_finite()
        && seconds < claims.exp + skew
        && claims.nbf.is_none_or(|begin| begin <= seconds + skew)
}

/// Whether an audience of the token is one of those expected or, if none is expected, one `by_default`.
fn is_audience(claims: &Claims, expected: &Expected, by_default: impl Fn(&str) -> bool) -> bool {
    let without_slash = |text: &str| text.strip_suffix('/').unwrap_or(text).to_owned();
    let accepted = |given: &String| {
        let given = without_slash(given);
        match expected.audiences.is_empty() {
            true => by_default(&given),
            false => expected.audiences.iter().any(|audience| without_slash(audience) == given),
        }
    };
    match &claims.aud {
        Audience::One(one) => accepted(one),
        Audience::Several(several) => several.iter().any(accepted),
    }
}

fn is_issuer(given: &str, expected: &Expected) -> bool {
    if !expected.issuers.is_empty() {
        return expected.issuers.contains(given);
    }
    ISSUERS.iter().any(|(begin, end)| {
        given
            .strip_prefix(begin)
            .and_then(|rest| rest.strip_suffix(end))
            .is_some_and(|tenant| !tenant.is_empty() && !tenant.contains(['/', '?', '#']))
    })
}

/// The value of `WWW-Authenticate` in a 401 reply, in the service's form. SDKs read the tenant from it;
/// here it is `common`, because no tenant is preferred.
pub fn challenge() -> &'static str {
    "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize resource_id=https://storage.azure.com"
}

/// The answer to a token that is not accepted. It depends on the version that the request names: 401
/// with a challenge, or 403 in versions before there were challenges. Both are recorded.
pub fn refusal(version: Option<&str>) -> TableError {
    let code = if is_challenged(version) {
        ErrorCode::InvalidAuthenticationInfo
    } else {
        ErrorCode::AuthenticationFailed
    };
    code.into()
}

/// The answer to a token that came in plain text from another machine, whether it is good or not.
pub fn insecure() -> TableError {
    super::failed("A bearer token is accepted only over HTTPS, or from the server's own machine.")
}

/// The sender of a request with an accepted token; `version` is the one that the request names.
pub fn principal(version: Option<&str>) -> Principal {
    Principal::Bearer { policies: version.is_some_and(|version| version >= POLICIES_SINCE) }
}

/// The answer to a request without credentials: 401 with a challenge. In its early versions the service
/// answers that the resource is missing, which does not help a user who forgot a header.
pub fn demand() -> TableError {
    ErrorCode::NoAuthenticationInformation.into()
}

fn is_challenged(version: Option<&str>) -> bool {
    version.is_some_and(|version| version >= CHALLENGED_SINCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_634_594_200;

    /// The claims of a token that the service was recorded accepting.
    fn recorded() -> serde_json::Value {
        serde_json::json!({
            "aud": "https://storage.azure.com", "iss": "https://sts.windows.net/72f988bf-86f1-41af-91ab-2d7cd011db47/",
            "iat": 1_634_594_109, "nbf": 1_634_594_109, "exp": 1_634_680_809, "ver": "1.0"
        })
    }

    fn with(name: &str, value: impl Into<serde_json::Value>) -> bool {
        let mut claims = recorded();
        claims[name] = value.into();
        accepts(claims, &Expected::default())
    }

    fn accepts(claims: serde_json::Value, expected: &Expected) -> bool {
        serde_json::from_value(claims)
            .is_ok_and(|claims| check(&claims, expected, "acct", Timestamp::from_unix_seconds(NOW)))
    }

    #[test]
    fn audiences() {
        assert!(accepts(recorded(), &Expected::default()));
        assert!(with("aud", "https://storage.azure.com/"));
        assert!(with("aud", "https://acct.table.core.windows.net/"));
        assert!(with("aud", serde_json::json!(["https://other", "https://storage.azure.com"])));
        for wrong in [
            "",
            "https://storage.azure.com//",
            "https://other.table.core.windows.net",
            "https://storage.azure.com.evil",
        ] {
            assert!(!with("aud", wrong), "{wrong}");
        }
        assert!(!with("aud", serde_json::Value::Null));
    }

    #[test]
    fn issuers() {
        assert!(with("iss", "https://login.microsoftonline.com/tenant/v2.0"));
        for wrong in [
            "",
            "https://sts.windows.net/",
            "https://sts.windows.net//",
            "https://sts.windows.net/a/b/",
            "https://evil/tenant/",
            "http://sts.windows.net/tenant/",
        ] {
            assert!(!with("iss", wrong), "{wrong}");
        }
        let expected = Expected { issuers: ["https://issuer".to_owned()].into(), ..Expected::default() };
        assert!(!accepts(recorded(), &expected));
        let mut claims = recorded();
        claims["iss"] = "https://issuer".into();
        assert!(accepts(claims, &expected));
    }

    #[test]
    fn times() {
        assert!(with("exp", NOW - SKEW_SECONDS_MAX + 1));
        assert!(!with("exp", NOW - SKEW_SECONDS_MAX));
        assert!(with("nbf", NOW + SKEW_SECONDS_MAX));
        assert!(!with("nbf", NOW + SKEW_SECONDS_MAX + 1));
        assert!(!with("exp", serde_json::Value::Null));
        assert!(!with("exp", "9999999999"));
    }

    #[test]
    fn refusals_as_recorded() {
        assert_eq!(refusal(Some("2020-12-06")).code, ErrorCode::InvalidAuthenticationInfo);
        assert_eq!(refusal(Some("2019-07-07")).code, ErrorCode::AuthenticationFailed);
    }
}
