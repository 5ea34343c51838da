//! What comes next in a split or a merge. This table decides it, and nothing else does.
//!
//! A *walk* is one attempt of one process to bring a change to its end. The process that makes the change walks, and
//! so does each process that finds the change broken off; several may walk at the same time. A walk asks
//! [`Seen::next`] what to do, does it, and tells [`Seen::after`] what it saw. Both functions are pure: the walk
//! itself ([`super::walk`]) does all reading and writing.
//!
//! ```text
//!   Making    -- hold writes, retire, make heirs, create the record --> Finishing
//!      \ a step failed
//!   Settling  -- open the parents, see their row, see or decide the record --> Finishing or Undoing
//!   Finishing -- open the heirs, serve them, write down what they inherit, write the map --> Ended
//!   Undoing   -- take the row away, write the map --> Ended
//! ```
//!
//! Rules that the table keeps:
//!
//! * Heirs are served only after the record says that the change is done. Parents are served again only if the record
//!   says that it is undone, or if they have no retirement row: the row is written before the record, and a walk that
//!   opened the parents has shut out everybody who could still write the row.
//! * A walk that holds writes serves the heirs first and writes the map afterwards, because clients wait. Any other walk
//!   writes the map first: if two walks finish the same change, the map then names one of them.
//! * A walk looks at the map before it serves heirs that it took time to open. Another process may have finished the
//!   change since, and the heirs may have changed in their turn.
//! * A walk does not open heirs that are served already. It would shut out the process that serves them. Where the map
//!   names them, nothing is left to do; where only the map is missing, the walk writes the map.

use std::fmt;

/// The number of an attempt to make the databases of the heirs; each attempt has paths of its own.
pub(super) type Attempt = u64;

/// Where a walk stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// This process makes the change, and nothing has failed.
    Making,
    /// A step failed, or another process broke the change off: does it count or not?
    Settling,
    /// It counts, by this attempt.
    Finishing(Attempt),
    /// It does not count, and nobody can make it count any more.
    Undoing,
    /// Nothing is left to do in this walk.
    Ended(End),
}

/// How a walk ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// The heirs are served, and the map names them.
    Done,
    /// The parents go on, and the map says so.
    Undone,
    /// The map says something else by now: another process has brought the change to its end.
    Overtaken,
    /// Something failed at a moment when this walk can neither finish nor undo. Another walk can.
    BrokenOff,
    /// The parents were replaced by a change of which the map knows nothing: map and ranges do not fit.
    MapTooOld,
}

/// What the databases of the parents say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Row {
    /// This walk has not opened them.
    Unread,
    /// No parent is retired.
    Absent,
    /// A parent may be retired: writing the row failed, which can also mean that only the answer was lost.
    Perhaps,
    /// A parent is retired by this change.
    This,
    /// A parent is retired by another change.
    Another,
}

/// How far the heirs are, as far as this walk knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Heirs {
    /// Not made by this walk, and not open here.
    Absent,
    /// Their databases are made by this attempt.
    Made(Attempt),
    /// This walk has opened them. Nobody else can write to them from then on.
    Open,
    /// They answer clients.
    Served,
}

/// What the newest map says of the parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Map {
    /// Not looked at since the last step that takes long.
    Unread,
    /// The same as when this walk began.
    Ours,
    /// Something else.
    GoneOn,
}

/// What a walk knows of its change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    pub(super) phase: Phase,
    /// Whether this walk holds writes of clients until the heirs are served.
    pub(super) holds_writes: bool,
    pub(super) row: Row,
    pub(super) heirs: Heirs,
    pub(super) map: Map,
    /// Whether the server that is to serve the heirs has its lease; `None` where it was not asked yet.
    pub(super) lease: Option<bool>,
    /// Whether the heirs hold what they inherit in their own databases.
    pub(super) inherited: bool,
    /// Whether the map names the heirs.
    pub(super) published: bool,
}

