//! The service accounts that are known: who a bearer token stands for, and by which keys signatures are verified.
//!
//! They come from the file of `--object-keys`:
//!
//! ```json
//! {"accounts": [{
//!     "email": "reader@project.iam.gserviceaccount.com",
//!     "public-keys": ["-----BEGIN PUBLIC KEY-----\n..."],
//!     "hmac-keys": [{"id": "GOOG1EXAMPLE", "secret": "..."}],
//!     "tokens": ["a token for tests"],
//!     "owns": ["project"]
//! }]}
//! ```
//!
//! An owner of a project may do everything with its buckets and objects, and make buckets in it.
//!
//! Without a file there is one account, [`DEVELOPMENT_ACCOUNT`], with one token, which everybody knows. It is for
//! objects what the well-known account is for tables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;

/// The account of development, which sends the requests that name no other.
pub const DEVELOPMENT_ACCOUNT: &str = "test-sa@test-project.iam.gserviceaccount.com";
/// Its project.
pub(super) const DEVELOPMENT_PROJECT: &str = "test-project";
/// Its token.
pub const DEVELOPMENT_TOKEN: &str = "shim-token";

/// The known accounts, found by what a request shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ObjectKeys {
    emails_by_token: BTreeMap<String, String>,
    public_keys: BTreeMap<String, Vec<Vec<u8>>>,
    hmac: BTreeMap<String, HmacKey>,
    projects: BTreeMap<String, BTreeSet<String>>,
}

/// A secret with which a client signs, and the account that it belongs to.
#[derive(Clone, PartialEq, Eq)]
pub struct HmacKey {
    /// The e-mail of the account.
    pub email: String,
    /// The secret.
    pub secret: String,
}

/// Why a file of keys was refused.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path}: {reason}; expected JSON with \"accounts\", each with \"email\" and some of \"public-keys\" (PEM), \"hmac-keys\", \"tokens\" and \"owns\" (projects)"
)]
pub struct KeysError {
    path: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    accounts: Vec<Account>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Account {
    email: String,
    #[serde(default)]
    public_keys: Vec<String>,
    #[serde(default)]
    hmac_keys: Vec<Hmac>,
    #[serde(default)]
    tokens: Vec<String>,
    #[serde(default)]
    owns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hmac {
    id: String,
    secret: String,
}

impl ObjectKeys {
    /// The account of development and its token.
    pub fn development() -> Self {
        let token = (DEVELOPMENT_TOKEN.to_owned(), DEVELOPMENT_ACCOUNT.to_owned());
        Self { emails_by_token: [token].into(), ..Self::default() }
    }

    /// Reads a file of keys.
    pub fn from_file(path: &Path) -> Result<Self, KeysError> {
        let failed = |reason: String| KeysError { path: path.display().to_string(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&text).map_err(failed)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut keys = Self::default();
        for account in file.accounts {
            let email = account.email;
            for token in account.tokens {
                if keys.emails_by_token.insert(token, email.clone()).is_some() {
                    return Err(format!("a token of {email} is given twice"));
                }
            }
            for pem in account.public_keys {
                let key = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes())
                    .map_err(|error| format!("a public key of {email} cannot be read: {error:?}"))?;
                keys.public_keys.entry(email.clone()).or_default().push(key.to_vec());
            }
            keys.projects.entry(email.clone()).or_default().extend(account.owns);
            for Hmac { id, secret } in account.hmac_keys {
                if keys.hmac.contains_key(&id) {
                    return Err(format!("the HMAC key {id} is given twice"));
                }
                keys.hmac.insert(id, HmacKey { email: email.clone(), secret });
            }
        }
        Ok(keys)
    }

    /// The e-mail of the account that `token` stands for.
    pub fn email_of_token(&self, token: &str) -> Option<&str> {
        self.emails_by_token.get(token).map(String::as_str)
    }

    /// The projects that an account owns.
    pub fn owned_by(&self, email: &str) -> BTreeSet<String> {
        self.projects.get(email).cloned().unwrap_or_default()
    }

    /// Whether a token of some account is known.
    pub fn has_tokens(&self) -> bool {
        !self.emails_by_token.is_empty()
    }

    /// The RSA keys of an account, each as the DER form of its SubjectPublicKeyInfo; empty if the account is not known.
    pub fn public_keys(&self, email: &str) -> &[Vec<u8>] {
        self.public_keys.get(email).map_or(&[], Vec::as_slice)
    }

    /// The secret behind an access id.
    pub fn hmac(&self, id: &str) -> Option<&HmacKey> {
        self.hmac.get(id)
    }
}

/// The keys of a running server, which are replaced when their file has changed.
#[derive(Debug, Clone)]
pub struct SharedObjectKeys(Arc<ArcSwap<ObjectKeys>>);

impl SharedObjectKeys {
    /// Begins with `keys`, which can be replaced later.
    pub fn new(keys: ObjectKeys) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(keys)))
    }

    /// The keys now.
    pub fn load(&self) -> Guard<Arc<ObjectKeys>> {
        self.0.load()
    }

    /// Replaces all keys; says whether any is different.
    pub fn replace(&self, keys: ObjectKeys) -> bool {
        let old = self.0.swap(Arc::new(keys));
        *old != **self.0.load()
    }
}

impl std::fmt::Debug for ObjectKeys {
    /// Shows no token and no secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.emails_by_token.values()).entries(self.public_keys.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----\\nMAA=\\n-----END PUBLIC KEY-----\\n";

    #[test]
    fn a_file_names_accounts_and_what_they_show() {
        let text = format!(
            r#"{{"accounts": [{{"email": "a@b", "public-keys": ["{PUBLIC_KEY}"], "tokens": ["t"],
                "hmac-keys": [{{"id": "i", "secret": "s"}}]}}]}}"#
        );
        let keys = ObjectKeys::parse(&text).unwrap();
        assert_eq!((keys.email_of_token("t"), keys.email_of_token("other")), (Some("a@b"), None));
        assert_eq!(keys.public_keys("a@b"), [vec![0x30, 0]]);
        assert!(keys.hmac("i").is_some_and(|key| key.email == "a@b" && key.secret == "s"));
    }

    #[test]
    fn a_malformed_file_is_refused_with_the_account_that_is_wrong() {
        let wrong = r#"{"accounts": [{"email": "a@b", "public-keys": ["no key"]}]}"#;
        assert!(ObjectKeys::parse(wrong).unwrap_err().contains("a@b"));
        let twice = r#"{"accounts": [{"email": "a@b", "tokens": ["t", "t"]}]}"#;
        assert!(ObjectKeys::parse(twice).unwrap_err().contains("twice"));
        assert!(ObjectKeys::parse(r#"{"acounts": []}"#).unwrap_err().contains("acounts"));
    }
}
