//! Listing: a directory of a few files is listed by the calling thread.
//!
//! Opening, cloning or changing a database begins with a list of its manifests: a handful of files. In the
//! ordinary way a list takes two calls on a blocking thread and two waits for a turn after them. Each of these
//! was seen to take 10 ms while requests keep the processors busy, and a split lists a dozen times while writes
//! are held.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path as FilePath;

use object_store::ObjectMeta;
use object_store::path::{Path, PathPart};

use super::super::directory::is_staging;
use super::super::limits::INLINE_LIST_FILES_MAX;

/// The objects of `directory`, which are those below `prefix`, in the order of their names, with the sizes
/// of their files. `None` if there are many entries, or if not all of them are files: then they must be
/// listed in the ordinary way.
pub(super) fn few(directory: &FilePath, prefix: &Path) -> Option<Vec<ObjectMeta>> {
    let entries: Vec<DirEntry> = match fs::read_dir(directory) {
        Ok(entries) => entries.take(INLINE_LIST_FILES_MAX + 1).collect::<io::Result<_>>().ok()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Vec::new()),
        Err(_) => return None,
    };
    if entries.len() > INLINE_LIST_FILES_MAX {
        return None;
    }
    let mut objects = Vec::new();
    for entry in entries {
        let name = entry.file_name();
        if is_staging(&name) {
            continue;
        }
        let part = name.to_str().map(PathPart::from).filter(|part| part.as_ref() == name)?;
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // The file was deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => return None,
        };
        if !metadata.is_file() {
            return None;
        }
        objects.push(ObjectMeta {
            location: prefix.clone().join(part),
            last_modified: metadata.modified().ok()?.into(),
            size: metadata.len(),
            e_tag: None,
            version: None,
        });
    }
    objects.sort_unstable_by(|a, b| a.location.cmp(&b.location));
    Some(objects)
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, TryStreamExt};
    use object_store::ObjectStore;
    use object_store::local::LocalFileSystem;

    use super::*;

    async fn listed(root: &FilePath, prefix: &str) -> Vec<(Path, u64)> {
        let plain = LocalFileSystem::new_with_prefix(root).unwrap();
        let objects = plain.list(Some(&Path::from(prefix))).map_ok(|meta| (meta.location, meta.size));
        let mut objects: Vec<_> = objects.map(Result::unwrap).collect().await;
        objects.sort_unstable();
        objects
    }

    #[tokio::test]
    async fn a_few_files_are_listed_as_the_ordinary_way_has_them() {
        let root = tempfile::tempdir().unwrap();
        let few = |prefix: &str| {
            let found = few(&root.path().join(prefix), &Path::from(prefix))?;
            Some(found.into_iter().map(|meta| (meta.location, meta.size)).collect::<Vec<_>>())
        };
        assert_eq!(few("a"), Some(Vec::new()));
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        let write = |name: &str| fs::write(root.path().join("a/b").join(name), name).unwrap();
        ["3.manifest", "1.manifest", "1.manifest#1"].into_iter().for_each(write);
        assert_eq!(few("a"), None, "there are files below others");
        let found = few("a/b").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found, listed(root.path(), "a/b").await);
        assert_eq!(few("a/b/1.manifest"), None, "it is a file");
        (3..INLINE_LIST_FILES_MAX).for_each(|number| write(&number.to_string()));
        assert_eq!(few("a/b").unwrap(), listed(root.path(), "a/b").await);
        write("one more");
        assert_eq!(few("a/b"), None, "they are many");
        fs::remove_file(root.path().join("a/b/one more")).unwrap();
        fs::remove_file(root.path().join("a/b/3.manifest")).unwrap();
        write("odd#name");
        assert_eq!(few("a/b"), None, "its path is written otherwise");
    }
}
