//! Samples the names that are used in a bucket, and finds out again and again how they grow.
//!
//! ```text
//!   stretch     |   1   |   2   |   3   |   4   |   5   |
//!   load        |  low  | enough  enough  enough|  low  |
//!   sampled     |       |   A   |   B   |   C   |       |
//!   found                       A to B, B to C             and shown until something else is found
//! ```
//!
//! Names are sampled while the load is at least a tenth of the threshold, writes and reads apart, since each has a budget of
//! its own. A stretch's sample is compared with that of the stretch before ([`findings`]). Samples are large, and what is
//! found is small: when the load ends, only that is kept.

use std::sync::Arc;
use std::time::Duration;

use super::finding::{Finding, findings};
use super::limits::{SAMPLED_NAME_BYTES_MAX, SAMPLED_NAMES_MAX};
use crate::insight::capacity::Usage;
use crate::insight::chance::Chance;
use crate::insight::sample::Sample;

/// The load, in thresholds, from which names are sampled.
const SAMPLED_FROM: f64 = 0.1;

/// Watches the names of one bucket.
#[derive(Debug, Clone)]
pub struct Watch {
    stretch: Duration,
    begun: Duration,
    /// The load of this stretch so far, in thresholds times seconds.
    load: f64,
    chance: Chance,
    samples: Option<Box<Samples>>,
    /// Two samples that nobody has compared yet.
    to_compare: Option<Comparison>,
    found: Option<Found>,
}

/// Two samples, the names of one stretch and of the next. To compare them takes some milliseconds.
#[derive(Debug, Clone)]
pub struct Comparison {
    at: Duration,
    earlier: Arc<Names>,
    later: Arc<Names>,
}

impl Comparison {
    /// Compares them, writes with writes and reads with reads.
    pub fn found(&self) -> Found {
        let of = |usage: Usage| {
            let index = usage.index();
            let found = findings(&strs(&self.earlier[index]), &strs(&self.later[index]));
            found.into_iter().map(move |finding| (usage, finding))
        };
        Found { at: self.at, findings: Usage::BOTH.into_iter().flat_map(of).collect() }
    }
}

/// What was found about the names of a bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// When the later one of the last two samples ended in which something was found.
    pub at: Duration,
    /// The findings, with the use of the names that each is about.
    pub findings: Vec<(Usage, Finding)>,
}

/// Names of one stretch, by use.
type Names = [Vec<String>; 2];

#[derive(Debug, Clone)]
struct Samples {
    /// Those of the stretch before.
    before: Option<Arc<Names>>,
    now: [Sample<String>; 2],
}

impl Watch {
    /// Begins now. `stretch` is the time that one sample covers, and `seed` decides what is sampled.
    pub fn new(stretch: Duration, now: Duration, seed: u64) -> Self {
        let chance = Chance::new(seed);
        Self { stretch, begun: now, load: 0.0, chance, samples: None, to_compare: None, found: None }
    }

    /// Counts a request for a name, which is so many thresholds in a second.
    pub fn note(&mut self, name: &str, usage: Usage, load: f64) {
        self.load += load;
        if let Some(samples) = &mut self.samples
            && name.len() <= SAMPLED_NAME_BYTES_MAX
        {
            samples.now[usage.index()].offer(1.0, &mut self.chance, || name.to_owned());
        }
    }

    /// Lets time pass. To be called several times in a stretch. Sampling begins only if it `may_begin`; returns whether it
    /// did.
    pub fn tick(&mut self, now: Duration, may_begin: bool) -> bool {
        let passed = now.saturating_sub(self.begun);
        let is_enough = self.load >= SAMPLED_FROM * passed.max(self.stretch).as_secs_f64();
        let begins = self.samples.is_none() && is_enough && may_begin;
        if begins {
            self.samples = Some(Box::new(Samples { before: None, now: empty() }));
        }
        if passed >= self.stretch {
            self.turn(now, is_enough);
            (self.begun, self.load) = (now, 0.0);
        }
        begins
    }

    /// Ends a stretch.
    fn turn(&mut self, now: Duration, is_enough: bool) {
        let Some(mut samples) = self.samples.take() else { return };
        let later = Arc::new(std::mem::replace(&mut samples.now, empty()).map(|sample| sample.kept));
        if let Some(earlier) = samples.before.take() {
            self.to_compare = Some(Comparison { at: now, earlier, later: Arc::clone(&later) });
        }
        if is_enough {
            samples.before = Some(later);
            self.samples = Some(samples);
        }
    }

    /// Two samples to be compared, which the caller does where nobody waits for it. What they show goes to [`Watch::learn`].
    pub fn take_comparison(&mut self) -> Option<Comparison> {
        self.to_compare.take()
    }

