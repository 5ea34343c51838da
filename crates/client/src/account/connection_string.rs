//! Connection strings: settings `Name=value` with semicolons between them.

use super::{Account, DEVELOPMENT_ACCOUNT, Endpoint};

/// Why a connection string, or a part of it, cannot be used. The text says what to change, and shows no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAConnectionString(String);

impl NotAConnectionString {
    pub(super) fn endpoint(text: &str) -> Self {
        Self(format!(
            "{text:?} is not an endpoint; write it like https://account.table.core.windows.net \
             or http://127.0.0.1:10002/devstoreaccount1"
        ))
    }

    pub(super) fn key() -> Self {
        Self("the account key is not base64; copy it again from the portal, with the = at its end".to_owned())
    }

    fn missing(what: &str) -> Self {
        Self(format!("the connection string has no {what}"))
    }
}

/// The settings of a connection string.
struct Settings<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Settings<'a> {
    fn read(text: &'a str) -> Result<Self, NotAConnectionString> {
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let pairs = parts.map(|part| {
            part.split_once('=').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(|| {
                // The part may be a key, so it is not shown.
                NotAConnectionString(
                    "a part of the connection string has no =; write Name=value;...".to_owned(),
                )
            })
        });
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    /// The value of a setting that is not empty. Names match in either case, as in the cloud's SDKs.
    fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value).filter(|value| !value.is_empty())
    }

    fn endpoint(&self) -> Result<Endpoint, NotAConnectionString> {
        if let Some(endpoint) = self.get("TableEndpoint") {
            return Endpoint::parse(endpoint);
        }
        let name = self
            .get("AccountName")
            .ok_or_else(|| NotAConnectionString::missing("AccountName and no TableEndpoint"))?;
        let protocol = self.get("DefaultEndpointsProtocol").unwrap_or("https");
        let suffix = self.get("EndpointSuffix").unwrap_or("core.windows.net");
        Endpoint::parse(&format!("{protocol}://{name}.table.{suffix}"))
    }
}

pub(super) fn read(text: &str) -> Result<Account, NotAConnectionString> {
    let settings = Settings::read(text)?;
    if settings.get("UseDevelopmentStorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return development(&settings);
    }
    let endpoint = settings.endpoint()?;
    if let Some(sas) = settings.get("SharedAccessSignature") {
        return Ok(Account::with_sas(endpoint, sas));
    }
    let name = settings.get("AccountName").ok_or_else(|| NotAConnectionString::missing("AccountName"))?;
    let key = settings
        .get("AccountKey")
        .ok_or_else(|| NotAConnectionString::missing("AccountKey and no SharedAccessSignature"))?;
    Account::with_key(endpoint, name, key)
}

/// The emulator on this machine, or on the one that `DevelopmentStorageProxyUri` names.
fn development(settings: &Settings<'_>) -> Result<Account, NotAConnectionString> {
    let mut account = Account::development();
    if let Some(proxy) = settings.get("DevelopmentStorageProxyUri") {
        account.endpoint =
            Endpoint::parse(&format!("{}:10002/{DEVELOPMENT_ACCOUNT}", proxy.trim_end_matches('/')))?;
    }
    Ok(account)
}

#[cfg(test)]
mod tests {
    use super::super::Credential;
    use super::*;

    const KEY: &str = "c2VjcmV0LXNlY3JldA==";

    #[test]
    fn each_form_of_the_portal_and_of_emulators_is_read() {
        for (text, endpoint, is_key) in [
            ("UseDevelopmentStorage=true", "http://127.0.0.1:10002/devstoreaccount1", true),
            ("UseDevelopmentStorage=True;", "http://127.0.0.1:10002/devstoreaccount1", true),
            (
                "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://box",
                "http://box:10002/devstoreaccount1",
                true,
            ),
            (
                "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=c2VjcmV0LXNlY3JldA==;EndpointSuffix=core.windows.net",
                "https://shop.table.core.windows.net",
                true,
            ),
            ("accountname=shop;accountkey=c2VjcmV0LXNlY3JldA==", "https://shop.table.core.windows.net", true),
            (
                "AccountName=a;AccountKey=c2VjcmV0LXNlY3JldA==;TableEndpoint=http://h:1/a;",
                "http://h:1/a",
                true,
            ),
            (
                "TableEndpoint=https://shop.table.core.windows.net/;SharedAccessSignature=sv=2019-02-02&sig=a%3D",
                "https://shop.table.core.windows.net",
                false,
            ),
        ] {
            let account = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(account.endpoint.to_string(), endpoint, "{text}");
            assert_eq!(matches!(account.credential, Credential::SharedKey(..)), is_key, "{text}");
        }
    }

    #[test]
    fn an_error_names_the_part_and_shows_no_key() {
        for (text, part) in [
            ("", "AccountName"),
            ("AccountName=shop", "AccountKey"),
            (&format!("AccountKey={KEY}"), "AccountName"),
            ("AccountName=shop;AccountKey=secret!", "base64"),
            ("AccountName=shop;AccountKey=c2VjcmV0LXNlY3JldA==;TableEndpoint=shop", "shop"),
            ("secret", "no ="),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains("secret") && !error.contains(KEY), "{error}");
        }
        let account = read(&format!("AccountName=shop;AccountKey={KEY}")).expect("it is complete");
        assert_eq!(format!("{account:?}"), "Account(https://shop.table.core.windows.net)");
    }
}
