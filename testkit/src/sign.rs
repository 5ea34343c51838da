//! Signatures as clients make them, written from the documentation.
//!
//! No code is shared with the server, so the two check each other: a mistake in the server's protocol crate cannot be
//! made here too. Times are seconds since 1970.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use time::OffsetDateTime;

use crate::http::Request;

/// The development account that every emulator of these services knows.
pub const ACCOUNT: &str = "devstoreaccount1";
/// Its key, public by design.
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// The API version that requests name.
pub const VERSION: &str = "2020-12-06";

/// Signs requests for one account.
#[derive(Clone)]
pub struct Signer {
    /// The account's name.
    pub account: String,
    key: Vec<u8>,
}

impl Signer {
    /// A signer with a key in base64.
    pub fn new(account: &str, key: &str) -> Self {
        Self { account: account.to_owned(), key: STANDARD.decode(key).expect("a key in base64") }
    }

    /// The development account.
    pub fn well_known() -> Self {
        Self::new(ACCOUNT, KEY)
    }

    /// Signs with `SharedKey`: four lines, and the resource. Adds the date `now` if there is none.
    pub fn sign(&self, request: &mut Request, now: i64) {
        let date = dated(request, now);
        let text = format!(
            "{}\n{}\n{}\n{date}\n{}",
            request.method,
            request.header("content-md5").unwrap_or_default(),
            request.header("content-type").unwrap_or_default(),
            self.resource(&request.target)
        );
        request.set("Authorization", format!("SharedKey {}:{}", self.account, self.hmac(&text)));
    }

    /// Signs with `SharedKeyLite`: the date, and the resource.
    pub fn sign_lite(&self, request: &mut Request, now: i64) {
        let text = format!("{}\n{}", dated(request, now), self.resource(&request.target));
        request.set("Authorization", format!("SharedKeyLite {}:{}", self.account, self.hmac(&text)));
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
    pub fn sas(&self, fields: &[(&str, String)]) -> String {
        let of = |name: &str| {
            fields.iter().find(|(given, _)| *given == name).map_or("", |(_, value)| value.as_str())
        };
        let text = if of("tn").is_empty() {
            let mut lines = vec![self.account.as_str()];
            lines.extend(["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"].map(of));
            // Since this version there is a line for the encryption scope.
            lines.extend((of("sv") >= "2020-12-06").then(|| of("ses")));
            lines.push("");
            lines.join("\n")
        } else {
            let resource = format!("/table/{}/{}", self.account, of("tn").to_lowercase());
            let mut lines =
                vec![of("sp"), of("st"), of("se"), resource.as_str(), of("si"), of("sip"), of("spr")];
            lines.extend(["sv", "spk", "srk", "epk", "erk"].map(of));
            lines.join("\n")
        };
        let signature = self.hmac(&text);
        let pairs =
            fields.iter().map(|(name, value)| (*name, value.as_str())).chain([("sig", signature.as_str())]);
        let pairs = pairs.map(|(name, value)| format!("{name}={}", percent_encode(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// The query of an account SAS that allows everything in the table service until 2099.
    ///
    /// It carries no date of the request. So a client can talk to a server whose clock is being turned
    /// back, which the 15-minute rule of `SharedKey` would refuse.
    pub fn sas_for_everything(&self) -> String {
        let fields =
            [("sv", VERSION), ("ss", "t"), ("srt", "sco"), ("sp", "rwdlacu"), ("se", "2099-01-01T00:00:00Z")];
        self.sas(&fields.map(|(name, value)| (name, value.to_owned())))
    }

    fn hmac(&self, text: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any length");
        mac.update(text.as_bytes());
        STANDARD.encode(mac.finalize().into_bytes())
    }
}

/// A token with every claim that the server looks at. It has no valid signature: a server that takes claims
/// only does not look at it.
pub fn bearer_token(now: i64) -> String {
    let claims = serde_json::json!({
        "aud": "https://storage.azure.com", "iss": "https://sts.windows.net/6c1f4a2e-tenant/",
        "nbf": now - 60, "exp": now + 3600,
    });
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part(r#"{"typ":"JWT","alg":"RS256"}"#), part(&claims.to_string()), part("signature"))
}

/// Percent-encodes everything but letters, digits, `-`, `_`, `.` and `~`.
pub fn percent_encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn dated(request: &mut Request, now: i64) -> String {
    if request.header("x-ms-date").is_none() {
        request.set("x-ms-date", http_date(now));
    }
    request.header("x-ms-date").unwrap_or_default().to_owned()
}

/// Seconds since 1970 as HTTP dates are written: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(seconds: i64) -> String {
    let date = OffsetDateTime::from_unix_timestamp(seconds).expect("a time of our era");
    let (weekday, month) = (date.weekday().to_string(), date.month().to_string());
    format!(
        "{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
        &weekday[..3],
        date.day(),
        &month[..3],
        date.year(),
        date.hour(),
        date.minute(),
        date.second()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_known_days() {
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(4_102_444_799), "Thu, 31 Dec 2099 23:59:59 GMT");
    }

    #[test]
    fn signatures_are_stable() {
        // Computed once with Python's hmac module, for the string-to-sign in the documentation.
        let mut request = Request::new("GET", "/devstoreaccount1/Tables?$top=1", &[], b"");
        Signer::well_known().sign(&mut request, 784_111_777);
        let header = request.header("authorization").expect("a signed request");
        assert_eq!(header, "SharedKey devstoreaccount1:on2YE3RDKhN+6hC1Zsw5vqsRcA4G+m9/+Xf3bksaVyo=");
    }
}
