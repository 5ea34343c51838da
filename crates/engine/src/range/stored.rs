//! Rows of the database below a range: one of them, or some in order.
//!
//! Nothing here knows of the cache. A client must see only what [`super::read`] makes of these rows.

use std::ops::Bound;

use bytes::Bytes;
use rangehold_map::KeyRange;
use slatedb::config::{DurabilityLevel, ReadOptions, ScanOptions};
use slatedb::{Db, DbIterator, DbReadOps};

use crate::error::{ReadError, read_error};
use crate::limits::{SCAN_READ_AHEAD_BYTES, STEPS_BEFORE_SEEK};

/// One row, at the given level.
pub(super) async fn get(db: &Db, key: &[u8], level: DurabilityLevel) -> Result<Option<Bytes>, ReadError> {
    let options = ReadOptions::default().with_durability_filter(level);
    db.get_with_options(key, &options).await.map_err(read_error)
}

/// Rows in order, at the given level. With `caches_blocks` the blocks that it reads go to the cache of blocks, which
/// halves the cost of a page of ten rows. It is the task of that cache that a scan of a large table does not push out
/// the blocks that single reads need.
pub(super) async fn scan(
    db: &impl DbReadOps,
    keys: &KeyRange,
    level: DurabilityLevel,
    caches_blocks: bool,
) -> Result<DbIterator, ReadError> {
    let options = ScanOptions::default()
        .with_durability_filter(level)
        .with_cache_blocks(caches_blocks)
        .with_read_ahead_bytes(SCAN_READ_AHEAD_BYTES);
    let low = Bound::Included(keys.low().to_vec());
    let high = match keys.high() {
        Some(high) => Bound::Excluded(high.to_vec()),
        None => Bound::Unbounded,
    };
    db.scan_with_options((low, high), &options).await.map_err(read_error)
}

pub(super) async fn next(rows: &mut DbIterator) -> Result<Option<slatedb::KeyValue>, ReadError> {
    rows.next().await.map_err(read_error)
}

/// The first row at or after `key`, or the next row if that is above `key`. Makes a few steps first: a step is cheaper
/// than a seek, which looks into every file again.
pub(super) async fn seek(rows: &mut DbIterator, key: &[u8]) -> Result<Option<slatedb::KeyValue>, ReadError> {
    for _ in 0..STEPS_BEFORE_SEEK {
        match next(rows).await? {
            Some(row) if *row.key < *key => {}
            found => return Ok(found),
        }
    }
    rows.seek(key).await.map_err(read_error)?;
    next(rows).await
}
