//! The names by which clients may call the object service, and the bucket that a name has in front.
//!
//! A web page could make a browser send requests to this machine: its own name is set to the machine's address, and
//! the browser then takes page and service for one site (DNS rebinding). Such requests carry the page's name in `Host`.
//! So a request whose `Host` is none of ours is refused. An IP address is always ours, since no such trick works with
//! addresses.
//!
//! *Host style*: `{bucket}.localhost` names a bucket in the host, as `{bucket}.storage.googleapis.com` does in the cloud.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The names of this server, without ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// The names of the loopback, and these names.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter().map(|name| name.to_ascii_lowercase());
        Self(std::iter::once("localhost".to_owned()).chain(names).collect())
    }

    /// What `host` names, with or without a port: `Some(None)` for this server, `Some(Some(bucket))` for a bucket of
    /// it, and `None` for something else.
    pub(super) fn bucket_of<'h>(&self, host: &'h str) -> Option<Option<&'h str>> {
        let name = without_port(host);
        let server =
            |name: &str| is_address(name) || self.0.iter().any(|ours| ours.eq_ignore_ascii_case(name));
        if server(name) {
            return Some(None);
        }
        // A bucket's name may have dots, so the server's name is what remains after some dot.
        let mut dots = name.match_indices('.').map(|(at, _)| at);
        dots.find(|at| *at > 0 && server(&name[at + 1..])).map(|at| Some(&name[..at]))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_address(name: &str) -> bool {
    let bracketed = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    name.parse::<Ipv4Addr>().is_ok() || bracketed.is_some_and(|name| name.parse::<Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_the_server_or_a_bucket_of_it_or_unknown() {
        let hosts = Hosts::new(["storage.example.com".to_owned()]);
        for server in
            ["127.0.0.1:4443", "localhost", "LocalHost:4443", "[::1]:4443", "10.0.0.7", "storage.example.com"]
        {
            assert_eq!(hosts.bucket_of(server), Some(None), "{server}");
        }
        assert_eq!(hosts.bucket_of("my.bucket.localhost:4443"), Some(Some("my.bucket")));
        assert_eq!(hosts.bucket_of("photos.storage.example.com"), Some(Some("photos")));
        assert_eq!(hosts.bucket_of("photos.127.0.0.1:4443"), Some(Some("photos")));
        for unknown in
            ["evil.example", "example.com", ".localhost", "localhost.evil.example", "", "localhost:80:80"]
        {
            assert_eq!(hosts.bucket_of(unknown), None, "{unknown}");
        }
    }
}