/// A step of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Act {
    /// Hold new writes of the parents, and wait until those under way are in the log.
    Hold,
    /// Write the retirement row into the parents, and make a checkpoint to clone from.
    Retire,
    /// Make the databases of the heirs.
    MakeHeirs,
    /// Create the record, "done by this attempt"; open the heirs meanwhile, because writes are held.
    Record(Attempt),
    /// Open the parents, which shuts out everybody who had them open; read their row.
    OpenParents,
    /// Create the record, "undone", or find what it says.
    Decide,
    /// Settle the other change by whose row a parent is retired.
    SettleOther,
    /// Look at the newest map.
    LookAtMap,
    /// Open the heirs of this attempt, which shuts out everybody who had them open.
    OpenHeirs(Attempt),
    /// Ask whether the server may serve.
    AskLease,
    /// Serve the heirs; send them the writes that were held.
    Serve,
    /// Write what the heirs inherit into their databases.
    Inherit,
    /// Write into the map that the change is done.
    PublishDone,
    /// Take the retirement row away.
    Unretire,
    /// Write into the map that the change is undone.
    PublishUndone,
    /// Stop.
    End(End),
}

/// What a walk saw when it did a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Saw {
    /// It worked.
    Worked,
    /// It failed, or nobody knows whether it worked.
    Failed,
    /// The heirs were made by this attempt.
    Made(Attempt),
    /// The parents' row.
    Row(Row),
    /// The record says: done by this attempt, or undone (`None`). It was there before, or is there by this step.
    Decided(Option<Attempt>),
    /// The map says this of the parents.
    Map(Map),
    /// The map is as it was, and a server serves the heirs already.
    Served,
    /// Whether the server has its lease.
    Lease(bool),
    /// The map says something else of the parents by now.
    Overtaken,
    /// The other change counts, though the map knows nothing of it.
    MapTooOld,
}

impl Seen {
    /// The walk of the process that makes the change: the intent is in the map, the parents are served here.
    pub(super) fn making() -> Self {
        Self {
            phase: Phase::Making,
            holds_writes: false,
            row: Row::Absent,
            heirs: Heirs::Absent,
            map: Map::Unread,
            lease: None,
            inherited: false,
            published: false,
        }
    }

    /// The walk of a process that found the change broken off.
    pub(super) fn resuming() -> Self {
        Self { phase: Phase::Settling, row: Row::Unread, ..Self::making() }
    }

    /// What to do next.
    pub(super) fn next(&self) -> Act {
        match self.phase {
            Phase::Making => match (self.holds_writes, self.row, self.heirs) {
                (false, _, _) => Act::Hold,
                (true, Row::Absent, _) => Act::Retire,
                (true, _, Heirs::Made(attempt)) => Act::Record(attempt),
                (true, _, _) => Act::MakeHeirs,
            },
            Phase::Settling => match (self.row, self.map) {
                (Row::Unread, _) => Act::OpenParents,
                (Row::Another, Map::Unread) => Act::LookAtMap,
                (Row::Another, Map::Ours) => Act::SettleOther,
                (Row::Another, Map::GoneOn) => Act::End(End::Overtaken),
                (Row::Perhaps | Row::This, _) => Act::Decide,
                // Only a walk that opened the parents comes here, so the row cannot be written any more.
                (Row::Absent, _) => Act::PublishUndone,
            },
            Phase::Finishing(attempt) => self.next_to_finish(attempt),
            Phase::Undoing if self.row == Row::Absent => Act::PublishUndone,
            Phase::Undoing => Act::Unretire,
            Phase::Ended(end) => Act::End(end),
        }
    }

    fn next_to_finish(&self, attempt: Attempt) -> Act {
        match (self.heirs, self.map) {
            (Heirs::Open | Heirs::Absent | Heirs::Made(_), Map::GoneOn) => Act::End(End::Overtaken),
            (Heirs::Absent | Heirs::Made(_), Map::Unread) => Act::LookAtMap,
            (Heirs::Absent | Heirs::Made(_), Map::Ours) => Act::OpenHeirs(attempt),
            (Heirs::Open, Map::Unread) if self.holds_writes => Act::LookAtMap,
            (Heirs::Open, _) if self.holds_writes || self.published => match self.lease {
                None => Act::AskLease,
                Some(true) => Act::Serve,
                Some(false) => Act::End(End::BrokenOff),
            },
            (Heirs::Open | Heirs::Served, _) if !self.inherited => Act::Inherit,
            (Heirs::Open | Heirs::Served, _) if !self.published => Act::PublishDone,
            (Heirs::Open | Heirs::Served, _) => Act::End(End::Done),
        }
    }

