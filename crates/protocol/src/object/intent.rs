//! Changes of two names: a move, and a composition that deletes its sources.
//!
//! Names are changed one at a time, so such a change has steps, and a crash can come between any two of them:
//!
//! ```text
//!   source                        target
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
//! A row "undone", and the row of a change with several sources, stay until no request of that time can be under way:
//! the background walk removes them after it has settled all intents that are as old as they are. Until the commit point,
//! readers see the source as it was and the old target; afterwards they see the new target, and the source as gone.

use bytes::Bytes;
use rangehold_map::Timestamp;
use rangehold_map::key::ObjectRow;
use serde::{Deserialize, Serialize};

use super::condition::{Conditions, Purpose};
use super::error::{ErrorKind, ObjectError};
use super::generation::{Generation, Head, Intent};
use super::micros::Micros;
use super::row::{decode_row, encode_row};
use super::write::{Create, Judge, Name, Outcome, Refusal, Verdict};

/// How a change of two names was decided. The order of the variants is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// The target has its new generation, and the sources are gone.
    Committed,
    /// It never happened.
    Undone,
}

/// The stored row of a decision, at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// When it was decided.
    pub at: Micros,
    /// What was decided.
    pub decision: Decision,
}

impl Decided {
    /// The stored row.
    pub fn encode(&self) -> Vec<u8> {
        encode_row(self)
    }

    /// Reads the row.
    pub fn decode(row: &[u8]) -> Result<Self, ObjectError> {
        decode_row("the decision of a change of two names", row)
    }
}

/// Begins a change at a source.
#[derive(Debug, Clone, Copy)]
pub struct Begin<'a> {
    /// The source.
    pub of: Name<'a>,
    /// The generation that must be live; any if there is none.
    pub generation: Option<u64>,
    /// On the live generation.
    pub conditions: &'a Conditions,
    /// The change.
    pub intent: &'a Intent,
}

impl Begin<'_> {
    /// The rows that the judge reads.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.of.key(&ObjectRow::Head)]
    }

    /// Decides the write. The answer is the generation that will go. A source that may not be deleted refuses it.
    pub fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<Generation> {
        let head = head(&rows[0])?.ok_or_else(|| self.of.missing(self.generation))?;
        if let Some(intent) = head.intent.filter(|intent| intent != self.intent) {
            return Err(Refusal::Intent(intent));
        }
        let live = head.live;
        if self.generation.is_some_and(|number| number != live.id.0) {
            return Err(self.of.missing(self.generation).into());
        }
        self.conditions.check(Some(&live), Purpose::Write)?;
        let bucket = self.of.bucket;
        if !bucket.keeps_versions() {
            let period = bucket.retention_seconds();
            live.check_unprotected(&bucket.name, self.of.name, period, Micros::from(stamp))?;
        }
        let changed = Head { live: live.clone(), intent: Some(self.intent.clone()) };
        let changes = vec![(self.of.key(&ObjectRow::Head), Some(changed.encode()))];
        Ok(Outcome { changes, releases: Vec::new(), answer: live })
    }
}

/// Commits a change: writes the target.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a> {
    /// The write of the target.
    pub create: Create<'a>,
    /// The id of the change.
    pub id: &'a str,
}

impl Commit<'_> {
    /// The rows that the judge reads.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys = self.create.keys();
        keys.push(self.create.to.key(&ObjectRow::Outcome(self.id.into())));
        keys
    }

    /// Decides the write. It is refused if somebody has settled the change as undone.
    pub fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<Generation> {
        let (row, own) = rows.split_last().expect("the row of the decision is the last of the keys");
        if row.is_some() {
            let message = "Another request has undone this change. Try again.";
            return Err(ObjectError::new(ErrorKind::Unavailable, message).into());
        }
        let mut out = self.create.judge(own, stamp)?;
        let decided = Decided { at: Micros::from(stamp), decision: Decision::Committed };
        out.changes.push((self.create.to.key(&ObjectRow::Outcome(self.id.into())), Some(decided.encode())));
        Ok(out)
    }
}

/// Finds out how a change was decided, and decides it if it was not: it is undone then.
#[derive(Debug, Clone, Copy)]
pub struct Settle<'a> {
    /// The target.
    pub at: Name<'a>,
    /// The id of the change.
    pub id: &'a str,
}

impl Settle<'_> {
    /// The rows that the judge reads.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.at.key(&ObjectRow::Outcome(self.id.into()))]
    }

    /// Decides the change. The answer is how it was decided.
    pub fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<Decision> {
        if let Some(row) = &rows[0] {
            let answer = Decided::decode(row)?.decision;
            return Ok(Outcome { changes: Vec::new(), releases: Vec::new(), answer });
        }
        let decided = Decided { at: Micros::from(stamp), decision: Decision::Undone };
        let changes = vec![(self.keys().remove(0), Some(decided.encode()))];
        Ok(Outcome { changes, releases: Vec::new(), answer: Decision::Undone })
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

impl End<'_> {
    /// The rows that the judge reads.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.of.key(&ObjectRow::Head)]
    }

    /// Decides the write. Nothing changes if the head has not this intent: somebody was faster.
    pub fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<()> {
        let mut out = Outcome { changes: Vec::new(), releases: Vec::new(), answer: () };
        let Some(head) =
            head(&rows[0])?.filter(|head| head.intent.as_ref().is_some_and(|intent| intent.id == self.id))
        else {
            return Ok(out);
        };
        let key = self.of.key(&ObjectRow::Head);
        match self.decision {
            Decision::Undone => {
                let cleared = Head { live: head.live, intent: None };
                out.changes.push((key, Some(cleared.encode())));
            }
            Decision::Committed => {
                out.changes.push((key, None));
                // The beginning checked it, and nothing could protect the object since: the intent refuses changes.
                self.of.retire_checked(head.live, true, Micros::from(stamp), &mut out);
            }
        }
        Ok(out)
    }
}

/// Removes the row of a decision, after all sources of the change were ended.
#[derive(Debug, Clone, Copy)]
pub struct Forget<'a> {
    /// The target.
    pub at: Name<'a>,
    /// The id of the change.
    pub id: &'a str,
}

impl Forget<'_> {
    /// The rows that the judge reads.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.at.key(&ObjectRow::Outcome(self.id.into()))]
    }

    /// Decides the write, which never fails.
    pub fn judge(&self, _: &[Option<Bytes>], _: Timestamp) -> Verdict<()> {
        Ok(Outcome { changes: vec![(self.keys().remove(0), None)], releases: Vec::new(), answer: () })
    }
}

fn head(row: &Option<Bytes>) -> Result<Option<Head>, ObjectError> {
    row.as_ref().map(|row| Head::decode(row)).transpose()
}
