//! Requests that carry a signature: signed URLs of versions 4 and 2, and the same signatures in the header
//! `Authorization`.
//!
//! A signer writes down what it permits as a text, the *string to sign*, and signs it: a service account with its RSA
//! key, a holder of an HMAC key with the secret. The server builds the same text from the request that came and checks
//! the signature.
//!
//! [`Claim::read`] finds a signature in a request and builds the text. It knows no keys. The caller looks for the key of
//! [`Claim::signer`] and calls [`Claim::verify`]; the dates are checked apart from it, by [`Claim::check_time`], since a
//! server that knows no keys checks the dates all the same.
//!
//! The text of a version 4 holds the host. Some official clients sign the port too and some do not, so both texts are
//! tried. A URL for `GET` serves `HEAD` too, so for `HEAD` the texts with either method are tried.
//!
//! Clients of Amazon S3 make the same signatures with other words, so one reader serves both [`Dialect`]s.

mod canonical;
mod chunks;
mod secret;
mod unsigned;
mod v2;
mod v4;

use rangehold_map::Timestamp;

pub use self::chunks::ChunkSigner;

use crate::time::iso;

/// How far in the future a signature may begin, because clocks differ: 15 minutes, as in similar services.
pub const SKEW_SECONDS: i64 = 15 * 60;
/// The longest life of a signed URL of version 4: a week.
pub const EXPIRES_SECONDS_MAX: i64 = 604_800;

/// A request, as far as signatures look at it.
#[derive(Debug, Clone, Copy)]
pub struct SignedRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The path as it came, still percent-encoded.
    pub path: &'a str,
    /// What follows the `?` of the target, still percent-encoded.
    pub query: &'a str,
    /// The header `Host`.
    pub host: &'a str,
    /// The bucket, if the host names it and the path does not. Version 2 signs it.
    pub host_bucket: Option<&'a str>,
    /// Header names and values. Names are compared without regard to case.
    pub headers: &'a [(&'a str, &'a str)],
}

impl<'a> SignedRequest<'a> {
    /// The values of a header, joined with commas; `None` if it did not come.
    fn header(&self, name: &str) -> Option<String> {
        let mut values = self.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        let first = values.next()?.1.to_owned();
        Some(values.fold(first, |joined, (_, next)| joined + "," + next))
    }

    /// The parameters, decoded, in the order in which they came.
    fn parameters(&self) -> impl Iterator<Item = (String, String)> + use<'a> {
        canonical::pairs(self.query)
    }

    fn parameter(&self, name: &str) -> Option<String> {
        self.parameters().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The methods for which a signed URL may have been made. Google's URL for `GET` serves `HEAD` too, which shows less of
    /// the same object. Amazon's serves one method.
    fn methods_of_url(&self, dialect: Dialect) -> Vec<&'a str> {
        match (self.method, dialect) {
            ("HEAD", Dialect::Google) => vec!["HEAD", "GET"],
            (method, _) => vec![method],
        }
    }
}

/// A signature that a request carries, not yet verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The e-mail of a service account, or the id of an HMAC key.
    pub signer: String,
    /// Whose words it has.
    pub dialect: Dialect,
    /// How the signature was made.
    pub method: Method,
    /// The SHA-256 that the body must have, in hexadecimal digits, if the signer laid it down.
    pub payload: Option<String>,
    /// The texts that may have been signed; one of them was.
    texts: Vec<String>,
    /// The canonical request of the first text (version 4).
    canonical: Option<String>,
    signature: Vec<u8>,
    begins: Option<Timestamp>,
    ends: Timestamp,
}

/// Whose words a request has. The service understands both, so that clients of Amazon S3 can use it with an HMAC key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// `x-goog-date`, `X-Goog-Signature`, `GoogleAccessId`.
    #[default]
    Google,
    /// `x-amz-date`, `X-Amz-Signature`, `AWSAccessKeyId`.
    Amazon,
}

/// How a signature was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rsa,
    /// HMAC-SHA256 with a key that is made from the secret and this scope: `20190201/auto/storage/goog4_request`.
    HmacSha256 {
        /// What stands before the secret in the key.
        before: &'static str,
        /// The scope.
        scope: String,
    },
    /// HMAC-SHA1 with the secret.
    HmacSha1,
    /// Version 2, which does not say it: RSA for a service account, HMAC-SHA1 for an HMAC key.
    RsaOrHmacSha1,
}

