//! Doubles as text in the service's form, which is the round-trip format `R` of .NET Framework.
//!
//! A number has fifteen significant digits if they are enough to read the same number back, and seventeen
//! digits if not. It never has sixteen, so this is not the shortest form (recorded: `9.2233720368547758E+21`,
//! though `9.223372036854776E+21` is the same number). A number below 1E-4, or with more digits before the
//! point than its significant ones, is written with an exponent, which has a sign and at least two digits. A
//! number that would look like an integer gets `.0`, so that a reader does not take it for an Int32
//! (recorded: `5.0`).

use std::io::Write;

/// Appends a finite number.
pub(super) fn put_double(out: &mut Vec<u8>, number: f64) {
    // If the shortest form has at most fifteen digits, it equals the form with fifteen digits without its
    // zeros. That is not true for subnormal numbers, so those are rounded to fifteen digits and read back.
    let mut precision = 15;
    let mut decimal = match number.is_subnormal() {
        true => Decimal::rounded(number, precision),
        false => Decimal::shortest(number),
    };
    let is_named = !number.is_subnormal() || decimal.names(number);
    if decimal.digits().len() > precision || !is_named {
        precision = 17;
        // If the shortest form has seventeen digits, it is the number rounded to them.
        if number.is_subnormal() || decimal.digits().len() < precision {
            decimal = Decimal::rounded(number, precision);
        }
    }
    if number.is_sign_negative() {
        out.push(b'-');
    }
    let digits = decimal.digits();
    // How many digits stand before the point. Zero or less: as many zeros stand behind it.
    let point = decimal.exponent + 1;
    if point > precision as i32 || point < -3 {
        put_with_exponent(out, digits, decimal.exponent);
    } else if point <= 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + point.unsigned_abs() as usize, b'0');
        out.extend_from_slice(digits);
    } else {
        let before = digits.len().min(point as usize);
        out.extend_from_slice(&digits[..before]);
        out.resize(out.len() + point as usize - before, b'0');
        out.push(b'.');
        out.extend_from_slice(if before < digits.len() { &digits[before..] } else { b"0" });
    }
}

fn put_with_exponent(out: &mut Vec<u8>, digits: &[u8], exponent: i32) {
    out.push(digits[0]);
    if digits.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    write!(out, "E{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        .expect("a vector takes all bytes");
}

/// A number as digits and a power of ten. The first digit stands before the point.
struct Decimal {
    buffer: [u8; 17],
    count: usize,
    exponent: i32,
}

impl Decimal {
    /// The shortest digits from which the number is read back. The sign is dropped.
    fn shortest(number: f64) -> Self {
        // The writer of JSON is several times as fast as the standard library's.
        Self::of(|text| serde_json::to_writer(text, &number.abs()).expect("a finite number fits"))
    }

    /// The number rounded to so many digits. Zeros at the end are left out. The sign is dropped.
    fn rounded(number: f64, digits: usize) -> Self {
        Self::of(|text| write!(text, "{:.*e}", digits - 1, number.abs()).expect("17 digits fit"))
    }

    /// Reads what `put` writes: digits, perhaps with a point and an exponent.
    fn of(put: impl FnOnce(&mut &mut [u8])) -> Self {
        let mut text = [0; 32];
        let mut rest = &mut text[..];
        put(&mut rest);
        let unused = rest.len();
        let text = &text[..text.len() - unused];
        let end = text.iter().position(|byte| *byte == b'e').unwrap_or(text.len());
        let exponent = std::str::from_utf8(text.get(end + 1..).unwrap_or(b"0")).ok();
        let exponent: i32 = exponent.and_then(|text| text.parse().ok()).expect("an exponent is a number");
        let point = text[..end].iter().position(|byte| *byte == b'.').unwrap_or(end);
        let mut decimal = Self { buffer: [0; 17], count: 0, exponent: exponent + point as i32 - 1 };
        for digit in text[..end].iter().filter(|byte| byte.is_ascii_digit()) {
            // Zeros before the first digit that counts.
            if decimal.count == 1 && decimal.buffer[0] == b'0' {
                decimal.count = 0;
                decimal.exponent -= 1;
            }
            // Numbers with more digits before the point end with zeros.
            if decimal.count < decimal.buffer.len() {
                decimal.buffer[decimal.count] = *digit;
                decimal.count += 1;
            }
        }
        while decimal.count > 1 && decimal.buffer[decimal.count - 1] == b'0' {
            decimal.count -= 1;
        }
        if decimal.digits() == b"0" {
            decimal.exponent = 0;
        }
        decimal
    }

    /// Whether the digits are read as this number, without its sign.
    fn names(&self, number: f64) -> bool {
        let digits = std::str::from_utf8(self.digits()).expect("digits are ASCII");
        let unit = self.exponent + 1 - self.count as i32;
        format!("{digits}e{unit}").parse() == Ok(number.abs())
    }

    fn digits(&self) -> &[u8] {
        &self.buffer[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(number: f64) -> String {
        let mut out = Vec::new();
        put_double(&mut out, number);
        String::from_utf8(out).expect("only ASCII is written")
    }

    #[test]
    fn recorded_and_documented_texts_are_written() {
        for (number, expected) in [
            (5.0, "5.0"),
            (3.1, "3.1"),
            (9_223_372_036_854_775_808_000.0, "9.2233720368547758E+21"),
            ("19.100000000000001".parse().unwrap(), "19.1"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e14, "100000000000000.0"),
            (1e15, "1E+15"),
            (1.5e15, "1.5E+15"),
            (9_007_199_254_740_992.0, "9007199254740992.0"),
            (1e-4, "0.0001"),
            (1e-5, "1E-05"),
            (1.25e-7, "1.25E-07"),
            (5e-324, "4.94065645841247E-324"),
            (f64::from_bits(2_008_413_833_304_794), "9.9228827766822673E-309"),
            (f64::MAX, "1.7976931348623157E+308"),
            (-1e100, "-1E+100"),
            (2_147_483_648.0, "2147483648.0"),
        ] {
            assert_eq!(text(number), expected);
        }
    }

    /// The digits of a number's text, without zeros before and behind them.
    fn digits_of(text: &str) -> String {
        let digits = text.split(['e', 'E']).next().unwrap().replace('.', "");
        digits.trim_matches('0').to_owned()
    }

    proptest! {
        #[test]
        fn a_text_is_read_back_and_does_not_look_like_an_integer(bits: u64) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let text = text(number);
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
            prop_assert_eq!(serde_json::from_str::<f64>(&text).unwrap().to_bits(), bits);
            prop_assert!(text.contains(['.', 'E']));
        }

        /// Fractions of powers of two may lie in the middle between two decimals.
        #[test]
        fn other_numbers_have_seventeen_digits(whole: u64, power in 0..80) {
            let number = whole as f64 / 2f64.powi(power);
            let fifteen: f64 = format!("{number:.14e}").parse().unwrap();
            let digits = if fifteen == number { 14 } else { 16 };
            prop_assert_eq!(digits_of(&text(number)), digits_of(&format!("{number:.digits$e}")));
        }

        #[test]
        fn fifteen_digits_are_kept_as_they_are(digits in 1..10i64.pow(15), shift in -4..0i32) {
            let number = digits as f64 * 10f64.powi(shift);
            let fifteen: f64 = format!("{number:.14e}").parse().unwrap();
            if fifteen == number {
                let shown = text(number);
                let significant = shown.trim_matches(['0', '.']).replace('.', "");
                prop_assert!(significant.trim_start_matches('0').len() <= 15, "{}", shown);
            }
        }
    }
}
