//! Shard maps: which of a user's databases holds which keys.
//!
//! A shard map has keys of one type ([`ShardKeyType`]) and *mappings*. A mapping is an interval of keys and
//! the shard that holds them. In a **range** map, the user chooses the intervals, and there may be gaps. In a
//! **list** map, each interval is one key, `[k, next(k))`. Both use the same ordered layer as the service's
//! own map ([`crate::ordered`]).
//!
//! ```text
//!   range map   [1 .. 50) A   [50 .. 100) B   [100 .. 200) C        [400 .. 600) C
//!   list map    1 A    3 B    4 C    6 B
//! ```
//!
//! A mapping never changes. Each [`ShardChange`] removes mappings and adds others with new ids ([`Effect`]).
//! So a change that names a mapping by an old id is refused, and an effect is undone by exchanging its two
//! halves.
//!
//! All rules are in [`ShardMap::apply`]. It needs only the mappings near a change, which a database can find
//! quickly.

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
pub use value::{OrderedUuid, ShardKeyValue};
