//! Account keys, and signatures made with them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

/// Bytes of a signature: HMAC-SHA-256.
const SIGNATURE_BYTES: usize = 32;
/// How many keys an account has at most. Checking a signature always tries this many.
const KEYS_MAX: usize = 2;

/// A key of an account. Its bytes are never shown.
#[derive(Clone)]
pub struct AccountKey(Vec<u8>);

impl std::fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccountKey(..)")
    }
}

impl AccountKey {
    /// The key with this base64 text; `None` if the text is not base64, or empty.
    pub fn from_base64(text: &str) -> Option<Self> {
        STANDARD.decode(text).ok().filter(|bytes| !bytes.is_empty()).map(Self)
    }

    /// Whether both are the same key. The comparison takes constant time.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// The signature of `text` in base64: HMAC-SHA-256 over its UTF-8.
    pub fn sign(&self, text: &str) -> String {
        STANDARD.encode(signature(&self.0, text))
    }
}

fn signature(key: &[u8], text: &str) -> [u8; SIGNATURE_BYTES] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every size");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

/// Whether `given`, in base64, is the signature of one of `texts` by one of `keys`.
///
/// The work depends on the texts only. Every text is signed as often as an account can have keys, so the
/// time does not show whether the account exists or has a second key.
pub(super) fn is_signed(keys: &[AccountKey], texts: &[String], given: &str) -> bool {
    let given: Option<[u8; SIGNATURE_BYTES]> =
        STANDARD.decode(given).ok().and_then(|bytes| bytes.try_into().ok());
    let well_formed = Choice::from(u8::from(given.is_some()));
    let given = given.unwrap_or_default();
    let mut good = Choice::from(0);
    for text in texts {
        for index in 0..KEYS_MAX {
            let (key, real): (&[u8], u8) = match keys.get(index) {
                Some(key) => (&key.0, 1),
                None => (&[0; 64], 0),
            };
            good |= signature(key, text).ct_eq(&given) & Choice::from(real);
        }
    }
    (good & well_formed).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> AccountKey {
        AccountKey(vec![byte; 64])
    }

    #[test]
    fn both_keys_of_an_account_sign_and_no_other_does() {
        let keys = [key(1), key(2)];
        let texts = ["a".to_owned(), "b".to_owned()];
        for (signer, text, good) in
            [(key(1), "a", true), (key(2), "b", true), (key(3), "a", false), (key(1), "c", false)]
        {
            assert_eq!(is_signed(&keys, &texts, &signer.sign(text)), good);
        }
        // The stand-in for a missing key signs nothing.
        assert!(!is_signed(&keys[..1], &texts, &key(0).sign("a")));
        assert!(!is_signed(&[], &texts, &key(0).sign("a")));
    }

    #[test]
    fn malformed_signatures_are_wrong() {
        let keys = [key(1)];
        let texts = ["a".to_owned()];
        let good = key(1).sign("a");
        assert!(is_signed(&keys, &texts, &good));
        for given in ["", "====", "AAAA", &good[1..], &format!("{good}{good}")] {
            assert!(!is_signed(&keys, &texts, given), "{given}");
        }
    }

    #[test]
    fn keys_are_not_shown() {
        assert!(AccountKey::from_base64("").is_none());
        assert!(AccountKey::from_base64("not base64").is_none());
        let key = AccountKey::from_base64("c2VjcmV0").expect("base64");
        assert!(!format!("{key:?}").contains("c2Vj"));
    }
}
