//! Finds the keys for which two maps have different mappings. Recovery uses this.
//!
//! The keys are cut at all bounds of both maps. Each piece has at most one mapping in each map. If the two
//! mappings do not have the same id, the piece is a difference:
//!
//! ```text
//!   global   [ g1          )        [ g2      )
//!   local         [ l1              )
//!   pieces   [ g1 )[ g1 l1 )[ l1    )[ g2     )
//! ```

use super::id::MappingId;
use crate::ordered::{Keyed, Ordered};
use crate::range::KeyRange;

/// A mapping of one of the two maps: its keys, its id, and other data that is not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held<T> {
    /// The keys.
    pub keys: KeyRange,
    /// The id of the mapping.
    pub id: MappingId,
    /// The other data.
    pub about: T,
}

impl<T> Keyed for Held<T> {
    fn keys(&self) -> &KeyRange {
        &self.keys
    }
}

/// Keys for which the two maps differ. At least one map has a mapping of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference<T> {
    /// The keys.
    pub keys: KeyRange,
    /// The mapping in the global map.
    pub global: Option<Held<T>>,
    /// The mapping in the local map.
    pub local: Option<Held<T>>,
}

/// All differences between two maps, in the order of their keys. They do not overlap.
pub fn differences<T: Clone>(global: Vec<Held<T>>, local: Vec<Held<T>>) -> Vec<Difference<T>> {
    let (global, local) = (Ordered::new(global), Ordered::new(local));
    let both = || global.iter().chain(local.iter());
    let mut bounds: Vec<&[u8]> = both().map(|held| held.keys.low()).collect();
    bounds.extend(both().filter_map(|held| held.keys.high()));
    bounds.sort_unstable();
    bounds.dedup();
    let piece = |(index, low): (usize, &&[u8])| {
        let keys = KeyRange::new(low.to_vec(), bounds.get(index + 1).map(|high| high.to_vec()));
        let (global, local) = (global.lookup(low), local.lookup(low));
        (global.map(|held| held.id) != local.map(|held| held.id)).then(|| Difference {
            keys,
            global: global.cloned(),
            local: local.cloned(),
        })
    };
    bounds.iter().enumerate().filter_map(piece).collect()
}
