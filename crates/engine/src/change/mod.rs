//! Ranges that change hands: splits, merges, moves, as seen by the servers that own them.
//!
//! ```text
//!   split, merge                                       move
//!     the map says that it is begun                      the map says that it is begun
//!     ready: small memtable, room for a flush            ready
//!     frozen: new writes held, the others in the log     frozen
//!     retired: the last row, everything saved            saved
//!     cloned from a checkpoint of that                   opened by the target: the epoch rises  COMMIT
//!     change record created                 COMMIT       source answers no read any more
//!       (and meanwhile the heirs opened)                 target serves
//!     served instead of the old range                    the map says that it is done
//!     the map says that it is done                       what was held is sent on
//!     (what was held is sent on)
//! ```
//!
//! Reads are answered throughout, by the old owner until the new one is about to serve. Before the
//! commit point a failure is undone: the range goes on where it was. From it on a failure is
//! finished, if need be by another process that finds the intent in the map ([`resolve`]).
//!
//! | file | what |
//! |---|---|
//! | [`record`] | the commit point of a split and a merge |
//! | `clone` | making databases of databases |
//! | `replace` | split and merge, which replace ranges by others in one server |
//! | `hand_over` | the two sides of a move |
//! | [`resolve`] | what the next opener does about a change that was broken off |

mod clone;
mod hand_over;
mod record;
mod replace;
pub(crate) mod resolve;

use std::time::Duration;

use rangehold_map::{ChangeRefused, RangeId};

pub(crate) use hand_over::HandOver;
pub(crate) use replace::{MergeOrder, SplitOrder};

use crate::error::{OpenError, ReadError};
use crate::partition_server::NotHeld;

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// It does not fit the map.
    #[error(transparent)]
    Refused(#[from] ChangeRefused),
    /// The server does not hold the range in that generation: look at the map and ask again.
    #[error(transparent)]
    NotHeld(#[from] NotHeld),
    /// There is no such server, or it does not run.
    #[error("there is no server {0} here")]
    NoServer(rangehold_map::ServerId),
    /// Nothing was done yet: it waits for this. Asking again helps.
    #[error("{range} cannot change hands yet: {waits_for}")]
    NotYet {
        /// The range.
        range: RangeId,
        /// What it waits for.
        waits_for: String,
    },
    /// It was begun, failed and was undone: the range goes on as before.
    #[error("the change of {range} failed and was undone: {why}")]
    Undone {
        /// The range.
        range: RangeId,
        /// What failed.
        why: String,
    },
    /// It was begun and is neither done nor undone, because the store gives no answer or a row
    /// cannot be read. Whoever opens the range next brings it to its end.
    #[error("the change of {range} is broken off: {why}")]
    BrokenOff {
        /// The range.
        range: RangeId,
        /// What failed.
        why: String,
    },
    /// The stored map could not be read or changed.
    #[error(transparent)]
    Store(#[from] OpenError),
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The version of the map in which it is done.
    pub map_version: u64,
    /// The ranges that hold the keys now, in their order.
    pub ranges: Vec<RangeId>,
    /// How long writes were held, by the clock of the one who held them; the longer time, if that was twice.
    pub held_for: Duration,
}

fn undone(range: RangeId) -> impl Fn(ReadError) -> ChangeError {
    move |error| ChangeError::Undone { range, why: error.to_string() }
}
