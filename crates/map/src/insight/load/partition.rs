//! Finds the partition of a stored key, and names it for people.
//!
//! Load is counted by partition, because a range can only be cut between partitions.

use super::titles::{ObjectTitle, Titles};
use crate::codec::Reader;
use crate::key::{KIND_CATALOGUE, Key, after_prefix, partition_length};

/// The bytes with which all keys of the partition of `key` begin; `None` if `key` lies in no partition.
pub(super) fn partition_in(key: &[u8]) -> Option<&[u8]> {
    // The rows of a kind without partitions count as one partition, which cannot be cut anyway.
    partition_length(key).filter(|length| *length > 1).map(|length| &key[..length])
}

/// As [`partition_in`], but a key that lies in no partition stands for itself.
pub(crate) fn partition_of(key: &[u8]) -> &[u8] {
    partition_in(key).unwrap_or(key)
}

/// The cut just above a partition. No key lies between.
pub(super) fn just_above(partition: &[u8]) -> Vec<u8> {
    after_prefix(partition).unwrap_or_else(|| partition.to_vec())
}

/// Names a partition, or a cut made by [`just_above`], for people.
pub(super) fn in_words(bytes: &[u8], titles: Titles<'_>) -> String {
    let undone = || {
        let (last, rest) = bytes.split_last()?;
        Some([rest, &[last.checked_sub(1)?]].concat())
    };
    partition_in_words(bytes, titles)
        .or_else(|| Some(format!("just above {}", partition_in_words(&undone()?, titles)?)))
        .unwrap_or_else(|| format!("key {}", bytes.escape_ascii()))
}

fn partition_in_words(partition: &[u8], titles: Titles<'_>) -> Option<String> {
    if partition.first() == Some(&KIND_CATALOGUE) {
        let mut reader = Reader::new(&partition[1..]);
        let account = reader.text().ok()?;
        return reader.is_at_end().then(|| format!("the list of tables of account {account}"));
    }
    if let Some(object) = ObjectTitle::of(partition, titles) {
        return Some(object.in_words());
    }
    if let Ok(Key::Bucket { name, .. }) = Key::decode(&[partition, &[1]].concat()) {
        return Some(format!("the settings of bucket {name}"));
    }
    if let Ok(Key::Blob { blob, .. }) = Key::decode(&[partition, &[0]].concat()) {
        return Some(format!("the users of blob {blob}"));
    }
    // An entity with the empty RowKey: its bytes are the partition's and one closing byte.
    let Ok(Key::Entity { account, table, partition_key, .. }) = Key::decode(&[partition, &[0]].concat())
    else {
        return None;
    };
    let table = (titles.table)(&account, table).unwrap_or_else(|| format!("number {}", table.0));
    Some(format!("partition {partition_key:?} of table {table}"))
}

/// The RowKey in a stored key, for people.
pub(super) fn row_in_words(key: &[u8]) -> String {
    match Key::decode(key) {
        Ok(Key::Entity { row_key, .. }) => format!("{row_key:?}"),
        Ok(Key::Table { lower_name, .. }) => format!("of table {lower_name}"),
        Ok(Key::Object(object)) => format!("of object {:?}", object.name),
        _ => key.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insight::load::BucketTitle;
    use crate::insight::names::Namespace;
    use crate::key::{BlobId, BucketId, ObjectRow, PartitionPrefix, TableId, is_partition_boundary};

    #[test]
    fn the_partition_of_a_key_is_its_prefix() {
        let entity = PartitionPrefix::entity("acme", TableId(7), "p\u{0}q");
        assert_eq!(partition_of(&entity.key("row")), entity.as_bytes());
        let table = Key::Table { account: "acme".into(), lower_name: "orders".into() };
        assert_eq!(partition_of(&table.encode()), PartitionPrefix::catalogue("acme").as_bytes());
        assert_eq!(partition_of(b"\x20broken"), b"\x20broken");
    }

    #[test]
    fn just_above_a_partition_is_a_boundary_above_all_its_rows() {
        let partition = PartitionPrefix::entity("acme", TableId(7), "p");
        let cut = just_above(partition.as_bytes());
        assert!(is_partition_boundary(&cut));
        assert!(partition.key("\u{FFFF}") < cut);
        assert!(cut <= PartitionPrefix::entity("acme", TableId(7), "p\u{0}").key(""));
    }

    #[test]
    fn partitions_have_names() {
        let bucket = |_| Some(BucketTitle { name: "photos".to_owned(), namespace: Namespace::Flat });
        let named = Titles { table: &|_, _| Some("Orders".to_owned()), bucket: &bucket };
        let partition = PartitionPrefix::entity("acme", TableId(7), "p");
        assert_eq!(in_words(partition.as_bytes(), named), "partition \"p\" of table Orders");
        assert_eq!(in_words(partition.as_bytes(), Titles::UNKNOWN), "partition \"p\" of table number 7");
        assert_eq!(
            in_words(&just_above(partition.as_bytes()), named),
            "just above partition \"p\" of table Orders"
        );
        let catalogue = PartitionPrefix::catalogue("acme");
        assert_eq!(in_words(catalogue.as_bytes(), named), "the list of tables of account acme");
        assert_eq!(in_words(b"\x30x\xff", named), "key 0x\\xff");
        let object = PartitionPrefix::object(BucketId(7), "a/b");
        assert_eq!(partition_of(&object.object_row(&ObjectRow::Head)), object.as_bytes());
        let words = "object \"a/b\" of bucket photos";
        assert_eq!(in_words(object.as_bytes(), named), words);
        assert_eq!(in_words(&just_above(object.as_bytes()), named), format!("just above {words}"));
        assert_eq!(in_words(object.as_bytes(), Titles::UNKNOWN), "object \"a/b\" of bucket number 7");
        let bucket = PartitionPrefix::bucket("photos");
        assert_eq!(in_words(bucket.as_bytes(), named), "the settings of bucket photos");
        let blob = PartitionPrefix::blob(BlobId(7));
        assert_eq!(in_words(blob.as_bytes(), named), format!("the users of blob {}", BlobId(7)));
        assert_eq!(row_in_words(&partition.key("r")), "\"r\"");
    }
}
