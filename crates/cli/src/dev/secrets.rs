//! What proves who somebody is: the accounts' keys, the certificate of TLS, the keys of issuers of tokens, the service
//! accounts of objects. All of it can be
//! replaced while the server runs: on SIGHUP, and each minute if a file has changed.
//!
//! A file may be read in the middle of being written. So what cannot be used changes nothing, and settings in which the
//! accounts are missing never open the well-known account.

use std::path::Path;

use anyhow::{Context, Result, bail};
use rangehold_server::accounts::{Accounts, SharedAccounts};
use rangehold_server::object::{ObjectKeys, SharedObjectKeys};
use rangehold_server::tls::{self, Certificate, TlsFiles};
use rangehold_server::tokens::TokenVerifier;
use tracing::{info, warn};

use crate::config::{Config, DevFlags, OAuth, Tls};

/// See the module.
pub(super) struct Secrets {
    pub(super) accounts: SharedAccounts,
    pub(super) certificate: Option<Certificate>,
    pub(super) tokens: Option<TokenVerifier>,
    pub(super) object_keys: SharedObjectKeys,
}

impl Secrets {
    /// Reads everything for the first time.
    pub(super) fn read(config: &Config) -> Result<Self> {
        let certificate = tls_files(config)?.map(|files| Certificate::read(&files)).transpose()?;
        let tokens = verifier(&config.oauth)?;
        if matches!(config.oauth, OAuth::ClaimsOnly) {
            warn!("only the claims of bearer tokens are checked: anybody can make a token");
        }
        let accounts = SharedAccounts::new(config.accounts.clone());
        let object_keys = SharedObjectKeys::new(object_keys(config)?);
        Ok(Self { accounts, certificate, tokens, object_keys })
    }

    /// Reads everything again, and logs what is different. What cannot be read stays as it was. `asked` says that somebody
    /// waits for an answer, which is logged also if nothing has changed.
    pub(super) fn read_again(&self, flags: &DevFlags, asked: bool) {
        let changed = flags.resolve().and_then(|config| self.replace(&config));
        match changed {
            Ok(changed) if !changed.is_empty() => info!("read again: {}", changed.join("; ")),
            Ok(_) if asked => {
                info!("read again: accounts, certificate, issuers and keys of objects are as they were")
            }
            Ok(_) => {}
            Err(error) => {
                let error = format!("{error:#}");
                warn!(
                    error,
                    "the settings cannot be used; accounts, certificate, issuers and keys of objects stay as they were"
                );
            }
        }
    }

    fn replace(&self, config: &Config) -> Result<Vec<String>> {
        let old = self.accounts.load_full();
        if config.accounts.have_well_known_key() && !old.have_well_known_key() {
            bail!(
                "the accounts are missing, or one of them has the well-known key; restart the server if that is meant"
            );
        }
        // Everything is read before anything is replaced.
        let tokens = self.tokens.as_ref().zip(verifier(&config.oauth)?);
        let object_keys = object_keys(config)?;
        let is_missing = config.objects.as_ref().is_none_or(|objects| objects.keys.is_none());
        if is_missing && **self.object_keys.load() != object_keys {
            bail!("--object-keys is missing; restart the server if that is meant");
        }
        let mut changed = Vec::new();
        if let Some((certificate, files)) = self.certificate.as_ref().zip(tls_files(config)?)
            && certificate.read_again(&files)?
        {
            changed.push("the certificate is another one".to_owned());
        }
        if let Some((tokens, read)) = tokens
            && tokens.replace(&read)
        {
            changed.push("other issuers of tokens are trusted".to_owned());
        }
        if self.object_keys.replace(object_keys) {
            changed.push("the keys of service accounts are others".to_owned());
        }
        changed.extend(differences(&old, &config.accounts));
        self.accounts.replace(config.accounts.clone());
        Ok(changed)
    }
}

/// What is different between two sets of accounts, without any key.
fn differences(old: &Accounts, new: &Accounts) -> Vec<String> {
    let mut said = Vec::new();
    for account in new.iter() {
        match old.get(&account.name) {
            None => said.push(format!("the account {} is new", account.name)),
            Some(before) if !before.has_same_keys(account) => {
                said.push(format!("the account {} has other keys", account.name));
            }
            Some(_) => {}
        }
    }
    let gone = old.iter().filter(|account| new.get(&account.name).is_none());
    said.extend(gone.map(|account| format!("the account {} is gone", account.name)));
    said
}

/// The files of the certificate, if there is one. Makes those of the development certificate if they are missing.
fn tls_files(config: &Config) -> Result<Option<TlsFiles>> {
    Ok(match (&config.tls, &config.data) {
        (Tls::Off, _) => None,
        (Tls::Files(files), _) => Some(files.clone()),
        (Tls::SelfSigned, Some(directory)) => Some(tls::self_signed(&directory.join("tls"))?),
        (Tls::SelfSigned, None) => bail!(
            "--tls self-signed keeps its certificate in the data directory, but --in-memory has none: give --tls-cert and --tls-key"
        ),
    })
}

fn verifier(oauth: &OAuth) -> Result<Option<TokenVerifier>> {
    Ok(match oauth {
        OAuth::Off => None,
        OAuth::ClaimsOnly => Some(TokenVerifier::claims_only()),
        OAuth::Issuers(path) => Some(read_issuers(path)?),
    })
}

