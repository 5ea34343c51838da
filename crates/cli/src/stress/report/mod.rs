//! The report of a stress test: for people in the terminal, for people in a browser, and for programs. Pure.

mod chart;
mod html;
mod plot;
mod text;

use std::time::Duration;

use serde::Serialize;

use super::book::{Book, Line, Second};
use super::judge::{ADVICE, Facts, Judgement, judge};
use super::limits::{IN_TIME, PARTITION_TARGET};
use super::plan::{Plan, Target};
use super::seen::Seen;

/// What is reported. As JSON it is the report for programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// The name of the design or file, and what it stands for.
    pub(crate) plan: String,
    pub(crate) about: String,
    /// Where the service is.
    pub(crate) service: String,
    pub(crate) table: String,
    /// The seed of the schedule: the same seed asks the same at the same moments.
    pub(crate) seed: u64,
    #[serde(flatten)]
    pub(crate) judgement: Judgement,
    pub(crate) advice: [&'static str; 2],
    /// Seconds of the peak.
    pub(crate) seconds: f64,
    /// Whether the peak was ended before its time.
    pub(crate) is_cut_short: bool,
    /// Entities that were loaded before.
    pub(crate) loaded: u64,
    pub(crate) asked_entities_per_s: f64,
    pub(crate) done_entities_per_s: f64,
    pub(crate) target: TargetPart,
    pub(crate) kinds: Vec<KindPart>,
    /// Entities in each second.
    pub(crate) series: Series,
    /// What the service told of its ranges; null if it tells nothing.
    pub(crate) ranges: Option<Seen>,
}

/// The target partition.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TargetPart {
    pub(crate) partition: String,
    /// Its share of the registrations, as the keys are.
    pub(crate) share: f64,
    /// Whether it has a part of the load that matters.
    pub(crate) stands_out: bool,
    /// What a partition serves.
    pub(crate) limit_per_s: f64,
    pub(crate) asked_per_s: f64,
    pub(crate) done_per_s: f64,
}

/// One kind of requests.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct KindPart {
    pub(crate) name: String,
    pub(crate) per_s: f64,
    pub(crate) within_ms: f64,
    pub(crate) is_met: bool,
    pub(crate) asked: u64,
    pub(crate) in_time: u64,
    /// Answered late, or not sent.
    pub(crate) late: u64,
    pub(crate) unsent: u64,
    pub(crate) busy: u64,
    pub(crate) timed_out: u64,
    pub(crate) lost: u64,
    pub(crate) failed: u64,
    /// Of those answered: the entity was not there, or was there.
    pub(crate) missing: u64,
    /// Of those answered, in milliseconds; null if there are none.
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) max_ms: f64,
}

/// The sums of all seconds, each a list.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Series {
    pub(crate) asked: Vec<u64>,
    pub(crate) written: Vec<u64>,
    pub(crate) read: Vec<u64>,
    pub(crate) refused_requests: Vec<u64>,
    pub(crate) target_asked: Vec<u64>,
    pub(crate) target_written: Vec<u64>,
    pub(crate) target_read: Vec<u64>,
}

/// What a report needs besides the plan and the book.
pub(crate) struct Circumstances {
    pub(crate) service: String,
    pub(crate) table: String,
    pub(crate) seed: u64,
    pub(crate) loaded: u64,
    /// How long the peak lasted.
    pub(crate) time: Duration,
    pub(crate) is_cut_short: bool,
    pub(crate) seen: Option<Seen>,
}

impl Report {
    /// Judges a peak, and reports on it.
    pub(crate) fn of(plan: &Plan, target: &Target, book: &Book, about: Circumstances) -> Self {
        let facts = Facts { plan, book, time: about.time, seen: about.seen.as_ref() };
        let (asked_per_s, done_per_s) = facts.target_per_second();
        let lines = plan.kinds.iter().zip(&book.lines);
        // Answers that came after the peak are in the sums, and not in the curves.
        let seconds = &book.seconds[..book.seconds.len().min(about.time.as_secs_f64().ceil() as usize)];
        Self {
            plan: plan.name.clone(),
            about: plan.about.clone(),
            judgement: judge(&facts),
            advice: ADVICE,
            seconds: about.time.as_secs_f64(),
            is_cut_short: about.is_cut_short,
            loaded: about.loaded,
            asked_entities_per_s: facts.asked_per_second(),
            done_entities_per_s: facts.done_per_second(),
            target: TargetPart {
                partition: target.partition.clone(),
                share: target.share,
                stands_out: target.stands_out(),
                limit_per_s: PARTITION_TARGET,
                asked_per_s,
                done_per_s,
            },
            kinds: lines
                .map(|(kind, line)| KindPart::of(&kind.name, kind.per_second, kind.within, line))
                .collect(),
            series: Series::of(seconds),
            service: about.service,
            table: about.table,
            seed: about.seed,
            ranges: about.seen,
        }
    }
}

impl KindPart {
    fn of(name: &str, per_s: f64, within: Duration, line: &Line) -> Self {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Self {
            name: name.to_owned(),
            per_s,
            within_ms: ms(within),
            is_met: line.in_time() as f64 >= line.asked as f64 * IN_TIME,
            asked: line.asked,
            in_time: line.in_time(),
            late: line.late_or_unsent(),
            unsent: line.unsent,
            busy: line.busy,
            timed_out: line.timed_out,
            lost: line.lost,
            failed: line.failed,
            missing: line.missing,
            p50_ms: line.times.at(0.5).map(ms),
            p99_ms: line.times.at(0.99).map(ms),
            max_ms: ms(line.times.longest()),
        }
    }

    /// The share that was answered in time; all of none.
    fn share(&self) -> f64 {
        if self.asked == 0 { 1.0 } else { self.in_time as f64 / self.asked as f64 }
    }

    /// Requests that the service refused.
    fn refused(&self) -> u64 {
        self.busy + self.timed_out
    }
}

impl Series {
    fn of(seconds: &[Second]) -> Self {
        let all = |part: fn(&Second) -> u64| seconds.iter().map(part).collect();
        Self {
            asked: all(|second| second.asked),
            written: all(|second| second.written),
            read: all(|second| second.read),
            refused_requests: all(|second| second.refused),
            target_asked: all(|second| second.target_asked),
            target_written: all(|second| second.target_written),
            target_read: all(|second| second.target_read),
        }
    }

    /// Entities of the whole table: asked, and written or read.
    fn whole(&self) -> Curves<'_> {
        Curves { asked: &self.asked, written: &self.written, read: &self.read }
    }

    /// The same of the target partition.
    fn target(&self) -> Curves<'_> {
        Curves { asked: &self.target_asked, written: &self.target_written, read: &self.target_read }
    }
}

/// What one picture shows.
#[derive(Debug, Clone, Copy)]
struct Curves<'a> {
    asked: &'a [u64],
    written: &'a [u64],
    read: &'a [u64],
}

impl Curves<'_> {
    /// The means of asked, written and read in `columns` equal parts of the time; fewer if there are fewer seconds.
    fn columns(&self, columns: usize) -> Vec<[f64; 3]> {
        let seconds = self.asked.len();
        let columns = columns.min(seconds);
        let mean = |list: &[u64], from: usize, to: usize| {
            list[from..to].iter().sum::<u64>() as f64 / (to - from) as f64
        };
        (0..columns)
            .map(|column| {
                let (from, to) = (column * seconds / columns, (column + 1) * seconds / columns);
                [self.asked, self.written, self.read].map(|list| mean(list, from, to))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
