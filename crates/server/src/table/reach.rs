//! How far one page of a query may look: by the map, before it looks at all.
//!
//! A page ends before a range that is offline, so that what could be read is answered and the rest is
//! asked for again until it can be; and by the rules of some profiles it ends with the range that it
//! begins in. Its token then names the first PartitionKey of the next range. The map may be stale, and
//! that does no harm: the page ends at a place at which ranges once met.

use rangehold_map::{KeyRange, TableId};
use rangehold_protocol::table::continuation::Continuation;

use super::TableService;

/// The keys that a page looks at.
pub(super) struct Reach {
    pub(super) keys: KeyRange,
    /// Where the next page begins, if there is more than this one may look at.
    pub(super) next: Option<Continuation>,
}

impl TableService {
    /// The first of `keys`, of a table, that one page may look at.
    pub(super) fn reach(&self, account: &str, table: TableId, keys: &KeyRange) -> Reach {
        let map = self.router.map();
        let ends_before = |range, online: bool| {
            self.profile.pages.end_with_range || !online || self.rehearsals.is_offline(range)
        };
        let mut further = map.overlapping(keys).skip(1).filter(|entry| ends_before(entry.id, entry.online));
        // A boundary that no token can name is passed over; none that the service makes is one.
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
