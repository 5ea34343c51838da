//! The log is whole: no file is missing in its middle.
//!
//! SlateDB names the files of a database's log by consecutive numbers, writes one after the other,
//! and finds the last of them by probing. *Seen*: with one taken away in the middle, it takes the
//! log for ended there and opens without a word; the writes of that file, and perhaps of all behind
//! it, are lost. The numbers tell. Where the newest manifest is missing, the one before it leads
//! further back, to log files that have been collected since: that shows as a gap as well.
//!
//! What cannot be seen is that the very last files are missing: nothing else tells of them.

use std::sync::Arc;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, Result};
use slatedb_common::retry::NonRetryable;

use super::damage::DamagedFile;

/// Checks that the log of the database at `database` has every file after number `replayed_until`
/// (as its manifest says), up to its last, and returns their numbers, ascending. Call it before the
/// database is opened: an opening goes on writing where it believes the end to be. The error leads
/// to a [`DamagedFile`] ([`super::damaged_file`]) whose path is that of the object.
pub async fn check_log(
    objects: &Arc<dyn ObjectStore>,
    database: &str,
    replayed_until: u64,
) -> Result<Vec<u64>> {
    let directory = Path::from(format!("{database}/wal"));
    let offset = directory.clone().join(file_name(replayed_until));
    let listed: Vec<_> = objects.list_with_offset(Some(&directory), &offset).try_collect().await?;
    let number = |path: &Path| path.filename()?.strip_suffix(".sst")?.parse::<u64>().ok();
    let mut numbers: Vec<u64> = listed.iter().filter_map(|meta| number(&meta.location)).collect();
    numbers.sort_unstable();
    numbers.retain(|number| *number > replayed_until);
    let mut wanted = replayed_until + 1;
    for &found in &numbers {
        while wanted < found {
            let object = directory.clone().join(file_name(wanted));
            // A listing beside a writer may show a file and not the one before it.
            match objects.head(&object).await {
                Ok(_) => wanted += 1,
                Err(Error::NotFound { .. }) => return Err(missing(&object, found)),
                Err(error) => return Err(error),
            }
        }
        wanted = found + 1;
    }
    Ok(numbers)
}

fn file_name(number: u64) -> String {
    format!("{number:020}.sst")
}

fn missing(object: &Path, found: u64) -> Error {
    let reason = format!("it is missing from the log, which goes on with number {found}");
    let damaged = DamagedFile { file: object.as_ref().into(), reason };
    Error::Generic { store: "rangehold", source: Box::new(NonRetryable(Box::new(damaged))) }
}
