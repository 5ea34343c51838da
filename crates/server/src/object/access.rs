//! The sender of a request: from its bearer token to the e-mail of an account.
//!
//! *Open* access is for development on one machine. A token that is known stands for its account; every other token,
//! and none, stands for the account of development. *Checked* access believes a token only if it is one of the known
//! ones, or is signed by an issuer of `--oauth`.

use std::collections::BTreeSet;

use rangehold_map::Timestamp;

use super::keys::{DEVELOPMENT_ACCOUNT, ObjectKeys};
use crate::tokens::TokenVerifier;

/// Which requests are believed.
pub enum Access {
    /// Every request is served.
    Open,
    /// A request without a good token is anonymous. The verifier is of `--oauth`, if that is set.
    Checked(Option<TokenVerifier>),
}

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Principal {
    /// The e-mail of the sender's account; `None` for a request without credentials.
    pub(crate) email: Option<String>,
    /// The projects that it owns.
    pub(crate) owned: BTreeSet<String>,
}

impl Principal {
    /// Whether it owns a project.
    pub(super) fn owns(&self, project: &str) -> bool {
        self.owned.contains(project)
    }

    fn of(email: &str, keys: &ObjectKeys) -> Self {
        Self { email: Some(email.to_owned()), owned: keys.owned_by(email) }
    }
}

/// The token of a request was shown, and is not good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadToken;

impl Access {
    /// Whether requests without credentials may do everything.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// The sender of a request with this `Authorization` header.
    pub(super) fn principal(
        &self,
        authorization: Option<&str>,
        keys: &ObjectKeys,
        now: Timestamp,
    ) -> Result<Principal, BadToken> {
        let token = authorization.and_then(bearer);
        if let Some(email) = token.and_then(|token| keys.email_of_token(token)) {
            return Ok(Principal::of(email, keys));
        }
        match (self, token) {
            (Self::Open, _) => Ok(Principal::of(DEVELOPMENT_ACCOUNT, keys)),
            (Self::Checked(Some(verifier)), Some(token)) => {
                verifier.email(token, now).map(|email| Principal::of(&email, keys)).ok_or(BadToken)
            }
            (Self::Checked(None), Some(_)) => Err(BadToken),
            (Self::Checked(_), None) if authorization.is_some() => Err(BadToken),
            (Self::Checked(_), None) => Ok(Principal { email: None, owned: BTreeSet::new() }),
        }
    }
}

/// The token of `Authorization: Bearer TOKEN`; `OAuth` is the older word of Google's clients.
pub(super) fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("oauth")).then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::keys::DEVELOPMENT_TOKEN;

    fn email(access: &Access, authorization: Option<&str>) -> Result<Option<String>, BadToken> {
        let principal = access.principal(authorization, &ObjectKeys::development(), Timestamp::default());
        principal.map(|principal| principal.email)
    }

    #[test]
    fn open_access_takes_every_request_for_one_of_development() {
        for authorization in [None, Some("Bearer shim-token"), Some("Bearer anything"), Some("Basic x")] {
            assert_eq!(email(&Access::Open, authorization), Ok(Some(DEVELOPMENT_ACCOUNT.to_owned())));
        }
    }

    #[test]
    fn checked_access_believes_known_tokens_and_nothing_else() {
        let access = Access::Checked(None);
        let known = format!("Bearer {DEVELOPMENT_TOKEN}");
        assert_eq!(email(&access, Some(&known)), Ok(Some(DEVELOPMENT_ACCOUNT.to_owned())));
        assert_eq!(email(&access, None), Ok(None));
        assert_eq!(email(&access, Some("Bearer other")), Err(BadToken));
        assert_eq!(email(&access, Some("Basic dXNlcg==")), Err(BadToken));
    }
}
