//! What happened to each wish. Pure: times are passed in.
//!
//! Every request that was due is in the book, under its kind, whatever became of it. So the sums say what the *demand* met, and
//! not only what the requests met that got through.

mod histogram;
mod shape;

use std::time::Duration;

pub(crate) use histogram::Histogram;
pub(crate) use shape::{End, Growth, Partitions};

use super::plan::{Plan, Target};

/// What became of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// It was carried out, on so many entities.
    Done(u32),
    /// The service did its work, and the entity was not there, or was there: 404, 409 or 412.
    Missing,
    /// `ServerBusy`: 503, or 429.
    Busy,
    /// `OperationTimedOut`: 500, 504, or 408.
    TimedOut,
    /// There was no answer.
    Lost,
    /// Any other refusal, in words.
    Failed(String),
    /// It was not sent: too many were under way.
    Unsent,
}

/// The sums of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    /// Requests that were due.
    pub(crate) asked: u64,
    /// Answered as they should be, late ones included.
    pub(crate) answered: u64,
    /// Of these: the entity was not there, or was there.
    pub(crate) missing: u64,
    /// Of those answered: later than wanted.
    pub(crate) late: u64,
    pub(crate) busy: u64,
    pub(crate) timed_out: u64,
    pub(crate) lost: u64,
    pub(crate) failed: u64,
    pub(crate) unsent: u64,
    /// From the wish to the answer, of those answered.
    pub(crate) times: Histogram,
}

impl Line {
    /// Answered within the wanted time.
    pub(crate) fn in_time(&self) -> u64 {
        self.answered - self.late
    }

    /// Late: answered too late, or not sent.
    pub(crate) fn late_or_unsent(&self) -> u64 {
        self.late + self.unsent
    }
}

/// The sums of one second, in entities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Second {
    /// Entities that wishes of this second ask for.
    pub(crate) asked: u64,
    /// Entities that were written (PUT) and read (GET) in it.
    pub(crate) written: u64,
    pub(crate) read: u64,
    /// Requests that were refused in it.
    pub(crate) refused: u64,
    /// The same of the target partition alone.
    pub(crate) target_asked: u64,
    pub(crate) target_written: u64,
    pub(crate) target_read: u64,
}

/// A request that was due.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The number of its kind.
    pub(crate) kind: usize,
    /// When it was due, since the peak began.
    pub(crate) at: Duration,
    /// The partition; that of the first key for a query.
    pub(crate) partition: String,
    /// Whether it is a new registration.
    pub(crate) is_new: bool,
}

/// All sums of a peak.
#[derive(Debug, Clone)]
pub(crate) struct Book {
    /// One for each kind of the plan.
    pub(crate) lines: Vec<Line>,
    pub(crate) seconds: Vec<Second>,
    pub(crate) partitions: Partitions,
    pub(crate) growth: Growth,
    /// How late this program was itself with sending.
    pub(crate) lag: Histogram,
    /// The first failure, in words.
    pub(crate) failure: Option<String>,
    target: String,
    /// Of each kind: its wanted time, its entities, and whether it writes.
    kinds: Vec<(Duration, u32, bool)>,
}

impl Book {
    /// An empty book for a plan.
    pub(crate) fn new(plan: &Plan, target: &Target) -> Self {
        let kinds = plan.kinds.iter().map(|kind| (kind.within, kind.act.entities(), kind.act.writes()));
        Self {
            lines: vec![Line::default(); plan.kinds.len()],
            seconds: Vec::new(),
            partitions: Partitions::default(),
            growth: Growth::default(),
            lag: Histogram::default(),
            failure: None,
            target: target.partition.clone(),
            kinds: kinds.collect(),
        }
    }

    /// A request is due, and `lag` later it is sent or given up.
    pub(crate) fn asked(&mut self, asked: &Asked, lag: Duration) {
        let entities = u64::from(self.kinds[asked.kind].1);
        let is_target = asked.partition == self.target;
        self.lines[asked.kind].asked += 1;
        self.lag.add(lag);
        self.partitions.add(&asked.partition, entities);
        if asked.is_new {
            self.growth.add(&asked.partition, entities);
        }
        let second = self.second(asked.at);
        second.asked += entities;
        second.target_asked += if is_target { entities } else { 0 };
    }

    /// A request ended, at `now` since the peak began.
    pub(crate) fn ended(&mut self, asked: &Asked, now: Duration, outcome: Outcome) {
        let (within, _, writes) = self.kinds[asked.kind];
        let is_target = asked.partition == self.target;
        let line = &mut self.lines[asked.kind];
        let (mut entities, mut refused) = (0, 0);
        match outcome {
            Outcome::Done(_) | Outcome::Missing => {
                let took = now.saturating_sub(asked.at);
                line.answered += 1;
                line.late += u64::from(took > within);
                line.times.add(took);
                match outcome {
                    Outcome::Done(done) => entities = u64::from(done),
                    _ => line.missing += 1,
                }
            }
            Outcome::Busy => (line.busy, refused) = (line.busy + 1, 1),
            Outcome::TimedOut => (line.timed_out, refused) = (line.timed_out + 1, 1),
            Outcome::Lost => line.lost += 1,
            Outcome::Unsent => line.unsent += 1,
            Outcome::Failed(why) => {
                line.failed += 1;
                self.failure.get_or_insert(why);
            }
        }
        let second = self.second(now);
        second.refused += refused;
        let (all, of_target) = match writes {
            true => (&mut second.written, &mut second.target_written),
            false => (&mut second.read, &mut second.target_read),
        };
        *all += entities;
        *of_target += if is_target { entities } else { 0 };
    }

    /// The sums of all kinds together. Its histogram is empty.
    pub(crate) fn total(&self) -> Line {
        self.lines.iter().fold(Line::default(), |sum, line| Line {
            asked: sum.asked + line.asked,
            answered: sum.answered + line.answered,
            missing: sum.missing + line.missing,
            late: sum.late + line.late,
            busy: sum.busy + line.busy,
            timed_out: sum.timed_out + line.timed_out,
            lost: sum.lost + line.lost,
            failed: sum.failed + line.failed,
            unsent: sum.unsent + line.unsent,
            times: Histogram::default(),
        })
    }

    fn second(&mut self, at: Duration) -> &mut Second {
        let at = at.as_secs() as usize;
        if self.seconds.len() <= at {
            self.seconds.resize(at + 1, Second::default());
        }
        &mut self.seconds[at]
    }
}
