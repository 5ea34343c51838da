//! The account that a request is for, and the form of its URIs.
//!
//! *Host style*, as in the cloud: `account.table.core.windows.net/people`. *Path style*, as with
//! emulators: `127.0.0.1:10002/account/people`. A host is read in host style when it has at least
//! two labels and the first, without `-secondary`, is an account of this server. Everything else (IP addresses,
//! `localhost`, the name of a container) is path style. The secondary endpoint has `-secondary` after the
//! account's name in both styles.

use crate::accounts::Accounts;

const SECONDARY: &str = "-secondary";

/// The address of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The account's name, without `-secondary`. The account may not exist.
    pub(crate) account: String,
    /// Whether the request came to the secondary endpoint.
    pub(crate) secondary: bool,
    /// Whether the path began with the account.
    pub(crate) path_style: bool,
    /// The URI of the account's root as the client wrote it, without a slash at the end.
    pub(crate) base: String,
    /// The path below the account, as sent.
    pub(crate) path: String,
}

impl Address {
    /// Reads the address of a request for `raw_path` at `host` (with its port, if it has one).
    pub(crate) fn of(scheme: &str, host: &str, raw_path: &str, accounts: &Accounts) -> Self {
        if let Some(label) = first_label(host) {
            let (account, secondary) = without_secondary(label);
            if accounts.get(account).is_some() {
                return Self {
                    account: account.to_owned(),
                    secondary,
                    path_style: false,
                    base: format!("{scheme}://{host}"),
                    path: raw_path.to_owned(),
                };
            }
        }
        let rest = raw_path.strip_prefix('/').unwrap_or(raw_path);
        let (segment, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let (account, secondary) = without_secondary(segment);
        // The Python SDK repeats the account's name after a secondary endpoint.
        let path = match path.strip_prefix('/').and_then(|below| below.strip_prefix(account)) {
            Some(rest) if secondary && (rest.is_empty() || rest.starts_with('/')) => rest,
            _ => path,
        };
        Self {
            account: account.to_owned(),
            secondary,
            path_style: true,
            base: format!("{scheme}://{host}/{segment}"),
            path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
        }
    }

    /// The path below the account of a URI inside a batch. Scheme and host are ignored: behind a proxy they may not be
    /// ours. In path style the account may be the first part of the path.
    pub(crate) fn inner_path<'a>(&self, uri: &'a str) -> (&'a str, &'a str) {
        let (uri, query) = uri.split_once('?').unwrap_or((uri, ""));
        let path = match uri.find("://") {
            Some(scheme) => {
                let rest = &uri[scheme + 3..];
                rest.find('/').map_or("/", |slash| &rest[slash..])
            }
            None => uri,
        };
        let below = path.strip_prefix('/').unwrap_or(path);
        let below = match below.split_once('/') {
            Some((segment, rest)) if without_secondary(segment).0 == self.account => rest,
            _ => below,
        };
        (below, query)
    }
}

/// The first of two or more labels of a host name; `None` for IP addresses and bare names.
fn first_label(host: &str) -> Option<&str> {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if name.starts_with('[') || name.parse::<std::net::Ipv4Addr>().is_ok() {
        return None;
    }
    name.split_once('.').map(|(label, _)| label)
}

fn without_secondary(name: &str) -> (&str, bool) {
    match name.strip_suffix(SECONDARY) {
        Some(account) => (account, true),
        None => (name, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(host: &str, path: &str) -> (String, bool, bool, String) {
        let address = Address::of("http", host, path, &Accounts::well_known());
        (address.account, address.secondary, address.path_style, address.path)
    }

    #[test]
    fn styles() {
        let account = "devstoreaccount1".to_owned();
        for host in
            ["127.0.0.1:10002", "localhost:10002", "[::1]:10002", "tables:10002", "host.docker.internal"]
        {
            assert_eq!(of(host, "/devstoreaccount1/T"), (account.clone(), false, true, "/T".to_owned()));
        }
        for host in ["devstoreaccount1.table.localhost:10002", "devstoreaccount1.table.core.windows.net"] {
            assert_eq!(of(host, "/T"), (account.clone(), false, false, "/T".to_owned()));
        }
        assert_eq!(
            of("127.0.0.1", "/devstoreaccount1-secondary"),
            (account.clone(), true, true, "/".to_owned())
        );
        let doubled = of("127.0.0.1", "/devstoreaccount1-secondary/devstoreaccount1/");
        assert_eq!(doubled, (account.clone(), true, true, "/".to_owned()));
        assert_eq!(of("devstoreaccount1-secondary.table.x", "/"), (account, true, false, "/".to_owned()));
        assert_eq!(of("127.0.0.1", "/"), (String::new(), false, true, "/".to_owned()));
    }

    #[test]
    fn paths_inside_a_batch() {
        let address = Address::of("http", "127.0.0.1:1", "/devstoreaccount1/$batch", &Accounts::well_known());
        for uri in [
            "https://elsewhere.table.core.windows.net/T(PartitionKey='a',RowKey='b')",
            "http://127.0.0.1:1/devstoreaccount1/T(PartitionKey='a',RowKey='b')",
            "/devstoreaccount1/T(PartitionKey='a',RowKey='b')",
            "T(PartitionKey='a',RowKey='b')",
        ] {
            assert_eq!(address.inner_path(uri), ("T(PartitionKey='a',RowKey='b')", ""));
        }
        assert_eq!(address.inner_path("http://h/T()?$filter=a"), ("T()", "$filter=a"));
    }
}
