//! Signed requests: whether they are believed, and whose they are.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use http::request::Parts;
use rangehold_map::Timestamp;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::signed::{Claim, Key, SignedRequest};

use crate::object::access::{Access, Principal};
use crate::object::exchange::text_of;
use crate::object::keys::{HmacKey, ObjectKeys};

/// The signature of a request; `None` if it carries none.
pub(in crate::object) fn claim_of(
    head: &Parts,
    host: &str,
    host_bucket: Option<&str>,
) -> Result<Option<Claim>, ObjectError> {
    let headers: Vec<(&str, &str)> =
        head.headers.iter().filter_map(|(name, value)| Some((name.as_str(), text_of(value)?))).collect();
    let request = SignedRequest {
        method: head.method.as_str(),
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        host,
        host_bucket,
        headers: &headers,
    };
    Ok(Claim::read(&request)?)
}

/// Checks a signature. In open access a signer that is not known is believed, after its dates were checked: a program
/// under development signs with keys that nobody has given to this server.
pub(in crate::object) fn verify(
    (access, keys): (&Access, &ObjectKeys),
    secret: Option<&HmacKey>,
    claim: &Claim,
    now: Timestamp,
) -> Result<Principal, ObjectError> {
    claim.check_time(now)?;
    let signer = claim.signer.as_str();
    let principal = |email: &str| Principal { email: Some(email.to_owned()), owned: keys.owned_by(email) };
    if let Some(key) = secret {
        claim.verify(&Key::Secret(&key.secret))?;
        return Ok(principal(&key.email));
    }
    let public_keys = keys.public_keys(signer);
    let check = |text: &[u8], signature: &[u8]| {
        public_keys.iter().any(|key| {
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key).verify(text, signature).is_ok()
        })
    };
    if !public_keys.is_empty() {
        claim.verify(&Key::Rsa(&check))?;
    } else if !access.is_open() {
        let message = format!("The signer '{signer}' is not known to this server; add it to --object-keys.");
        return Err(ObjectError::new(ErrorKind::Forbidden, message));
    }
    Ok(principal(signer))
}

#[cfg(test)]
mod tests {
    use rangehold_protocol::time::parse_iso;

    use super::*;

    const EMAIL: &str = "test-iam-credentials@dummy-project-id.iam.gserviceaccount.com";

    fn keys() -> ObjectKeys {
        let pem = include_str!("../../../../protocol/tests/vectors/objects/signer.pem");
        let file = serde_json::json!({"accounts": [{"email": EMAIL, "public-keys": [pem]}]});
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("keys.json");
        std::fs::write(&path, file.to_string()).expect("a file");
        ObjectKeys::from_file(&path).expect("keys")
    }

    fn vector() -> (String, Timestamp) {
        let text = include_str!("../../../../protocol/tests/vectors/objects/v4_signatures.json");
        let vectors: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let vector = &vectors["signingV4Tests"][0];
        let now = parse_iso(vector["timestamp"].as_str().expect("a time")).expect("a time");
        (vector["expectedUrl"].as_str().expect("a URL").to_owned(), now)
    }

    fn signer(access: &Access, url: &str, now: Timestamp) -> Result<Option<Principal>, ObjectError> {
        let (head, ()) = http::Request::get(url).body(()).expect("a request").into_parts();
        let claim = claim_of(&head, "storage.googleapis.com", None)?;
        claim.map(|claim| verify((access, &keys()), None, &claim, now)).transpose()
    }

    #[test]
    fn a_url_that_was_signed_with_a_known_rsa_key_is_believed_and_no_other() {
        let (url, now) = vector();
        for access in [Access::Open, Access::Checked(None)] {
            let believed = Ok(Some(Principal { email: Some(EMAIL.to_owned()), owned: Default::default() }));
            assert_eq!(signer(&access, &url, now), believed);
            let other = url.replace("test-object", "other-object");
            assert_eq!(signer(&access, &other, now).expect_err("another").kind, ErrorKind::WrongSignature);
        }
    }

    #[test]
    fn a_signer_that_is_not_known_is_believed_in_open_access_alone() {
        let (url, now) = vector();
        let url = url.replace("test-iam", "other-iam");
        assert!(signer(&Access::Open, &url, now).is_ok());
        let refused = signer(&Access::Checked(None), &url, now).expect_err("not known");
        assert_eq!(refused.kind, ErrorKind::Forbidden);
    }
}
