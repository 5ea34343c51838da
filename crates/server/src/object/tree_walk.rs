//! A walk over the names of a bucket with folders, in the order of their whole names.
//!
//! To its visitor the bucket looks as if its names were flat: it is shown the rows of objects under keys of whole names, which
//! are made on the way, and may seek to any such key. So a listing is made by the same code as in other buckets. The
//! visitor is shown each folder too, before what lies in it.
//!
//! ```text
//!   the rows of folders:     0 a/ -> 7     0 b/ -> 5     7 x/ -> 9
//!   the rows of objects:     0000000000000007/1.txt      0000000000000009/2.txt
//!   what the visitor sees:   folder a/,  a/1.txt,  folder a/x/,  a/x/2.txt,  folder b/
//! ```
//!
//! In a folder the walk reads the objects up to the next folder in it, in batches, and then goes down into that folder. It finds
//! both by seeks. So it costs what it shows, and for each folder two looks for folders and two for objects.
//!
//! The scans are made one after the other. A caller that shows them as one moment asks afterwards whether folders were renamed
//! or deleted meanwhile (`ObjectService::tree`).

use bytes::Bytes;
use rangehold_engine::Visit;
use rangehold_map::key::{BucketId, ObjectKey, ObjectRow, after_prefix, names_beginning_with};
use rangehold_map::{KeyRange, PartitionPrefix};
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::folder::{ROOT, decode_id, name_row, stored_name};
use rangehold_protocol::object::list::Want;

use super::ObjectService;
use super::failure::Failure;
use crate::limits::{WALK_BATCH_BYTES, WALK_BATCH_ROWS, WALK_BATCH_ROWS_AT_FIRST};

/// Receives the names of a bucket.
pub(super) trait Visitor: Send {
    /// Whether it is shown objects.
    const WANTS_OBJECTS: bool;

    /// Takes a folder: its whole name and its id. Keys that it seeks to are keys of whole names.
    fn folder(&mut self, whole: &str, id: u64) -> Want;

    /// Takes a row of an object. Its key has the whole name.
    fn row(&mut self, key: &[u8], row: &Bytes) -> Want;
}

/// A folder in which the walk is.
struct Level {
    whole: String,
    /// The keys of the whole names that lie in it begin with this.
    shown: Vec<u8>,
    /// The keys of its objects begin with this.
    objects: Vec<u8>,
    /// The keys of the names of the folders in it begin with this.
    folders: Vec<u8>,
}

/// A folder that lies in another one.
struct Below {
    id: u64,
    whole: String,
    /// Its name there, as it stands in keys.
    name: Vec<u8>,
}

/// Rows of objects that were read at once.
struct Batch {
    rows: Vec<(Vec<u8>, Bytes)>,
    /// How many it has at most.
    most: usize,
    bytes: usize,
    is_full: bool,
}

/// Where a walk goes on.
enum Next {
    /// With the first name at or after this key.
    From(Vec<u8>),
    /// Behind the objects that were to be read.
    Behind,
    Nowhere,
}

impl ObjectService {
    /// Shows `visitor` the names whose keys lie in `keys`.
    pub(super) async fn walk<V: Visitor>(
        &self,
        bucket: BucketId,
        keys: &KeyRange,
        visitor: &mut V,
    ) -> Result<(), Failure> {
        let high = keys.high().map(<[u8]>::to_vec);
        let is_past = |key: &[u8]| high.as_deref().is_some_and(|high| key >= high);
        let mut low = keys.low().to_vec();
        let mut levels = vec![Level::new(bucket, ROOT, String::new())];
        while !is_past(&low) {
            while levels.pop_if(|level| !low.starts_with(&level.shown)).is_some() {}
            let Some(level) = levels.last() else { return Ok(()) };
            // If the key lies in a folder of this level, the walk goes down to that folder first.
            let below = self.below_on_way(level, &low).await?;
            let below = match below {
                Some(below) if low.len() > level.shown.len() + below.name.len() => {
                    levels.push(Level::new(bucket, below.id, below.whole));
                    continue;
                }
                Some(below) => Some(below),
                None => {
                    let below = self.first_below(level, &low).await?;
                    let until = below.as_ref().map(|below| below.name.as_slice());
                    match self.walk_objects(level, &low, until, high.as_deref(), visitor).await? {
                        Next::Behind => {}
                        Next::From(key) => {
                            low = key;
                            continue;
                        }
                        Next::Nowhere => return Ok(()),
                    }
                    below
                }
            };
            let Some(below) = below else {
                low = after_prefix(&level.shown).expect("the kind of a key is not FF");
                continue;
            };
            let begin = [level.shown.as_slice(), &below.name].concat();
            if is_past(&begin) {
                return Ok(());
            }
            low = match visitor.folder(&below.whole, below.id) {
                Want::Stop => return Ok(()),
                Want::Seek(key) => key,
                Want::Next => {
                    levels.push(Level::new(bucket, below.id, below.whole));
                    begin
                }
            };
        }
        Ok(())
    }

