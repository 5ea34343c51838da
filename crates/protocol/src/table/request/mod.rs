//! From a request line to a typed operation.
//!
//! A path names a [`Target`]. The target, the method and a few headers make an [`Operation`]. Both steps are
//! the same for a whole request and for a part of a batch.
//!
//! ```text
//!   /Tables                               all tables
//!   /Tables('people')                     one table
//!   /people  /people()                    the entities of a table
//!   /people(PartitionKey='a',RowKey='b')  one entity
//!   /$batch                               an entity group transaction
//!   /                                     the service, with ?restype=service&comp=properties|stats
//! ```
//!
//! The path is split at its slashes *before* percent-decoding. So an encoded slash in a key stays in the key,
//! where it is refused as a forbidden character, and never changes the target. The signed text and the routed
//! text are therefore the same.

mod method;
mod operation;
mod target;

pub use method::Method;
pub use operation::{Conditions, Operation};
pub use target::{EntityName, Target, wrong_key_count};
