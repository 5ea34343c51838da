//! Names of buckets and objects.
//!
//! A bucket's name has 3 to 63 characters, or up to 222 in parts of at most 63 between dots. It has
//! lower-case letters, digits, `-`, `_` and `.`, begins and ends with a letter or a digit, is not an IPv4
//! address, and has neither `goog` in front nor `google` in it. An object's name has 1 to 1,024 bytes of
//! UTF-8 and no line breaks; it is neither `.` nor `..` and does not begin with `.well-known/acme-challenge/`.
//! Everything else is allowed, `//` and `../` too: a name is not a path.

use std::net::Ipv4Addr;

use super::error::ObjectError;
use super::limits::NAME_BYTES_MAX;

/// Checks the name of a new bucket.
pub fn check_bucket(name: &str) -> Result<(), ObjectError> {
    let fault = |hint| Err(ObjectError::invalid("name", name, hint));
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    let allowed = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    if !bytes.iter().all(allowed) {
        return fault("Bucket names have lower-case letters, digits, '-', '_' and '.' only.");
    }
    if !is_end(bytes.first()) || !is_end(bytes.last()) {
        return fault("Bucket names begin and end with a letter or a digit.");
    }
    let longest = if name.contains('.') { 222 } else { 63 };
    if !(3..=longest).contains(&name.len()) || name.split('.').any(|part| part.is_empty() || part.len() > 63)
    {
        return fault(
            "Bucket names have 3 to 63 characters, or up to 222 with parts of 1 to 63 between dots.",
        );
    }
    if name.parse::<Ipv4Addr>().is_ok() {
        return fault("Bucket names are not addresses.");
    }
    if name.starts_with("goog") || name.contains("google") {
        return fault("Bucket names do not begin with 'goog' and do not have 'google' in them.");
    }
    Ok(())
}

/// Checks the name of a new object.
pub fn check_object(name: &str) -> Result<(), ObjectError> {
    let fault = |hint| Err(ObjectError::invalid("name", name, hint));
    if name.is_empty() {
        return Err(ObjectError::required("name"));
    }
    if name.len() > NAME_BYTES_MAX {
        return fault("The name of an object has at most 1024 bytes in UTF-8.");
    }
    if name.contains(['\r', '\n']) {
        return fault("The name of an object has no line breaks.");
    }
    if matches!(name, "." | "..") || name.starts_with(".well-known/acme-challenge/") {
        return fault("This name is reserved.");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_buckets_are_checked() {
        let long = ["a".repeat(63), "b".repeat(63), "c".repeat(63)].join(".");
        for name in ["abc", "a_b-c", "1.2.3", "my.bucket.example", &"a".repeat(63), &long] {
            assert_eq!(check_bucket(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "ab",
            "Abc",
            "-abc",
            "abc-",
            "a b",
            "abé",
            "1.2.3.4",
            "a..b",
            "goog-x",
            "my-google",
            &"a".repeat(64),
            &format!("{}.b", "a".repeat(64)),
            "a/b",
        ] {
            assert_eq!(check_bucket(name).map_err(|error| error.kind.status()), Err(400), "{name}");
        }
    }

    #[test]
    fn names_of_objects_are_checked() {
        for name in ["a", "a//b/../c", " ", "é".repeat(512).as_str(), "\u{1}", "...", "b/o/acl"] {
            assert_eq!(check_object(name), Ok(()), "{name}");
        }
        for name in ["", ".", "..", "a\nb", "a\r", ".well-known/acme-challenge/x", &"a".repeat(1025)] {
            assert!(check_object(name).is_err(), "{name}");
        }
    }
}
