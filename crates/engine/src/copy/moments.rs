//! Holds one moment of every range, in one version of the map, while ranges change hands.
//!
//! A moment counts if the map has the same entry for its range before and after it was taken. Ranges whose entries
//! change meanwhile get another moment; the others keep theirs. So a few changes of ranges cost a few more tries, and
//! changes that come later do not matter: a moment keeps its files, also when its range is split.

use std::collections::BTreeMap;

use futures::StreamExt;
use rangehold_map::key::{KIND_BLOB, KIND_CATALOGUE, KIND_OBJECT};
use rangehold_map::{KeyRange, RangeEntry, RangeId, RangeMap};
use slatedb::KeyValue;
use tokio::time::sleep;

use super::moment::{Moment, OwnRows};
use super::{CopyError, location};
use crate::blob::Hold;
use crate::database::Databases;
use crate::limits::{MOMENTS_AGAIN_AFTER, MOMENTS_ATTEMPTS_MAX, OPENINGS_AT_ONCE_MAX};
use crate::map_store;
use crate::range::Identity;
use crate::store::Store;

/// Moments of ranges, each with the entry that the map had for the range; and the hold of all blobs.
pub(super) struct Moments {
    source: Store,
    /// Only ranges with some of these keys count.
    keys: KeyRange,
    /// Whether each moment notes what the database holds.
    with_contents: bool,
    held: BTreeMap<RangeId, (RangeEntry, Moment)>,
    blobs: Option<Hold>,
}

impl Moments {
    /// Takes a moment of each range of the source with some of `keys`. Returns them with the version of the map to which
    /// all of them belong.
    pub(super) async fn hold(
        source: &Store,
        keys: &KeyRange,
        databases: &Databases,
        with_contents: bool,
    ) -> Result<(RangeMap, Self), CopyError> {
        let blobs = Hold::place(source.object_store(), &databases.clock).await?;
        let mut moments = Self {
            source: source.clone(),
            keys: keys.clone(),
            with_contents,
            held: BTreeMap::new(),
            blobs: Some(blobs),
        };
        let held = moments.hold_all(source, databases).await;
        match held {
            Ok(map) => Ok((map, moments)),
            Err(error) => {
                moments.release().await;
                Err(error)
            }
        }
    }

    async fn hold_all(&mut self, source: &Store, databases: &Databases) -> Result<RangeMap, CopyError> {
        let objects = source.object_store();
        let load = async || -> Result<RangeMap, CopyError> {
            map_store::load(&objects).await?.ok_or_else(|| CopyError::NeverServed { from: location(source) })
        };
        let mut map = load().await?;
        let mut changing = None;
        for _ in 0..MOMENTS_ATTEMPTS_MAX {
            let failed = self.hold_missing(&map, source, databases).await;
            let newer = load().await?;
            let is_steady = newer == map;
            changing =
                newer.overlapping(&self.keys).find(|entry| entry.intent.is_some()).map(|entry| entry.id);
            if is_steady {
                failed?;
                if changing.is_none() {
                    return Ok(map);
                }
                sleep(MOMENTS_AGAIN_AFTER).await;
            }
            map = newer;
        }
        Err(match changing {
            Some(range) => CopyError::Changing { from: location(source), range },
            None => CopyError::MapChanged { from: location(source) },
        })
    }

