//! The map of ranges as it is stored: numbered objects that are only ever created.
//!
//! `cluster/map/00000000000000000001.json` is the first version, and so on. Whoever changes the
//! map creates the next number; if that exists, somebody was faster. The newest number counts.
//!
//! ```json
//! {"format":1,"version":1,"ranges":[{"id":1,"low":"10","high":null,"generation":1,"attempt":1,"server":1}]}
//! ```
//!
//! Keys are in hexadecimal. Besides what the map says to everybody, an entry names the *attempt*
//! to make its database, which is part of the database's path.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use rangehold_map::{Generation, KeyRange, RangeEntry, RangeId, RangeMap, ServerId};
use serde::{Deserialize, Serialize};

use crate::error::OpenError;
use crate::range::Identity;

/// Where the versions of the map are.
pub const MAP_PREFIX: &str = "cluster/map";
/// The format this release writes, and the greatest it reads.
const FORMAT: u32 = 1;

/// A version of the map with what is needed to find its databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredMap {
    pub(crate) map: RangeMap,
    /// In the order of the map's entries.
    pub(crate) identities: Vec<Identity>,
}

#[derive(Serialize, Deserialize)]
struct MapObject {
    format: u32,
    version: u64,
    ranges: Vec<RangeObject>,
}

#[derive(Serialize, Deserialize)]
struct RangeObject {
    id: u64,
    low: String,
    high: Option<String>,
    generation: u64,
    attempt: u64,
    server: u64,
}

impl StoredMap {
    /// The first map: one range that holds everything.
    pub(crate) fn first() -> Self {
        let map = RangeMap::single(RangeId(1), ServerId(1));
        let identities = map.entries().iter().map(|entry| identity(entry, 1)).collect();
        Self { map, identities }
    }

    fn to_object(&self) -> MapObject {
        let ranges = self.map.entries().iter().zip(&self.identities);
        MapObject {
            format: FORMAT,
            version: self.map.version(),
            ranges: ranges
                .map(|(entry, identity)| RangeObject {
                    id: entry.id.0,
                    low: hex(entry.keys.low()),
                    high: entry.keys.high().map(hex),
                    generation: entry.generation.0,
                    attempt: identity.attempt,
                    server: entry.server.0,
                })
                .collect(),
        }
    }

    fn from_object(object: MapObject) -> Result<Self, String> {
        if object.format > FORMAT {
            return Err(format!(
                "it has format {}, and this program reads up to {FORMAT}: use a later release",
                object.format
            ));
        }
        let mut ranges = Vec::with_capacity(object.ranges.len());
        for range in object.ranges {
            let high = range.high.as_deref().map(unhex).transpose()?;
            let entry = RangeEntry {
                id: RangeId(range.id),
                keys: KeyRange::new(unhex(&range.low)?, high),
                generation: Generation(range.generation),
                server: ServerId(range.server),
            };
            ranges.push((identity(&entry, range.attempt), entry));
        }
        ranges.sort_by(|(_, a), (_, b)| a.keys.low().cmp(b.keys.low()));
        let (identities, entries) = ranges.into_iter().unzip();
        let map = RangeMap::new(object.version, entries);
        let findings = map.check();
        if findings.is_empty() {
            Ok(Self { map, identities })
        } else {
            let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
            Err(findings.join("; "))
        }
    }
}

fn identity(entry: &RangeEntry, attempt: u64) -> Identity {
    Identity { id: entry.id, keys: entry.keys.clone(), generation: entry.generation, attempt }
}

