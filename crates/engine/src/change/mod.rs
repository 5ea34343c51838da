//! Ranges that change hands: splits, merges and moves, step by step.
//!
//! ```text
//!   split, merge                                       move
//!     the map says that it is begun                      the map says that it is begun
//!     ready: small memtable, room for a flush            ready
//!     frozen: new writes held, the others in the log     frozen
//!     retired: the last row, everything saved            saved
//!     cloned from a checkpoint of that                   opened by the target: the epoch rises  COMMIT
//!     change record created                 COMMIT       source answers no more reads
//!       (and meanwhile the heirs opened)                 target serves
//!     served instead of the old range                    the map says that it is done
//!     the map says that it is done                       what was held is sent on
//!     (what was held is sent on)
//! ```
//!
//! Reads are answered throughout: by the old owner until the new one is about to serve. Before the commit point a
//! failure is undone, and the range goes on where it was. After it a failure is finished, if need be by another process
//! that finds the intent in the map. A move that was broken off needs no record: the database is one, and the server
//! that opens it next owns it.
//!
//! For a split and a merge one table decides what comes next, whether the change is made, finished by another process
//! or undone. Everything here is a function on ranges, on servers and on the map; the executor calls it.
//!
//! | file | what |
//! |---|---|
//! | `table` | pure: what a walk has seen, and what it does next |
//! | `walk` | does it, from the first step or from where a change was broken off |
//! | `replacement` | which ranges replace which, by the intent in the map |
//! | `parents`, `heirs` | the steps on the old ranges and on the new ones |
//! | `clone` | making databases of databases |
//! | `record` | the commit point of a split and a merge |
//! | `intent` | what is written into the map |
//! | `hand_over` | a move |
//! | `unserved` | undoing a change whose ranges cannot be opened |

mod clone;
mod error;
mod hand_over;
mod heirs;
mod intent;
mod parents;
mod record;
mod replacement;
mod table;
mod unserved;
mod walk;

use std::time::Duration;

use rangehold_map::RangeId;

pub use error::{ChangeError, StepError};
pub(crate) use hand_over::{hand_over, undo_broken_off};
pub(crate) use intent::begin;
pub(crate) use parents::{end_all, get_ready, settle_retired};
pub(crate) use replacement::Replacement;
pub(crate) use unserved::undo_unserved;
pub(crate) use walk::{make, resume};

/// What a change did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The version of the map in which it is done.
    pub map_version: u64,
    /// The ranges that hold the keys now, in their order.
    pub ranges: Vec<RangeId>,
    /// How long writes were held. If they were held twice, by a merge that had to move a range first, the longer time.
    pub held_for: Duration,
}