    /// The folder of `level` whose name stands next in the key `low`, if there is one.
    async fn below_on_way(&self, level: &Level, low: &[u8]) -> Result<Option<Below>, Failure> {
        let rest = &low[level.shown.len()..];
        let Some(slash) = rest.iter().position(|byte| *byte == b'/') else { return Ok(None) };
        let key = [level.folders.as_slice(), &rest[..=slash], &[0]].concat();
        let row = self.router.get(&key).await?;
        row.map(|row| level.below(&key, &row)).transpose()
    }

    /// The first folder of `level` at or after the key `low`.
    async fn first_below(&self, level: &Level, low: &[u8]) -> Result<Option<Below>, Failure> {
        let from = [level.folders.as_slice(), &low[level.shown.len()..]].concat();
        let keys = KeyRange::new(from, after_prefix(&level.folders));
        let found = self.router.scan(
            &keys,
            || None,
            |found, key, row| {
                *found = Some((key.to_vec(), row.clone()));
                Visit::Stop
            },
        );
        found.await?.map(|(key, row)| level.below(&key, &row)).transpose()
    }

    /// Shows the objects of `level` from the key `low` on, up to the folder whose name is `until` in keys.
    async fn walk_objects<V: Visitor>(
        &self,
        level: &Level,
        low: &[u8],
        until: Option<&[u8]>,
        high: Option<&[u8]>,
        visitor: &mut V,
    ) -> Result<Next, Failure> {
        if !V::WANTS_OBJECTS {
            return Ok(Next::Behind);
        }
        let stored = |rest: &[u8]| [level.objects.as_slice(), rest].concat();
        let end = until.map_or_else(|| after_prefix(&level.objects), |until| Some(stored(until)));
        let bound = high.and_then(|high| high.strip_prefix(level.shown.as_slice())).map(stored);
        let end = end.into_iter().chain(bound).min();
        let mut from = stored(&low[level.shown.len()..]);
        let mut sought: Option<Vec<u8>> = None;
        let mut shown = level.shown.clone();
        // A visitor that wants one row of each folder seeks past the others, so few are read at first.
        let mut most = WALK_BATCH_ROWS_AT_FIRST;
        loop {
            let keys = KeyRange::new(from.clone(), end.clone().map(|end| end.max(from.clone())));
            let batch = self.router.scan(&keys, || Batch::of(most), Batch::take).await?;
            for (key, row) in &batch.rows {
                shown.truncate(level.shown.len());
                shown.extend_from_slice(&key[level.objects.len()..]);
                if sought.as_ref().is_some_and(|sought| shown < *sought) {
                    continue;
                }
                sought = match visitor.row(&shown, row) {
                    Want::Stop => return Ok(Next::Nowhere),
                    Want::Next => None,
                    Want::Seek(key) => Some(key),
                };
            }
            match (sought, batch.rows.last()) {
                // The key may lie anywhere, so the walk looks for its folder again.
                (Some(key), _) => return Ok(Next::From(key)),
                (None, Some((last, _))) if batch.is_full => from = [last.as_slice(), &[0]].concat(),
                (None, _) => return Ok(Next::Behind),
            }
            sought = None;
            most = (2 * most).min(WALK_BATCH_ROWS);
        }
    }
}

impl Level {
    fn new(bucket: BucketId, id: u64, whole: String) -> Self {
        let mut folders = PartitionPrefix::object(bucket, "").object_row(&name_row(id, ""));
        // Without the byte that ends the name, so that all names follow.
        folders.pop();
        let shown = names_beginning_with(bucket, &whole);
        let objects = names_beginning_with(bucket, &stored_name(id, ""));
        Self { whole, shown, objects, folders }
    }

    /// The folder in this one whose name has this row.
    fn below(&self, key: &[u8], row: &[u8]) -> Result<Below, Failure> {
        let decoded = ObjectKey::decode(key).map_err(ObjectError::damaged)?;
        let ObjectRow::FolderName { name, .. } = decoded.row else {
            return Err(ObjectError::damaged("a row between the names of folders").into());
        };
        let whole = format!("{}{name}", self.whole);
        let name = key[self.folders.len()..key.len() - 1].to_vec();
        Ok(Below { id: decode_id(row)?, whole, name })
    }
}

impl Batch {
    fn of(most: usize) -> Self {
        Self { rows: Vec::new(), most, bytes: 0, is_full: false }
    }

    fn take(&mut self, key: &[u8], row: &Bytes) -> Visit {
        self.bytes += key.len() + row.len();
        self.rows.push((key.to_vec(), row.clone()));
        self.is_full = self.rows.len() >= self.most || self.bytes >= WALK_BATCH_BYTES;
        if self.is_full { Visit::Stop } else { Visit::Next }
    }
}