    /// Gives up moments that do not belong to this version, and takes those that are missing. Ranges that are being
    /// changed get none.
    ///
    /// If one is missing, the moments of the ranges with the rows of blobs and with the catalogue are taken again too, one
    /// by one and after all others ([`in_order`]).
    async fn hold_missing(
        &mut self,
        map: &RangeMap,
        source: &Store,
        databases: &Databases,
    ) -> Result<(), CopyError> {
        let is_wanted = |entry: &RangeEntry| map.get(entry.id) == Some(entry);
        self.give_up(|entry| !is_wanted(entry)).await;
        let is_missing = |held: &BTreeMap<_, _>, entry: &&RangeEntry| !held.contains_key(&entry.id);
        let keys = self.keys.clone();
        let steady = || map.overlapping(&keys).filter(|entry| entry.intent.is_none());
        if !steady().any(|entry| is_missing(&self.held, &entry)) {
            return Ok(());
        }
        self.give_up(comes_last).await;
        let missing: Vec<_> =
            steady().filter(|entry| is_missing(&self.held, entry) && !comes_last(entry)).cloned().collect();
        let with_contents = self.with_contents;
        let taken: Vec<_> = futures::stream::iter(missing)
            .map(async |entry| {
                let moment = Moment::hold(source, &Identity::of(&entry), databases, with_contents).await;
                (entry, moment)
            })
            .buffer_unordered(OPENINGS_AT_ONCE_MAX)
            .collect()
            .await;
        let mut failed = Ok(());
        for (entry, moment) in taken {
            match moment {
                Ok(moment) => {
                    self.held.insert(entry.id, (entry, moment));
                }
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        failed?;
        for entry in in_order(steady().filter(|entry| comes_last(entry))) {
            let moment = Moment::hold(source, &Identity::of(entry), databases, with_contents).await?;
            self.held.insert(entry.id, (entry.clone(), moment));
        }
        Ok(())
    }

    async fn give_up(&mut self, is_unwanted: impl Fn(&RangeEntry) -> bool) {
        let (old, kept) =
            std::mem::take(&mut self.held).into_iter().partition(|(_, (entry, _))| is_unwanted(entry));
        self.held = kept;
        release_all(old).await;
    }

    /// The moment of a range.
    pub(super) fn of(&mut self, range: RangeId) -> Option<&mut Moment> {
        self.held.get_mut(&range).map(|(_, moment)| moment)
    }

    /// The bytes of the sorted files of all moments.
    pub(super) fn files_bytes(&self) -> u64 {
        self.held.values().map(|(_, moment)| moment.files_bytes()).sum()
    }

    /// Renews the checkpoints that are due, and the hold. Fails if the hold is over, so a copy must call this once more when it
    /// has its last file.
    pub(super) async fn renew_when_due(&mut self) -> Result<(), CopyError> {
        for (range, (_, moment)) in &mut self.held {
            let renewed = moment.renew_when_due().await;
            renewed.map_err(CopyError::reading(&self.source, *range))?;
        }
        if let Some(blobs) = &mut self.blobs {
            if blobs.is_over() {
                return Err(CopyError::TooLate { from: location(&self.source) });
            }
            blobs.renew_when_due().await?;
        }
        Ok(())
    }

    /// The rows that a range keeps about itself, from its moment. Its other rows then begin with the first of `keys`.
    pub(super) async fn begin_at(&mut self, range: RangeId, keys: &KeyRange) -> Result<OwnRows, CopyError> {
        let (_, moment) = self.held.get_mut(&range).expect("a moment of each range was taken");
        let begun = moment.begin_at(keys.low()).await;
        begun.map_err(CopyError::reading(&self.source, range))
    }

    /// The next row of a range, from its moment.
    pub(super) async fn next_of(&mut self, range: RangeId) -> Result<Option<KeyValue>, CopyError> {
        let (_, moment) = self.held.get_mut(&range).expect("a moment of each range was taken");
        moment.next().await.map_err(CopyError::reading(&self.source, range))
    }

    /// Gives up the moment of one range.
    pub(super) async fn release_one(&mut self, range: RangeId) {
        if let Some((_, moment)) = self.held.remove(&range) {
            moment.release().await;
        }
    }

    /// Gives up all moments, and the hold.
    pub(super) async fn release(self) {
        release_all(self.held).await;
        if let Some(blobs) = self.blobs {
            blobs.release().await;
        }
    }
}

async fn release_all(held: BTreeMap<RangeId, (RangeEntry, Moment)>) {
    futures::stream::iter(held.into_values())
        .for_each_concurrent(OPENINGS_AT_ONCE_MAX, async |(_, moment)| moment.release().await)
        .await;
}

/// Whether its moment is taken after those of all other ranges. Rows of blobs must know each user that another moment
/// has. A catalogue must know of each drop that another moment knows of, or the copy would list a table without rows.
fn comes_last(entry: &RangeEntry) -> bool {
    [KIND_BLOB, KIND_CATALOGUE]
        .iter()
        .any(|kind| !entry.keys.intersect(&KeyRange::prefix(&[*kind])).is_empty())
}

/// Puts those that come last in the order in which their moments are taken. The keys of catalogues are below those of
/// entities, and these below those of objects and blobs. So first come ranges that reach up to objects, upwards: users of
/// blobs before blobs. Then the others, downwards: entities before their catalogue.
fn in_order<'a>(last: impl Iterator<Item = &'a RangeEntry>) -> impl Iterator<Item = &'a RangeEntry> {
    let objects = KeyRange::new(vec![KIND_OBJECT], None);
    let (upper, lower): (Vec<_>, Vec<_>) = last.partition(|entry| !entry.keys.intersect(&objects).is_empty());
    upper.into_iter().chain(lower.into_iter().rev())
}
