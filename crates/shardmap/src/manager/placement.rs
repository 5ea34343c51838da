//! Chooses the shard for a new tenant or range.

use std::fmt;
use std::str::FromStr;

use super::sizes::ShardSize;
use crate::error::Error;

/// How a shard is chosen for a new tenant or range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlacementPolicy {
    /// The shard with the fewest mappings. Of several such shards, the one with the smallest database.
    #[default]
    FewestTenants,
    /// The shard with the smallest database. Of several such shards, the one with the fewest mappings.
    FewestBytes,
}

/// The shard that the policy chooses. It is never one that is offline, or whose bytes are not known, because it cannot be
/// reached. If several are equal, it is the first one by location, so that the same question always has the same answer.
pub fn choose(policy: PlacementPolicy, shards: &[ShardSize]) -> Option<&ShardSize> {
    let rank = |shard: &&ShardSize| match policy {
        PlacementPolicy::FewestTenants => (Some(shard.mappings as u64), shard.bytes),
        PlacementPolicy::FewestBytes => (shard.bytes, Some(shard.mappings as u64)),
    };
    let usable = shards.iter().filter(|shard| shard.shard.is_online() && shard.bytes.is_some());
    usable.min_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.shard.location().cmp(b.shard.location())))
}

impl fmt::Display for PlacementPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FewestTenants => "tenants",
            Self::FewestBytes => "bytes",
        })
    }
}

impl FromStr for PlacementPolicy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "tenants" => Ok(Self::FewestTenants),
            "bytes" => Ok(Self::FewestBytes),
            _ => Err(Error::argument(format!(
                "{text:?} is not a policy: give tenants (the fewest) or bytes (the fewest)"
            ))),
        }
    }
}
