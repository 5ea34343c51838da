//! Holds one moment of every range, in one version of the map, while ranges change hands.
//!
//! A moment counts if the map has the same entry for its range before and after it was taken. Ranges whose entries
//! change meanwhile get another moment; the others keep theirs. So a few changes of ranges cost a few more tries, and
//! changes that come later do not matter: a moment keeps its files, also when its range is split.

use std::collections::BTreeMap;

use futures::StreamExt;
use rangehold_map::{RangeEntry, RangeId, RangeMap};
use tokio::time::sleep;

use super::CopyError;
use super::moment::Moment;
use crate::database::Databases;
use crate::limits::{MOMENTS_AGAIN_AFTER, MOMENTS_ATTEMPTS_MAX, OPENINGS_AT_ONCE_MAX};
use crate::map_store;
use crate::range::Identity;
use crate::store::{Store, StoreLocation};

/// Moments of ranges, each with the entry that the map had for the range.
#[derive(Default)]
pub(super) struct Moments(BTreeMap<RangeId, (RangeEntry, Moment)>);

impl Moments {
    /// Takes a moment of each range of the source. Returns them with the version of the map to which all of them
    /// belong.
    pub(super) async fn hold(
        from: &StoreLocation,
        source: &Store,
        databases: &Databases,
    ) -> Result<(RangeMap, Self), CopyError> {
        let mut moments = Self::default();
        let held = moments.hold_all(from, source, databases).await;
        match held {
            Ok(map) => Ok((map, moments)),
            Err(error) => {
                moments.release().await;
                Err(error)
            }
        }
    }

    async fn hold_all(
        &mut self,
        from: &StoreLocation,
        source: &Store,
        databases: &Databases,
    ) -> Result<RangeMap, CopyError> {
        let objects = source.object_store();
        let load = async || -> Result<RangeMap, CopyError> {
            map_store::load(&objects).await?.ok_or_else(|| CopyError::NeverServed { from: from.clone() })
        };
        let mut map = load().await?;
        let mut changing = None;
        for _ in 0..MOMENTS_ATTEMPTS_MAX {
            let failed = self.hold_missing(&map, source, databases).await;
            let newer = load().await?;
            let is_steady = newer == map;
            changing = newer.entries().iter().find(|entry| entry.intent.is_some()).map(|entry| entry.id);
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
            Some(range) => CopyError::Changing { from: from.clone(), range },
            None => CopyError::MapChanged { from: from.clone() },
        })
    }

    /// Gives up moments that do not belong to this version, and takes those that are missing. Ranges that are being
    /// changed get none.
    async fn hold_missing(
        &mut self,
        map: &RangeMap,
        source: &Store,
        databases: &Databases,
    ) -> Result<(), CopyError> {
        let is_wanted = |entry: &RangeEntry| map.get(entry.id) == Some(entry);
        let (kept, old) =
            std::mem::take(&mut self.0).into_iter().partition(|(_, (entry, _))| is_wanted(entry));
        self.0 = kept;
        Self(old).release().await;
        let missing =
            map.entries().iter().filter(|entry| entry.intent.is_none() && !self.0.contains_key(&entry.id));
        let held: Vec<_> = futures::stream::iter(missing.cloned().collect::<Vec<_>>())
            .map(async |entry| {
                let moment = Moment::hold(source, &Identity::of(&entry), databases).await;
                (entry, moment)
            })
            .buffer_unordered(OPENINGS_AT_ONCE_MAX)
            .collect()
            .await;
        let mut failed = Ok(());
        for (entry, moment) in held {
            match moment {
                Ok(moment) => {
                    self.0.insert(entry.id, (entry, moment));
                }
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        failed
    }

    /// The moment of a range.
    pub(super) fn of(&mut self, range: RangeId) -> Option<&mut Moment> {
        self.0.get_mut(&range).map(|(_, moment)| moment)
    }

    /// Renews the checkpoints that are due.
    pub(super) async fn renew_when_due(&mut self) -> Result<(), (RangeId, slatedb::Error)> {
        for (range, (_, moment)) in &mut self.0 {
            moment.renew_when_due().await.map_err(|error| (*range, error))?;
        }
        Ok(())
    }

    /// Gives up the moment of one range.
    pub(super) async fn release_one(&mut self, range: RangeId) {
        if let Some((_, moment)) = self.0.remove(&range) {
            moment.release().await;
        }
    }

    /// Gives up all moments.
    pub(super) async fn release(self) {
        futures::stream::iter(self.0.into_values())
            .for_each_concurrent(OPENINGS_AT_ONCE_MAX, async |(_, moment)| moment.release().await)
            .await;
    }
}
