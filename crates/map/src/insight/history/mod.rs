//! The history of load: how many requests there were, for which keys, and when.
//!
//! ```text
//!   tallies of ranges --axis--> seconds --roll up--> tens --roll up--> minutes
//!   (each second)                  |                   |                  |
//!                              memory, 10 min       disk, 6 h         disk, 7 days
//!                                  \___________________|__________________/
//!                                                      |
//!                                               view: rows and columns
//! ```
//!
//! The boundaries of an [`Axis`] cut the key space into buckets. What ranges count in a second
//! ([`Tally`](crate::load::Tally)) is added to buckets and makes a [`Column`] of cells. A [`RollUp`] adds up
//! columns to coarser ones. Encoded columns are kept in segments, within a budget ([`Shelf`]). The axis
//! changes rarely ([`Survey`] decides when). A [`View`] shows columns of older axes on the present one
//! ([`Projection`]).
//!
//! Counts are integers, and no count is lost: the cells of a column add up to what the ranges counted, in
//! each tier and on each axis. `docs/design/0008-history.md` has the reasons.
//!
//! Architecture Invariant: nothing here reads or writes files, or knows what time it is.

mod axis;
mod boundaries;
mod column;
mod format;
mod limits;
mod projection;
mod shelf;
mod survey;
mod tier;
mod view;

pub use axis::Axis;
pub use boundaries::Boundaries;
pub use column::{Cells, Column, RollUp};
pub use format::{Malformed, Record};
pub use limits::{BUCKETS_MAX, SEGMENT_BYTES_MAX, SEGMENTS_MAX, TICKS_BEFORE_SURVEY};
pub use projection::Projection;
pub use shelf::{Segment, SegmentId, Shelf};
pub use survey::Survey;
pub use tier::Tier;
pub use view::{Row, Shown, ShownColumn, View};
