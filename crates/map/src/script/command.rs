//! The commands, and what they mean on a given map.

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
    /// Make a table.
    Table {
        /// The account; `None` is the script's own.
        account: Option<String>,
        /// Its name.
        name: String,
    },
    /// Make a server, or change what is known of it.
    Server {
        /// Which.
        server: ServerId,
        /// The load that it can take, in requests/s; `None` keeps it.
        capacity: Option<f64>,
        /// Whether it takes ranges.
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
        /// Whether to finish it.
        step: Step,
        /// The change.
        asked: Asked,
    },
    /// Finish the change that was begun on a range.
    Done(Target),
    /// Undo the change that was begun on a range.
    Undo(Target),
    /// Set what is observed of a range from now on.
    Observe {
        /// The range.
        range: Target,
        /// The observation.
        observed: Observed,
    },
    /// Let time pass.
    Wait(Duration),
    /// Show the changes that the planner would make now, and its report.
    Plan(Profile),
    /// Make a plan and carry its changes out.
    Execute(Profile),
}

/// How far a change goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// From the beginning to the end.
    Whole,
    /// It is begun and not finished.
    Begin,
}

/// The numbers by which the planner decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Display, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Profile {
    /// As fast as the machine can.
    #[default]
    Fast,
    /// As the cloud's documents describe it.
    Cloud,
}

/// A range, as scripts name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// By its id, and by its generation if one is given.
    Range {
        /// The id.
        id: RangeId,
        /// The generation.
        generation: Option<Generation>,
    },
    /// The range that holds a key.
    Holding(KeyName),
}

/// A change, as scripts ask for it. [`Asked::change`] makes a [`Change`] of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Split a range in two.
    Split {
        /// The range.
        range: Target,
        /// The first key of the right half.
        at: KeyName,
    },
    /// Merge two neighbours.
    Merge {
        /// The one with the lower keys.
        left: Target,
        /// The other.
        right: Target,
    },
    /// Move a range to another server.
    Move {
        /// The range.
        range: Target,
        /// The server.
        to: ServerId,
    },
    /// Make a range refuse every request.
    Offline(Target),
    /// Make a range serve again.
    Online(Target),
}

/// What a script says is observed of a range.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observed {
    /// Its requests/s now.
    pub rate: f64,
    /// Its greatest requests/s of the last minutes; `None` is the same as now.
    pub peak: Option<f64>,
    /// Bytes stored.
    pub bytes: u64,
    /// The cause of its load, if there is a verdict.
    pub cause: Option<CauseName>,
    /// How many servers crashed while they held it.
    pub crashes: u32,
}

/// Why a range is hot. Shares are of its requests, 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub enum CauseName {
    /// A split at this key helps.
    Split(KeyName),
    /// One partition has this share.
    HotKey(f64, KeyName),
    /// This share goes to ever higher keys.
    Append(f64),
    /// This share goes to ever lower keys.
    Prepend(f64),
    /// This share is scans over most of the range.
    Scan(f64),
    /// The cause is unclear.
    Unclear,
}

/// Why a command was not carried out. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandRefused {
    /// It names a table that does not exist.
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
    /// A sentence for people, with keys as scripts write them.
    pub fn sentence(&self, names: &Names) -> String {
        match self {
            Self::Change(refused) => refused.sentence(|key| names.name(key).to_string()),
            Self::Table(_) | Self::Outside { .. } => self.to_string(),
        }
    }
}

impl Target {
    /// The range in this version of the map. Fails if it is not in the given generation.
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
    /// How scripts write a change, with the generations for which it was made.
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

    /// The change, made for the generations that the ranges have in this version of the map.
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
