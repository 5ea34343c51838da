//! Which account is spoken to, where it is, and how a request proves that it may.
//!
//! Most programs get all three from a connection string ([`Account::from_connection_string`]). The other functions
//! are for programs that have the parts: a key, a shared access signature, or something that makes bearer tokens.

mod connection_string;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use rangehold_protocol::auth::AccountKey;

pub use connection_string::NotAConnectionString;

/// The account of emulators on this machine.
pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
/// Its key, which is public: every emulator of the service has it.
const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// How the names of Azure's table services end: the public cloud, its accounts with DNS zones, China, the US government, Germany.
const AZURE: [&str; 5] = [
    ".table.core.windows.net",
    ".table.storage.azure.net",
    ".table.core.chinacloudapi.cn",
    ".table.core.usgovcloudapi.net",
    ".table.core.cloudapi.de",
];

/// Makes bearer tokens, for example from a managed identity.
pub trait Tokens: Send + Sync {
    /// A token that is valid now. It is asked for before every request, so an implementation keeps a token until
    /// shortly before it expires.
    fn token(&self) -> BoxFuture<'_, Result<String, Box<dyn std::error::Error + Send + Sync>>>;
}

/// How a request proves who sends it.
#[derive(Clone)]
pub(crate) enum Credential {
    /// The name of an account and one of its keys.
    SharedKey(String, AccountKey),
    /// A shared access signature: query parameters, without a question mark.
    Sas(String),
    /// A bearer token.
    Bearer(Arc<dyn Tokens>),
}

/// Where the table service of an account is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub(crate) https: bool,
    /// Host and port.
    pub(crate) authority: String,
    /// Empty, or the account's name after a slash, as emulators have it.
    pub(crate) path: String,
}

impl Endpoint {
    /// Reads `https://account.table.core.windows.net` or `http://127.0.0.1:10002/devstoreaccount1`.
    pub fn parse(text: &str) -> Result<Self, NotAConnectionString> {
        let refuse = || NotAConnectionString::endpoint(text);
        let uri: http::Uri = text.trim_end_matches('/').parse().map_err(|_| refuse())?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(refuse()),
        };
        let authority = uri.authority().ok_or_else(refuse)?.to_string();
        if uri.query().is_some() {
            return Err(refuse());
        }
        Ok(Self { https, authority, path: uri.path().trim_end_matches('/').to_owned() })
    }

    /// Whether this is Azure itself, in one of its clouds, and not another service that speaks its protocol. The documented
    /// request rates of tables are those of Azure.
    pub fn is_azure(&self) -> bool {
        let host = self.authority.rsplit_once(':').map_or(self.authority.as_str(), |(host, _)| host);
        let host = host.to_ascii_lowercase();
        AZURE.iter().any(|ending| host.ends_with(ending))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// An account as a client sees it.
#[derive(Clone)]
pub struct Account {
    pub(crate) endpoint: Endpoint,
    pub(crate) credential: Credential,
}

impl fmt::Debug for Account {
    /// Shows the endpoint only, because the credential is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account({})", self.endpoint)
    }
}

impl Account {
    /// Reads a connection string as the cloud's portal and the emulators show it. `UseDevelopmentStorage=true` is the
    /// emulator on this machine, at port 10002.
    ///
    /// Fails with an error that names the part that is missing or wrong. The error never shows a key.
    pub fn from_connection_string(text: &str) -> Result<Self, NotAConnectionString> {
        connection_string::read(text)
    }

    /// The emulator on this machine, at port 10002.
    pub fn development() -> Self {
        let endpoint = Endpoint {
            https: false,
            authority: "127.0.0.1:10002".to_owned(),
            path: format!("/{DEVELOPMENT_ACCOUNT}"),
        };
        Self::with_key(endpoint, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY).expect("the known key is a key")
    }

    /// An account of which one key is known. `key` is base64, as the portal shows it.
    pub fn with_key(endpoint: Endpoint, name: &str, key: &str) -> Result<Self, NotAConnectionString> {
        let key = AccountKey::from_base64(key).ok_or_else(NotAConnectionString::key)?;
        Ok(Self { endpoint, credential: Credential::SharedKey(name.to_owned(), key) })
    }

    /// An account, or a part of it, that a shared access signature opens. The question mark in front may stay.
    pub fn with_sas(endpoint: Endpoint, sas: &str) -> Self {
        Self { endpoint, credential: Credential::Sas(sas.trim_start_matches('?').to_owned()) }
    }

    /// An account that takes bearer tokens. The cloud takes them over https only.
    pub fn with_tokens(endpoint: Endpoint, tokens: Arc<dyn Tokens>) -> Self {
        Self { endpoint, credential: Credential::Bearer(tokens) }
    }

    /// Where the table service is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azure_is_known_by_its_hosts() {
        for (url, is_azure) in [
            ("https://me.table.core.windows.net", true),
            ("https://me-secondary.table.core.windows.net:443/", true),
            ("https://me.z07.table.storage.azure.net", true),
            ("https://ME.TABLE.CORE.CHINACLOUDAPI.CN", true),
            ("http://127.0.0.1:10002/devstoreaccount1", false),
            ("http://me.table.core.windows.net.example.org", false),
            ("https://me.table.cosmos.azure.com", false),
            ("http://[::1]:10002/devstoreaccount1", false),
        ] {
            assert_eq!(Endpoint::parse(url).expect("it is a URL").is_azure(), is_azure, "{url}");
        }
    }
}
