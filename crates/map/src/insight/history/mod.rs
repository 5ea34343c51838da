//! The history of load: how much was asked of which keys, and when.
//!
//! ```text
//!   tallies of ranges --axis--> seconds --roll up--> tens --roll up--> minutes
//!   (each second)                  |                   |                  |
//!                              memory, 10 min       6 h, on the disk   7 days
//!                                  \___________________|__________________/
//!                                                      |
//!                                               view: rows and columns
//! ```
//!
//! The key space is cut at the boundaries of an [`Axis`] into buckets. What ranges counted in a second
//! ([`Tally`](crate::load::Tally)) is placed into buckets and makes a [`Column`] of cells; a [`RollUp`]
//! adds columns up to coarser ones; segments of encoded columns are kept within a budget
//! ([`Shelf`]). An axis changes rarely ([`Survey`] decides), and a [`View`] shows columns of older axes on the
//! present one ([`Projection`]).
//!
//! Counts are integers, and nothing is lost on the way: the cells of a column add up to what the
//! ranges counted, in each tier and on each axis. `docs/design/0008-history.md` has the reasons.
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
