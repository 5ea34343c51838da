//! Version 2, which the service still accepts.
//!
//! ```text
//!   GET                                  method
//!                                        Content-MD5
//!   text/plain                           Content-Type
//!   1388534400                           when a URL expires; the date of a request with a header
//!   x-goog-meta-a:b                      each header x-goog-*
//!   /bucket/name?uploads                 the resource
//! ```

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rangehold_map::Timestamp;

use super::{
    Claim, Dialect, Method, SKEW_SECONDS, SignedError, SignedRequest, canonical, malformed, required,
    unsigned,
};
use crate::time::parse_http_date;

/// Parameters that choose a part of the resource, and are signed as part of it.
const SUBRESOURCES: [&str; 18] = [
    "acl",
    "billing",
    "compose",
    "cors",
    "defaultObjectAcl",
    "encryption",
    "encryptionConfig",
    "lifecycle",
    "location",
    "logging",
    "partNumber",
    "storageClass",
    "tagging",
    "uploadId",
    "uploads",
    "versioning",
    "versions",
    "website",
];
/// Headers `x-goog-*` that are not signed, because they are secrets.
const UNSIGNED_HEADERS: [&str; 2] = ["x-goog-encryption-key", "x-goog-encryption-key-sha256"];
/// What the parameters of a signed URL are called.
const OWN_PARAMETERS: [&str; 4] = ["GoogleAccessId", "AWSAccessKeyId", "Expires", "Signature"];

impl Dialect {
    /// The parameter with the signer, and how the headers begin that are signed.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Google => ("GoogleAccessId", "x-goog-"),
            Self::Amazon => ("AWSAccessKeyId", "x-amz-"),
        }
    }
}

/// A signed URL.
pub(super) fn of_url(request: &SignedRequest<'_>, dialect: Dialect) -> Result<Claim, SignedError> {
    refuse_unsigned(request, dialect)?;
    let parameter = |name: &str| required(request.parameter(name), name);
    let expires = parameter("Expires")?;
    let seconds: i64 = expires
        .parse()
        .map_err(|_| malformed(format!("Expires is '{expires}', and not a number of seconds since 1970.")))?;
    Ok(Claim {
        signer: parameter(dialect.words().0)?,
        dialect,
        method: Method::RsaOrHmacSha1,
        payload: None,
        texts: request
            .methods_of_url(dialect)
            .into_iter()
            .flat_map(|method| texts(request, method, &expires, dialect))
            .collect(),
        canonical: None,
        signature: signature(&parameter("Signature")?)?,
        begins: None,
        ends: Timestamp::from_unix_seconds(seconds.clamp(0, Timestamp::MAX_DATE_TIME.unix_seconds())),
    })
}

/// `GOOG1 id:signature` or `AWS id:signature`.
pub(super) fn of_header(
    request: &SignedRequest<'_>,
    value: &str,
    dialect: Dialect,
) -> Result<Claim, SignedError> {
    refuse_unsigned(request, dialect)?;
    let (id, given) = value.split_once(':').ok_or_else(|| {
        malformed("The header does not have the form 'GOOG1 id:signature' or 'AWS id:signature'.")
    })?;
    let own_date = format!("{}date", dialect.words().1);
    // The date of `x-goog-date` is signed among the headers, and its line is empty then.
    let (line, date) = match request.header(&own_date) {
        Some(date) => (String::new(), date),
        None => required(request.header("date"), "the header Date").map(|date| (date.clone(), date))?,
    };
    let date = parse_http_date(&date)
        .ok_or_else(|| malformed(format!("The date '{date}' does not have the form of HTTP's dates.")))?;
    Ok(Claim {
        signer: id.to_owned(),
        dialect,
        method: Method::HmacSha1,
        payload: None,
        texts: texts(request, request.method, &line, dialect),
        canonical: None,
        signature: signature(given)?,
        begins: Some(date),
        ends: Timestamp::from_unix_seconds(date.unix_seconds() + SKEW_SECONDS),
    })
}

/// A form with a policy.
pub(super) fn of_form(field: impl Fn(&str) -> Option<String>, policy: &str) -> Result<Claim, SignedError> {
    Ok(Claim {
        signer: required(field("GoogleAccessId"), "GoogleAccessId")?,
        dialect: Dialect::Google,
        method: Method::RsaOrHmacSha1,
        payload: None,
        texts: vec![policy.to_owned()],
        canonical: None,
        signature: signature(&required(field("signature"), "signature")?)?,
        begins: None,
        ends: Timestamp::MAX_DATE_TIME,
    })
}

/// The headers of the dialect are in the signed text, but for those that are secrets. Those of the other dialect are not.
fn refuse_unsigned(request: &SignedRequest<'_>, dialect: Dialect) -> Result<(), SignedError> {
    unsigned::refuse(request, |name| name.starts_with(dialect.words().1))
}

fn signature(text: &str) -> Result<Vec<u8>, SignedError> {
    BASE64_STANDARD.decode(text).map_err(|_| malformed("The signature is not base64."))
}

/// The texts that may have been signed. The documentation wants the resource with its subresources; some official
/// clients sign it with all parameters that they know of.
fn texts(request: &SignedRequest<'_>, method: &str, date: &str, dialect: Dialect) -> Vec<String> {
    let header = |name: &str| request.header(name).unwrap_or_default();
    let mut names: Vec<String> = request
        .headers
        .iter()
        .map(|(name, _)| name.to_ascii_lowercase())
        .filter(|name| name.starts_with(dialect.words().1) && !UNSIGNED_HEADERS.contains(&name.as_str()))
        .collect();
    names.sort();
    names.dedup();
    let headers: String =
        names.iter().map(|name| format!("{name}:{}\n", canonical::header_value(&header(name)))).collect();
    let begin = format!("{method}\n{}\n{}\n{date}\n{headers}", header("content-md5"), header("content-type"));
    let bucket = request.host_bucket.map(|bucket| format!("/{bucket}")).unwrap_or_default();
    let mut texts: Vec<String> =
        queries(request).into_iter().map(|query| format!("{begin}{bucket}{}{query}", request.path)).collect();
    texts.dedup();
    texts
}

/// The queries of the resource, each with its question mark or empty.
fn queries(request: &SignedRequest<'_>) -> [String; 2] {
    let own = |name: &str| OWN_PARAMETERS.iter().any(|own| own.eq_ignore_ascii_case(name));
    let mut all: Vec<(String, String)> = request.parameters().filter(|(name, _)| !own(name)).collect();
    all.sort();
    let join =
        |parts: Vec<String>| if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) };
    let subresources = all.iter().filter(|(name, _)| SUBRESOURCES.contains(&name.as_str()));
    let subresources = subresources.map(|(name, value)| match value.as_str() {
        "" => name.clone(),
        value => format!("{name}={value}"),
    });
    let encode = |text: &str| canonical::encode(text.as_bytes(), false);
    let encoded = all.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    [join(subresources.collect()), join(encoded.collect())]
}
