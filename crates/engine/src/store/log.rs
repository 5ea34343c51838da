//! Checks that the log is whole: that no file is missing in its middle.
//!
//! SlateDB gives the files of a database's log consecutive numbers, writes one after the other, and finds
//! the last one by probing. *Seen*: if a file in the middle is missing, SlateDB takes the log for ended
//! there and opens without an error. Then the writes of that file are lost, and perhaps those of all files
//! after it. The numbers show the gap. If the newest manifest is missing, the one before it needs older
//! files of the log, which have been collected since: that shows as a gap as well.
//!
//! One loss cannot be seen: if the very last files are missing, nothing else tells of them.

use std::sync::Arc;

use futures::TryStreamExt;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, Result};
use slatedb_common::retry::NonRetryable;

use super::damage::{Damage, DamagedFile};

/// Checks that the log of the database at `database` has every file after number `replayed_until` (which
/// its manifest says) up to its last, and returns their numbers, ascending. Call it before the database is
/// opened, since an opening goes on writing where it believes the end to be. From the error,
/// [`super::damaged_file`] finds a [`DamagedFile`] whose path is that of the missing object.
pub fn check_log<'a>(
    objects: &'a Arc<dyn ObjectStore>,
    database: &'a str,
    replayed_until: u64,
) -> BoxFuture<'a, Result<Vec<u64>>> {
    Box::pin(async move {
        let directory = directory_of(database);
        let offset = log_file(database, replayed_until);
        let listed: Vec<_> = objects.list_with_offset(Some(&directory), &offset).try_collect().await?;
        let number = |path: &Path| path.filename()?.strip_suffix(".sst")?.parse::<u64>().ok();
        let mut numbers: Vec<u64> = listed.iter().filter_map(|meta| number(&meta.location)).collect();
        numbers.sort_unstable();
        numbers.retain(|number| *number > replayed_until);
        let mut wanted = replayed_until + 1;
        for &found in &numbers {
            while wanted < found {
                let object = log_file(database, wanted);
                // If the log is being written, a listing may show a file and not the one before it.
                match objects.head(&object).await {
                    Ok(_) => wanted += 1,
                    Err(Error::NotFound { .. }) => return Err(missing(&object, found)),
                    Err(error) => return Err(error),
                }
            }
            wanted = found + 1;
        }
        Ok(numbers)
    })
}

fn directory_of(database: &str) -> Path {
    Path::from(format!("{database}/wal"))
}

/// The file of the log of the database at `database` with this number.
pub(crate) fn log_file(database: &str, number: u64) -> Path {
    directory_of(database).join(format!("{number:020}.sst"))
}

fn missing(object: &Path, found: u64) -> Error {
    let damaged = DamagedFile { file: object.as_ref().into(), reason: Damage::Missing(found) };
    Error::Generic { store: "rangehold", source: Box::new(NonRetryable(Box::new(damaged))) }
}
