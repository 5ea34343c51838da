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

/// The SHA-256 of the key in the headers that begin with `prefix`, if there is one.
pub(super) fn customer_key(exchange: &Exchange<'_>, prefix: &str) -> Result<Option<[u8; 32]>, ObjectError> {
    let header = |name: &str| exchange.header(&format!("{prefix}-{name}"));
    let Some(key) = header("key") else { return Ok(None) };
    let refused =
        |message: &str| ObjectError::new(ErrorKind::CustomerKey, message).at(format!("{prefix}-key"));
    if header("algorithm").is_some_and(|algorithm| algorithm != "AES256") {
        return Err(refused("The encryption algorithm must be AES256."));
    }
    let bytes = STANDARD.decode(key).ok().filter(|bytes| bytes.len() == 32);
    let bytes = bytes.ok_or_else(|| refused("The encryption key must be base64 of 32 bytes."))?;
    let digest: [u8; 32] = Sha256::digest(&bytes).into();
    match header("key-sha256") {
        Some(sent) if sent != STANDARD.encode(digest) => {
            Err(refused("The SHA-256 that came with the encryption key is not that of the key."))
        }
        _ => Ok(Some(digest)),
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
    let message = match (&generation.encryption, sent) {
        (Encryption::Customer(_), None) => {
            "The target object is encrypted by a customer-supplied encryption key."
        }
        (Encryption::Customer(key), Some(sent)) if *key != sent => {
            "The provided encryption key is incorrect."
        }
        (Encryption::Default | Encryption::Kms(_), Some(_)) => {
            "The target object is not encrypted by a customer-supplied encryption key."
        }
        _ => return Ok(()),
    };
    Err(ObjectError::new(ErrorKind::CustomerKey, message))
}
