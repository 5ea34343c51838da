//! Signatures with a secret.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// Version 4: the key is made from the secret by the parts of the scope, one after the other.
pub(super) fn is_sha256((before, secret): (&str, &str), scope: &str, text: &str, signature: &[u8]) -> bool {
    is_signed(&key((before, secret), scope), text, signature)
}

/// The key of a scope.
pub(super) fn key((before, secret): (&str, &str), scope: &str) -> Vec<u8> {
    let first = format!("{before}{secret}").into_bytes();
    scope.split('/').fold(first, |key, part| sha256(&key, part))
}

/// Whether a text is signed with a key that [`key`] made.
pub(super) fn is_signed(key: &[u8], text: &str, signature: &[u8]) -> bool {
    sha256(key, text).ct_eq(signature).into()
}

/// Version 2.
pub(super) fn is_sha1(secret: &str, text: &str, signature: &[u8]) -> bool {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().ct_eq(signature).into()
}

fn sha256(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
