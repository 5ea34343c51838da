//! The verdict of a stress test, and its words. Pure.
//!
//! The verdict goes by demand. A design bears a peak if, of each kind of wishes, 99 in a hundred are answered in the time that is
//! wanted. It is *limited* if its keys ask more of one place than a place can give, even if a service lets that pass for a while:
//! the documents of the cloud name 2,000 entities a second for a partition, and say that a test above that shows keys that are too
//! coarse.

mod causes;

use std::time::Duration;

use serde::Serialize;

use super::book::{Book, Line};
use super::limits::{IN_TIME, LAG_MAX};
use super::plan::{Kind, Plan};
use super::seen::Seen;
use super::words::{count, millis, percent};

/// What a verdict is made of.
pub(crate) struct Facts<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) book: &'a Book,
    /// How long the peak lasted.
    pub(crate) time: Duration,
    /// What the service told, if it does.
    pub(crate) seen: Option<&'a Seen>,
}

impl Facts<'_> {
    /// Entities a second that the wishes asked for.
    pub(crate) fn asked_per_second(&self) -> f64 {
        self.per_second(self.book.seconds.iter().map(|second| second.asked).sum())
    }

    /// Entities a second that were written and read.
    pub(crate) fn done_per_second(&self) -> f64 {
        self.per_second(self.book.seconds.iter().map(|second| second.written + second.read).sum())
    }

    /// The same two of the target partition.
    pub(crate) fn target_per_second(&self) -> (f64, f64) {
        let seconds = &self.book.seconds;
        (
            self.per_second(seconds.iter().map(|second| second.target_asked).sum()),
            self.per_second(seconds.iter().map(|second| second.target_written + second.target_read).sum()),
        )
    }

    fn per_second(&self, entities: u64) -> f64 {
        entities as f64 / self.time.as_secs_f64().max(1e-3)
    }
}

/// How the test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// The demand was met, and no place is asked for too much.
    Bears,
    /// A place is asked for more than it can give.
    Limited,
    /// Response times were missed, and the keys do not say why.
    Missed,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Grade {
    /// The peak cannot be borne by this design.
    Limit,
    /// A wish was not met.
    Miss,
    /// Something to know.
    Note,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) grade: Grade,
    /// One word for programs.
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

impl Finding {
    fn new(grade: Grade, kind: &'static str, text: String) -> Self {
        Self { grade, kind, text, remedy: None }
    }

    fn with(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// The verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Judgement {
    pub(crate) outcome: Outcome,
    /// The verdict in a sentence.
    pub(crate) headline: String,
    /// Why, what matters most first.
    pub(crate) findings: Vec<Finding>,
}

/// What to do about refusals, whatever the design is.
pub(crate) const ADVICE: [&str; 2] = [
    "Priming is not a cure: load that is sent before the peak, so that the service spreads the partitions in time, is forgotten \
     when it ends, and it never divides one partition or the end of a table that grows.",
    "Ranges move and servers are busy in any design. So handle Timeout (500 OperationTimedOut) and ServerBusy (503), and try \
     again with exponential waits: 3 s and more between tries for jobs, less for people who wait.",
];

/// Judges a peak.
pub(crate) fn judge(facts: &Facts<'_>) -> Judgement {
    let limits: Vec<Finding> = causes::limits(facts);
    let missed: Vec<Finding> = facts
        .plan
        .kinds
        .iter()
        .zip(&facts.book.lines)
        .filter(|(_, line)| (line.in_time() as f64) < line.asked as f64 * IN_TIME)
        .map(|(kind, line)| missed(kind, line))
        .collect();
    let outcome = match (limits.is_empty(), missed.is_empty()) {
        (false, _) => Outcome::Limited,
        (true, false) => Outcome::Missed,
        (true, true) => Outcome::Bears,
    };
    let headline = headline(outcome, facts, &limits, missed.len());
    let notes = causes::notes(facts).into_iter().chain(own_troubles(facts));
    let findings = limits.into_iter().chain(missed).chain(notes).collect();
    Judgement { outcome, headline, findings }
}

fn headline(outcome: Outcome, facts: &Facts<'_>, limits: &[Finding], missed: usize) -> String {
    let total = facts.book.total();
    let in_time = percent(total.in_time() as f64 / total.asked.max(1) as f64);
    let demand =
        format!("{in_time} of the wishes at {} entities/s were met in time", count(facts.asked_per_second()));
    let kinds = facts.plan.kinds.len();
    match outcome {
        Outcome::Limited => {
            let causes: Vec<&str> = limits.iter().map(|finding| causes::in_words(finding.kind)).collect();
            format!("LIMITED by {}: {demand}", causes.join(" and "))
        }
        Outcome::Missed => format!("MISSED for {missed} of {kinds} kinds of requests: {demand}"),
        Outcome::Bears => {
            let spread = facts.seen.and_then(Seen::last).filter(|look| look.servers > 1);
            let spread =
                spread.map_or_else(String::new, |look| format!(", spread over {} servers", look.servers));
            format!("BEARS the peak: {demand}{spread}")
        }
    }
}

/// What became of the wishes of one kind that were not met.
fn missed(kind: &Kind, line: &Line) -> Finding {
    let share = percent(line.in_time() as f64 / line.asked.max(1) as f64);
    let parts = [
        (line.busy, "refused with ServerBusy"),
        (line.timed_out, "refused with Timeout"),
        (line.late, "answered late"),
        (line.unsent, "not sent, because too many were under way"),
        (line.lost, "without an answer"),
        (line.failed, "refused for another reason"),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> =
        parts.map(|(number, what)| format!("{} {what}", count(*number as f64))).collect();
    let slow = line.times.at(IN_TIME).map_or_else(String::new, |p99| {
        format!("; of those answered, 99 in a hundred took at most {}", millis(p99))
    });
    let text = format!(
        "{}: {share} were answered within {}, and {} are wanted: of {} asked, {}{slow}",
        kind.name,
        millis(kind.within),
        percent(IN_TIME),
        count(line.asked as f64),
        parts.join(", "),
    );
    Finding::new(Grade::Miss, "missed", text)
}

/// Where this program itself may be the reason.
fn own_troubles(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let lag = facts.book.lag.at(IN_TIME).filter(|lag| *lag > LAG_MAX);
    found.extend(lag.map(|lag| {
        let text = format!(
            "this machine sent one request in a hundred more than {} late: the response times say less about the service",
            millis(lag)
        );
        Finding::new(Grade::Note, "sender", text).with("run the test on another machine than the service")
    }));
    found.extend(facts.book.failure.as_ref().map(|why| {
        Finding::new(Grade::Note, "failed", format!("the first refusal for another reason: {why}"))
    }));
    found
}

#[cfg(test)]
mod tests;
