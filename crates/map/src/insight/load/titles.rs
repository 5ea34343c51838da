//! How tables, buckets and objects are called in sentences.

use crate::insight::names::Namespace;
use crate::key::{BucketId, KIND_OBJECT, ObjectKey, TableId};

/// Names for sentences. A table or a bucket of which nothing is known is written by its id.
#[derive(Clone, Copy)]
pub struct Titles<'a> {
    /// The name of an account's table.
    pub table: &'a dyn Fn(&str, TableId) -> Option<String>,
    /// The name of a bucket, and whether its objects lie in folders.
    pub bucket: &'a dyn Fn(BucketId) -> Option<BucketTitle>,
}

/// A bucket, in sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketTitle {
    /// Its name.
    pub name: String,
    /// Whether its objects lie in folders. Then they are stored under names that their users do not know.
    pub namespace: Namespace,
}

/// An object whose rows are a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectTitle {
    bucket: String,
    name: StoredName,
}

/// The name of an object in its key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StoredName {
    /// The name that users know.
    Whole(String),
    /// The folder's number, and the name there.
    InFolder(u64, String),
    /// The rows that say which folders there are.
    Folders,
}

impl Titles<'static> {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { table: &|_, _| None, bucket: &|_| None };
}

impl ObjectTitle {
    /// The object with this partition, if it is one of an object.
    pub(super) fn of(partition: &[u8], titles: Titles<'_>) -> Option<Self> {
        let of_objects = partition.first() == Some(&KIND_OBJECT);
        let head = of_objects.then(|| [partition, &[0]].concat())?;
        let ObjectKey { bucket, name, .. } = ObjectKey::decode(&head).ok()?;
        let title = (titles.bucket)(bucket);
        let in_folder = || match in_folder(&name) {
            _ if name.is_empty() => Some(StoredName::Folders),
            parts => parts.map(|(id, rest)| StoredName::InFolder(id, rest.to_owned())),
        };
        // Of a bucket that is not known, a name of this form is taken for one in a folder.
        let is_flat = title.as_ref().is_some_and(|title| title.namespace == Namespace::Flat);
        let stored = if is_flat { None } else { in_folder() };
        Some(Self {
            bucket: title.map_or_else(
                || format!("bucket number {}", bucket.0),
                |title| format!("bucket {}", title.name),
            ),
            name: stored.unwrap_or_else(|| StoredName::Whole(name.into_owned())),
        })
    }

    /// The name that users know, if the key has it.
    pub(super) fn whole_name(&self) -> Option<&str> {
        match &self.name {
            StoredName::Whole(name) => Some(name),
            StoredName::InFolder(..) | StoredName::Folders => None,
        }
    }

    /// Whether it is not an object but the list of folders.
    pub(super) fn is_list_of_folders(&self) -> bool {
        self.name == StoredName::Folders
    }

    pub(super) fn in_words(&self) -> String {
        let bucket = &self.bucket;
        match &self.name {
            StoredName::Whole(name) | StoredName::InFolder(0, name) => format!("object {name:?} of {bucket}"),
            StoredName::InFolder(id, name) => format!("object {name:?} in folder number {id} of {bucket}"),
            StoredName::Folders => format!("the list of folders of {bucket}"),
        }
    }
}

/// The number of the folder in a stored name, which has 16 hex digits, and the name there.
fn in_folder(stored: &str) -> Option<(u64, &str)> {
    const ID_DIGITS: usize = 16;
    let (id, name) = stored.split_once('/').filter(|(id, _)| id.len() == ID_DIGITS)?;
    Some((u64::from_str_radix(id, 16).ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::PartitionPrefix;

    fn title(name: &str, namespace: Option<Namespace>) -> ObjectTitle {
        let bucket = |_| namespace.map(|namespace| BucketTitle { name: "photos".to_owned(), namespace });
        let partition = PartitionPrefix::object(BucketId(7), name);
        let titles = Titles { bucket: &bucket, ..Titles::UNKNOWN };
        ObjectTitle::of(partition.as_bytes(), titles).expect("it is the partition of an object")
    }

    #[test]
    fn objects_in_folders_are_called_by_their_names_there() {
        let stored = "0000000000000012/1.jpg";
        for (name, namespace, words) in [
            ("a/1.jpg", Some(Namespace::Flat), "object \"a/1.jpg\" of bucket photos"),
            ("a/1.jpg", None, "object \"a/1.jpg\" of bucket number 7"),
            (stored, Some(Namespace::Folders), "object \"1.jpg\" in folder number 18 of bucket photos"),
            (stored, None, "object \"1.jpg\" in folder number 18 of bucket number 7"),
            (stored, Some(Namespace::Flat), "object \"0000000000000012/1.jpg\" of bucket photos"),
            ("0000000000000000/1.jpg", Some(Namespace::Folders), "object \"1.jpg\" of bucket photos"),
            ("", Some(Namespace::Folders), "the list of folders of bucket photos"),
        ] {
            assert_eq!(title(name, namespace).in_words(), words, "{name} {namespace:?}");
        }
    }

    #[test]
    fn only_names_that_users_know_are_whole() {
        let stored = "0000000000000012/1.jpg";
        assert_eq!(title(stored, Some(Namespace::Folders)).whole_name(), None);
        assert_eq!(title(stored, None).whole_name(), None);
        assert_eq!(title(stored, Some(Namespace::Flat)).whole_name(), Some(stored));
        assert_eq!(title("a/1.jpg", None).whole_name(), Some("a/1.jpg"));
    }
}
