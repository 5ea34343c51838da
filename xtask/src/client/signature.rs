//! Signing requests: SharedKey with the development account, and an account SAS.
//!
//! Written from the documented string-to-sign and not shared with the server, so that the two check
//! each other. The SAS carries no date of the request: with it a client can talk to a server whose
//! clock is being turned back, which the 15-minute rule of SharedKey would refuse.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The development account that every emulator of these services knows.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";
/// Its key, public by design.
pub(crate) const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// The API version that requests name.
pub(crate) const VERSION: &str = "2020-12-06";

/// The `Authorization` header of a request by SharedKey.
pub(crate) fn shared_key(method: &str, content_type: &str, date: &str, target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut resource = format!("/{ACCOUNT}{path}");
    if let Some(comp) = query.split('&').find_map(|pair| pair.strip_prefix("comp=")) {
        resource.push_str(&format!("?comp={comp}"));
    }
    let text = format!("{method}\n\n{content_type}\n{date}\n{resource}");
    format!("SharedKey {ACCOUNT}:{}", sign(&text))
}

/// The query of an account SAS that allows everything in the table service until 2099.
pub(crate) fn account_sas() -> String {
    let (permissions, services, kinds, expiry) = ("rwdlacu", "t", "sco", "2099-01-01T00:00:00Z");
    let text = format!("{ACCOUNT}\n{permissions}\n{services}\n{kinds}\n\n{expiry}\n\n\n{VERSION}\n\n");
    let signature = percent_encode(&sign(&text));
    let expiry = percent_encode(expiry);
    format!("sv={VERSION}&ss={services}&srt={kinds}&sp={permissions}&se={expiry}&sig={signature}")
}

fn sign(text: &str) -> String {
    let key = STANDARD.decode(KEY).expect("the well-known key is base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

/// Percent-encodes everything but letters, digits, `-`, `_`, `.` and `~`.
pub(crate) fn percent_encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Now, as HTTP dates are written: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn http_date() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    format_date(since.as_secs())
}

/// Seconds since 1970 as an HTTP date, by the algorithm of days from civil dates (eras of 400 years).
fn format_date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468; // days since 0000-03-01
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12; // 0 is January
    let year = era * 400 + year_of_era + u64::from(month < 2);
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_known_days() {
        assert_eq!(format_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(format_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(format_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(format_date(4_102_444_799), "Thu, 31 Dec 2099 23:59:59 GMT");
    }

    #[test]
    fn signatures_are_stable() {
        // Computed once with Python's hmac module, for the string-to-sign in the documentation.
        let header =
            shared_key("GET", "", "Sun, 06 Nov 1994 08:49:37 GMT", "/devstoreaccount1/Tables?$top=1");
        assert_eq!(header, "SharedKey devstoreaccount1:on2YE3RDKhN+6hC1Zsw5vqsRcA4G+m9/+Xf3bksaVyo=");
    }
}
