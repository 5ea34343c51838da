//! Bearer tokens: which signatures are trusted, and whether a token has one of them.
//!
//! The rules for claims are part of the protocol (`rangehold_protocol::auth::bearer`). This module reads the parts of
//! a token and checks its signature against the configured keys. A token that is accepted opens every account of
//! tables: roles are ignored. For objects it stands for the account in its claim `email`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use rangehold_map::Timestamp;
use rangehold_protocol::auth::bearer::{self, Claims, Expected};
use serde::Deserialize;

/// The most bytes of a token's text. Real tokens have 1 to 4 KiB.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// How bearer tokens are checked. It can be replaced while the server runs. Clones are the same.
#[derive(Debug, Clone)]
pub struct TokenVerifier(Arc<ArcSwap<Trusted>>);

#[derive(Debug, PartialEq)]
enum Trusted {
    /// Claims only, for development: anybody can make such a token.
    ClaimsOnly,
    /// Claims and signature.
    Signed {
        /// The issuers' public keys.
        keys: JwkSet,
        /// The rules for the claims.
        expected: Expected,
    },
}

/// The file that names trusted issuers, as JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IssuersFile {
    /// A JSON Web Key Set, as issuers publish it.
    keys: Vec<serde_json::Value>,
    /// Accepted `iss` claims. They must be given, because Microsoft signs the tokens of all its customers with the
    /// same keys, and only the issuer distinguishes them.
    issuers: BTreeSet<String>,
    /// Accepted `aud` claims; empty accepts those of Azure Storage.
    #[serde(default)]
    audiences: BTreeSet<String>,
}

/// Why a file of issuers was refused.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path}: {reason}; expected JSON with \"keys\" (a JSON Web Key Set), \"issuers\", and optionally \"audiences\""
)]
pub struct IssuersError {
    path: String,
    reason: String,
}

impl TokenVerifier {
    /// Checks the claims only. With it anybody can make a token: for development.
    pub fn claims_only() -> Self {
        Self::new(Trusted::ClaimsOnly)
    }

    fn new(trusted: Trusted) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(trusted)))
    }

    /// From now on trusts what `other` trusts. Returns whether that is something else than before.
    pub fn replace(&self, other: &Self) -> bool {
        let trusted = other.0.load_full();
        let changed = trusted != *self.0.load();
        self.0.store(trusted);
        changed
    }

    /// Reads the trusted issuers from a file.
    pub fn from_file(path: &Path) -> Result<Self, IssuersError> {
        let failed = |reason: String| IssuersError { path: path.display().to_string(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let file: IssuersFile = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        let keys: JwkSet = serde_json::from_value(serde_json::json!({ "keys": file.keys }))
            .map_err(|error| failed(error.to_string()))?;
        if keys.keys.is_empty() {
            return Err(failed("no key is given".to_owned()));
        }
        if file.issuers.is_empty() {
            return Err(failed("no issuer is given".to_owned()));
        }
        let expected = Expected { issuers: file.issuers, audiences: file.audiences };
        Ok(Self::new(Trusted::Signed { keys, expected }))
    }

    /// Whether `token` is acceptable for `account` at `now`.
    pub fn accepts(&self, token: &str, account: &str, now: Timestamp) -> bool {
        if token.len() > TOKEN_BYTES_MAX {
            return false;
        }
        match &**self.0.load() {
            Trusted::ClaimsOnly => jsonwebtoken::dangerous::insecure_decode_claims::<Claims>(token)
                .is_ok_and(|claims| bearer::check(&claims, &Expected::default(), account, now)),
            Trusted::Signed { keys, expected } => signed_claims(token, keys)
                .is_some_and(|claims| bearer::check(&claims, expected, account, now)),
        }
    }

    /// The account for which `token` stands at `now` in requests for objects; `None` if it is not acceptable.
    pub fn email(&self, token: &str, now: Timestamp) -> Option<String> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let claims = match &**self.0.load() {
            Trusted::ClaimsOnly => jsonwebtoken::dangerous::insecure_decode_claims::<Claims>(token)
                .ok()
                .filter(|claims| bearer::check_for_objects(claims, &Expected::default(), now)),
            Trusted::Signed { keys, expected } => {
                signed_claims(token, keys).filter(|claims| bearer::check_for_objects(claims, expected, now))
            }
        };
        claims.and_then(|claims| claims.email)
    }
}

/// The claims of a token that one of `keys` signed.
fn signed_claims(token: &str, keys: &JwkSet) -> Option<Claims> {
    let header = jsonwebtoken::decode_header(token).ok()?;
    // With a symmetric algorithm, anybody could sign a token, because the key is public.
    let asymmetric = matches!(
        header.alg,
        Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512
            | Algorithm::ES256
            | Algorithm::ES384
    );
    if !asymmetric {
        return None;
    }
    let key = match &header.kid {
        Some(id) => keys.find(id)?,
        None if keys.keys.len() == 1 => &keys.keys[0],
        None => return None,
    };
    // The crate `protocol` checks times, audience and issuer, with the server's own clock.
    let mut validation = Validation::new(header.alg);
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    let key = DecodingKey::from_jwk(key).ok()?;
    jsonwebtoken::decode::<Claims>(token, &key, &validation).ok().map(|data| data.claims)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jsonwebtoken::{EncodingKey, Header};
    use rcgen::KeyPair;
    use serde_json::{Value, json};

    use super::*;

    const ISSUER: &str = "https://issuer.example/";
    const NOW: i64 = 1_700_000_000;

    /// The file of an issuer with this key.
    fn verifier_of(key: &KeyPair) -> TokenVerifier {
        // 04, then both coordinates.
        let (x, y) = key.public_key_raw()[1..].split_at(32);
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let key = json!({ "kty": "EC", "crv": "P-256", "x": part(x), "y": part(y) });
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("issuers.json");
        let file = json!({ "keys": [key], "issuers": [ISSUER] });
        std::fs::write(&path, file.to_string()).expect("a file");
        TokenVerifier::from_file(&path).expect("issuers")
    }

    fn signed_by(key: &KeyPair) -> String {
        let claims: Value =
            json!({ "aud": "https://storage.azure.com", "iss": ISSUER, "nbf": NOW - 60, "exp": NOW + 60 });
        let key = EncodingKey::from_ec_der(&key.serialize_der());
        jsonwebtoken::encode(&Header::new(Algorithm::ES256), &claims, &key).expect("a token")
    }

    #[test]
    fn when_an_issuer_is_replaced_its_tokens_are_refused_and_those_of_the_new_one_accepted() {
        let [old, new] = [(); 2].map(|()| KeyPair::generate().expect("a key"));
        let verifier = verifier_of(&old);
        let accepts = |key| verifier.accepts(&signed_by(key), "any", Timestamp::from_unix_seconds(NOW));
        assert_eq!((accepts(&old), accepts(&new)), (true, false));
        assert!(verifier.replace(&verifier_of(&new)));
        assert_eq!((accepts(&old), accepts(&new)), (false, true));
        assert!(!verifier.replace(&verifier_of(&new)), "nothing has changed");
    }
}
