//! The rows that a range keeps about itself.
//!
//! They lie below the keys of every range. So no client can name one, and a clone that is cut to the keys of
//! an heir leaves them behind. The numbers after `01` are stored, so none may ever get a second meaning.
//!
//! | key after `01` | value | written |
//! |---|---|---|
//! | `01`, stripe (two bytes) | a timestamp | with a write of that stripe; see [`super::timestamps`] |
//! | `02`, account, table id | the time of the drop | when a table is dropped; see [`super::dropped`] |
//! | `03` | range and generation of a change record | as the last row of a retired range; see [`super::retire`] |
//! | `04`, bucket id | nothing | while a bucket is closed; see [`super::closed`] |
//! | `05`, bucket id | the number of a change of its folders | before that change; see [`super::fences`] |
//! | `0F` | nothing | when a new file lets older ones go; see [`crate::database::NEWEST_FILE_KEY`] |
//!
//! Times and numbers in values have eight bytes, big-endian.
//!
//! A reservation row counts even if no stripe has its number. The row of stripe `FFFF` holds
//! what a range inherited.

use std::collections::{BTreeMap, BTreeSet};

use rangehold_map::codec::{MalformedKey, Reader, put_text, put_u64};
use rangehold_map::key::KIND_RANGE_META;
use rangehold_map::{BucketId, Generation, KeyRange, RangeId, TableId, Timestamp};
use slatedb::Db;
use slatedb::config::DurabilityLevel;

use super::stored;
use crate::database::{DroppedTable, DroppedTables, NEWEST_FILE_KEY};
use crate::error::{Damaged, ReadError};
use crate::record_name::RecordName;

const RESERVATION: u8 = 0x01;
const DROPPED: u8 = 0x02;
const RETIRED: u8 = 0x03;
const CLOSED: u8 = 0x04;
const FENCE: u8 = 0x05;

/// The prefix of all reservation rows.
pub(crate) const RESERVATIONS: &[u8] = &[KIND_RANGE_META, RESERVATION];
/// The prefix of all notes of dropped tables.
pub(crate) const DROPPED_TABLES: &[u8] = &[KIND_RANGE_META, DROPPED];

/// The prefix of all notes of closed buckets.
pub(crate) const CLOSED_BUCKETS: &[u8] = &[KIND_RANGE_META, CLOSED];

/// The prefix of all notes of fences.
pub(crate) const FENCES: &[u8] = &[KIND_RANGE_META, FENCE];

/// The key of the row that says that the range is retired.
pub(crate) const RETIREMENT: &[u8] = &[KIND_RANGE_META, RETIRED];
/// The stripe whose reservation row holds what a range inherited.
pub(crate) const INHERITED: u16 = u16::MAX;

/// The key of a stripe's reservation.
pub(crate) fn reservation_key(stripe: u16) -> Vec<u8> {
    let mut key = RESERVATIONS.to_vec();
    key.extend_from_slice(&stripe.to_be_bytes());
    key
}

/// The key of the note that a table was dropped.
pub(crate) fn dropped_key(account: &str, table: TableId) -> Vec<u8> {
    let mut key = DROPPED_TABLES.to_vec();
    put_text(&mut key, account);
    put_u64(&mut key, table.0);
    key
}

/// Account and table of a key made by [`dropped_key`].
pub(crate) fn decode_dropped_key(key: &[u8]) -> Result<(String, TableId), MalformedKey> {
    let mut reader = Reader::new(key);
    reader.u8()?;
    reader.u8()?;
    Ok((reader.text()?, TableId(reader.u64()?)))
}

/// The key of the note that a bucket is closed.
pub(crate) fn closed_key(bucket: BucketId) -> Vec<u8> {
    let mut key = CLOSED_BUCKETS.to_vec();
    put_u64(&mut key, bucket.0);
    key
}

/// The key of the note of a bucket's fence.
pub(crate) fn fence_key(bucket: BucketId) -> Vec<u8> {
    let mut key = FENCES.to_vec();
    put_u64(&mut key, bucket.0);
    key
}

/// The bucket of a key made by [`closed_key`] or [`fence_key`].
pub(crate) fn decode_bucket_key(key: &[u8]) -> Result<BucketId, MalformedKey> {
    let mut reader = Reader::new(key);
    reader.u8()?;
    reader.u8()?;
    let bucket = BucketId(reader.u64()?);
    reader.end()?;
    Ok(bucket)
}

/// A timestamp as the value of a meta row.
pub(crate) fn encode_time(time: Timestamp) -> Vec<u8> {
    time.ticks().to_be_bytes().to_vec()
}

/// The reverse of [`encode_time`]; `None` for a value of another length.
pub(crate) fn decode_time(value: &[u8]) -> Option<Timestamp> {
    Some(Timestamp::from_ticks(i64::from_be_bytes(value.try_into().ok()?)))
}

/// The name of a change record as the value of the retirement row.
pub(crate) fn encode_record(name: RecordName) -> Vec<u8> {
    [name.range.0.to_be_bytes(), name.generation.0.to_be_bytes()].concat()
}

