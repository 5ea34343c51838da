//! Numbers and times for people. Pure.

use std::time::Duration;

/// A number without fractions, with a comma after each three digits.
pub(crate) fn count(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as per cent. One decimal is shown, so that nothing that is not all is shown as 100 %.
pub(crate) fn percent(share: f64) -> String {
    let rounded = (share * 1000.0).floor() / 10.0;
    if rounded.fract() == 0.0 { format!("{rounded:.0} %") } else { format!("{rounded:.1} %") }
}

/// Milliseconds, with a decimal below 10.
pub(crate) fn millis(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.1} ms") } else { format!("{} ms", count(ms)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!([0.0, 999.6, 12_345.0, 1e6].map(count), ["0", "1,000", "12,345", "1,000,000"]);
        assert_eq!([0.9999, 1.0, 0.5, 0.125].map(percent), ["99.9 %", "100 %", "50 %", "12.5 %"]);
        assert_eq!(
            [4, 40, 4000].map(|ms| millis(Duration::from_millis(ms))),
            ["4.0 ms", "40 ms", "4,000 ms"]
        );
    }
}
