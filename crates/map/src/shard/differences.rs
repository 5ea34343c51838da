//! Where two maps say different things of the same keys: the sweep beneath recovery.
//!
//! The keys are cut at every bound of either map. On each piece at most one mapping of either side
//! holds, and where the two have not the same id the piece is a difference:
//!
//! ```text
//!   global   [ g1          )        [ g2      )
//!   local         [ l1              )
//!   pieces   [ g1 ][ g1 l1 )[ l1    )[ g2     )
//! ```

use super::id::MappingId;
use crate::ordered::{Keyed, Ordered};
use crate::range::KeyRange;

/// A mapping as far as it is compared: its keys, its id, and what its side knows besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held<T> {
    /// The keys.
    pub keys: KeyRange,
    /// The mapping.
    pub id: MappingId,
    /// What else is known.
    pub about: T,
}

impl<T> Keyed for Held<T> {
    fn keys(&self) -> &KeyRange {
        &self.keys
    }
}

/// Keys of which the two maps do not say the same. At least one of them maps these keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference<T> {
    /// The keys.
    pub keys: KeyRange,
    /// The global map's mapping of them.
    pub global: Option<Held<T>>,
    /// The local map's.
    pub local: Option<Held<T>>,
}

/// All differences between two maps, in the order of their keys, none overlapping another.
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
