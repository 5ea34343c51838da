//! How far one page of a query may look. The map decides this before the page looks at any row.
//!
//! A page ends before a range that is offline. So the client gets what can be read, and asks for the rest again and
//! again until that can be read too. In some profiles a page also ends with the range in which it begins. The token
//! then names the first PartitionKey of the next range. An old map does no harm: the page then ends where two ranges
//! met in that map.

use rangehold_map::{KeyRange, TableId};
use rangehold_protocol::table::continuation::Continuation;

use super::TableService;

/// The keys that a page looks at.
pub(super) struct Reach {
    pub(super) keys: KeyRange,
    /// Where the next page begins, if this one may not look at all keys.
    pub(super) next: Option<Continuation>,
}

impl TableService {
    /// The part of the `keys` of a table that one page may look at.
    pub(super) fn reach(&self, account: &str, table: TableId, keys: &KeyRange) -> Reach {
        let map = self.router.map();
        let ends_before = |range, online: bool| {
            self.profile.pages.end_with_range || !online || self.rehearsals.is_offline(range)
        };
        let mut further = map.overlapping(keys).skip(1).filter(|entry| ends_before(entry.id, entry.online));
        // The page goes beyond a boundary that no token can name. The service makes no such boundaries.
        let end = further.find_map(|entry| {
            let next = Continuation::at_boundary(account, table, entry.keys.low())?;
            Some((entry.keys.low().to_vec(), next))
        });
        match end {
            Some((low, next)) => {
                Reach { keys: keys.intersect(&KeyRange::new(Vec::new(), Some(low))), next: Some(next) }
            }
            None => Reach { keys: keys.clone(), next: None },
        }
    }
}