/// The newest version; `None` where none was ever stored.
pub(crate) async fn load(objects: &Arc<dyn ObjectStore>) -> Result<Option<StoredMap>, OpenError> {
    let prefix = Path::from(MAP_PREFIX);
    let failed = |doing: String| move |source| OpenError::Object { doing, source };
    let listed: Vec<_> =
        objects.list(Some(&prefix)).try_collect().await.map_err(failed(format!("listing {prefix}")))?;
    // Numbers have leading zeros, so the last name is the greatest number.
    let Some(newest) = listed.into_iter().map(|object| object.location).max() else {
        return Ok(None);
    };
    let bad = |why: String| OpenError::BadMap { object: newest.to_string(), why };
    let got = objects.get(&newest).await.map_err(failed(format!("reading {newest}")))?;
    let bytes = got.bytes().await.map_err(failed(format!("reading {newest}")))?;
    let object: MapObject = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    let stored = StoredMap::from_object(object).map_err(bad)?;
    if object_path(stored.map.version()) != newest {
        return Err(bad(format!("it says that it is version {}", stored.map.version())));
    }
    Ok(Some(stored))
}

/// The paths of all databases that the newest map names, or why they are not known.
pub(crate) async fn living(objects: Arc<dyn ObjectStore>) -> Result<BTreeSet<String>, String> {
    match load(&objects).await {
        Ok(Some(stored)) => Ok(stored.identities.iter().map(Identity::path).collect()),
        Ok(None) => Err("there is no map yet".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Stores a version, unless one of its number is there.
pub(crate) async fn create(objects: &Arc<dyn ObjectStore>, stored: &StoredMap) -> Result<(), OpenError> {
    let path = object_path(stored.map.version());
    let json = serde_json::to_vec(&stored.to_object()).expect("numbers and texts are always JSON");
    objects
        .put_opts(&path, PutPayload::from(json), PutMode::Create.into())
        .await
        .map_err(|source| OpenError::Object { doing: format!("creating {path}"), source })?;
    Ok(())
}

fn object_path(version: u64) -> Path {
    Path::from(format!("{MAP_PREFIX}/{version:020}.json"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => {
            Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
        }
        _ => Err(format!("{text:?} is not a key in hexadecimal")),
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use proptest::prelude::*;

    use super::*;

    fn cut_at(cuts: std::collections::BTreeSet<Vec<u8>>, version: u64) -> StoredMap {
        let mut lows = vec![KeyRange::whole().low().to_vec()];
        lows.extend(cuts);
        let highs = lows.iter().skip(1).cloned().map(Some).chain([None]);
        let entries: Vec<RangeEntry> = lows
            .iter()
            .zip(highs)
            .enumerate()
            .map(|(index, (low, high))| RangeEntry {
                id: RangeId(index as u64 + 1),
                keys: KeyRange::new(low.clone(), high),
                generation: Generation(index as u64 + 7),
                server: ServerId(3),
            })
            .collect();
        let identities = entries.iter().map(|entry| identity(entry, 2)).collect();
        StoredMap { map: RangeMap::new(version, entries), identities }
    }

    proptest! {
        #[test]
        fn a_stored_map_reads_back(
            cuts in prop::collection::btree_set(prop::collection::vec(0x11u8..=0xFF, 1..6), 0..5),
            version in 1u64..1_000_000,
        ) {
            let stored = cut_at(cuts, version);
            let json = serde_json::to_vec(&stored.to_object()).unwrap();
            let back = StoredMap::from_object(serde_json::from_slice(&json).unwrap());
            prop_assert_eq!(back, Ok(stored));
        }
    }

    #[tokio::test]
    async fn the_newest_version_counts_and_none_is_overwritten() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        assert_eq!(load(&objects).await.unwrap(), None);
        for version in [9, 10] {
            create(&objects, &cut_at(Default::default(), version)).await.unwrap();
        }
        assert!(create(&objects, &cut_at(Default::default(), 10)).await.is_err());
        assert_eq!(load(&objects).await.unwrap().unwrap().map.version(), 10);
    }

    #[tokio::test]
    async fn a_map_with_a_gap_is_refused_by_name() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let mut stored = cut_at(Default::default(), 1);
        stored.map = RangeMap::new(
            1,
            vec![RangeEntry { keys: KeyRange::new(vec![0x30], None), ..stored.map.entries()[0].clone() }],
        );
        create(&objects, &stored).await.unwrap();
        let error = load(&objects).await.unwrap_err().to_string();
        assert!(
            error.contains("00000000000000000001.json") && error.contains("belong to no range"),
            "{error}"
        );
    }
}
