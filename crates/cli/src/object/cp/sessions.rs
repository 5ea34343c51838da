//! Sessions of uploads that a killed process left, so that the next one goes on with them.
//!
//! Each is a small file, named after source and target. It has the URL of the session, and size and time of change of
//! the source: another file must not go on with the session. The URL lets everyone upload, so only the user can read it.

use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rangehold_client::object::{Bucket, Crc32c};
use serde::{Deserialize, Serialize};

/// Where the session of one upload is remembered.
pub(super) struct Remembered {
    /// `None` if there is no folder for it.
    file: Option<PathBuf>,
    source: Source,
}

/// What a session uploads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Source {
    path: PathBuf,
    size: u64,
    /// Seconds and nanoseconds.
    changed: (i64, i64),
    target: String,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    source: Source,
    url: String,
}

/// The folder of the sessions: in the user's folder for states.
pub(in crate::object) fn folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let states = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    states.map(|states| states.join("rangehold/uploads"))
}

impl Remembered {
    /// The place of the session that uploads `path` as the object `name`.
    pub(super) fn of(
        folder: Option<&Path>,
        path: &Path,
        size: u64,
        bucket: &Bucket,
        name: &str,
    ) -> Result<Self> {
        let cannot = || format!("cannot read {}", path.display());
        let path = std::fs::canonicalize(path).with_context(cannot)?;
        let about = std::fs::metadata(&path).with_context(cannot)?;
        let target = format!("gs://{}/{name}", bucket.name());
        let key = format!("{}\n{target}", path.display());
        let sums = (Crc32c::of(key.as_bytes()).0, Crc32c::of(target.as_bytes()).0);
        let file = folder.map(|folder| folder.join(format!("{:08x}{:08x}.json", sums.0, sums.1)));
        Ok(Self { file, source: Source { path, size, changed: (about.mtime(), about.mtime_nsec()), target } })
    }

    /// The session that was begun with this source and target.
    pub(super) fn url(&self) -> Option<String> {
        let kept: Kept = serde_json::from_slice(&std::fs::read(self.file.as_ref()?).ok()?).ok()?;
        (kept.source == self.source).then_some(kept.url)
    }

    /// Remembers a session.
    pub(super) fn keep(&self, url: &str) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let cannot = || format!("cannot remember the upload in {}", file.display());
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).with_context(cannot)?;
        }
        let kept = serde_json::to_vec(&Kept { source: self.source.clone(), url: url.to_owned() })?;
        let part = file.with_extension(format!("{}.part", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).mode(0o600).open(&part);
        std::io::Write::write_all(&mut opened.with_context(cannot)?, &kept).with_context(cannot)?;
        std::fs::rename(&part, file).with_context(cannot)
    }

    /// Forgets the session, because it has ended.
    pub(super) fn forget(&self) {
        if let Some(file) = &self.file {
            // If it stays, the next process asks the service and learns that the session has ended.
            let _ = std::fs::remove_file(file);
        }
    }
}
