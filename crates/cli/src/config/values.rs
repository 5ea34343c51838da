//! Values that are written in a form of their own: sizes, hosts and crashes.

use std::net::{IpAddr, ToSocketAddrs};

use anyhow::{Context, Result, bail};
use rangehold_engine::Step;

/// When the process kills itself, for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crash {
    /// After this step of a change.
    pub(crate) after: Step,
    /// How many times the step must be reached; at least 1.
    pub(crate) occurrence: u64,
}

/// Bytes of a size such as `512MiB`, `2GiB`, `1048576`.
pub(super) fn parse_size(text: &str) -> Result<u64> {
    let digits = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.trim()[digits.len()..].to_ascii_lowercase();
    let wrong = || format!("{text:?}: write a size as 512MiB, 2GiB or a number of bytes");
    let factor: u64 = match unit.as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => bail!(wrong()),
    };
    let number: u64 = digits.trim().parse().with_context(wrong)?;
    number.checked_mul(factor).with_context(|| format!("{text:?} is too large"))
}

/// The address of a host that is given as an address or as a name. Of several addresses it takes the first of IPv4, or else the first.
pub(super) fn parse_host(text: &str) -> Result<IpAddr> {
    let host = text.trim().trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse() {
        return Ok(address);
    }
    let found = (host, 0)
        .to_socket_addrs()
        .with_context(|| format!("{text:?} is neither an address nor a known name"))?;
    let addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    let v4 = addresses.iter().find(|address| address.is_ipv4());
    v4.or(addresses.first()).copied().with_context(|| format!("{text:?} has no address"))
}

/// Reads a crash such as `cloned` or `cloned:2`.
pub(super) fn parse_crash(text: &str) -> Result<Crash> {
    let (name, occurrence) = text.split_once(':').unwrap_or((text, "1"));
    let step = Step::ALL.into_iter().find(|step| step.name() == name);
    let occurrence = occurrence.parse().ok().filter(|occurrence| *occurrence > 0);
    let (Some(after), Some(occurrence)) = (step, occurrence) else {
        let names: Vec<&str> = Step::ALL.iter().map(|step| step.name()).collect();
        bail!(
            "--crash-after-step {text:?}: write STEP or STEP:N with N from 1, and one of the steps {}",
            names.join(", ")
        );
    };
    Ok(Crash { after, occurrence })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_or_are_bytes() {
        assert_eq!(parse_size("512MiB").unwrap(), 512 << 20);
        assert_eq!(parse_size("2g").unwrap(), 2 << 30);
        assert_eq!(parse_size("4096").unwrap(), 4096);
        for wrong in ["", "MiB", "12 apples", "99999999999999999999", "18446744073709551615GiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_host_is_an_address_or_a_name() {
        assert_eq!(parse_host("localhost").unwrap(), IpAddr::from([127, 0, 0, 1]));
        assert_eq!(parse_host("0.0.0.0").unwrap(), IpAddr::from([0, 0, 0, 0]));
        assert!(parse_host("[::1]").unwrap().is_loopback());
        assert!(
            format!("{:#}", parse_host("no.such.host.invalid").unwrap_err()).contains("no.such.host.invalid")
        );
    }

    #[test]
    fn a_crash_is_after_a_step() {
        let crash = |text| parse_crash(text).ok().map(|crash| (crash.after, crash.occurrence));
        assert_eq!(crash("heirs-open"), Some((Step::HeirsOpen, 1)));
        assert_eq!(crash("begun:3"), Some((Step::Begun, 3)));
        for wrong in ["", "begun:", "begun:0", "begin", "begun:-1"] {
            assert!(parse_crash(wrong).unwrap_err().to_string().contains("heirs-open"), "{wrong}");
        }
    }
}
