//! Account keys, and signatures made with them.

use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

/// Bytes of a signature: HMAC-SHA-256.
const SIGNATURE_BYTES: usize = 32;
/// How many keys an account has at most. A signature that is wrong is compared with this many.
const KEYS_MAX: usize = 2;

/// Takes the place of a key that an account does not have, so that the same work is done.
static STAND_IN: LazyLock<AccountKey> = LazyLock::new(|| AccountKey::new(vec![0; 64]));

/// A key of an account. Its bytes are never shown. Clones share it.
#[derive(Clone)]
pub struct AccountKey(Arc<Inner>);

struct Inner {
    bytes: Vec<u8>,
    /// A signature that was begun: what depends on the key alone is computed once.
    begun: Hmac<Sha256>,
}

impl std::fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccountKey(..)")
    }
}

impl AccountKey {
    /// The key with this base64 text; `None` if the text is not base64, or empty.
    pub fn from_base64(text: &str) -> Option<Self> {
        STANDARD.decode(text).ok().filter(|bytes| !bytes.is_empty()).map(Self::new)
    }

    fn new(bytes: Vec<u8>) -> Self {
        let begun = Hmac::new_from_slice(&bytes).expect("HMAC takes keys of every size");
        Self(Arc::new(Inner { bytes, begun }))
    }

    /// Whether both are the same key. The comparison takes constant time.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.bytes.ct_eq(&other.0.bytes).into()
    }

    /// The signature of `text` in base64: HMAC-SHA-256 over its UTF-8.
    pub fn sign(&self, text: &str) -> String {
        STANDARD.encode(self.signature(text))
    }

    fn signature(&self, text: &str) -> [u8; SIGNATURE_BYTES] {
        let mut mac = self.0.begun.clone();
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

/// Whether `given`, in base64, is the signature of one of `texts` by one of `keys`.
///
/// For a wrong signature the work depends on the texts only: every text is signed as often as an account can have
/// keys, so the time does not show whether the account exists or has a second key. A right signature ends the
/// search. Its time shows which text and key it was made with, and the sender knows both.
pub(super) fn is_signed(keys: &[AccountKey], texts: impl IntoIterator<Item = String>, given: &str) -> bool {
    let given: Option<[u8; SIGNATURE_BYTES]> =
        STANDARD.decode(given).ok().and_then(|bytes| bytes.try_into().ok());
    let well_formed = Choice::from(u8::from(given.is_some()));
    let given = given.unwrap_or_default();
    texts.into_iter().any(|text| {
        (0..KEYS_MAX).any(|index| {
            let (key, real) = keys.get(index).map_or((&*STAND_IN, 0), |key| (key, 1));
            (key.signature(&text).ct_eq(&given) & Choice::from(real) & well_formed).into()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> AccountKey {
        AccountKey::new(vec![byte; 64])
    }

    #[test]
    fn both_keys_of_an_account_sign_and_no_other_does() {
        let keys = [key(1), key(2)];
        let texts = ["a".to_owned(), "b".to_owned()];
        for (signer, text, good) in
            [(key(1), "a", true), (key(2), "b", true), (key(3), "a", false), (key(1), "c", false)]
        {
            assert_eq!(is_signed(&keys, texts.clone(), &signer.sign(text)), good);
        }
        // The stand-in for a missing key signs nothing.
        assert!(!is_signed(&keys[..1], texts.clone(), &key(0).sign("a")));
        assert!(!is_signed(&[], texts.clone(), &key(0).sign("a")));
    }

    #[test]
    fn malformed_signatures_are_wrong() {
        let keys = [key(1)];
        let texts = ["a".to_owned()];
        let good = key(1).sign("a");
        assert!(is_signed(&keys, texts.clone(), &good));
        for given in ["", "====", "AAAA", &good[1..], &format!("{good}{good}")] {
            assert!(!is_signed(&keys, texts.clone(), given), "{given}");
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
