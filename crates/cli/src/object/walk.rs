//! The files of a folder, in the order in which an object service lists their names.
//!
//! That is the order of bytes of the whole names. A folder therefore comes where its name with a slash belongs: `a-b`, `a/b`, `a0`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use tokio::sync::mpsc;

use super::limits::FOUND_AHEAD;

/// The end of the names of files that a download has not finished.
pub(super) const PART_ENDING: &str = ".rangehold-part";

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// Its name below the folder, with slashes.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) size: u64,
}

/// The files below `folder`, in the order of their names. Links to files count as files, and links to folders are left out, so
/// that a circle of links does not run on. A folder that does not exist has no files if `may_lack`.
pub(super) fn files(folder: &Path, may_lack: bool) -> BoxStream<'static, Result<File>> {
    if may_lack && !folder.exists() {
        return stream::empty().boxed();
    }
    let (sender, receiver) = mpsc::channel(FOUND_AHEAD);
    let folder = folder.to_owned();
    // Ends when the receiver is gone, too.
    tokio::task::spawn_blocking(move || {
        if let Err(error) = walk(&folder, "", &sender) {
            let _ = sender.blocking_send(Err(error));
        }
    });
    stream::unfold(receiver, |mut receiver| async { receiver.recv().await.map(|file| (file, receiver)) })
        .boxed()
}

/// Sends the files of one folder. `Ok(false)` if nobody wants more.
fn walk(folder: &Path, prefix: &str, sender: &mpsc::Sender<Result<File>>) -> Result<bool> {
    for (mut name, path) in entries(folder)? {
        if name.ends_with('/') {
            name.insert_str(0, prefix);
            if !walk(&path, &name, sender)? {
                return Ok(false);
            }
            continue;
        }
        let size = std::fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?.len();
        let file = File { name: format!("{prefix}{name}"), path, size };
        if sender.blocking_send(Ok(file)).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The entries of a folder in their order; names of folders end in a slash.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let cannot = || format!("cannot read the folder {}", folder.display());
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let path = entry.path();
        let Ok(mut name) = entry.file_name().into_string() else {
            anyhow::bail!("{} cannot be the name of an object: it is not UTF-8", path.display());
        };
        let kind = entry.file_type().with_context(cannot)?;
        let is_link = kind.is_symlink();
        let is_folder = if is_link { path.is_dir() } else { kind.is_dir() };
        match (is_folder, is_link) {
            (true, true) => continue,
            (true, false) => name.push('/'),
            (false, _) if !path.is_file() || name.ends_with(PART_ENDING) => continue,
            (false, _) => {}
        }
        entries.push((name, path));
    }
    entries.sort();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    #[tokio::test]
    async fn files_come_in_the_order_of_names_of_objects() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["a/b", "a-b", "a0", "a/c/d", "z", ".x.rangehold-part"] {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it is below")).expect("a folder");
            std::fs::write(path, name).expect("a file");
        }
        std::os::unix::fs::symlink("..", directory.path().join("a/loop")).expect("a link");
        let found: Vec<File> = files(directory.path(), false).try_collect().await.expect("they can be read");
        let names: Vec<&str> = found.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["a-b", "a/b", "a/c/d", "a0", "z"]);
        assert!(files(&directory.path().join("none"), false).next().await.expect("an error").is_err());
        assert!(files(&directory.path().join("none"), true).next().await.is_none());
    }
}
