//! Decides which snapshots fit together. It does no IO.
//!
//! A shard's row in the global map has an epoch, which grows when an operation begins on the shard, and a mark while
//! one is under way. Take a snapshot that was opened between two looks, and let both looks show the same epoch and no
//! mark. Then the snapshot shows the shard as it was all the time between these looks. If this holds for all shards
//! of one look, their snapshots show the map at the moment of that look.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::location::Location;

/// A shard as one look at the global map shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) shard: Uuid,
    /// The version of the shard itself.
    pub(super) version: Uuid,
    pub(super) location: Location,
    pub(super) epoch: i64,
    /// The operation that is under way on the shard.
    pub(super) held: Option<Uuid>,
}

/// What must be done next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// All snapshots fit.
    Read,
    /// Wait for this operation, then look again.
    Wait(Uuid),
    /// Open snapshots of these shards again, and then look again.
    Open(Vec<Seen>),
}

/// Judges the snapshots: compares the epochs at which they were opened with those of the latest look. Drops from
/// `opened` the shards that are no longer in the map.
pub(super) fn judge(opened: &mut BTreeMap<Uuid, i64>, look: &[Seen]) -> Next {
    opened.retain(|shard, _| look.iter().any(|seen| seen.shard == *shard));
    if let Some(operation) = look.iter().find_map(|seen| seen.held) {
        return Next::Wait(operation);
    }
    let stale = |seen: &&Seen| opened.get(&seen.shard) != Some(&seen.epoch);
    let stale: Vec<Seen> = look.iter().filter(stale).cloned().collect();
    if stale.is_empty() { Next::Read } else { Next::Open(stale) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(shard: u128, epoch: i64, held: Option<u128>) -> Seen {
        let location = Location::sqlite(&shard.to_string()).expect("a path");
        Seen {
            shard: Uuid::from_u128(shard),
            version: Uuid::nil(),
            location,
            epoch,
            held: held.map(Uuid::from_u128),
        }
    }

    #[test]
    fn snapshots_fit_when_no_shard_changed_since_they_were_opened() {
        let mut opened = BTreeMap::new();
        let look = [seen(1, 5, None), seen(2, 3, None)];
        assert_eq!(judge(&mut opened, &look), Next::Open(look.to_vec()));
        opened.extend([(Uuid::from_u128(1), 5), (Uuid::from_u128(2), 3)]);
        assert_eq!(judge(&mut opened, &look), Next::Read);
        // Keys went from shard 1 to shard 3, and the operation is over. Shard 1 is opened again, and so is shard 3,
        // which is new.
        let moved = [seen(1, 6, None), seen(2, 3, None), seen(3, 6, None)];
        assert_eq!(judge(&mut opened, &moved), Next::Open(vec![seen(1, 6, None), seen(3, 6, None)]));
        // An operation is under way.
        assert_eq!(judge(&mut opened, &[seen(2, 7, Some(9))]), Next::Wait(Uuid::from_u128(9)));
        assert_eq!(opened.len(), 1, "shards that are gone are forgotten");
    }
}
