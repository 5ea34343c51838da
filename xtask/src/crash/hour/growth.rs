//! Whether what the server uses grows while what it holds does not.
//!
//! The load keeps a bounded number of rows, so files and memory must level off. In the first quarter of a run caches fill,
//! and the first files reach the age at which they are collected. The second half is judged: at its end, in the last
//! quarter, the median may be above that of the quarter before the half began by an allowance, and by no more. What
//! grows all the time is more than twice as much by then. A median is not moved by one sample just before a collection.
//!
//! What grows by a design that is known today is in [`KNOWN`]. It is told in words and does not fail the run. A kind of file
//! that grows is named, and so is an entry of the data directory whose bytes grow.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rangehold_testkit::load::{Finding, Kind};

use super::sample::{FENCES, Sample};

/// Shorter runs are not judged: files are collected a minute or two after they are replaced, so each half must be many
/// times as long.
pub(super) const JUDGED_MIN: Duration = Duration::from_secs(20 * 60);
/// How many files of one kind may come on top: what waits to be collected depends on which ranges changed last.
const FILES_MORE_MAX: u64 = 100;
/// The part of the files there were, or of their bytes, that may come on top if that is more: a half. The files of logs
/// that wait to be collected are most of all files, and their number doubles and halves within a few minutes.
const MORE_SHARE: u64 = 2;
/// How much memory may come on top. A process lives for a few minutes here, and its caches grow from some 60 MiB to more
/// than 300 MiB meanwhile, so a sample depends on how old the process is.
const MEMORY_MORE_MAX: u64 = 128 << 20;
/// How many bytes on the disk may come on top below one entry of the data directory, if that is more than the part that
/// files of a kind may grow by. A few hundred files that wait to be collected take as much.
const DISK_MORE_MAX: u64 = 32 << 20;

/// A kind of file that grows by a known design.
struct Known {
    kind: &'static str,
    why: &'static str,
}

/// What may grow for now. An entry goes when its reason does.
const KNOWN: &[Known] = &[Known {
    kind: FENCES,
    why: "each opening of a range leaves a mark in its log that shuts out earlier writers; the marks go with the \
          directory of the range and are not collected before, because writes were lost when they were",
}];

/// What grew by how much.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// One line for each thing that was judged or is known.
    pub(super) lines: Vec<String>,
    /// What grew beyond its allowance.
    pub(super) findings: Vec<Finding>,
}

/// Judges the samples of one run of this length.
pub(super) fn judge(samples: &[Sample], length: Duration) -> Verdict {
    let quarter = samples.len() / 4;
    let (before, after) = (&samples[quarter..2 * quarter], &samples[3 * quarter..]);
    let mut verdict = Verdict::default();
    if before.is_empty() {
        verdict.lines.push("growth: too few samples".to_owned());
        return verdict;
    }
    let medians = |of: &dyn Fn(&Sample) -> u64| (median(before, of), median(after, of));
    let names = |of: fn(&Sample) -> &BTreeMap<String, u64>| -> BTreeSet<&str> {
        before.iter().chain(after).flat_map(|sample| of(sample).keys()).map(String::as_str).collect()
    };
    let rows = medians(&|sample| sample.rows);
    verdict.lines.push(format!("rows: {} to {}", rows.0, rows.1));
    let (old, new) = medians(&|sample| sample.resident);
    verdict.told(&format!("memory: {} to {} MiB", old >> 20, new >> 20), new > old + MEMORY_MORE_MAX);
    for kind in names(|sample| &sample.files) {
        let (old, new) = medians(&|sample| sample.files.get(kind).copied().unwrap_or_default());
        let has_grown = new > old + FILES_MORE_MAX.max(old / MORE_SHARE);
        match KNOWN.iter().find(|known| known.kind == kind) {
            Some(Known { why, .. }) => {
                verdict.told(&format!("{kind}: {old} to {new} files (known to grow: {why})"), false);
            }
            None => verdict.told(&format!("{kind}: {old} to {new} files"), has_grown),
        }
    }
    for name in names(|sample| &sample.bytes) {
        let (old, new) = medians(&|sample| sample.bytes.get(name).copied().unwrap_or_default());
        let has_grown = new > old + DISK_MORE_MAX.max(old / MORE_SHARE);
        verdict.told(&format!("{name}: {} to {} KiB on the disk", old >> 10, new >> 10), has_grown);
    }
    if length < JUDGED_MIN {
        verdict.findings.clear();
        let minutes = JUDGED_MIN.as_secs() / 60;
        verdict.lines.push(format!("told and not judged: the run is shorter than {minutes} minutes"));
    }
    verdict
}