/// The reverse of [`encode_record`]; `None` for a value of another length.
pub(crate) fn decode_record(value: &[u8]) -> Option<RecordName> {
    let (range, generation) = value.split_at_checked(8)?;
    Some(RecordName {
        range: RangeId(u64::from_be_bytes(range.try_into().ok()?)),
        generation: Generation(u64::from_be_bytes(generation.try_into().ok()?)),
    })
}

/// What the meta rows of a database say, apart from its dropped tables.
#[derive(Debug, Default)]
pub(super) struct Meta {
    /// No timestamp at or above it was ever given out.
    pub(super) reserved: Timestamp,
    /// The change record that decides about the range, if the range is retired.
    pub(super) retired: Option<RecordName>,
    /// The buckets that are closed.
    pub(super) closed: BTreeSet<BucketId>,
    /// The fences of buckets.
    pub(super) fences: BTreeMap<BucketId, u64>,
}

/// Reads the meta rows of a database that was just opened, and adds its dropped tables to `dropped`.
pub(super) async fn load(db: &Db, dropped: &DroppedTables) -> Result<Meta, ReadError> {
    let mut meta = Meta::default();
    let mut rows =
        stored::scan(db, &KeyRange::prefix(&[KIND_RANGE_META]), DurabilityLevel::Remote, true).await?;
    while let Some(row) = stored::next(&mut rows).await? {
        meta.take(&row.key, &row.value, dropped)?;
    }
    Ok(meta)
}

impl Meta {
    /// Adds what one row says; a dropped table is added to `dropped`.
    pub(super) fn take(
        &mut self,
        key: &[u8],
        value: &[u8],
        dropped: &DroppedTables,
    ) -> Result<(), ReadError> {
        if key.starts_with(RESERVATIONS) {
            self.reserved = self.reserved.max(time_of(key, value)?);
        } else if key.starts_with(DROPPED_TABLES) {
            let (account, table) = decode_dropped_key(key).map_err(|error| {
                ReadError::Damaged(Damaged::new(format!("a range's note of a dropped table: {error}")))
            })?;
            dropped.insert(DroppedTable::new(&account, table, time_of(key, value)?));
        } else if key.starts_with(CLOSED_BUCKETS) {
            self.closed.insert(decode_bucket_key(key).map_err(|error| {
                ReadError::Damaged(Damaged::new(format!("a range's note of a closed bucket: {error}")))
            })?);
        } else if key.starts_with(FENCES) {
            let bucket = decode_bucket_key(key).map_err(|error| {
                ReadError::Damaged(Damaged::new(format!("a range's note of a fence: {error}")))
            })?;
            let fence = value.try_into().map_err(|_| unknown_meta(key, value))?;
            self.fences.insert(bucket, u64::from_be_bytes(fence));
        } else if key == RETIREMENT {
            self.retired = Some(decode_record(value).ok_or_else(|| unknown_meta(key, value))?);
        } else if key != NEWEST_FILE_KEY {
            return Err(unknown_meta(key, value));
        }
        Ok(())
    }
}

/// The error for a meta row that this program does not know. It must not ignore the row, so it must not go on.
fn unknown_meta(key: &[u8], value: &[u8]) -> ReadError {
    let bytes = value.len();
    ReadError::Damaged(Damaged::new(format!(
        "the meta row {key:02x?} of a range ({bytes} bytes) is unknown: it is damaged, or of a later release"
    )))
}

fn time_of(key: &[u8], value: &[u8]) -> Result<Timestamp, ReadError> {
    decode_time(value).ok_or_else(|| {
        ReadError::Damaged(Damaged::new(format!(
            "the meta row {key:02x?} of a range has a value of {} bytes, not the 8 of a time",
            value.len()
        )))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rangehold_map::KeyRange;

    use super::*;

    proptest! {
        /// Table ids are times after 1970. As numbers they never begin with the byte FF, which must
        /// not follow a text.
        #[test]
        fn meta_rows_lie_outside_every_range_and_read_back(account in ".*", id in 0..1u64 << 63, stripe: u16, ticks: i64) {
            let dropped = dropped_key(&account, TableId(id));
            prop_assert!(!KeyRange::whole().contains(&dropped));
            prop_assert!(!KeyRange::whole().contains(&reservation_key(stripe)));
            prop_assert!(dropped.starts_with(DROPPED_TABLES));
            prop_assert_eq!(decode_dropped_key(&dropped), Ok((account, TableId(id))));
            let closed = closed_key(BucketId(id));
            prop_assert!(closed.starts_with(CLOSED_BUCKETS) && !KeyRange::whole().contains(&closed));
            prop_assert_eq!(decode_bucket_key(&closed), Ok(BucketId(id)));
            prop_assert_eq!(decode_bucket_key(&fence_key(BucketId(id))), Ok(BucketId(id)));
            let time = Timestamp::from_ticks(ticks);
            prop_assert_eq!(decode_time(&encode_time(time)), Some(time));
        }
    }
}
