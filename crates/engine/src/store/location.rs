//! Where a store is, as a user writes it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// In the memory of this process: the data is gone when the process ends.
    Memory,
    /// In this directory, which one process at a time serves.
    Directory(PathBuf),
}

/// A text that names no store this program can open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// A scheme whose stores are not supported yet.
    #[error(
        "{text:?} names a store behind {scheme}:, which this release cannot use; give a directory, file:///path or memory:"
    )]
    NotYet {
        /// The text as given.
        text: String,
        /// Its scheme.
        scheme: String,
    },
    /// A scheme that no store has.
    #[error(
        "{text:?} begins with the unknown scheme {scheme}:; give a directory, file:///path or memory: (a directory of that name: ./{text})"
    )]
    UnknownScheme {
        /// The text as given.
        text: String,
        /// Its scheme.
        scheme: String,
    },
    /// A text of a known form that names no store.
    #[error("{text:?} names no store: {reason}")]
    Malformed {
        /// The text as given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl StoreLocation {
    /// Reads a location: `memory:`, `file:///absolute/path` (or `file:` and any path), or the plain path of
    /// a directory. A text that begins with `scheme:` is never taken for a path, so that a typing error
    /// does not make a directory named `s3:`. Nothing on the disk is touched.
    pub fn parse(text: &str) -> Result<Self, LocationError> {
        let malformed = |reason| LocationError::Malformed { text: text.to_owned(), reason };
        if text.is_empty() {
            return Err(malformed("it is empty"));
        }
        if text.contains('\0') {
            return Err(malformed("a path cannot hold a NUL character"));
        }
        let Some((scheme, rest)) = split_scheme(text) else {
            return Ok(Self::Directory(PathBuf::from(text)));
        };
        match scheme.to_ascii_lowercase().as_str() {
            "memory" if matches!(rest, "" | "//" | "///") => Ok(Self::Memory),
            "memory" => Err(malformed("nothing may follow memory:")),
            "file" => file_path(rest).map(Self::Directory).map_err(malformed),
            "s3" | "gs" | "az" => {
                Err(LocationError::NotYet { text: text.to_owned(), scheme: scheme.to_owned() })
            }
            _ => Err(LocationError::UnknownScheme { text: text.to_owned(), scheme: scheme.to_owned() }),
        }
    }

    /// The directory, if the store is in one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Memory => None,
            Self::Directory(path) => Some(path),
        }
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Directory(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The scheme and the rest of `scheme:rest`. With a slash before the colon, the text is a path.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(letters);
    is_scheme.then_some((scheme, rest))
}

/// The path of a `file:` location. Percent signs are not decoded, since people paste plain paths.
fn file_path(rest: &str) -> Result<PathBuf, &'static str> {
    let path = match rest.strip_prefix("//") {
        Some(after) if after.starts_with('/') => after,
        Some(after) => match after.strip_prefix("localhost") {
            Some(path) if path.starts_with('/') => path,
            _ => return Err("file:// must be followed by an absolute path, as in file:///var/lib/rangehold"),
        },
        None => rest,
    };
    if path.is_empty() {
        return Err("it holds no path");
    }
    Ok(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        let directory = |path: &str| Ok(StoreLocation::Directory(PathBuf::from(path)));
        let parse = |text: &str| StoreLocation::parse(text);
        assert_eq!(parse("memory:"), Ok(StoreLocation::Memory));
        assert_eq!(parse("./rangehold-data"), directory("./rangehold-data"));
        assert_eq!(parse("/a:b"), directory("/a:b"));
        assert_eq!(parse("./s3:"), directory("./s3:"));
        assert_eq!(parse("file:///var/lib/x y"), directory("/var/lib/x y"));
        assert_eq!(parse("file:data"), directory("data"));
        assert_eq!(parse("FILE://localhost/d"), directory("/d"));
    }

    #[test]
    fn what_is_refused_and_why() {
        let refused = |text: &str| StoreLocation::parse(text).expect_err("must be refused").to_string();
        for text in ["s3://bucket/a", "gs://bucket", "az://container"] {
            assert!(refused(text).contains("this release cannot use"), "{text}");
        }
        assert!(refused("https://example.org").contains("unknown scheme https:"));
        assert!(refused("file://data").contains("absolute path"));
        assert!(refused("memory:x").contains("nothing may follow"));
        assert!(refused("file://").contains("absolute path"));
        assert!(refused("").contains("empty"));
    }
}
