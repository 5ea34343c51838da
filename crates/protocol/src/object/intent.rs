//! Changes of several names: a move, and a composition that deletes its sources.
//!
//! Names are changed one at a time, so such a change has steps, and a crash can come between any two of them:
//!
//! ```text
//!   each source                   target
//!   1 Begin: the head gets the
//!     intent (id, target)
//!                                 2 Commit: the new generation, and the row "committed" of this id,
//!                                   in one write. This is the commit point
//!   3 End: the generation goes
//!                                 4 Forget: the row goes
//! ```
//!
//! A request that meets an intent in a head settles it: [`Settle`] looks for the row at the target, and writes "undone"
//! there if there is none. So a commit that comes later fails, and the request may [`End`] the intent: it removes the
//! source if the change was committed, and takes only the intent away if it was undone.
//!
//! The row "committed" lists the sources. So whatever finds it, a request or the walk in the background, can end all of
//! them, and removes the row after that. A row "undone" stays for a day: then no commit can come any more, since [`Commit`]
//! is refused so long after the beginning.
//!
//! Until the commit point, readers see the sources as they were and the old target; afterwards they see the new target,
//! and the sources as gone. [`Standing`] says what a reader does that meets an intent.

use bytes::Bytes;
use rangehold_map::Timestamp;
use rangehold_map::key::ObjectRow;
use serde::{Deserialize, Serialize};

use super::error::{ErrorKind, ObjectError};
use super::generation::{Generation, Head, Intent};
use super::limits::{INTENT_LEFT_SECONDS, INTENT_SECONDS};
use super::micros::Micros;
use super::row::{decode_row, encode_row};
use super::write::{Create, Judge, Name, Outcome, Refusal, Verdict};

/// How a change of several names was decided. The order of the variants is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// The target has its new generation, and the sources are gone.
    Committed,
    /// It never happened.
    Undone,
}

/// The stored row of a decision, at the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// When the change was begun.
    pub begun: Micros,
    /// What was decided.
    pub decision: Decision,
    /// The names that lose their live generation. None for a change that was undone.
    pub sources: Vec<String>,
}

impl Decided {
    /// The stored row.
    pub fn encode(&self) -> Vec<u8> {
        encode_row(self)
    }

    /// Reads the row.
    pub fn decode(row: &[u8]) -> Result<Self, ObjectError> {
        decode_row("the decision of a change of several names", row)
    }

    /// Whether the row is due to go at `now`: nobody carries the change out any more or, if it was undone, its commit
    /// cannot come any more.
    pub fn is_over(&self, now: Micros) -> bool {
        let seconds = match self.decision {
            Decision::Committed => INTENT_LEFT_SECONDS,
            Decision::Undone => INTENT_SECONDS,
        };
        self.begun.plus_seconds(seconds) <= now
    }
}

/// What an intent in a head means to a reader of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The change is not committed: the name shows its generation.
    Stays,
    /// The change is committed: the name shows nothing, and its generation and those of the other sources here can be
    /// removed.
    Gone(Vec<String>),
    /// The head has changed: it must be read again.
    Changed,
}

impl Standing {
    /// What an intent means, by the row of the decision, which is read after the head, and by the head, which is read
    /// once more after that row. (A row that is not there may have been forgotten, but only after the intent was ended.)
    pub fn of(intent: &Intent, decided: Option<&Bytes>, head: Option<&Bytes>) -> Result<Self, ObjectError> {
        let decided = decided.map(|row| Decided::decode(row)).transpose()?;
        if let Some(decided) = decided {
            return Ok(match decided.decision {
                Decision::Committed => Self::Gone(decided.sources),
                Decision::Undone => Self::Stays,
            });
        }
        let head = head.map(Head::decode).transpose()?;
        let is_there = head.and_then(|head| head.intent).is_some_and(|now| now == *intent);
        Ok(if is_there { Self::Stays } else { Self::Changed })
    }
}

/// Begins a change at a source.
#[derive(Debug, Clone, Copy)]
pub struct Begin<'a> {
    /// The source.
    pub of: Name<'a>,
    /// The generation as it was read, and as it must be still. So conditions that held for it hold now.
    pub seen: &'a Generation,
    /// The change.
    pub intent: &'a Intent,
}

impl Judge for Begin<'_> {
    type Answer = bool;

    fn name(&self) -> Name<'_> {
        self.of
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.of.key(&ObjectRow::Head)]
    }

    /// Decides the write. The answer is false if the source is not as it was seen. One that may not be deleted refuses
    /// the change.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<bool> {
        let Some(head) = head(&rows[0])? else { return Ok(unchanged(false)) };
        if let Some(intent) = head.intent {
            return if intent == *self.intent { Ok(unchanged(true)) } else { Err(Refusal::Intent(intent)) };
        }
        let live = head.live;
        if (live.id, live.metageneration) != (self.seen.id, self.seen.metageneration) {
            return Ok(unchanged(false));
        }
        if !self.intent.keeps {
            let bucket = self.of.bucket;
            let period = bucket.protected_seconds();
            live.check_unprotected(&bucket.name, self.of.shown(), period, Micros::from(stamp))?;
        }
        let changed = Head { live, intent: Some(self.intent.clone()) };
        let changes = vec![(self.of.key(&ObjectRow::Head), Some(changed.encode()))];
        Ok(Outcome { changes, releases: Vec::new(), answer: true })
    }
}

