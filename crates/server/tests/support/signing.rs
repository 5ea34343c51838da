//! Signatures as clients make them, written anew from the documentation: only the HMAC itself is
//! the service's, which has test vectors of its own.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rangehold_map::Timestamp;
use rangehold_protocol::auth::AccountKey;
use rangehold_protocol::time::http_date;
use rangehold_server::accounts::{WELL_KNOWN_ACCOUNT, WELL_KNOWN_KEY};

use super::wire::Request;

/// Who signs.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) account: String,
    key: AccountKey,
}

impl Signer {
    pub(crate) fn new(account: &str, key: &str) -> Self {
        Self { account: account.to_owned(), key: AccountKey::from_base64(key).expect("a key in base64") }
    }

    /// The account that everybody knows.
    pub(crate) fn well_known() -> Self {
        Self::new(WELL_KNOWN_ACCOUNT, WELL_KNOWN_KEY)
    }

    /// Signs with `SharedKey`: four lines, and the resource.
    pub(crate) fn sign(&self, request: &mut Request, now: Timestamp) {
        let date = dated(request, now);
        let text = format!(
            "{}\n{}\n{}\n{date}\n{}",
            request.method,
            request.header("content-md5").unwrap_or_default(),
            request.header("content-type").unwrap_or_default(),
            self.resource(&request.target)
        );
        request.set("Authorization", format!("SharedKey {}:{}", self.account, self.key.sign(&text)));
    }

    /// Signs with `SharedKeyLite`: the date, and the resource.
    pub(crate) fn sign_lite(&self, request: &mut Request, now: Timestamp) {
        let text = format!("{}\n{}", dated(request, now), self.resource(&request.target));
        request.set("Authorization", format!("SharedKeyLite {}:{}", self.account, self.key.sign(&text)));
    }

    /// `/account/path` and, of the query, `comp` alone.
    fn resource(&self, target: &str) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let comp = query.split('&').find(|parameter| parameter.starts_with("comp="));
        let comp = comp.map(|comp| format!("?{comp}")).unwrap_or_default();
        format!("/{}{path}{comp}", self.account)
    }

    /// The query of a shared access signature with these fields: for one table if `tn` is among
    /// them, else for the account.
    pub(crate) fn sas(&self, fields: &[(&str, String)]) -> String {
        let of = |name: &str| {
            fields.iter().find(|(given, _)| *given == name).map_or("", |(_, value)| value.as_str())
        };
        let text = if of("tn").is_empty() {
            let lines =
                ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"].map(|name| format!("{}\n", of(name)));
            format!("{}\n{}", self.account, lines.concat())
        } else {
            let resource = format!("/table/{}/{}", self.account, of("tn").to_lowercase());
            let mut lines =
                vec![of("sp"), of("st"), of("se"), resource.as_str(), of("si"), of("sip"), of("spr")];
            lines.extend(["sv", "spk", "srk", "epk", "erk"].map(of));
            lines.join("\n")
        };
        let signature = self.key.sign(&text);
        let pairs =
            fields.iter().map(|(name, value)| (*name, value.as_str())).chain([("sig", signature.as_str())]);
        let pairs = pairs.map(|(name, value)| format!("{name}={}", percent_encoded(value)));
        pairs.collect::<Vec<_>>().join("&")
    }
}

/// A token with every claim that is looked at. Its signature is none; who takes claims only does
/// not look at it.
pub(crate) fn bearer_token(now: Timestamp) -> String {
    let seconds = now.unix_seconds();
    let claims = serde_json::json!({
        "aud": "https://storage.azure.com", "iss": "https://sts.windows.net/6c1f4a2e-tenant/",
        "nbf": seconds - 60, "exp": seconds + 3600,
    });
    let header = URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT","alg":"RS256"}"#);
    format!("{header}.{}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()), URL_SAFE_NO_PAD.encode("signature"))
}

fn dated(request: &mut Request, now: Timestamp) -> String {
    if request.header("x-ms-date").is_none() {
        request.set("x-ms-date", http_date(now));
    }
    request.header("x-ms-date").unwrap_or_default().to_owned()
}

fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}