    /// Keeps what was found. What was found about reads stays if now only writes were seen, and the reverse.
    pub fn learn(&mut self, new: Found) {
        if new.findings.is_empty() {
            return;
        }
        let is_new = |usage: Usage| new.findings.iter().any(|(of, _)| *of == usage);
        let old = self.found.take().map_or(Vec::new(), |found| found.findings);
        let old: Vec<_> = old.into_iter().filter(|(usage, _)| !is_new(*usage)).collect();
        let mut findings: Vec<_> = new.findings.iter().cloned().chain(old).collect();
        findings.sort_by_key(|(usage, _)| usage.index());
        self.found = Some(Found { at: new.at, findings });
    }

    /// The time that one sample covers.
    pub fn stretch(&self) -> Duration {
        self.stretch
    }

    /// Whether it keeps samples now, which takes memory.
    pub fn is_sampling(&self) -> bool {
        self.samples.is_some()
    }

    /// What was found last; `None` before that.
    pub fn found(&self) -> Option<&Found> {
        self.found.as_ref()
    }
}

fn empty() -> [Sample<String>; 2] {
    Usage::BOTH.map(|_| Sample::new(SAMPLED_NAMES_MAX))
}

fn strs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Growth;
    use super::*;

    const STRETCH: u64 = 300;

    /// Watches from second to second; `names` gives the names that are written in a second.
    fn watch(watch: &mut Watch, seconds: std::ops::Range<u64>, names: impl Fn(u64) -> Vec<String>) {
        for second in seconds {
            names(second).iter().for_each(|name| watch.note(name, Usage::Write, 0.05));
            tick(watch, second + 1);
        }
    }

    fn tick(watch: &mut Watch, second: u64) {
        watch.tick(Duration::from_secs(second), true);
        if let Some(comparison) = watch.take_comparison() {
            watch.learn(comparison.found());
        }
    }

    fn new() -> Watch {
        Watch::new(Duration::from_secs(STRETCH), Duration::ZERO, 7)
    }

    fn images(second: u64) -> Vec<String> {
        let scattered = second.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        vec![
            format!("images/clouds/{second:06}.jpg"),
            format!("images/clouds/{second:06}-b.jpg"),
            format!("images/animals/{scattered:016x}/1.jpg"),
            format!("images/animals/{scattered:016x}/2.jpg"),
        ]
    }

    #[test]
    fn what_is_found_about_names_is_kept_when_the_load_ends_and_the_samples_are_not() {
        let mut names = new();
        watch(&mut names, 0..2 * STRETCH, images);
        let found = names.found().expect("two samples were compared").clone();
        assert_eq!(found.at, Duration::from_secs(2 * STRETCH));
        let seen: Vec<_> =
            found.findings.iter().map(|(usage, f)| (*usage, f.prefix.as_str(), f.growth)).collect();
        let expected = [
            (Usage::Write, "images/animals/", Growth::Spreads),
            (Usage::Write, "images/clouds/", Growth::Append),
        ];
        assert_eq!(seen, expected);
        assert!(names.is_sampling());
        watch(&mut names, 2 * STRETCH..4 * STRETCH, |_| Vec::new());
        assert!(!names.is_sampling());
        assert_eq!(names.found(), Some(&found));
    }

    #[test]
    fn names_are_not_sampled_at_a_low_load_nor_without_room() {
        let mut low = new();
        watch(&mut low, 0..3 * STRETCH, |second| vec![format!("{second:06}")]);
        assert!(!low.is_sampling() && low.found().is_none());
        let mut crowded = new();
        for second in 0..3 * STRETCH {
            images(second).iter().for_each(|name| crowded.note(name, Usage::Write, 0.05));
            assert!(!crowded.tick(Duration::from_secs(second + 1), false));
        }
        assert!(!crowded.is_sampling() && crowded.found().is_none());
    }

    #[test]
    fn reads_are_judged_apart_from_writes() {
        let mut names = new();
        for second in 0..3 * STRETCH {
            let read = format!("{:016x}", (second + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            names.note(&read, Usage::Read, 0.2);
            names.note(&format!("log/{second:06}"), Usage::Write, 0.2);
            names.note(&"n".repeat(SAMPLED_NAME_BYTES_MAX + 1), Usage::Write, 0.2);
            tick(&mut names, second + 1);
        }
        let seen = |names: &Watch| -> Vec<_> {
            let found = names.found().expect("samples were compared");
            found.findings.iter().map(|(usage, f)| (*usage, f.prefix.clone(), f.growth)).collect()
        };
        let (writes, reads) = (
            (Usage::Write, "log/".to_owned(), Growth::Append),
            (Usage::Read, String::new(), Growth::Spreads),
        );
        assert_eq!(seen(&names), [writes.clone(), reads]);
        // The writes end, and what was found about them stays.
        for second in 3 * STRETCH..6 * STRETCH {
            names.note(&format!("log/{second:06}"), Usage::Read, 0.2);
            tick(&mut names, second + 1);
        }
        assert_eq!(seen(&names), [writes, (Usage::Read, "log/".to_owned(), Growth::Append)]);
    }
}
