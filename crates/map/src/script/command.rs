//! Commands: what they ask for, and what that is on a given map.

use std::time::Duration;

use strum::{Display, EnumString};
use thiserror::Error;

use super::key_name::KeyName;
use super::names::{Names, UnknownTable};
use crate::plan::Standing;
use crate::range::{Generation, RangeId, ServerId};
use crate::range_map::{Change, ChangeRefused, Home, RangeEntry, RangeMap};

/// One line of a script. `Display` writes it as [`parse`](super::parse()) reads it.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// There is a table.
    Table {
        /// The account; `None` is the script's.
        account: Option<String>,
        /// Its name.
        name: String,
    },
    /// There is a server, and what it is like.
    Server {
        /// Which.
        server: ServerId,
        /// What it can bear, in requests/s; `None` leaves it as it was.
        capacity: Option<f64>,
        /// What it is good for.
        standing: Standing,
    },
    /// Show the map.
    Map,
    /// List the broken rules of the map.
    Check,
    /// Show the range that holds a key.
    Find(KeyName),
    /// Change the map.
    Change {
        /// How far to go.
        step: Step,
        /// What to change.
        asked: Asked,
    },
    /// Finish what was begun on a range.
    Done(Target),
    /// Undo what was begun on a range.
    Undo(Target),
    /// What is seen of a range from now on.
    Observe {
        /// The range.
        range: Target,
        /// What is seen.
        observed: Observed,
    },
    /// Let time go by.
    Wait(Duration),
    /// Show what the planner would change now, and what it waits for.
    Plan(Profile),
    /// Plan, and carry the changes out.
    Execute(Profile),
}

/// How far a change goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// From beginning to end.
    Whole,
    /// It is begun, and left so.
    Begin,
}

/// The numbers by which the planner decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Display, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Profile {
    /// As good as the machine can.
    #[default]
    Fast,
    /// As the cloud's documents say.
    Cloud,
}

/// A range, as a script names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// By id; in this generation, or in whichever it is.
    Range {
        /// The id.
        id: RangeId,
        /// The generation.
        generation: Option<Generation>,
    },
    /// The one that holds a key.
    Holding(KeyName),
}

/// A change as a script asks for it. [`Asked::change`] makes a [`Change`] of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Make two ranges of one.
    Split {
        /// The range.
        range: Target,
        /// The first key of the right half.
        at: KeyName,
    },
    /// Make one range of two neighbours.
    Merge {
        /// The one with the lower keys.
        left: Target,
        /// The other.
        right: Target,
    },
    /// Give a range to another server.
    Move {
        /// The range.
        range: Target,
        /// The server.
        to: ServerId,
    },
    /// Let a range refuse every request.
    Offline(Target),
    /// Let a range serve again.
    Online(Target),
}

/// What is seen of a range.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observed {
    /// Requests/s now.
    pub rate: f64,
    /// The most requests/s of the last minutes; `None`: the same as now.
    pub peak: Option<f64>,
    /// Bytes stored.
    pub bytes: u64,
    /// Why it is hot, if that was found out.
    pub cause: Option<CauseName>,
    /// How many owners crashed with it.
    pub crashes: u32,
}

/// Why a range is hot. Shares are of its requests, 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub enum CauseName {
    /// Its load can be split at this key.
    Split(KeyName),
    /// One partition has this share.
    HotKey(f64, KeyName),
    /// This share goes to ever higher keys.
    Append(f64),
    /// This share goes to ever lower keys.
    Prepend(f64),
    /// This share goes over most of the range.
    Scan(f64),
    /// Nothing of this.
    Unclear,
}

/// Why a command was not carried out. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandRefused {
    /// It names a table that there is not.
    #[error(transparent)]
    Table(#[from] UnknownTable),
    /// The map refuses it.
    #[error(transparent)]
    Change(#[from] ChangeRefused),
    /// It names a key below the first range.
    #[error("no range holds {key}: the first one begins at {}", KeyName::Start)]
    Outside {
        /// The key.
        key: KeyName,
    },
}

impl CommandRefused {
    /// The sentence for people, with keys as they are written in scripts.
    pub fn sentence(&self, names: &Names) -> String {
        match self {
            Self::Change(refused) => refused.sentence(|key| names.name(key).to_string()),
            Self::Table(_) | Self::Outside { .. } => self.to_string(),
        }
    }
}

impl Target {
    /// The range that is meant, in this version of the map. Fails if a generation was asked for in
    /// which it is not.
    pub fn find<'a>(&self, map: &'a RangeMap, names: &Names) -> Result<&'a RangeEntry, CommandRefused> {
        match self {
            Self::Range { id, generation } => {
                let unknown = ChangeRefused::UnknownRange { range: *id };
                let entry = map.get(*id).ok_or(unknown)?;
                let (made_for, is_in) = (generation.unwrap_or(entry.generation), entry.generation);
                if made_for == is_in {
                    Ok(entry)
                } else {
                    Err(ChangeRefused::OtherGeneration { range: *id, made_for, is_in }.into())
                }
            }
            Self::Holding(key) => {
                map.lookup(&names.key(key)?).ok_or_else(|| CommandRefused::Outside { key: key.clone() })
            }
        }
    }
}

impl Asked {
    /// How a change is asked for, with the generations for which it was made.
    pub fn of(change: &Change, names: &Names) -> Self {
        let named = |id: RangeId, generation| Target::Range { id, generation: Some(generation) };
        match *change {
            Change::Split { range, generation, ref at } => {
                Self::Split { range: named(range, generation), at: names.name(at) }
            }
            Change::Merge { left, left_generation, right, right_generation } => {
                Self::Merge { left: named(left, left_generation), right: named(right, right_generation) }
            }
            Change::Move { range, generation, to } => {
                Self::Move { range: named(range, generation), to: to.server }
            }
            Change::Offline { range, generation } => Self::Offline(named(range, generation)),
            Change::Online { range, generation } => Self::Online(named(range, generation)),
        }
    }

    /// The change that is meant, for the generations in which the ranges are in this version.
    pub fn change(&self, map: &RangeMap, names: &Names) -> Result<Change, CommandRefused> {
        let named = |target: &Target| target.find(map, names).map(|entry| (entry.id, entry.generation));
        Ok(match self {
            Self::Split { range, at } => {
                let (range, generation) = named(range)?;
                Change::Split { range, generation, at: names.key(at)? }
            }
            Self::Merge { left, right } => {
                let ((left, left_generation), (right, right_generation)) = (named(left)?, named(right)?);
                Change::Merge { left, left_generation, right, right_generation }
            }
            Self::Move { range, to } => {
                let entry = range.find(map, names)?;
                let to = Home { server: *to, ..entry.place };
                Change::Move { range: entry.id, generation: entry.generation, to }
            }
            Self::Offline(range) => {
                let (range, generation) = named(range)?;
                Change::Offline { range, generation }
            }
            Self::Online(range) => {
                let (range, generation) = named(range)?;
                Change::Online { range, generation }
            }
        })
    }
}
