//! The log is whole: no file is missing in its middle.
//!
//! SlateDB names the files of a database's log by consecutive numbers and replays those it finds.
//! *Seen*: with one taken away in the middle it opens without a word, and the writes of that file
//! are lost. The numbers tell. Where the newest manifest is missing, the one before it leads
//! further back, to log files that have been collected since: that shows as a gap as well.
//!
//! What cannot be seen is that the very last files are missing: nothing else tells of them.

use futures::TryStreamExt;
use object_store::path::Path;

use super::Store;

impl Store {
    /// Checks that the log of the database at `database` has every file after number
    /// `replayed_until`, up to its last. Call it before the database is opened: an opening writes
    /// to the log, and collects what was replayed. The error leads to a [`super::DamagedFile`].
    pub async fn check_log(&self, database: &str, replayed_until: u64) -> object_store::Result<()> {
        let directory = Path::from(format!("{database}/wal"));
        let objects = self.object_store();
        let listed: Vec<_> = objects.list(Some(&directory)).try_collect().await?;
        let number = |path: &Path| path.filename()?.strip_suffix(".sst")?.parse::<u64>().ok();
        let mut numbers: Vec<u64> = listed.iter().filter_map(|meta| number(&meta.location)).collect();
        numbers.sort_unstable();
        let to_replay = numbers.into_iter().filter(|number| *number > replayed_until);
        let gap = (replayed_until + 1..)
            .zip(to_replay)
            .find(|(wanted, found)| wanted != found);
        let Some((missing, found)) = gap else {
            return Ok(());
        };
        let object = directory.join(format!("{missing:020}.sst"));
        let file = match self.root() {
            Some(root) => root.join(object.as_ref()),
            None => object.as_ref().into(),
        };
        let reason = format!("it is missing from the log, which goes on with number {found}");
        Err(self.0.damage.note(&file, reason))
    }
}