/// The service accounts of objects: those of the file, or the account of development. Everybody knows the token of that
/// account, so there is none where tokens are checked.
fn object_keys(config: &Config) -> Result<ObjectKeys> {
    let objects = config.objects.as_ref();
    match objects.and_then(|objects| objects.keys.as_deref()) {
        Some(path) => ObjectKeys::from_file(path).context("--object-keys"),
        None if objects.is_some_and(|objects| objects.auth) => Ok(ObjectKeys::default()),
        None => Ok(ObjectKeys::development()),
    }
}

fn read_issuers(path: &Path) -> Result<TokenVerifier> {
    TokenVerifier::from_file(path).context("--oauth")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::crypto::aws_lc_rs;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    use super::*;

    /// Whether a client that trusts nothing but the certificate in `file` can connect.
    async fn connects(secrets: &Secrets, file: &Path) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(file).unwrap()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let acceptor = secrets.certificate.as_ref().unwrap().acceptor().unwrap();
        let (accepted, connected) =
            tokio::join!(acceptor.accept(ours), TlsConnector::from(Arc::new(client)).connect(name, theirs));
        accepted.is_ok() && connected.is_ok()
    }

    #[tokio::test]
    async fn a_new_certificate_and_a_new_issuer_count_after_the_files_were_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| tls::self_signed(&directory.path().join(name)).unwrap());
        let (used, issuers) = (directory.path().join("cert.pem"), directory.path().join("issuers.json"));
        let key = directory.path().join("key.pem");
        let use_files = |files: &TlsFiles, x: &str| {
            std::fs::copy(&files.certificate, &used).unwrap();
            std::fs::copy(&files.key, &key).unwrap();
            let jwk = format!(r#"{{"kty": "EC", "crv": "P-256", "x": "{x}", "y": "AQ"}}"#);
            std::fs::write(&issuers, format!(r#"{{"keys": [{jwk}], "issuers": ["https://a"]}}"#)).unwrap();
        };
        use_files(&old, "AQ");
        let flags = DevFlags::with_files(&used, &key, &issuers);
        let secrets = Secrets::read(&flags.resolve().unwrap()).unwrap();
        assert!(connects(&secrets, &old.certificate).await && !connects(&secrets, &new.certificate).await);
        use_files(&new, "Ag");
        secrets.read_again(&flags, true);
        assert!(!connects(&secrets, &old.certificate).await && connects(&secrets, &new.certificate).await);
        let read_now = read_issuers(&issuers).unwrap();
        assert!(
            !secrets.tokens.as_ref().unwrap().replace(&read_now),
            "what is in the file is trusted already"
        );
        // A file in the middle of being written changes nothing.
        std::fs::write(&used, "-----BEGIN CERT").unwrap();
        secrets.read_again(&flags, true);
        assert!(connects(&secrets, &new.certificate).await);
    }

    #[test]
    fn what_changed_is_said_without_keys() {
        let accounts = |text: &str| Accounts::parse(text).unwrap();
        let old = accounts("one:YQ==;two:Yg==;three:Yw==");
        let new = accounts("one:YQ==;two:ZA==;four:ZQ==");
        assert_eq!(
            differences(&old, &new),
            ["the account four is new", "the account two has other keys", "the account three is gone"]
        );
        assert!(differences(&old, &old).is_empty());
    }

    #[test]
    fn an_empty_configuration_never_opens_the_well_known_account() {
        let own = DevFlags::with_accounts("mine:c2VjcmV0");
        let secrets = Secrets::read(&own.resolve().unwrap()).unwrap();
        secrets.read_again(&DevFlags::default(), true);
        assert!(!secrets.accounts.load_full().have_well_known_key());
        assert!(secrets.accounts.load_full().get("mine").is_some());
        secrets.read_again(&DevFlags::with_accounts("other:c2VjcmV0"), true);
        assert!(secrets.accounts.load_full().get("other").is_some());
    }

    #[test]
    fn keys_of_objects_are_read_again_and_never_fall_back_to_those_of_development() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys.json");
        let write = |token: &str| {
            std::fs::write(&path, format!(r#"{{"accounts": [{{"email": "a@b", "tokens": ["{token}"]}}]}}"#))
                .unwrap();
        };
        write("one");
        let flags = DevFlags::with_object_keys(&path);
        let secrets = Secrets::read(&flags.resolve().unwrap()).unwrap();
        write("two");
        secrets.read_again(&flags, true);
        let email = |token: &str| secrets.object_keys.load().email_of_token(token).map(str::to_owned);
        assert_eq!((email("one"), email("two")), (None, Some("a@b".to_owned())));
        secrets.read_again(&DevFlags::default(), true);
        secrets.read_again(&DevFlags::with_object_tokens_checked(), true);
        std::fs::write(&path, "{").unwrap();
        secrets.read_again(&flags, true);
        assert_eq!(email("two"), Some("a@b".to_owned()));
    }

    #[test]
    fn the_token_of_development_is_not_known_where_tokens_are_checked() {
        let knows = |flags: DevFlags| {
            let secrets = Secrets::read(&flags.resolve().unwrap()).unwrap();
            secrets.object_keys.load().email_of_token("shim-token").is_some()
        };
        assert!(knows(DevFlags::default()));
        assert!(!knows(DevFlags::with_object_tokens_checked()));
    }
}
