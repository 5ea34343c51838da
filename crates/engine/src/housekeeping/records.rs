//! Deletes change records once no database is left that could name them.
//!
//! A process that opens a retired database looks for the record that its last row names. The record of a
//! split is stored under the range that was split, and the record of a merge under the left range. So a
//! record must stay longer than the directory of its own range. It is enough to wait until *every*
//! directory is gone that was dead when the range was first found to be missing in the map: both parents
//! are among them, and every attempt at a child. After that no process can open a database for which the
//! deleted record would decide anything, and the number of a range is never given twice.

use std::collections::{BTreeMap, BTreeSet};

use object_store::path::Path;
use tokio::time::Instant;

use super::{range_of, step_is_done};
use crate::database::Databases;
use crate::record_name::CHANGES_PREFIX;
use crate::steps::SpaceStep;
use crate::store::{ObjectError, Store};

/// For each dead range, when it was first found dead. Its records wait for the directories that were dead
/// by then.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<u64, Instant>);

impl Records {
    /// The numbers of all ranges that have records. Call this before you ask which databases are living.
    pub(super) async fn list(databases: &Databases) -> Result<BTreeSet<u64>, ObjectError> {
        let prefix = Path::from(CHANGES_PREFIX);
        let listed = databases.objects.list_with_delimiter(Some(&prefix)).await;
        let listed = listed.map_err(ObjectError::while_doing("listing", &prefix))?;
        Ok(listed.common_prefixes.iter().filter_map(|path| path.filename()?.parse().ok()).collect())
    }

    /// Deletes those records of the `recorded` ranges that no process can need any more. `living` are the
    /// paths of databases. `oldest` is the time since when the longest dead directory has been dead.
    pub(super) async fn forget(
        &mut self,
        databases: &Databases,
        store: &Store,
        recorded: BTreeSet<u64>,
        living: &BTreeSet<String>,
        (now, oldest): (Instant, Option<Instant>),
    ) -> Result<(), ObjectError> {
        for range in self.due(recorded, living, (now, oldest)) {
            let path = format!("{CHANGES_PREFIX}/{range}");
            databases.delete_objects(&path).await?;
            step_is_done(databases, SpaceStep::RecordsDeleted, &path).await;
            store.remove_directory(&path).await.map_err(ObjectError::while_doing("removing", &path))?;
            self.0.remove(&range);
            step_is_done(databases, SpaceStep::Forgotten, &path).await;
        }
        Ok(())
    }

    /// The ranges whose records may be deleted.
    fn due(
        &mut self,
        recorded: BTreeSet<u64>,
        living: &BTreeSet<String>,
        (now, oldest): (Instant, Option<Instant>),
    ) -> Vec<u64> {
        let living: BTreeSet<u64> = living.iter().filter_map(|path| range_of(path)).collect();
        self.0.retain(|range, _| recorded.contains(range) && !living.contains(range));
        for range in recorded.into_iter().filter(|range| !living.contains(range)) {
            self.0.entry(range).or_insert(now);
        }
        let is_over = |since: &Instant| oldest.is_none_or(|oldest| oldest > *since);
        self.0.iter().filter(|(_, since)| is_over(since)).map(|(range, _)| *range).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_record_goes_after_every_directory_that_was_dead_with_its_range() {
        let set = |ids: &[u64]| ids.iter().copied().collect::<BTreeSet<u64>>();
        let paths = |names: &[&str]| names.iter().map(|name| format!("ranges/{name}")).collect();
        let began = Instant::now();
        let at = |second| began + Duration::from_secs(second);
        let mut records = Records::default();
        let merged = paths(&["4-1-1"]);
        // 2 and 3 became 4; 2 has the record, and its own directory is deleted first.
        assert!(records.due(set(&[2]), &paths(&["2-1-1", "3-1-1"]), (at(1), None)).is_empty(), "it lives");
        assert!(records.due(set(&[2]), &merged, (at(2), Some(at(2)))).is_empty());
        assert!(records.due(set(&[2]), &merged, (at(3), Some(at(2)))).is_empty(), "3 names the record too");
        // Records do not wait for a range that dies later, such as 4.
        assert_eq!(records.due(set(&[2, 4]), &paths(&["5-1-1"]), (at(4), Some(at(4)))), [2]);
    }
}