impl Verdict {
    fn told(&mut self, what: &str, has_grown: bool) {
        let mark = if has_grown { "  GREW" } else { "" };
        self.lines.push(format!("{what}{mark}"));
        if has_grown {
            let what = format!("in the second half of the run it grew: {what}");
            self.findings.push(Finding::new(Kind::Wrong, what));
        }
    }
}

fn median(samples: &[Sample], of: &dyn Fn(&Sample) -> u64) -> u64 {
    let mut values: Vec<u64> = samples.iter().map(of).collect();
    values.sort_unstable();
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    fn samples(of: impl Fn(u64) -> (u64, u64, &'static str)) -> Vec<Sample> {
        let sample = |number| {
            let (resident, files, kind) = of(number);
            let files = BTreeMap::from([(kind.to_owned(), files)]);
            Sample { resident, files, rows: 2_400, ..Sample::default() }
        };
        (0..60).map(sample).collect()
    }

    #[test]
    fn what_levels_off_is_right() {
        let level = samples(|number| ((100 + number.min(20)) << 20, 50 * number.min(25) + number % 7, "a"));
        assert!(judge(&level, LONG).findings.is_empty());
    }

    #[test]
    fn memory_that_grows_is_found() {
        let growing = samples(|number| ((100 + 10 * number) << 20, 1, "a"));
        let findings = judge(&growing, LONG).findings;
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.contains("it grew: memory"), "{findings:?}");
    }

    #[test]
    fn files_that_grow_are_found_by_their_kind() {
        let growing = samples(|number| (1, 30 * number, "ranges/*/manifest"));
        let findings = judge(&growing, LONG).findings;
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.contains("it grew: ranges/*/manifest: "), "{findings:?}");
    }

    #[test]
    fn bytes_that_grow_are_found_by_their_folder() {
        let mut growing = samples(|_| (1, 1, "a"));
        for (number, sample) in (0_u64..).zip(&mut growing) {
            sample.bytes = BTreeMap::from([("changes".to_owned(), number << 22), ("ranges".to_owned(), 1)]);
        }
        let findings = judge(&growing, LONG).findings;
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.contains("it grew: changes: "), "{findings:?}");
    }

    #[test]
    fn one_high_sample_does_not_count() {
        let spike = samples(|number| if number == 59 { (1 << 40, 100_000, "a") } else { (1, 1, "a") });
        assert!(judge(&spike, LONG).findings.is_empty());
    }

    #[test]
    fn what_is_known_to_grow_is_told_with_its_reason() {
        let growing = samples(|number| (1, 100 * number, FENCES));
        let verdict = judge(&growing, LONG);
        assert!(verdict.findings.is_empty());
        assert!(verdict.lines.iter().any(|line| line.contains("known to grow")), "{:?}", verdict.lines);
    }

    #[test]
    fn a_short_run_is_not_judged() {
        let growing = samples(|number| (number << 30, 1_000 * number, "a"));
        let verdict = judge(&growing, Duration::from_secs(180));
        assert!(verdict.findings.is_empty());
        assert!(verdict.lines.iter().any(|line| line.contains("not judged")), "{:?}", verdict.lines);
        assert!(judge(&growing[..1], LONG).findings.is_empty());
    }
}
