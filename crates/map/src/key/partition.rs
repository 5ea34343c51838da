//! Partitions: which keys are never separated.

use super::{
    BlobId, BucketId, KIND_BLOB, KIND_BUCKET, KIND_CATALOGUE, KIND_ENTITY, KIND_OBJECT, KIND_PROJECT,
    TableId, table_prefix,
};
use crate::codec::{Reader, put_name, put_text, put_u64, put_u128};

/// The bytes with which all keys of one partition begin, and no other key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionPrefix(pub(super) Vec<u8>);

impl PartitionPrefix {
    /// The partition that holds an account's catalogue.
    pub fn catalogue(account: &str) -> Self {
        let mut out = Vec::with_capacity(account.len() + 66);
        out.push(KIND_CATALOGUE);
        put_text(&mut out, account);
        Self(out)
    }

    /// The partition of a table's entities with one PartitionKey.
    pub fn entity(account: &str, table: TableId, partition_key: &str) -> Self {
        let mut out = table_prefix(account, table);
        put_text(&mut out, partition_key);
        Self(out)
    }

    /// The partition of everything that is known of one bucket name.
    pub fn bucket(name: &str) -> Self {
        Self::of_name(KIND_BUCKET, name)
    }

    /// The partition of a project.
    pub fn project(project: &str) -> Self {
        Self::of_name(KIND_PROJECT, project)
    }

    fn of_name(kind: u8, name: &str) -> Self {
        let mut out = Vec::with_capacity(name.len() + 12);
        out.push(kind);
        put_name(&mut out, name);
        Self(out)
    }

    /// The partition of an object name: all generations, uploads and parts of that name.
    pub fn object(bucket: BucketId, name: &str) -> Self {
        let mut out = Vec::with_capacity(name.len() + 20);
        out.push(KIND_OBJECT);
        put_u64(&mut out, bucket.0);
        put_name(&mut out, name);
        Self(out)
    }

    /// The partition of a blob: the list of its users.
    pub fn blob(blob: BlobId) -> Self {
        let mut out = Vec::with_capacity(17);
        out.push(KIND_BLOB);
        put_u128(&mut out, blob.0);
        Self(out)
    }

    /// The stored key of the entity `row_key`. For partitions of entities only, not for a catalogue.
    pub fn key(&self, row_key: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() + row_key.len() + 1);
        out.extend_from_slice(&self.0);
        put_text(&mut out, row_key);
        out
    }

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
