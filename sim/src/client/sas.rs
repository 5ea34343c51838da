//! The credential of all simulated clients: an account SAS that allows everything until 2099.
//!
//! It carries no date of the request, so a client can talk to a process whose clock is wrong.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rangehold_server::accounts::{WELL_KNOWN_ACCOUNT, WELL_KNOWN_KEY};
use sha2::Sha256;

const VERSION: &str = "2020-12-06";

/// The query that proves which account asks.
pub fn query() -> String {
    let (permissions, services, kinds, expiry) = ("rwdlacu", "t", "sco", "2099-01-01T00:00:00Z");
    let text =
        format!("{WELL_KNOWN_ACCOUNT}\n{permissions}\n{services}\n{kinds}\n\n{expiry}\n\n\n{VERSION}\n\n");
    let key = STANDARD.decode(WELL_KNOWN_KEY).expect("the well-known key is base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let [expiry, signature] = [expiry, &signature].map(percent_encoded);
    format!("sv={VERSION}&ss={services}&srt={kinds}&sp={permissions}&se={expiry}&sig={signature}")
}

/// Percent-encodes everything but letters, digits, `-`, `_`, `.` and `~`.
pub fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
