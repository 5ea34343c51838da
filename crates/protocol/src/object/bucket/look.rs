//! What a request has seen of the folders of its bucket.
//!
//! In a bucket with folders, an object lies under the id of its folder, so that a folder is renamed without its objects.
//! The *stored name* of an object is made of that id and its name in the folder ([`crate::object::folder`]). A request finds
//! it once, and remembers it here together with the number of the last change of folders that it has seen.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Bucket;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The last rename or deletion of a folder of the bucket that came before the look.
    pub seen: u64,
    /// Stored names, and the whole names that led to them.
    names: BTreeMap<String, String>,
    /// The part of stored names that stands for a folder, and the folder's whole name. A walk comes to all names of a folder
    /// one after the other, so the last one is all that it needs.
    folder: Option<(String, String)>,
}

impl Look {
    /// A look that has found no name yet.
    pub fn new(seen: u64) -> Self {
        Self { seen, names: BTreeMap::new(), folder: None }
    }

    /// Remembers that a whole name led to a stored one.
    pub fn found(&mut self, stored: &str, whole: &str) {
        self.names.insert(stored.to_owned(), whole.to_owned());
    }

    /// Remembers the whole name of the folder whose objects have stored names that begin with `stored`, and forgets the one
    /// before.
    pub fn found_folder(&mut self, stored: &str, whole: &str) {
        self.folder = Some((stored.to_owned(), whole.to_owned()));
    }

    /// Whether the folder of a stored name was found.
    pub fn knows_folder_of(&self, stored: &str) -> bool {
        self.split(stored).is_some()
    }

    fn split<'s>(&self, stored: &'s str) -> Option<(&str, &'s str)> {
        let (folder, whole) = self.folder.as_ref()?;
        Some((whole, stored.strip_prefix(folder.as_str())?))
    }

    /// The stored names that were found, each with the whole name that led there.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(stored, whole)| (stored.as_str(), whole.as_str()))
    }
}

impl Bucket {
    /// The name that a client knows, for a stored one.
    pub fn shown<'a>(&'a self, stored: &'a str) -> &'a str {
        self.look.as_ref().and_then(|look| look.names.get(stored)).map_or(stored, String::as_str)
    }

    /// The same, if only the folder was found.
    pub fn whole<'a>(&'a self, stored: &'a str) -> Cow<'a, str> {
        match self.look.as_ref().and_then(|look| look.split(stored)) {
            Some((folder, name)) => Cow::Owned(format!("{folder}{name}")),
            None => Cow::Borrowed(self.shown(stored)),
        }
    }
}
