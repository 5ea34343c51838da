//! Files of blobs that are left when no object uses them any more.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::load::{Finding, Kind};
use crate::workspace;

/// How long the audit may take to remove what nobody uses, on a slow machine too.
const TIDY_WITHIN: Duration = Duration::from_secs(120);

/// The files below the directory of the blobs that are still there when the audit has had time to remove all: no object uses
/// them.
pub fn left_over(blobs: &Path) -> Result<Option<Finding>> {
    let begun = Instant::now();
    loop {
        let left = chunks(blobs)?;
        if left.is_empty() {
            return Ok(None);
        }
        if begun.elapsed() > TIDY_WITHIN {
            let what = format!("{} files of blobs that no object uses, as {:?}", left.len(), left[0]);
            return Ok(Some(Finding::new(Kind::Phantom, what)));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The names of all files below a directory; none if it is not there.
fn chunks(blobs: &Path) -> Result<Vec<String>> {
    if !blobs.exists() {
        return Ok(Vec::new());
    }
    // A file may go while the directory is read; then the next look sees what is left.
    let files = workspace::files(blobs).unwrap_or_else(|_| [(blobs.to_owned(), 0)].into());
    Ok(files.into_keys().map(|path| path.display().to_string()).collect())
}
