//! Several fields in one key: `BIB:01234__John__M__55`.
//!
//! Fields are joined by two underscores. What would make the key ambiguous, and what no key may have, is written as `=`
//! and two hexadecimal digits for each byte of UTF-8: underscores, `=`, `/ \ # ?` and control characters. So different
//! fields always make different keys, and a key can be taken apart. Keys sort by the first field, then by the second and so
//! on, as long as a field is not the beginning of another one; give numbers a fixed width with [`padded`](super::padded).

use super::KeyError;

const SEPARATOR: &str = "__";

/// The key of some fields.
pub fn composite(fields: &[&str]) -> String {
    let escaped: Vec<String> = fields.iter().map(|field| escape(field)).collect();
    escaped.join(SEPARATOR)
}

/// The fields of a key. Fails for a key that [`composite`] does not make.
pub fn parts(key: &str) -> Result<Vec<String>, KeyError> {
    let fields: Option<Vec<String>> = key.split(SEPARATOR).map(unescape).collect();
    let is_ours =
        |fields: &Vec<String>| composite(&fields.iter().map(String::as_str).collect::<Vec<_>>()) == key;
    fields.filter(is_ours).ok_or_else(|| KeyError(format!("the key {key:?} is not made of fields")))
}

fn is_plain(character: char) -> bool {
    !character.is_control() && !matches!(character, '_' | '=' | '/' | '\\' | '#' | '?')
}

fn escape(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    for character in field.chars() {
        if is_plain(character) {
            out.push(character);
        } else {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("={byte:02X}"));
            }
        }
    }
    out
}

/// The field of an escaped text; `None` if an escape is not complete, or its bytes are not UTF-8.
fn unescape(text: &str) -> Option<String> {
    let mut pieces = text.split('=');
    let mut out = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        out.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rangehold_protocol::table::names::check_key;

    use super::*;

    #[test]
    fn keys_have_the_documented_form() {
        assert_eq!(composite(&["BIB:01234", "John", "M", "55"]), "BIB:01234__John__M__55");
        assert_eq!(composite(&["AGE:055", "1234", "John", "M"]), "AGE:055__1234__John__M");
        assert_eq!(composite(&["snake_case", "a/b", "1=1"]), "snake=5Fcase__a=2Fb__1=3D1");
        for other in ["a_b", "=", "=5", "a=2f", "=C3", "a=41"] {
            assert!(parts(other).is_err(), "{other}");
        }
    }

    proptest! {
        #[test]
        fn different_fields_make_different_keys_that_can_be_taken_apart(
            fields in prop::collection::vec(".{0,8}|[_=/]{0,4}", 1..5)
        ) {
            let borrowed: Vec<&str> = fields.iter().map(String::as_str).collect();
            let key = composite(&borrowed);
            prop_assert!(check_key("RowKey", &key).is_ok());
            prop_assert_eq!(parts(&key), Ok(fields));
        }
    }
}
