//! The bytes of a stored map.

use std::fmt::Write as _;

use rangehold_map::{
    DatabaseName, Generation, Home, Intent, KeyRange, RangeEntry, RangeId, RangeMap, ServerId,
};
use serde::{Deserialize, Serialize};

use super::{BadMap, FORMAT};

#[derive(Serialize, Deserialize)]
struct MapObject {
    format: u32,
    version: u64,
    next_range: Option<u64>,
    /// The process that wrote the version. Early releases did not write this.
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    ranges: Vec<RangeObject>,
}

#[derive(Deserialize)]
struct Author {
    author: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct RangeObject {
    id: u64,
    low: String,
    high: Option<String>,
    generation: u64,
    /// Format 1 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u64>,
    database: Option<String>,
    server: u64,
    #[serde(default = "yes")]
    online: bool,
    intent: Option<IntentObject>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum IntentObject {
    Split { at: String, left: u64, right: u64 },
    Merge { right: u64, into: u64 },
    MergeWith { left: u64 },
    Move { to: u64 },
}

const fn yes() -> bool {
    true
}

/// The process that wrote these bytes; `None` if they do not say.
pub(super) fn author(bytes: &[u8]) -> Option<String> {
    serde_json::from_slice::<Author>(bytes).ok()?.author
}

pub(super) fn encode(map: &RangeMap, author: &str) -> Vec<u8> {
    let object = MapObject {
        format: FORMAT,
        version: map.version(),
        next_range: Some(map.next_range().0),
        author: Some(author.to_owned()),
        ranges: map.entries().iter().map(to_object).collect(),
    };
    serde_json::to_vec(&object).expect("numbers and texts are always JSON")
}

/// A map that breaks no rule, or what is wrong with it.
pub(super) fn decode(bytes: &[u8]) -> Result<RangeMap, BadMap> {
    let object: MapObject = serde_json::from_slice(bytes)?;
    if object.format > FORMAT {
        return Err(BadMap::Format(object.format));
    }
    let entries: Vec<RangeEntry> = object.ranges.into_iter().map(from_object).collect::<Result<_, _>>()?;
    let next_range = match object.next_range {
        Some(next) => RangeId(next),
        None => entries.iter().map(|entry| entry.id).max().map_or(RangeId(1), RangeId::next),
    };
    let map = RangeMap::new(object.version, next_range, entries);
    let findings = map.check();
    if findings.is_empty() { Ok(map) } else { Err(BadMap::Rules(findings)) }
}

fn to_object(entry: &RangeEntry) -> RangeObject {
    RangeObject {
        id: entry.id.0,
        low: hex(entry.keys.low()),
        high: entry.keys.high().map(hex),
        generation: entry.generation.0,
        attempt: None,
        database: Some(entry.place.database.to_string()),
        server: entry.place.server.0,
        online: entry.online,
        intent: entry.intent.as_ref().map(|intent| match intent {
            Intent::Split { at, left, right } => {
                IntentObject::Split { at: hex(at), left: left.0, right: right.0 }
            }
            Intent::Merge { right, into } => IntentObject::Merge { right: right.0, into: into.0 },
            Intent::MergeWith { left } => IntentObject::MergeWith { left: left.0 },
            Intent::Move { to } => IntentObject::Move { to: to.server.0 },
        }),
    }
}

fn from_object(object: RangeObject) -> Result<RangeEntry, BadMap> {
    let (id, generation) = (RangeId(object.id), Generation(object.generation));
    let database = match (object.database, object.attempt) {
        (Some(name), _) => name.parse().map_err(|source| BadMap::Database(id, source))?,
        (None, Some(attempt)) => DatabaseName { range: id, generation, attempt },
        (None, None) => return Err(BadMap::NoDatabase(id)),
    };
    let intent = object.intent.map(|intent| {
        Ok::<_, BadMap>(match intent {
            IntentObject::Split { at, left, right } => {
                Intent::Split { at: unhex(&at)?, left: RangeId(left), right: RangeId(right) }
            }
            IntentObject::Merge { right, into } => {
                Intent::Merge { right: RangeId(right), into: RangeId(into) }
            }
            IntentObject::MergeWith { left } => Intent::MergeWith { left: RangeId(left) },
            IntentObject::Move { to } => Intent::Move { to: Home { server: ServerId(to), database } },
        })
    });
    Ok(RangeEntry {
        id,
        keys: KeyRange::new(unhex(&object.low)?, object.high.as_deref().map(unhex).transpose()?),
        generation,
        place: Home { server: ServerId(object.server), database },
        online: object.online,
        intent: intent.transpose()?,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Result<Vec<u8>, BadMap> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => {
            Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
        }
        _ => Err(BadMap::Key(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use object_store::{ObjectStore, ObjectStoreExt};
    use proptest::prelude::*;

    use super::super::{create, load, object_path};
    use super::*;

    fn cut_at(cuts: BTreeSet<Vec<u8>>, version: u64) -> RangeMap {
        let mut lows = vec![KeyRange::whole().low().to_vec()];
        lows.extend(cuts);
        let highs: Vec<_> = lows.iter().skip(1).cloned().map(Some).chain([None]).collect();
        let intents = [None, Some(Intent::Split { at: vec![0xFF], left: RangeId(98), right: RangeId(99) })];
        let entries: Vec<RangeEntry> = lows
            .iter()
            .zip(highs)
            .enumerate()
            .map(|(index, (low, high))| {
                let id = RangeId(index as u64 + 1);
                let last = high.is_none();
                RangeEntry {
                    id,
                    keys: KeyRange::new(low.clone(), high),
                    generation: Generation(index as u64 + 7),
                    place: Home {
                        server: ServerId(3),
                        database: DatabaseName {
                            range: id,
                            generation: Generation(index as u64 + 1),
                            attempt: 2,
                        },
                    },
                    online: index % 2 == 0 || last,
                    intent: intents[usize::from(last)].clone(),
                }
            })
            .collect();
        RangeMap::new(version, RangeId(100), entries)
    }

    proptest! {
        #[test]
        fn a_stored_map_reads_back(
            cuts in prop::collection::btree_set(prop::collection::vec(0x11u8..=0xFE, 1..6), 0..5),
            version in 1u64..1_000_000,
        ) {
            let map = cut_at(cuts, version);
            let bytes = encode(&map, "1-17");
            prop_assert_eq!(author(&bytes), Some("1-17".to_owned()));
            prop_assert_eq!(decode(&bytes).unwrap(), map);
        }
    }

    #[test]
    fn the_first_format_is_read() {
        let text = br#"{"format":1,"version":1,"ranges":[{"id":1,"low":"10","high":null,"generation":1,"attempt":1,"server":1}]}"#;
        let database = DatabaseName { range: RangeId(1), generation: Generation(1), attempt: 1 };
        let home = Home { server: ServerId(1), database };
        assert_eq!(decode(text).unwrap(), RangeMap::single(RangeId(1), home));
    }

    #[tokio::test]
    async fn the_newest_version_counts_and_none_is_overwritten() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        assert_eq!(load(&objects).await.unwrap(), None);
        for version in [9, 10] {
            assert!(create(&objects, &cut_at(Default::default(), version), "1-17").await.unwrap());
        }
        assert!(!create(&objects, &cut_at(Default::default(), 10), "1-17").await.unwrap());
        assert_eq!(load(&objects).await.unwrap().unwrap().version(), 10);
    }

    #[tokio::test]
    async fn a_map_with_a_gap_is_refused_by_name() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let whole = cut_at(Default::default(), 1);
        let entry = RangeEntry { keys: KeyRange::new(vec![0x30], None), ..whole.entries()[0].clone() };
        let bytes = encode(&RangeMap::new(1, RangeId(100), vec![entry]), "1-17");
        objects.put(&object_path(1), bytes.into()).await.unwrap();
        let error = load(&objects).await.unwrap_err().to_string();
        assert!(
            error.contains("00000000000000000001.json") && error.contains("belong to no range"),
            "{error}"
        );
    }
}
