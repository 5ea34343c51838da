//! What tables do not have by themselves, made of what they have.
//!
//! * [`SecondaryRows`]: one entity under several RowKeys of its partition, so that a query by another field reads only
//!   what it returns. The rows are changed in one batch and never disagree.
//! * [`Copies`]: one entity under other PartitionKeys. No batch reaches two partitions, so copies may be late; an intent
//!   in the first batch has them finished after a crash, and a reader learns whether its copy is the newest.
//! * [`fan_out`]: one query in the order of its entities, though they lie behind prefixes or in buckets.
//! * [`newest`]: the first entities of a partition.

mod copies;
mod fan_out;
mod rows;

pub use copies::{Age, Copied, Copies};
pub use fan_out::{fan_out, newest};
pub use rows::SecondaryRows;
