//! Reads off the manifest of a database what must be done with its files.
//!
//! There are two kinds of work. **Tidying** keeps the number of files small that a read must look into:
//! overlapping files become a run, and runs of similar size become one larger run. A large old run is
//! hardly ever touched. **Rewriting** replaces certain files, wherever they are: files that belong to other
//! databases, or that hold rows of a dropped table. Or it replaces all files, in a database that is not
//! changing and still has old versions of its rows in several layers.

use std::collections::BTreeSet;

use slatedb::compactor::{CompactionSpec, SourceId};
use slatedb::manifest::{SsTableId, VersionedManifest};

use super::limits::{
    LAYERED_BYTES_MIN, LAYERED_PART_MIN, REWRITTEN_IN_ONE_GO_BYTES_MAX, TIDY_L0_FILES_MIN, TIDY_RUNS_LIKE,
    TIDY_RUNS_MIN,
};
use crate::database::{lenders, lenders_read};

/// The work that a manifest calls for. It is read off each manifest only once: most of a thousand databases
/// do not change for hours, and all are looked at every second.
pub(super) struct Outline {
    /// The number of the manifest.
    pub(super) manifest: u64,
    /// The end of the part of the log that is no longer needed.
    pub(super) log_replaced_until: u64,
    /// The number of files that overlap.
    pub(super) new_files: usize,
    /// The ids of its runs.
    pub(super) runs: Vec<u32>,
    /// How many databases it reads files of, and the paths of the databases in which it pins something.
    pub(super) lenders: usize,
    pub(super) pinned: Vec<String>,
    /// Whether the database must be tidied. The rule is the same as that of the scheduler of the engine
    /// below, so that no compactor is started in vain.
    pub(super) untidy: bool,
    /// Whether the layers above the oldest one hold so many bytes that a database that is not changing is
    /// rewritten into one run: any row in them may replace a row below.
    pub(super) layered: bool,
}

impl Outline {
    pub(super) fn of(manifest: &VersionedManifest) -> Self {
        let new_files = manifest.l0().iter().map(|view| view.estimate_size());
        let runs: Vec<u64> = manifest.compacted().iter().map(|run| run.estimate_size()).collect();
        Self {
            manifest: manifest.id(),
            log_replaced_until: manifest.replay_after_wal_id(),
            new_files: manifest.l0().len(),
            runs: manifest.compacted().iter().map(|run| run.id).collect(),
            lenders: lenders_read(manifest).len(),
            pinned: lenders(manifest).map(str::to_owned).collect(),
            untidy: manifest.l0().len() >= TIDY_L0_FILES_MIN || are_alike(&runs),
            layered: are_layers(&new_files.chain(runs.iter().copied()).collect::<Vec<u64>>()),
        }
    }

    /// Whether this outline still fits the manifest. A flush adds a file and ends a part of the log before
    /// the number that it gives the manifest is known.
    pub(super) fn is_of(&self, manifest: &VersionedManifest) -> bool {
        let now = (manifest.id(), manifest.replay_after_wal_id(), manifest.l0().len());
        now == (self.manifest, self.log_replaced_until, self.new_files)
    }
}

/// Whether [`TIDY_RUNS_MIN`] neighbours among runs of these sizes are of similar size.
fn are_alike(sizes: &[u64]) -> bool {
    sizes.windows(TIDY_RUNS_MIN).any(|some| {
        let least = some.iter().min().copied().unwrap_or(0);
        some.iter().all(|size| *size <= least.saturating_mul(TIDY_RUNS_LIKE))
    })
}

/// Whether too many bytes are above the oldest layer. `sizes` are those of the layers, the oldest last.
fn are_layers(sizes: &[u64]) -> bool {
    let over: u64 = sizes.iter().rev().skip(1).sum();
    let all: u64 = sizes.iter().sum();
    over >= LAYERED_BYTES_MIN && over >= all / LAYERED_PART_MIN
}

/// The next compaction that brings the database nearer to having no file of `goal`; `None` if it has none
/// of them. Compactions that are under way make the runs of `taken`.
///
/// ```text
///   small database    level 0 and all runs -> one run
///   large one         1 level 0 -> a run     (short: new files wait only that long)
///                     2 all runs -> one run  (long; new files go on being tidied meanwhile)
/// ```
pub(super) fn rewriting_step(
    manifest: &VersionedManifest,
    goal: &BTreeSet<SsTableId>,
    taken: impl Iterator<Item = u32>,
) -> Option<CompactionSpec> {
    if !manifest.all_sst_views().any(|view| goal.contains(&view.sst.id)) {
        return None;
    }
    let new_files = || manifest.l0().iter().map(|view| SourceId::SstView(view.id));
    let runs = || manifest.compacted().iter().map(|run| SourceId::SortedRun(run.id));
    let ids = || manifest.compacted().iter().map(|run| run.id);
    let fresh = || ids().chain(taken).max().map_or(0, |id| id + 1);
    let Some(oldest) = ids().min() else {
        return Some(CompactionSpec::new(new_files().collect(), fresh()));
    };
    let bytes: u64 = manifest.all_sst_views().map(|view| view.estimate_size()).sum();
    if bytes <= REWRITTEN_IN_ONE_GO_BYTES_MAX {
        Some(CompactionSpec::new(new_files().chain(runs()).collect(), oldest))
    } else if manifest.l0().iter().any(|view| goal.contains(&view.sst.id)) {
        Some(CompactionSpec::new(new_files().collect(), fresh()))
    } else {
        Some(CompactionSpec::new(runs().collect(), oldest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_merged_when_four_neighbours_are_of_like_size() {
        assert!(!are_alike(&[1, 2, 3]));
        assert!(are_alike(&[1, 2, 3, 4]));
        assert!(are_alike(&[100, 1, 2, 4, 3]));
        assert!(!are_alike(&[1, 2, 3, 5]), "the largest has five times the smallest");
        assert!(!are_alike(&[1, 5, 25, 125, 625]));
        assert!(!are_alike(&[]));
    }
}