/// Commits a change: writes the target.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a> {
    /// The write of the target.
    pub create: Create<'a>,
    /// The change, which was begun at all sources.
    pub intent: &'a Intent,
    /// The sources.
    pub sources: &'a [String],
}

impl Judge for Commit<'_> {
    type Answer = Generation;

    fn name(&self) -> Name<'_> {
        self.create.to
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys = self.create.keys();
        keys.push(self.create.to.key(&ObjectRow::Outcome(self.intent.id.as_str().into())));
        keys
    }

    /// Decides the write. It is refused if somebody has settled the change as undone, or may have done so.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<Generation> {
        let (row, own) = rows.split_last().expect("the row of the decision is the last of the keys");
        let is_late = self.intent.begun.plus_seconds(INTENT_SECONDS) <= Micros::from(stamp);
        if row.is_some() || is_late {
            let message = "Another request has undone this change. Try again.";
            return Err(ObjectError::new(ErrorKind::Unavailable, message).into());
        }
        let mut out = self.create.judge(own, stamp)?;
        let decided = Decided {
            begun: self.intent.begun,
            decision: Decision::Committed,
            sources: self.sources.to_vec(),
        };
        let key = self.create.to.key(&ObjectRow::Outcome(self.intent.id.as_str().into()));
        out.changes.push((key, Some(decided.encode())));
        Ok(out)
    }
}

/// Finds out how a change was decided, and decides it if it was not: it is undone then.
#[derive(Debug, Clone, Copy)]
pub struct Settle<'a> {
    /// The target.
    pub at: Name<'a>,
    /// The change.
    pub intent: &'a Intent,
}

impl Judge for Settle<'_> {
    type Answer = Decided;

    fn name(&self) -> Name<'_> {
        self.at
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.at.key(&ObjectRow::Outcome(self.intent.id.as_str().into()))]
    }

    /// Decides the change. The answer is how it was decided.
    fn judge(&self, rows: &[Option<Bytes>], _: Timestamp) -> Verdict<Decided> {
        if let Some(row) = &rows[0] {
            return Ok(unchanged(Decided::decode(row)?));
        }
        let answer = Decided { begun: self.intent.begun, decision: Decision::Undone, sources: Vec::new() };
        let changes = vec![(self.keys().remove(0), Some(answer.encode()))];
        Ok(Outcome { changes, releases: Vec::new(), answer })
    }
}

/// Ends a change that was decided, at a source.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The source.
    pub of: Name<'a>,
    /// The id of the change.
    pub id: &'a str,
    /// How it was decided.
    pub decision: Decision,
}

impl Judge for End<'_> {
    type Answer = ();

    fn name(&self) -> Name<'_> {
        self.of
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.of.key(&ObjectRow::Head)]
    }

    /// Decides the write. Nothing changes if the head has not this intent: somebody was faster.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<()> {
        let mut out = unchanged(());
        let Some(Head { live, intent: Some(intent) }) = head(&rows[0])? else { return Ok(out) };
        if intent.id != self.id {
            return Ok(out);
        }
        let key = self.of.key(&ObjectRow::Head);
        match self.decision {
            Decision::Undone => out.changes.push((key, Some(Head { live, intent: None }.encode()))),
            Decision::Committed => {
                out.changes.push((key, None));
                // The beginning checked it, and nothing could protect the object since: the intent refuses changes.
                self.of.retire_checked(live, intent.keeps, Micros::from(stamp), &mut out);
            }
        }
        Ok(out)
    }
}

/// Removes the row of a decision: "committed" after all sources were ended, "undone" when its time is over.
#[derive(Debug, Clone, Copy)]
pub struct Forget<'a> {
    /// The target.
    pub at: Name<'a>,
    /// The id of the change.
    pub id: &'a str,
}

impl Judge for Forget<'_> {
    type Answer = bool;

    fn name(&self) -> Name<'_> {
        self.at
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.at.key(&ObjectRow::Outcome(self.id.into()))]
    }

    /// Decides the write. The answer says whether there was a row to remove.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<bool> {
        let now = Micros::from(stamp);
        let goes = match &rows[0] {
            None => false,
            Some(row) => {
                let decided = Decided::decode(row)?;
                // Nothing writes into a bucket whose time is over, so no commit comes there either.
                decided.decision == Decision::Committed || decided.is_over(now) || self.at.bucket.is_over(now)
            }
        };
        let changes = goes.then(|| (self.keys().remove(0), None));
        Ok(Outcome { changes: changes.into_iter().collect(), releases: Vec::new(), answer: goes })
    }
}

fn unchanged<T>(answer: T) -> Outcome<T> {
    Outcome { changes: Vec::new(), releases: Vec::new(), answer }
}

fn head(row: &Option<Bytes>) -> Result<Option<Head>, ObjectError> {
    row.as_ref().map(Head::decode).transpose()
}