/// What a signature is checked with.
pub enum Key<'a> {
    /// The secret of an HMAC key.
    Secret(&'a str),
    /// Checks an RSA signature: it gets the text and the signature.
    Rsa(&'a dyn Fn(&[u8], &[u8]) -> bool),
}

/// Why a signed request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignedError {
    /// A part of the signature is missing or cannot be read: 400.
    #[error("{0}")]
    Malformed(String),
    /// This header is signed and did not come: 400.
    #[error("Header was included in signedheaders, but not in the request: {0}")]
    Missing(String),
    /// It was valid until then: 400.
    #[error("Request signature expired at: {}", iso(*.0))]
    Expired(Timestamp),
    /// It will be valid from then on: 403.
    #[error("Request signature is not valid before: {}", iso(*.0))]
    NotYetValid(Timestamp),
    /// This header came and is not signed: 403.
    #[error("There were headers present in the request which were not signed: {0}")]
    Unsigned(String),
    /// The signature does not fit: 403.
    #[error(
        "The request signature we calculated does not match the signature you provided. Check your Google secret key and \
         signing method. The string to sign was: {string_to_sign}"
    )]
    Mismatch {
        /// What the signer should have signed.
        string_to_sign: String,
        /// The canonical request in it (version 4).
        canonical_request: Option<String>,
    },
}

impl Claim {
    /// Finds the signature of a request; `None` if it carries none.
    ///
    /// # Errors
    /// [`SignedError::Malformed`], [`SignedError::Missing`] and [`SignedError::Unsigned`].
    pub fn read(request: &SignedRequest<'_>) -> Result<Option<Self>, SignedError> {
        let authorization = request.header("authorization").unwrap_or_default();
        let has = |name: &str| request.parameter(name).is_some();
        let claim = if has("X-Goog-Signature") {
            v4::of_url(request, Dialect::Google)
        } else if has("X-Amz-Signature") {
            v4::of_url(request, Dialect::Amazon)
        } else if has("Signature") && has("GoogleAccessId") {
            v2::of_url(request, Dialect::Google)
        } else if has("Signature") && has("AWSAccessKeyId") {
            v2::of_url(request, Dialect::Amazon)
        } else if authorization.starts_with("GOOG4-") {
            v4::of_header(request, &authorization, Dialect::Google)
        } else if authorization.starts_with("AWS4-") {
            v4::of_header(request, &authorization, Dialect::Amazon)
        } else if let Some(value) = authorization.strip_prefix("GOOG1 ") {
            v2::of_header(request, value, Dialect::Google)
        } else if let Some(value) = authorization.strip_prefix("AWS ") {
            v2::of_header(request, value, Dialect::Amazon)
        } else {
            return Ok(None);
        };
        claim.map(Some)
    }

    /// The claim of a form with a policy document: the signed text is `policy`, in base64 as it came.
    ///
    /// # Errors
    /// [`SignedError::Malformed`] if the fields of the signature are missing or cannot be read.
    pub fn of_form(field: impl Fn(&str) -> Option<String>, policy: &str) -> Result<Self, SignedError> {
        match field("x-goog-signature") {
            Some(signature) => v4::of_form(field, policy, &signature),
            None => v2::of_form(field, policy),
        }
    }

    /// Checks that the signature is valid at `now`.
    ///
    /// # Errors
    /// [`SignedError::Expired`] and [`SignedError::NotYetValid`].
    pub fn check_time(&self, now: Timestamp) -> Result<(), SignedError> {
        if let Some(begins) = self.begins
            && begins.unix_seconds() > now.unix_seconds() + SKEW_SECONDS
        {
            return Err(SignedError::NotYetValid(begins));
        }
        if now > self.ends {
            return Err(SignedError::Expired(self.ends));
        }
        Ok(())
    }

    /// Checks the signature.
    ///
    /// # Errors
    /// [`SignedError::Mismatch`], also if the signature is of the other sort than the key.
    pub fn verify(&self, key: &Key<'_>) -> Result<(), SignedError> {
        let fits = |text: &String| match (key, &self.method) {
            (Key::Rsa(check), Method::Rsa | Method::RsaOrHmacSha1) => check(text.as_bytes(), &self.signature),
            (Key::Secret(secret), Method::HmacSha256 { before, scope }) => {
                secret::is_sha256((before, secret), scope, text, &self.signature)
            }
            (Key::Secret(secret), Method::HmacSha1 | Method::RsaOrHmacSha1) => {
                secret::is_sha1(secret, text, &self.signature)
            }
            _ => false,
        };
        if self.texts.iter().any(fits) {
            return Ok(());
        }
        Err(SignedError::Mismatch {
            string_to_sign: self.texts.first().cloned().unwrap_or_default(),
            canonical_request: self.canonical.clone(),
        })
    }
}

fn malformed(why: impl Into<String>) -> SignedError {
    SignedError::Malformed(why.into())
}

/// The value of a part of the signature, which must be there.
fn required(value: Option<String>, name: &str) -> Result<String, SignedError> {
    value.ok_or_else(|| malformed(format!("The signature needs {name}, which is missing.")))
}
