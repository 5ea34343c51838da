//! Change records go with the last database that could ask for them.
//!
//! A process that opens a retired database looks for the record that its last row names. The record of a split lies
//! under the range that was split, that of a merge under the left one, so a record has to stay for
//! longer than its own range's directory. It is enough to wait for *every* directory that was dead when the
//! range was first seen to be gone from the map: among them are both parents, and every attempt at a
//! child. Nobody can open what a deleted record would have decided about; and a range's number is
//! never given twice.

use std::collections::{BTreeMap, BTreeSet};

use object_store::path::Path;
use tokio::time::Instant;

use super::{range_of, step_is_done};
use crate::database::Databases;
use crate::record_name::CHANGES_PREFIX;
use crate::steps::SpaceStep;
use crate::store::Store;

/// Remembers when each dead range was first seen to be dead: its records wait for the directories that were dead
/// by then.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<u64, Instant>);

impl Records {
    /// The numbers of all ranges that have records. To be asked before who is living.
    pub(super) async fn list(databases: &Databases) -> Result<BTreeSet<u64>, String> {
        let prefix = Path::from(CHANGES_PREFIX);
        let listed = databases.objects.list_with_delimiter(Some(&prefix)).await;
        let listed = listed.map_err(|error| format!("{CHANGES_PREFIX} could not be listed: {error}"))?;
        Ok(listed.common_prefixes.iter().filter_map(|path| path.filename()?.parse().ok()).collect())
    }

    /// Deletes the records of `recorded` ranges that nobody can ask for any more. `living` are the paths of
    /// databases; the directory that has been dead for longest has been so since `oldest`.
    pub(super) async fn forget(
        &mut self,
        databases: &Databases,
        store: &Store,
        recorded: BTreeSet<u64>,
        living: &BTreeSet<String>,
        (now, oldest): (Instant, Option<Instant>),
    ) -> Result<(), String> {
        for range in self.due(recorded, living, (now, oldest)) {
            let path = format!("{CHANGES_PREFIX}/{range}");
            databases.delete_objects(&path).await.map_err(|error| format!("{path}: {error}"))?;
            step_is_done(databases, SpaceStep::RecordsDeleted, &path).await;
            store.remove_directory(&path).await.map_err(|error| format!("{path}: {error}"))?;
            self.0.remove(&range);
            step_is_done(databases, SpaceStep::Forgotten, &path).await;
        }
        Ok(())
    }

    /// The ranges whose records may go.
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
        // 2 and 3 became 4; 2 has the record, and its own directory goes first.
        assert!(records.due(set(&[2]), &paths(&["2-1-1", "3-1-1"]), (at(1), None)).is_empty(), "it lives");
        assert!(records.due(set(&[2]), &merged, (at(2), Some(at(2)))).is_empty());
        assert!(records.due(set(&[2]), &merged, (at(3), Some(at(2)))).is_empty(), "3 names the record too");
        // A range that dies later, as 4 does, is not waited for.
        assert_eq!(records.due(set(&[2, 4]), &paths(&["5-1-1"]), (at(4), Some(at(4)))), [2]);
    }
}
