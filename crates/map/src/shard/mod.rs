//! Shard maps: which of a user's databases holds which keys.
//!
//! A shard map has keys of one type ([`ShardKeyType`]) and *mappings*: an interval of keys and the shard
//! that holds them. In a **range** map the intervals are the user's, with gaps where nobody said anything;
//! in a **list** map each is one key, `[k, next(k))`. Both stand on the ordered layer of the service's own
//! map ([`crate::ordered`]).
//!
//! ```text
//!   range map   [1 .. 50) A   [50 .. 100) B   [100 .. 200) C        [400 .. 600) C
//!   list map    1 A    3 B    4 C    6 B
//! ```
//!
//! A mapping does not change: each [`ShardChange`] takes mappings away and brings others, with ids that
//! were never used ([`Effect`]). So a handle that somebody kept from before is refused, not misunderstood,
//! and undoing an effect is exchanging its two halves.
//!
//! [`ShardMap::apply`] is the one place of the rules. It needs only the mappings near a change, which
//! is what a database can give cheaply.

mod change;
mod differences;
mod id;
mod key;
mod key_type;
mod lock;
mod lock_rules;
mod map;
mod refused;
mod time;
mod value;
mod written;

pub use change::{Effect, Fresh, MappingUpdate, NewMapping, ShardChange};
pub use differences::{Difference, Held, differences};
pub use id::{MappingId, ShardId};
pub use key::{NotAKey, ShardKey};
pub use key_type::{BINARY_BYTES_MAX, ShardKeyType, TEXT_BYTES_MAX};
pub use lock::{Lock, LockToken};
pub use map::{MapKind, ShardMap, ShardMapping};
pub use refused::ShardChangeRefused;
pub use time::{DATE_TIME_TICKS_MAX, DateTime, DateTimeOffset, TICKS_PER_DAY, TimeSpan};
pub use value::ShardKeyValue;
