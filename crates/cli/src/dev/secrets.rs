//! What proves who somebody is: the accounts' keys, the certificate of TLS, the keys of issuers of tokens. All of it can be
//! replaced while the server runs: on SIGHUP, and each minute if a file has changed.
//!
//! A file may be read in the middle of being written. So what cannot be used changes nothing, and settings in which the
//! accounts are missing never open the well-known account.

use std::path::Path;

use anyhow::{Context, Result, bail};
use rangehold_server::accounts::{Accounts, SharedAccounts};
use rangehold_server::tls::{self, Certificate, TlsFiles};
use rangehold_server::tokens::TokenVerifier;
use tracing::{info, warn};

use crate::config::{Config, DevFlags, OAuth, Tls};

/// See the module.
pub(super) struct Secrets {
    pub(super) accounts: SharedAccounts,
    pub(super) certificate: Option<Certificate>,
    pub(super) tokens: Option<TokenVerifier>,
}

impl Secrets {
    /// Reads everything for the first time.
    pub(super) fn read(config: &Config) -> Result<Self> {
        let certificate = tls_files(config)?.map(|files| Certificate::read(&files)).transpose()?;
        let tokens = verifier(&config.oauth)?;
        if matches!(config.oauth, OAuth::ClaimsOnly) {
            warn!("only the claims of bearer tokens are checked: anybody can make a token");
        }
        Ok(Self { accounts: SharedAccounts::new(config.accounts.clone()), certificate, tokens })
    }

    /// Reads everything again, and logs what is different. What cannot be read stays as it was. `asked` says that somebody
    /// waits for an answer, which is logged also if nothing has changed.
    pub(super) fn read_again(&self, flags: &DevFlags, asked: bool) {
        let changed = flags.resolve().and_then(|config| self.replace(&config));
        match changed {
            Ok(changed) if !changed.is_empty() => info!("read again: {}", changed.join("; ")),
            Ok(_) if asked => info!("read again: accounts, certificate and issuers are as they were"),
            Ok(_) => {}
            Err(error) => {
                let error = format!("{error:#}");
                warn!(
                    error,
                    "the settings cannot be used; accounts, certificate and issuers stay as they were"
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

fn read_issuers(path: &Path) -> Result<TokenVerifier> {
    TokenVerifier::from_file(path).context("--oauth")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
