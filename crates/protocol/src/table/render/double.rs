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
    let mut decimal = Decimal::new(number, number.is_subnormal().then_some(14));
    let mut precision = 15;
    let is_named = !number.is_subnormal() || decimal.names(number);
    if decimal.digits().len() > precision || !is_named {
        decimal = Decimal::new(number, Some(16));
        precision = 17;
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
    /// The shortest digits from which the number is read back; or, rounded, one digit and `more` digits after
    /// it. Zeros at the end are left out. The sign is dropped.
    fn new(number: f64, more: Option<usize>) -> Self {
        let mut text = [0; 32];
        let mut rest = &mut text[..];
        match more {
            None => write!(rest, "{:e}", number.abs()),
            Some(more) => write!(rest, "{:.*e}", more, number.abs()),
        }
        .expect("17 digits, a point and an exponent fit");
        let unused = rest.len();
        let text = &text[..text.len() - unused];
        let at = text.iter().position(|b| *b == b'e').expect("the format has an exponent");
        let mut decimal = Self {
            buffer: [0; 17],
            count: 0,
            exponent: std::str::from_utf8(&text[at + 1..])
                .ok()
                .and_then(|exponent| exponent.parse().ok())
                .expect("the format's exponent is a number"),
        };
        for digit in text[..at].iter().filter(|b| b.is_ascii_digit()) {
            decimal.buffer[decimal.count] = *digit;
            decimal.count += 1;
        }
        while decimal.count > 1 && decimal.buffer[decimal.count - 1] == b'0' {
            decimal.count -= 1;
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
