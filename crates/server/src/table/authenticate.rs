//! From a request to a principal: every request passes here before its handler.
//!
//! Exactly one function makes a [`Principal`], and no handler runs without one. It finds the credentials in an
//! `Authorization` header or in `sig` in the query, and refuses a request that has both or none.

use rangehold_protocol::auth::sas::{AccountSas, TableSas};
use rangehold_protocol::auth::{AccountKey, AuthRequest, Principal, bearer, shared_key};
use rangehold_protocol::error::{ErrorCode, TableError};

use super::TableService;
use super::exchange::Exchange;
use super::failure::Failure;

impl TableService {
    /// The proven sender of the request. Fails with `AuthenticationFailed` or a similar error.
    pub(super) async fn authenticate(&self, exchange: &Exchange<'_>) -> Result<Principal, Failure> {
        let keys = self.keys_of(&exchange.address.account);
        let request = auth_request(exchange);
        let signed_query = exchange.query.get("sig").is_some();
        match (exchange.header("authorization"), signed_query) {
            (Some(_), true) => Err(TableError::new(
                ErrorCode::AuthenticationFailed,
                "Server failed to authenticate the request: it has an Authorization header and a SAS; send one of them.",
            )
            .into()),
            (None, false) => Err(bearer::demand().into()),
            (None, true) => self.by_sas(exchange, &request, &keys).await,
            (Some(header), false) => match header.split_once(' ') {
                Some(("Bearer", token)) => self.by_token(exchange, token.trim()),
                _ => Ok(shared_key::authenticate(&request, &exchange.address.account, &keys, exchange.now)?),
            },
        }
    }

    /// The keys of an account. An account that does not exist has no keys, and its requests fail as with a wrong key.
    fn keys_of(&self, account: &str) -> Vec<AccountKey> {
        self.accounts.load().get(account).map(|account| account.keys.clone()).unwrap_or_default()
    }

    async fn by_sas(
        &self,
        exchange: &Exchange<'_>,
        request: &AuthRequest<'_>,
        keys: &[AccountKey],
    ) -> Result<Principal, Failure> {
        let account = exchange.address.account.as_str();
        if exchange.query.get("tn").is_none() {
            return Ok(AccountSas::authenticate(request, account, keys, exchange.now)?);
        }
        let token = TableSas::authenticate(request, account, keys)?;
        // The policies are read for every request, so that deleting one revokes its tokens at once.
        let policies = match token.policy_id() {
            Some(_) => self.catalogue(account).find(token.table()).await?.map(|table| table.policies),
            None => None,
        };
        Ok(token.resolve(&policies.unwrap_or_default(), request, exchange.now)?)
    }

    fn by_token(&self, exchange: &Exchange<'_>, token: &str) -> Result<Principal, Failure> {
        // Unlike a signature, a token that somebody has read is good for every request.
        if !exchange.connection.is_private() {
            return Err(bearer::insecure().into());
        }
        let account = exchange.address.account.as_str();
        let version = exchange.header("x-ms-version");
        // The signature is checked for an account that does not exist too, so that both take the same time.
        let is_good =
            self.tokens.as_ref().is_some_and(|verifier| verifier.accepts(token, account, exchange.now));
        let accepted = self.accounts.load().get(account).is_some() && is_good;
        if accepted { Ok(bearer::principal(version)) } else { Err(bearer::refusal(version).into()) }
    }
}

fn auth_request<'a>(exchange: &'a Exchange<'_>) -> AuthRequest<'a> {
    AuthRequest {
        method: exchange.head.method.as_str(),
        path: exchange.head.uri.path(),
        query: &exchange.query,
        authorization: exchange.header("authorization"),
        date: exchange.header("date"),
        x_ms_date: exchange.header("x-ms-date"),
        content_md5: exchange.header("content-md5"),
        content_type: exchange.header("content-type"),
        client: exchange.connection.peer.ip(),
        https: exchange.connection.tls,
    }
}
