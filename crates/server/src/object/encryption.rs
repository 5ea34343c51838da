//! Keys that clients send to have their objects encrypted (CSEK).
//!
//! This server does not encrypt: it keeps the SHA-256 of the key, and serves the object only to requests that bring the
//! same key, so that a client meets the same refusals as with the real service.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::generation::{Encryption, Generation};
use sha2::{Digest, Sha256};

use super::exchange::Exchange;
use super::reply::Reply;

/// The one algorithm.
const ALGORITHM: &str = "AES256";

/// The SHA-256 of the key in the headers that begin with `prefix`, if there is one. A key comes with its algorithm and its
/// hash, or not at all.
pub(super) fn customer_key(exchange: &Exchange<'_>, prefix: &str) -> Result<Option<[u8; 32]>, ObjectError> {
    key_among(prefix, |name| exchange.header(name))
}

/// The same among the fields of a form, which have the same names. `value` looks up a field.
pub(super) fn key_among<'v>(
    prefix: &str,
    value: impl Fn(&str) -> Option<&'v str>,
) -> Result<Option<[u8; 32]>, ObjectError> {
    let part = |name: &str| value(&format!("{prefix}-{name}"));
    let (algorithm, key, hash) = (part("algorithm"), part("key"), part("key-sha256"));
    if (algorithm, key, hash) == (None, None, None) {
        return Ok(None);
    }
    let refused =
        |kind, name: &str, message: &str| Err(ObjectError::new(kind, message).at(format!("{prefix}-{name}")));
    let bytes = key.and_then(|key| STANDARD.decode(key).ok()).filter(|bytes| bytes.len() == 32);
    let Some(bytes) = bytes else {
        let message = "The encryption key must be base64 of 32 bytes.";
        return refused(ErrorKind::CustomerKeyFormat, "key", message);
    };
    if algorithm != Some(ALGORITHM) {
        let message = "The encryption algorithm must be AES256, and come with the key.";
        return refused(ErrorKind::CustomerKeyAlgorithm, "algorithm", message);
    }
    let digest: [u8; 32] = Sha256::digest(&bytes).into();
    if hash.and_then(|hash| STANDARD.decode(hash).ok()).as_deref() != Some(&digest) {
        let message = "The SHA-256 of the encryption key, in base64, must come with the key.";
        return refused(ErrorKind::CustomerKeyHash, "key-sha256", message);
    }
    Ok(Some(digest))
}

/// Adds the headers that say with which key a generation was encrypted, if it was.
pub(super) fn put_key_headers(reply: &mut Reply, generation: &Generation) {
    if let Encryption::Customer(digest) = &generation.encryption {
        reply.set("x-goog-encryption-algorithm", ALGORITHM);
        reply.set("x-goog-encryption-key-sha256", STANDARD.encode(digest));
    }
}

/// Whether a request may see the bytes and checksums of a generation: whether it brought the key, if there is one.
pub(super) fn has_key(generation: &Generation, sent: Option<[u8; 32]>) -> bool {
    match &generation.encryption {
        Encryption::Customer(key) => sent == Some(*key),
        Encryption::Default | Encryption::Kms(_) => true,
    }
}

/// Checks that a request which reads the bytes of a generation brought its key, and no key if it has none.
pub(super) fn check_key(generation: &Generation, sent: Option<[u8; 32]>) -> Result<(), ObjectError> {
    let (kind, message) = match (&generation.encryption, sent) {
        (Encryption::Customer(_), None) => {
            (ErrorKind::CustomerKey, "The target object is encrypted by a customer-supplied encryption key.")
        }
        (Encryption::Customer(key), Some(sent)) if *key != sent => {
            (ErrorKind::WrongCustomerKey, "The provided encryption key is incorrect.")
        }
        (Encryption::Default | Encryption::Kms(_), Some(_)) => (
            ErrorKind::NoCustomerKey,
            "The target object is not encrypted by a customer-supplied encryption key.",
        ),
        _ => return Ok(()),
    };
    Err(ObjectError::new(kind, message))
}
