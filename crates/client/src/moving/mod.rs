//! Moving a table's entities: reading a table in parts at the same time.
//!
//! A [`Span`] is an interval of keys. [`Source`] reads the first part of a span, and finds a place to cut a span in two
//! by asking for single keys; the service needs no support for either. [`read_parts`] drives both: it cuts
//! until there is work for everybody, and whatever lies beyond a finished part goes back to the spans that wait. So
//! finished parts are all that a program has to note to go on later: [`rest`] tells what is missing.
//!
//! [`bulk::upsert_entities`](crate::bulk::upsert_entities) writes a part in batches. A [`Fingerprint`] says whether two sets of entities are the same, in whichever
//! order they were seen.
//!
//! Parts never overlap, and together they cover the table. So of a table that is written meanwhile, each entity that
//! existed the whole time appears in exactly one part, as it was at some moment; the parts do not show one moment.

mod between;
mod crew;
mod fingerprint;
mod source;
mod span;

pub use between::between;
pub use crew::read_parts;
pub use fingerprint::Fingerprint;
pub use source::{Part, Source};
pub use span::{Span, rest};
