//! Partitions: which keys are never separated.

use super::{KIND_BLOB, KIND_BUCKET, KIND_CATALOGUE, KIND_ENTITY, KIND_OBJECT, KIND_PROJECT};
use crate::codec::Reader;

/// The bytes with which all keys of one partition begin, and no other key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionPrefix(pub(super) Vec<u8>);

impl PartitionPrefix {
    /// The bytes of the prefix.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Whether the key space may be cut before `key`, so that no partition has keys on both sides.
///
/// All keys of a partition begin with its [`PartitionPrefix`], so `key` cuts a partition exactly if it has more
/// bytes after such a prefix. The prefixes of partitions, tables, accounts and kinds are boundaries. So are the
/// keys that [`after_prefix`] makes of them, and a PartitionKey without its closing byte. A kind without
/// partitions has one boundary: its first byte.
pub fn is_partition_boundary(key: &[u8]) -> bool {
    partition_length(key).is_none_or(|length| length == key.len())
}

/// How many bytes at the beginning of `key` are the [`PartitionPrefix`] of its partition; `None` if `key` is too
/// short to have a partition, or is of a kind without partitions and no longer than its first byte.
///
/// A kind without partitions counts as one partition, whose prefix is its first byte.
pub fn partition_length(key: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(key);
    match reader.u8().ok()? {
        KIND_CATALOGUE | KIND_BUCKET | KIND_PROJECT => {
            reader.raw_text().ok()?;
        }
        KIND_ENTITY => {
            reader.raw_text().ok()?;
            reader.u64().ok()?;
            reader.raw_text().ok()?;
        }
        KIND_OBJECT => {
            reader.u64().ok()?;
            reader.raw_text().ok()?;
        }
        KIND_BLOB => {
            reader.u128().ok()?;
        }
        _ => {}
    }
    Some(reader.position())
}

/// Whether this key, or prefix of a partition, belongs to buckets, objects or blobs.
pub fn is_of_objects(key: &[u8]) -> bool {
    matches!(key.first(), Some(&(KIND_BUCKET | KIND_PROJECT | KIND_OBJECT | KIND_BLOB)))
}

/// The least key above every key that begins with `prefix`. `None` if all bytes of `prefix` are `FF`; no kind
/// begins so.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xFF {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}
