//! How axes and columns are encoded, in memory and in files. These bytes are stored, so their meaning never
//! changes.
//!
//! ```text
//!   axis     01, flags (1: with keys), n, n hashes of 8 bytes, little-endian
//!            with keys, n times: length of the prefix shared with the key before, number of other bytes, these bytes
//!   column   02, at, n, n times: bucket - bucket before, reads, writes, entities, bytes, throttled, errors
//! ```
//!
//! Numbers without a given length are LEB128. A column belongs to the last axis that was written before it.

use std::sync::Arc;

use thiserror::Error;

use super::boundaries::Boundaries;
use super::column::{Cells, Column};
use super::limits::BUCKETS_MAX;
use crate::load::Counts;

const KIND_AXIS: u8 = 1;
const KIND_COLUMN: u8 = 2;
const FLAG_KEYS: u8 = 1;
/// The most bytes of one key. The longest stored keys have about 6 KiB.
const KEY_BYTES_MAX: u64 = 64 << 10;

/// Bytes that are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a record of the history: {what} is missing at byte {at}")]
pub struct Malformed {
    /// The offset in the record.
    pub at: usize,
    /// What should be there.
    pub what: &'static str,
}

/// One record of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The axis of the columns that follow.
    Axis(Boundaries),
    /// A column.
    Column {
        /// When it begins, in seconds since 1970.
        at: i64,
        /// What was counted.
        cells: Cells,
    },
}

impl Record {
    /// Encodes an axis. Its keys are written if they are known and `with_keys` is set.
    pub fn encode_axis(axis: &Boundaries, with_keys: bool) -> Vec<u8> {
        let keys = axis.keys.as_ref().filter(|_| with_keys);
        let mut out = vec![KIND_AXIS, if keys.is_some() { FLAG_KEYS } else { 0 }];
        put(&mut out, axis.len() as u64);
        for name in &axis.names {
            out.extend_from_slice(&name.to_le_bytes());
        }
        let mut before: &[u8] = &[];
        for key in keys.into_iter().flat_map(|keys| keys.iter()) {
            let common = before.iter().zip(key).take_while(|(a, b)| a == b).count();
            put(&mut out, common as u64);
            put(&mut out, (key.len() - common) as u64);
            out.extend_from_slice(&key[common..]);
            before = key;
        }
        out
    }

    /// Encodes a column, without its axis.
    pub fn encode_column(column: &Column) -> Vec<u8> {
        let mut out = vec![KIND_COLUMN];
        put(&mut out, u64::try_from(column.at).unwrap_or(0));
        put(&mut out, column.cells.len() as u64);
        let mut last = 0;
        for (bucket, counts) in &column.cells {
            put(&mut out, u64::from(bucket - last));
            last = *bucket;
            counts.numbers().iter().for_each(|number| put(&mut out, *number));
        }
        out
    }

    /// Decodes an axis or a column.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader { bytes, at: 0 };
        let record = match reader.byte("a kind of record")? {
            KIND_AXIS => Self::Axis(reader.axis()?),
            KIND_COLUMN => reader.column()?,
            _ => return Err(Malformed { at: 0, what: "a known kind of record" }),
        };
        if reader.at < bytes.len() {
            return Err(Malformed { at: reader.at, what: "the end of the record" });
        }
        Ok(record)
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn axis(&mut self) -> Result<Boundaries, Malformed> {
        let flags = self.byte("flags")?;
        let count = self.count("a number of buckets within the limit")?;
        let mut names = Vec::with_capacity(count);
        for _ in 0..count {
            let name = self.take(8, "a hash")?;
            names.push(name.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        }
        let keys = if flags & FLAG_KEYS == 0 { None } else { Some(self.keys(count)?) };
        Ok(Boundaries { names, keys })
    }

    fn keys(&mut self, count: usize) -> Result<Arc<[Vec<u8>]>, Malformed> {
        let mut keys: Vec<Vec<u8>> = Vec::with_capacity(count);
        for _ in 0..count {
            let common = self.number()?;
            let before = keys.last().map_or(&[][..], Vec::as_slice);
            let common = usize::try_from(common).ok().and_then(|common| before.get(..common));
            let mut key = common.ok_or_else(|| self.malformed("a shorter common part"))?.to_vec();
            let more = self.number()?;
            if more > KEY_BYTES_MAX {
                return Err(self.malformed("a shorter key"));
            }
            key.extend_from_slice(self.take(more as usize, "a key")?);
            keys.push(key);
        }
        if keys.is_sorted() { Ok(keys.into()) } else { Err(self.malformed("keys in order")) }
    }

    fn column(&mut self) -> Result<Record, Malformed> {
        let at = i64::try_from(self.number()?).map_err(|_| self.malformed("a time"))?;
        let count = self.count("a number of cells within the limit")?;
        let (mut cells, mut bucket) = (Cells::new(), 0u64);
        for _ in 0..count {
            bucket = bucket.saturating_add(self.number()?);
            let mut numbers = [0; 6];
            for number in &mut numbers {
                *number = self.number()?;
            }
            let known = u32::try_from(bucket).ok().filter(|bucket| (*bucket as usize) < BUCKETS_MAX);
            let known = known.ok_or_else(|| self.malformed("a bucket within the limit"))?;
            cells.insert(known, Counts::of_numbers(numbers));
        }
        Ok(Record::Column { at, cells })
    }

    fn count(&mut self, what: &'static str) -> Result<usize, Malformed> {
        let count = self.number()?;
        let within = usize::try_from(count).ok().filter(|count| *count <= BUCKETS_MAX);
        within.ok_or_else(|| self.malformed(what))
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte("a number")?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.malformed("the end of a number"))
    }

    fn byte(&mut self, what: &'static str) -> Result<u8, Malformed> {
        Ok(self.take(1, what)?[0])
    }

    fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(count);
        let taken = end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| self.malformed(what))?;
        self.at += count;
        Ok(taken)
    }

    fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { at: self.at, what }
    }
}
