//! Version 4.
//!
//! ```text
//!   GOOG4-RSA-SHA256                         string to sign: the algorithm,
//!   20190201T090000Z                         when it was signed,
//!   20190201/auto/storage/goog4_request      the scope,
//!   00e2fb79...                              and the SHA-256 of the canonical request:
//!
//!   GET                                      method
//!   /bucket/name                             path
//!   X-Goog-Algorithm=...&X-Goog-Date=...     query, without the signature
//!   host:storage.googleapis.com              each signed header,
//!                                            an empty line,
//!   host                                     and their names
//!   UNSIGNED-PAYLOAD                         the SHA-256 of the body, or this word
//! ```
//!
//! Amazon's clients write `AWS4-HMAC-SHA256`, `x-amz-date` and `aws4_request` in the place of these words.

use rangehold_map::Timestamp;
use sha2::{Digest, Sha256};

use super::{Claim, Dialect, EXPIRES_SECONDS_MAX, Method, SKEW_SECONDS, SignedError, SignedRequest};
use super::{canonical, malformed, required, unsigned};
use crate::time::parse_iso;

const RSA: &str = "GOOG4-RSA-SHA256";
const HMAC: &str = "GOOG4-HMAC-SHA256";
const AMAZON_HMAC: &str = "AWS4-HMAC-SHA256";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// What a dialect calls the parts of a signature.
struct Words {
    algorithms: &'static [&'static str],
    /// How its parameters begin.
    parameters: &'static str,
    date_header: &'static str,
    payload_header: &'static str,
    /// The last two parts of a scope.
    service: &'static str,
    request: &'static str,
    /// What stands before the secret in the key.
    before: &'static str,
}

const GOOGLE: Words = Words {
    algorithms: &[RSA, HMAC],
    parameters: "X-Goog-",
    date_header: "x-goog-date",
    payload_header: "x-goog-content-sha256",
    service: "storage",
    request: "goog4_request",
    before: "GOOG4",
};
const AMAZON: Words = Words {
    algorithms: &[AMAZON_HMAC],
    parameters: "X-Amz-",
    date_header: "x-amz-date",
    payload_header: "x-amz-content-sha256",
    service: "s3",
    request: "aws4_request",
    before: "AWS4",
};

const fn words(dialect: Dialect) -> &'static Words {
    match dialect {
        Dialect::Google => &GOOGLE,
        Dialect::Amazon => &AMAZON,
    }
}

/// What names the signer and the time, the same wherever the signature stands.
struct Signer {
    dialect: Dialect,
    algorithm: String,
    id: String,
    scope: String,
    date: String,
    signed_at: Timestamp,
    signature: Vec<u8>,
}

impl Signer {
    fn new(
        dialect: Dialect,
        algorithm: String,
        credential: &str,
        date: String,
        signature: &str,
    ) -> Result<Self, SignedError> {
        let words = words(dialect);
        if !words.algorithms.contains(&algorithm.as_str()) {
            let known = words.algorithms.join(" or ");
            return Err(malformed(format!("The algorithm '{algorithm}' is not {known}.")));
        }
        // The id comes first and may hold slashes itself; the scope has four parts.
        let mut parts = credential.rsplitn(5, '/');
        let (request, service, place, day) = (parts.next(), parts.next(), parts.next(), parts.next());
        let is_known = request == Some(words.request) && service == Some(words.service);
        let (true, Some(place), Some(day), Some(id)) = (is_known, place, day, parts.next()) else {
            return Err(malformed(format!(
                "The credential '{credential}' does not have the form 'id/yyyymmdd/auto/{}/{}'.",
                words.service, words.request
            )));
        };
        let signed_at = basic_date(&date).filter(|_| date.starts_with(day)).ok_or_else(|| {
            malformed(format!("The date '{date}' is not a time 'yyyymmddThhmmssZ' of the day {day}."))
        })?;
        let signature = const_hex::decode(signature)
            .map_err(|_| malformed("The signature does not consist of hexadecimal digits."))?;
        let scope = format!("{day}/{place}/{}/{}", words.service, words.request);
        Ok(Self { dialect, algorithm, id: id.to_owned(), scope, date, signed_at, signature })
    }

    fn method(&self) -> Method {
        match self.algorithm.as_str() {
            RSA => Method::Rsa,
            _ => Method::HmacSha256 { before: words(self.dialect).before, scope: self.scope.clone() },
        }
    }

    fn string_to_sign(&self, canonical_request: &str) -> String {
        let hash = const_hex::encode(Sha256::digest(canonical_request));
        format!("{}\n{}\n{}\n{hash}", self.algorithm, self.date, self.scope)
    }

