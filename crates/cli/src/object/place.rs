//! Where files and objects are: `gs://bucket/name#generation`, a path, or `-`.
//!
//! Pure. It also decides what a copy is called, and which names of objects may become paths. An object's name is
//! not a path: it may hold `..` or begin with a slash, and a download must never leave its folder.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use rangehold_client::object::Generation;

/// The beginning of names in the cloud.
const SCHEME: &str = "gs://";
/// What makes a name a pattern.
const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

/// A source or a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Standard input or output.
    Pipe,
    /// A file or a folder.
    Path(PathBuf),
    /// An object, a folder of objects, a bucket, or a pattern of them.
    Cloud(Cloud),
}

/// Something in a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cloud {
    /// Empty for `gs://`, all buckets.
    pub(crate) bucket: String,
    /// A name, the beginning of names, or a pattern; empty for the whole bucket.
    pub(crate) name: String,
    pub(crate) generation: Option<Generation>,
}

/// Reads an argument. Fails for what looks like a name in the cloud and is not.
pub(crate) fn place(text: &str) -> Result<Place> {
    if text == "-" {
        return Ok(Place::Pipe);
    }
    match text.starts_with(SCHEME) {
        true => Ok(Place::Cloud(cloud(text)?)),
        false => Ok(Place::Path(PathBuf::from(text))),
    }
}

/// Reads `gs://bucket/name`, with or without `#generation`.
pub(crate) fn cloud(text: &str) -> Result<Cloud> {
    let Some(rest) = text.strip_prefix(SCHEME) else {
        bail!("{text:?} is not a name of the cloud: write it as gs://BUCKET/NAME");
    };
    let (bucket, name) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() && !name.is_empty() {
        bail!("{text:?} has no bucket: write it as gs://BUCKET/NAME");
    }
    if bucket.contains(WILDCARDS) {
        bail!("{text:?} has a pattern for the bucket: patterns are for names of objects");
    }
    // A # without a number behind it is a part of the name.
    let numbered = name.rsplit_once('#').and_then(|(name, digits)| Some((name, digits.parse().ok()?)));
    let (name, generation) = match numbered {
        Some((name, generation)) => (name, Some(Generation(generation))),
        None => (name, None),
    };
    Ok(Cloud { bucket: bucket.to_owned(), name: name.to_owned(), generation })
}

impl Cloud {
    pub(crate) fn is_pattern(&self) -> bool {
        self.name.contains(WILDCARDS)
    }

    /// The name without a pattern; for a pattern the folder in which it begins.
    pub(crate) fn literal_folder(&self) -> &str {
        let literal = self.name.split(WILDCARDS).next().unwrap_or_default();
        &literal[..literal.rfind('/').map_or(0, |slash| slash + 1)]
    }

    /// The beginning of the names of a folder: with a slash at its end.
    pub(crate) fn as_folder(&self) -> String {
        match self.name.is_empty() || self.name.ends_with('/') {
            true => self.name.clone(),
            false => format!("{}/", self.name),
        }
    }

    /// Whether copies are put below this name, and are not called by it.
    pub(crate) fn is_folder(&self) -> bool {
        self.name.is_empty() || self.name.ends_with('/')
    }
}

impl std::fmt::Display for Cloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{SCHEME}{}", self.bucket)?;
        if !self.name.is_empty() {
            write!(f, "/{}", self.name)?;
        }
        self.generation.map_or(Ok(()), |generation| write!(f, "#{generation}"))
    }
}

/// The last part of a name; that of `a/b/` is `b`.
pub(crate) fn base(name: &str) -> &str {
    let name = name.trim_end_matches('/');
    name.rsplit_once('/').map_or(name, |(_, base)| base)
}

/// The path of an object below a folder. Fails for a name that would lead out of it, or that no file can have.
pub(crate) fn below(folder: &Path, name: &str) -> Result<PathBuf> {
    let refuse = |why: &str| bail!("the name {name:?} cannot be a file below {}: {why}", folder.display());
    if name.is_empty() || name.ends_with('/') {
        return refuse("it has no file's name at its end");
    }
    let mut path = folder.to_owned();
    for part in name.split('/') {
        match part {
            "" => return refuse("it begins with a slash, or has two in a row"),
            "." | ".." => return refuse("it has a part . or .., which would lead elsewhere"),
            _ if part.contains(['\0', '\\']) => return refuse("it has a character that a path cannot have"),
            _ => path.push(part),
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (text, bucket, name, generation) in [
            ("gs://", "", "", None),
            ("gs://b", "b", "", None),
            ("gs://b/", "b", "", None),
            ("gs://b/a//x y#1", "b", "a//x y", Some(1)),
            ("gs://b/c#", "b", "c#", None),
            ("gs://b/c#d", "b", "c#d", None),
            ("gs://b/c#d#7", "b", "c#d", Some(7)),
        ] {
            let read = cloud(text).expect(text);
            let generation = generation.map(Generation);
            assert_eq!(
                (read.bucket.as_str(), read.name.as_str(), read.generation),
                (bucket, name, generation)
            );
        }
        for text in ["gs:///x", "gs://b*/x", "b/x"] {
            assert!(cloud(text).is_err(), "{text}");
        }
        assert_eq!(place("-").expect("a pipe"), Place::Pipe);
        assert_eq!(place("a/b").expect("a path"), Place::Path("a/b".into()));
        assert_eq!(cloud("gs://b/x/y*/z").expect("a pattern").literal_folder(), "x/");
        assert_eq!([base("a/b/"), base("a/b"), base("c")], ["b", "b", "c"]);
    }

    #[test]
    fn no_name_of_an_object_leads_out_of_the_folder() {
        let folder = Path::new("down");
        assert_eq!(below(folder, "a/b..c/.d").expect("a path"), Path::new("down/a/b..c/.d"));
        for name in
            ["..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", "", ".", "./x", "a\\..\\b", "a\0"]
        {
            let error = below(folder, name).expect_err(name).to_string();
            assert!(error.contains("cannot be a file below down"), "{error}");
        }
    }
}