    /// What is known after a step.
    pub(super) fn after(mut self, act: Act, saw: Saw) -> Self {
        match (act, saw) {
            // Nothing was written yet.
            (Act::Hold, Saw::Failed) => self.phase = Phase::Undoing,
            (Act::Hold, Saw::Worked) => self.holds_writes = true,
            (Act::Retire, Saw::Worked) => self.row = Row::This,
            (Act::Retire, Saw::Failed) => (self.phase, self.row) = (Phase::Settling, Row::Perhaps),
            (Act::MakeHeirs, Saw::Made(attempt)) => self.heirs = Heirs::Made(attempt),
            (Act::MakeHeirs | Act::Record(_), Saw::Failed) => self.phase = Phase::Settling,
            (Act::Record(attempt), Saw::Worked) => {
                (self.phase, self.heirs) = (Phase::Finishing(attempt), Heirs::Open);
            }
            (Act::Record(_) | Act::Decide, Saw::Decided(Some(attempt))) => {
                (self.phase, self.heirs, self.map) = (Phase::Finishing(attempt), Heirs::Absent, Map::Unread);
            }
            (Act::Record(_) | Act::Decide, Saw::Decided(None)) => self.phase = Phase::Undoing,
            (Act::OpenParents | Act::SettleOther, Saw::Row(row)) => (self.row, self.map) = (row, Map::Unread),
            (Act::LookAtMap, Saw::Map(map)) => self.map = map,
            (Act::LookAtMap, Saw::Served) => (self.map, self.heirs) = (Map::Ours, Heirs::Served),
            (Act::OpenHeirs(_), Saw::Worked) => (self.heirs, self.map) = (Heirs::Open, Map::Unread),
            (Act::AskLease, Saw::Lease(holds)) => self.lease = Some(holds),
            (Act::Serve, Saw::Worked) => self.heirs = Heirs::Served,
            (Act::Inherit, Saw::Worked) => self.inherited = true,
            (Act::PublishDone, Saw::Worked) => self.published = true,
            (Act::Unretire, Saw::Worked) => self.row = Row::Absent,
            (Act::PublishUndone, Saw::Worked) => self.phase = Phase::Ended(End::Undone),
            (_, Saw::Overtaken) => self.phase = Phase::Ended(End::Overtaken),
            (_, Saw::MapTooOld) => self.phase = Phase::Ended(End::MapTooOld),
            (_, Saw::Failed) => self.phase = Phase::Ended(End::BrokenOff),
            (act, saw) => unreachable!("the step {act:?} does not see {saw:?}"),
        }
        self
    }
}

impl fmt::Display for Act {
    /// The step in a few words, for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hold => f.write_str("hold writes"),
            Self::Retire => f.write_str("retire the parents"),
            Self::MakeHeirs => f.write_str("make the heirs"),
            Self::Record(attempt) => write!(f, "record: done by attempt {attempt}"),
            Self::OpenParents => f.write_str("open the parents"),
            Self::Decide => f.write_str("record: undone, unless it is done"),
            Self::SettleOther => f.write_str("settle the other change"),
            Self::LookAtMap => f.write_str("look at the map"),
            Self::OpenHeirs(attempt) => write!(f, "open the heirs of attempt {attempt}"),
            Self::AskLease => f.write_str("ask for the lease"),
            Self::Serve => f.write_str("serve the heirs"),
            Self::Inherit => f.write_str("write down what is inherited"),
            Self::PublishDone => f.write_str("map: done"),
            Self::Unretire => f.write_str("take the retirement away"),
            Self::PublishUndone => f.write_str("map: undone"),
            Self::End(End::Done) => f.write_str("end: the change is done"),
            Self::End(End::Undone) => f.write_str("end: the change is undone"),
            Self::End(End::Overtaken) => f.write_str("end: another process has settled it"),
            Self::End(End::BrokenOff) => f.write_str("end: broken off"),
            Self::End(End::MapTooOld) => f.write_str("end: the map is older than the ranges"),
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