    /// The claim over a request of which these headers are signed, with one of these methods.
    fn claim(
        self,
        request: &SignedRequest<'_>,
        methods: &[&str],
        headers: &str,
        ends: Timestamp,
    ) -> Result<Claim, SignedError> {
        let names: Vec<String> = headers.split(';').map(str::to_ascii_lowercase).collect();
        if !names.iter().any(|name| name == "host") {
            return Err(malformed("The signed headers must include 'host'."));
        }
        unsigned::refuse(request, |header| names.iter().any(|name| name == header))?;
        if self.dialect == Dialect::Google {
            refuse_missing(request, &names)?;
        }
        let payload_header = words(self.dialect).payload_header;
        let signs_payload = names.iter().any(|name| name == payload_header);
        let payload = signs_payload.then(|| request.header(payload_header)).flatten();
        let without_port = match request.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => request.host,
        };
        let mut hosts = vec![request.host, without_port];
        hosts.dedup();
        let form =
            |method: &str, host: &str| canonical_request(request, (method, host), &names, payload.as_deref());
        let requests: Vec<String> =
            methods.iter().flat_map(|method| hosts.iter().map(|host| form(method, host))).collect();
        Ok(Claim {
            dialect: self.dialect,
            method: self.method(),
            payload: payload.filter(|payload| payload != UNSIGNED),
            texts: requests.iter().map(|request| self.string_to_sign(request)).collect(),
            canonical: requests.into_iter().next(),
            signature: self.signature,
            begins: Some(self.signed_at),
            ends,
            signer: self.id,
        })
    }
}

/// A signed URL: everything is in the query.
pub(super) fn of_url(request: &SignedRequest<'_>, dialect: Dialect) -> Result<Claim, SignedError> {
    let begin = words(dialect).parameters;
    let parameter = |name: &str| {
        let name = format!("{begin}{name}");
        required(request.parameter(&name), &name)
    };
    let signer = Signer::new(
        dialect,
        parameter("Algorithm")?,
        &parameter("Credential")?,
        parameter("Date")?,
        &parameter("Signature")?,
    )?;
    let expires = parameter("Expires")?;
    let seconds = expires.parse().ok().filter(|seconds| (1..=EXPIRES_SECONDS_MAX).contains(seconds));
    let seconds = seconds.ok_or_else(|| {
        malformed(format!("{begin}Expires is '{expires}', and not 1 to {EXPIRES_SECONDS_MAX} seconds."))
    })?;
    let ends = after(signer.signed_at, seconds);
    signer.claim(request, &request.methods_of_url(dialect), &parameter("SignedHeaders")?, ends)
}

/// `GOOG4-HMAC-SHA256 Credential=..., SignedHeaders=..., Signature=...`
pub(super) fn of_header(
    request: &SignedRequest<'_>,
    authorization: &str,
    dialect: Dialect,
) -> Result<Claim, SignedError> {
    let (algorithm, parts) = authorization.split_once(' ').unwrap_or((authorization, ""));
    let part = |name: &str| {
        let mut parts = parts.split(',').filter_map(|part| part.trim().split_once('='));
        required(parts.find(|(given, _)| *given == name).map(|(_, value)| value.to_owned()), name)
    };
    let date_header = words(dialect).date_header;
    let date = required(request.header(date_header), date_header)?;
    let signer = Signer::new(dialect, algorithm.to_owned(), &part("Credential")?, date, &part("Signature")?)?;
    let ends = after(signer.signed_at, SKEW_SECONDS);
    signer.claim(request, &[request.method], &part("SignedHeaders")?, ends)
}

/// A form: the policy is what was signed, and says itself until when it is valid.
pub(super) fn of_form(
    field: impl Fn(&str) -> Option<String>,
    policy: &str,
    signature: &str,
) -> Result<Claim, SignedError> {
    let part = |name: &str| required(field(name), name);
    let (algorithm, date) = (part("x-goog-algorithm")?, part("x-goog-date")?);
    let signer = Signer::new(Dialect::Google, algorithm, &part("x-goog-credential")?, date, signature)?;
    Ok(Claim {
        dialect: signer.dialect,
        method: signer.method(),
        payload: None,
        texts: vec![policy.to_owned()],
        canonical: None,
        signature: signer.signature,
        begins: Some(signer.signed_at),
        ends: Timestamp::MAX_DATE_TIME,
        signer: signer.id,
    })
}

/// Refuses a request without a header that is signed. The signer learns more from its name than from two texts that differ.
/// The host does not come as a header in HTTP/2, and a content type that did not come is signed as an empty one. A browser asks
/// with `OPTIONS` whether it may send the headers, and does not send them yet.
fn refuse_missing(request: &SignedRequest<'_>, names: &[String]) -> Result<(), SignedError> {
    let may_be_absent = |name: &str| matches!(name, "host" | "content-type") || request.method == "OPTIONS";
    let missing = names.iter().find(|name| !may_be_absent(name) && request.header(name).is_none());
    missing.map_or(Ok(()), |name| Err(SignedError::Missing(name.clone())))
}

fn canonical_request(
    request: &SignedRequest<'_>,
    (method, host): (&str, &str),
    names: &[String],
    payload: Option<&str>,
) -> String {
    let headers: String = names
        .iter()
        .map(|name| {
            let value =
                if name == "host" { host.to_owned() } else { request.header(name).unwrap_or_default() };
            format!("{name}:{}\n", canonical::header_value(&value))
        })
        .collect();
    let path = canonical::path(request.path);
    let query = canonical::query(request.parameters());
    let payload = payload.unwrap_or(UNSIGNED);
    format!("{method}\n{path}\n{query}\n{headers}\n{}\n{payload}", names.join(";"))
}

/// A time `20190201T090000Z`.
fn basic_date(text: &str) -> Option<Timestamp> {
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
    if day.len() != 8 || time.len() != 6 || !is_digits(day) || !is_digits(time) {
        return None;
    }
    let (year, month, day) = (&day[..4], &day[4..6], &day[6..]);
    let (hour, minute, second) = (&time[..2], &time[2..4], &time[4..]);
    parse_iso(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

fn after(time: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(time.unix_seconds() + seconds)
}
