//! The names that tables, keys and properties may have.
//!
//! The error depends on what is wrong: the service has one for the length of a table's name and another
//! for its characters, and likewise for keys and for names of properties. Lengths count UTF-16 code units,
//! as .NET does.

use super::limits::{KEY_UNITS_MAX, PROPERTY_NAME_UNITS_MAX};
use crate::error::{ErrorCode, TableError};

/// Length in UTF-16 code units.
pub fn utf16_units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// Checks a table's name: a letter, then 2 to 62 letters or digits, ASCII only, and not the
/// reserved `Tables`.
///
/// Fails with `InvalidResourceName` for a wrong character, `OutOfRangeInput` for a wrong length.
pub fn check_table_name(name: &str) -> Result<(), TableError> {
    let begins_well = name.bytes().next().is_none_or(|b| b.is_ascii_alphabetic());
    if !begins_well || !name.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(ErrorCode::InvalidResourceName.into());
    }
    if !(3..=63).contains(&name.len()) {
        return Err(ErrorCode::OutOfRangeInput.into());
    }
    if name.eq_ignore_ascii_case("tables") {
        return Err(ErrorCode::InvalidResourceName.into());
    }
    Ok(())
}

/// Checks a PartitionKey or RowKey, named by `which`, in the body of an insert. Both may be empty.
///
/// Fails with `PropertyValueTooLarge` above [`KEY_UNITS_MAX`] (here the service treats a key as one more
/// property), and with `OutOfRangeInput` for `/ \ # ?` and for control characters (U+0000 to U+001F,
/// U+007F to U+009F).
pub fn check_key(which: &str, key: &str) -> Result<(), TableError> {
    check_key_length(key)?;
    let is_forbidden = |c: char| c.is_control() || matches!(c, '/' | '\\' | '#' | '?');
    if key.chars().any(is_forbidden) {
        return Err(TableError::new(
            ErrorCode::OutOfRangeInput,
            format!("The '{which}' parameter of value '{key}' is out of range."),
        ));
    }
    Ok(())
}

/// Checks a PartitionKey or RowKey in the URI of a write. The rules are those of [`check_key`], but the
/// service reports them differently: `InvalidInput` for slashes, `OutOfRangeInput` for the rest.
pub fn check_key_in_uri(key: &str) -> Result<(), TableError> {
    check_key_length(key)?;
    if key.contains(['/', '\\']) {
        return Err(TableError::invalid_input("Bad Request - Error in query syntax."));
    }
    if key.chars().any(|c| c.is_control() || matches!(c, '#' | '?')) {
        return Err(TableError::new(
            ErrorCode::OutOfRangeInput,
            "One of the request inputs is out of range.",
        ));
    }
    Ok(())
}

fn check_key_length(key: &str) -> Result<(), TableError> {
    match utf16_units(key) > KEY_UNITS_MAX {
        true => Err(ErrorCode::PropertyValueTooLarge.into()),
        false => Ok(()),
    }
}

/// Checks a property's name: an identifier of C#, at most [`PROPERTY_NAME_UNITS_MAX`] long.
///
/// The rule is exact for ASCII: a letter or `_`, then letters, digits and `_`. Beyond ASCII the check is
/// wider than C#: a name must begin with a letter, and later characters may be anything but white space and
/// control characters.
pub fn check_property_name(name: &str) -> Result<(), TableError> {
    if name.len() > PROPERTY_NAME_UNITS_MAX && utf16_units(name) > PROPERTY_NAME_UNITS_MAX {
        return Err(ErrorCode::PropertyNameTooLong.into());
    }
    let mut chars = name.chars();
    let begins_well = chars.next().is_some_and(|c| c == '_' || c.is_alphabetic());
    let goes_on_well = chars.all(|c| match c {
        '_' => true,
        c if c.is_ascii() => c.is_ascii_alphanumeric(),
        c => !c.is_whitespace() && !c.is_control(),
    });
    if begins_well && goes_on_well { Ok(()) } else { Err(ErrorCode::PropertyNameInvalid.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<(), TableError>) -> Option<ErrorCode> {
        result.err().map(|error| error.code)
    }

    #[test]
    fn table_names_are_checked_for_characters_and_length() {
        for name in ["abc", "Z09", &"a".repeat(63), "tables1"] {
            assert_eq!(code(check_table_name(name)), None, "{name}");
        }
        for name in ["1table", "my_table", "a//", "啊齄丂狛狜", "a-b", "Tables", "tables", "abc\0"] {
            let wrong = Some(ErrorCode::InvalidResourceName);
            assert_eq!(code(check_table_name(name)), wrong, "{name}");
        }
        for name in ["", "aa", &"a".repeat(64)] {
            let wrong = Some(ErrorCode::OutOfRangeInput);
            assert_eq!(code(check_table_name(name)), wrong, "{name}");
        }
    }

    #[test]
    fn keys_are_checked_for_characters_and_length() {
        for key in ["", "RK'@*$!%", "你好", "a b", &"\u{1F600}".repeat(512), "\u{A0}"] {
            assert_eq!(code(check_key("RowKey", key)), None, "{key}");
            assert_eq!(code(check_key_in_uri(key)), None, "{key}");
        }
        for key in ["a/b", "a\\b", "#", "?", "\t", "\0", "\u{7F}", "\u{9F}"] {
            let error = check_key("RowKey", key).unwrap_err();
            assert_eq!(error.code, ErrorCode::OutOfRangeInput, "{key}");
            let in_uri = match key.contains(['/', '\\']) {
                true => ErrorCode::InvalidInput,
                false => ErrorCode::OutOfRangeInput,
            };
            assert_eq!(code(check_key_in_uri(key)), Some(in_uri), "{key}");
            assert_eq!(error.text, format!("The 'RowKey' parameter of value '{key}' is out of range."));
        }
        for key in ["a".repeat(1025), "\u{1F600}".repeat(512) + "a", "/".repeat(1025)] {
            let wrong = Some(ErrorCode::PropertyValueTooLarge);
            assert_eq!(code(check_key("RowKey", &key)), wrong);
            assert_eq!(code(check_key_in_uri(&key)), wrong);
        }
    }

    #[test]
    fn property_names_are_identifiers() {
        for name in ["a", "_", "Birthday", "a1_", "größe", "名前", &"é".repeat(255), "कि"] {
            assert_eq!(code(check_property_name(name)), None, "{name}");
        }
        for name in ["", "123", "1a", "a b", "a-b", "a.b", "a$", "a@b", "ab\u{A0}", "-é"] {
            let wrong = Some(ErrorCode::PropertyNameInvalid);
            assert_eq!(code(check_property_name(name)), wrong, "{name}");
        }
        for name in ["a".repeat(256), "\u{20000}".repeat(128)] {
            assert_eq!(code(check_property_name(&name)), Some(ErrorCode::PropertyNameTooLong));
        }
    }
}
