//! Answers of 500 and more: which have a reason, and which must not be.
//!
//! A refusal may be 503 only, and only while something was under way that makes the service refuse: a kill and the start
//! after it, a stop of the process, a change of ranges. What counts is the time from the request to its answer. It must
//! meet the time of such an event, so a slow machine changes nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rangehold_testkit::load::{Finding, Kind, Refused};

/// How long after a stop, or after the start that follows a kill, the service may refuse: leases that ran out meanwhile
/// are taken again, and what waited is done first.
const AFTER_STOP: Duration = Duration::from_secs(10);
/// The same after a change: its answer is sent when the new map is published, so this is for clocks of two threads.
const AFTER_CHANGE: Duration = Duration::from_millis(100);
/// Refusals without a reason that are told in full; all are counted.
const TOLD_MAX: usize = 10;
/// How much of an answer is told, in characters.
const TOLD_CHARACTERS_MAX: usize = 400;

/// Why the service may refuse.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Cause {
    /// The process was killed and started.
    Kill,
    /// The process stood still.
    Stop,
    /// Ranges changed hands.
    Change,
}

impl Cause {
    fn label(self) -> &'static str {
        match self {
            Self::Kill => "around a kill",
            Self::Stop => "around a stop",
            Self::Change => "around a change of ranges",
        }
    }

    fn afterwards(self) -> Duration {
        match self {
            Self::Kill | Self::Stop => AFTER_STOP,
            Self::Change => AFTER_CHANGE,
        }
    }
}

/// When something was under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) cause: Cause,
    pub(super) from: Instant,
    pub(super) to: Instant,
}

/// The reason of an answer; `None` if there was none.
pub(super) fn cause(refused: &Refused, windows: &[Window]) -> Option<Cause> {
    let meets =
        |window: &&Window| refused.from <= window.to + window.cause.afterwards() && window.from <= refused.to;
    windows.iter().filter(meets).map(|window| window.cause).min()
}

/// The counts of all refusals by status and reason, in words, and those that must not be.
pub(super) fn judge(refused: &[Refused], windows: &[Window]) -> (Vec<String>, Vec<Finding>) {
    let (mut counts, mut wrong) = (BTreeMap::<(u16, &str), u32>::new(), Vec::new());
    for refused in refused {
        let cause = cause(refused, windows);
        *counts.entry((refused.status, cause.map_or("without a reason", Cause::label))).or_default() += 1;
        if refused.status != 503 || cause.is_none() {
            let what: String = refused.what.chars().take(TOLD_CHARACTERS_MAX).collect();
            let why = cause.map_or("without a reason", Cause::label);
            wrong.push(Finding::new(Kind::Wrong, format!("{why}: {what}")));
        }
    }
    let more = wrong.len().saturating_sub(TOLD_MAX);
    if more > 0 {
        wrong.truncate(TOLD_MAX);
        wrong.push(Finding::new(Kind::Wrong, format!("{more} more refusals that must not be")));
    }
    (counts.iter().map(|((status, why), count)| format!("{count} answers {status} {why}")).collect(), wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(from: Instant, at: u64) -> Instant {
        from + Duration::from_secs(at)
    }

    fn refused(base: Instant, status: u16, from: u64, to: u64) -> Refused {
        Refused { status, what: "busy".into(), from: seconds(base, from), to: seconds(base, to) }
    }

    #[test]
    fn an_answer_that_meets_an_event_has_a_reason() {
        let base = Instant::now();
        let window = |cause, from, to| Window { cause, from: seconds(base, from), to: seconds(base, to) };
        let windows =
            [window(Cause::Kill, 100, 103), window(Cause::Change, 101, 102), window(Cause::Change, 200, 201)];
        let of = |from, to| cause(&refused(base, 503, from, to), &windows);
        assert_eq!(of(90, 99), None);
        assert_eq!(of(90, 100), Some(Cause::Kill));
        assert_eq!(of(113, 114), Some(Cause::Kill));
        assert_eq!(of(114, 115), None);
        assert_eq!(of(150, 250), Some(Cause::Change));
        assert_eq!(of(202, 203), None);
    }

    #[test]
    fn only_503_with_a_reason_is_right() {
        let base = Instant::now();
        let windows = [Window { cause: Cause::Stop, from: base, to: seconds(base, 5) }];
        let all = [(503, 1, 2), (503, 3, 3), (500, 1, 2), (503, 60, 61)];
        let all = all.map(|(status, from, to)| refused(base, status, from, to));
        let (counts, wrong) = judge(&all, &windows);
        assert_eq!(
            counts,
            ["1 answers 500 around a stop", "2 answers 503 around a stop", "1 answers 503 without a reason"]
        );
        assert_eq!(wrong.len(), 2);
    }

    #[test]
    fn of_many_wrong_ones_the_first_are_told() {
        let base = Instant::now();
        let many: Vec<Refused> = (0..TOLD_MAX as u64 + 3).map(|at| refused(base, 500, at, at)).collect();
        let (_, wrong) = judge(&many, &[]);
        assert_eq!(wrong.len(), TOLD_MAX + 1);
        assert!(wrong[TOLD_MAX].what.starts_with("3 more"));
    }
}
