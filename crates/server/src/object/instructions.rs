//! Faults that a download orders for itself, in the header `x-goog-emulator-instructions`.
//!
//! They are those of Google's storage-testbench, with which the tests of its client for C++ try what that does with bad
//! replies. All other faults are ordered by [retry tests](super::retry_tests), and the header counts only where these do.

use std::time::Duration;

use rangehold_protocol::object::request::{Api, Operation};

use super::ObjectService;
use super::exchange::Exchange;
use super::retry_tests::Fault;

/// The header, and its older name.
const HEADERS: [&str; 2] = ["x-goog-emulator-instructions", "x-goog-testbench-instructions"];
/// How long a reply stands still.
const STALL: Duration = Duration::from_secs(10);
/// The bytes of `stall-at-256KiB` and of `return-503-after-256K`.
const SOME_BYTES: u64 = 256 << 10;
/// The bytes of `return-broken-stream`.
const MANY_BYTES: u64 = 1 << 20;

impl ObjectService {
    /// The fault that a request for the bytes of an object orders for itself.
    pub(super) fn own_fault(&self, exchange: &Exchange<'_>, operation: &str) -> Option<Fault> {
        let is_download = exchange.is_media() || matches!(exchange.api, Api::Download | Api::Xml);
        if !self.options.retry_tests || !is_download || operation != Operation::ObjectsGet.name() {
            return None;
        }
        let instruction = HEADERS.iter().find_map(|name| exchange.header(name))?;
        let is_from_start = exchange.header("range").is_none_or(|range| range.starts_with("bytes=0-"));
        parse(instruction, is_from_start)
    }
}

/// Reads an instruction. One that is not known orders nothing, as in the testbench.
fn parse(instruction: &str, is_from_start: bool) -> Option<Fault> {
    match instruction {
        "return-corrupted-data" => Some(Fault::Corrupted),
        "return-broken-stream" => Some(Fault::BrokenBeyond(MANY_BYTES)),
        "stall-at-256KiB" => is_from_start.then_some(Fault::Stall(STALL, SOME_BYTES)),
        other if other.starts_with("stall-always") => Some(Fault::Stall(STALL, 0)),
        other => {
            // The client says at which try it is, and the third one is served.
            let tries = other.strip_prefix("return-503-after-256K")?;
            match (is_from_start, tries) {
                (true, _) => Some(Fault::BrokenBeyond(SOME_BYTES)),
                (false, "/retry-1" | "/retry-2") => Some(Fault::Status(503)),
                (false, _) => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_those_of_the_testbench() {
        let broken = Some(Fault::BrokenBeyond(256 << 10));
        for (instruction, from_start, later) in [
            ("return-corrupted-data", Some(Fault::Corrupted), Some(Fault::Corrupted)),
            ("stall-always", Some(Fault::Stall(STALL, 0)), Some(Fault::Stall(STALL, 0))),
            ("stall-at-256KiB", Some(Fault::Stall(STALL, 256 << 10)), None),
            ("return-503-after-256K", broken, None),
            ("return-503-after-256K/retry-2", broken, Some(Fault::Status(503))),
            ("return-503-after-256K/retry-3", broken, None),
            ("return-nothing", None, None),
        ] {
            let found = (parse(instruction, true), parse(instruction, false));
            assert_eq!(found, (from_start, later), "{instruction}");
        }
    }
}
