//! Keys: their order, their stored bytes, their prefixes.

use std::borrow::Cow;

use proptest::prelude::*;
use rangehold_map::codec::{Reader, put_name, put_name_open, put_text, put_text_open, put_u64, put_u128};
use rangehold_map::key::{
    BlobRow, BlobUser, ProjectRow, after_prefix, bucket_objects, bucket_of, dropped_prefix, entity_keys,
    is_partition_boundary, names_beginning_with, names_from, table_of, table_prefix, tables_prefix,
};
use rangehold_map::{
    BlobId, BucketId, BucketRow, Key, KeyRange, ObjectGeneration, ObjectKey, ObjectRow, PartitionPrefix,
    TableId,
};

/// Texts that are difficult for the codec: NUL, its neighbours, the ends of each length of UTF-8,
/// both sides of the surrogates, and prefixes of each other.
fn any_text() -> impl Strategy<Value = String> {
    let tricky = prop::sample::select(vec![
        '\0',
        '\u{1}',
        'a',
        'b',
        '\u{7F}',
        '\u{80}',
        '\u{7FF}',
        '\u{800}',
        '\u{D7FF}',
        '\u{E000}',
        '\u{FFFF}',
        '\u{10000}',
        '\u{1F600}',
        '\u{10FFFF}',
    ]);
    let letters = prop_oneof![3 => tricky, 1 => any::<char>()];
    prop::collection::vec(letters, 0..6).prop_map(|letters| letters.into_iter().collect())
}

fn any_id() -> impl Strategy<Value = TableId> {
    prop_oneof![0..3u64, any::<u64>()].prop_map(TableId)
}

fn any_key() -> impl Strategy<Value = Key> {
    // Few accounts, so that two keys often share one.
    let account = || prop_oneof![Just("a".to_owned()), Just("ab".to_owned()), any_text()];
    prop_oneof![
        account().prop_map(|account| Key::ServiceProperties { account }),
        (account(), any_text()).prop_map(|(account, lower_name)| Key::Table { account, lower_name }),
        (account(), any_id()).prop_map(|(account, table)| Key::DroppedTable { account, table }),
        (account(), any_id(), any_text(), any_text()).prop_map(|(account, table, partition_key, row_key)| {
            Key::Entity { account, table, partition_key, row_key }
        }),
        any_other_key(),
    ]
}

/// Names and ids of a few values, so that two keys often share some.
fn any_object() -> impl Strategy<Value = ObjectKey<'static>> {
    let generation = || prop_oneof![0..3u64, any::<u64>()].prop_map(ObjectGeneration);
    let id = || prop_oneof![Just(String::new()), Just("u".to_owned()), any_text()].prop_map(Cow::Owned);
    let row = prop_oneof![
        Just(ObjectRow::Head),
        generation().prop_map(ObjectRow::Content),
        generation().prop_map(ObjectRow::NotLive),
        id().prop_map(ObjectRow::Upload),
        (id(), any::<u32>()).prop_map(|(upload, part)| ObjectRow::Part { upload, part }),
        id().prop_map(ObjectRow::Answer),
        id().prop_map(ObjectRow::Outcome),
        Just(ObjectRow::Tree),
        any::<u64>().prop_map(ObjectRow::Folder),
        (any::<u64>(), id()).prop_map(|(parent, name)| ObjectRow::FolderName { parent, name }),
    ];
    let name = prop_oneof![Just("a".to_owned()), Just("a\0".to_owned()), any_text()].prop_map(Cow::Owned);
    (any_bucket(), name, row).prop_map(|(bucket, name, row)| ObjectKey { bucket, name, row })
}

fn any_bucket() -> impl Strategy<Value = BucketId> {
    any_id().prop_map(|id| BucketId(id.0))
}

fn any_other_key() -> impl Strategy<Value = Key> {
    let bucket_row = prop_oneof![
        Just(BucketRow::Bucket),
        any_bucket().prop_map(BucketRow::Deleted),
        any_text().prop_map(BucketRow::Notification),
        any_bucket().prop_map(BucketRow::Capacity),
        (any_bucket(), any_text()).prop_map(|(bucket, id)| BucketRow::Operation(bucket, id)),
        Just(BucketRow::LastId),
    ];
    let user = (any_bucket(), any_text(), any_text());
    let blob_row = prop_oneof![
        Just(BlobRow::State),
        user.prop_map(|(bucket, name, upload)| BlobRow::User(BlobUser { bucket, name, upload })),
    ];
    prop_oneof![
        (any_text(), bucket_row).prop_map(|(name, row)| Key::Bucket { name, row }),
        (any_text(), any_text())
            .prop_map(|(project, id)| Key::Project { project, row: ProjectRow::HmacKey(id) }),
        any_object().prop_map(Key::Object),
        (prop_oneof![0..3u128, any::<u128>()], blob_row)
            .prop_map(|(id, row)| Key::Blob { blob: BlobId(id), row }),
    ]
}

fn partition_of(key: &Key) -> PartitionPrefix {
    match key {
        Key::Entity { account, table, partition_key, .. } => {
            PartitionPrefix::entity(account, *table, partition_key)
        }
        Key::ServiceProperties { account }
        | Key::Table { account, .. }
        | Key::DroppedTable { account, .. } => PartitionPrefix::catalogue(account),
        Key::Bucket { name, .. } => PartitionPrefix::bucket(name),
        Key::Project { project, .. } => PartitionPrefix::project(project),
        Key::Object(key) => PartitionPrefix::object(key.bucket, &key.name),
        Key::Blob { blob, .. } => PartitionPrefix::blob(*blob),
    }
}

/// One component of a key.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u128),
    Units(Vec<u16>),
    Utf8(Vec<u8>),
}

/// The order of keys by numbers, code units and bytes of UTF-8, without the codec.
fn place(key: &Key) -> Vec<Part> {
    let n = |number: u128| Part::Number(number);
    let id = |number: u64| Part::Number(number.into());
    let units = |text: &str| Part::Units(text.encode_utf16().collect());
    let utf8 = |text: &str| Part::Utf8(text.as_bytes().to_vec());
    match key {
        Key::ServiceProperties { account } => vec![n(0x10), units(account), n(1)],
        Key::Table { account, lower_name } => vec![n(0x10), units(account), n(2), units(lower_name)],
        Key::DroppedTable { account, table } => vec![n(0x10), units(account), n(3), id(table.0)],
        Key::Entity { account, table, partition_key, row_key } => {
            vec![n(0x20), units(account), id(table.0), units(partition_key), units(row_key)]
        }
        Key::Bucket { name, row } => {
            let row = match row {
                BucketRow::Bucket => vec![n(1)],
                BucketRow::Deleted(bucket) => vec![n(2), id(bucket.0)],
                BucketRow::Notification(name) => vec![n(3), utf8(name)],
                BucketRow::Capacity(bucket) => vec![n(4), id(bucket.0)],
                BucketRow::Operation(bucket, name) => vec![n(5), id(bucket.0), utf8(name)],
                BucketRow::LastId => vec![n(6)],
            };
            [vec![n(0x11), utf8(name)], row].into_iter().flatten().collect()
        }
        Key::Project { project, row: ProjectRow::HmacKey(access_id) } => {
            vec![n(0x12), utf8(project), n(1), utf8(access_id)]
        }
        Key::Object(ObjectKey { bucket, name, row }) => {
            let row = match row {
                ObjectRow::Head => vec![n(0)],
                ObjectRow::Content(generation) => vec![n(1), id(generation.0)],
                ObjectRow::NotLive(generation) => vec![n(2), id(generation.0)],
                ObjectRow::Upload(upload) => vec![n(3), utf8(upload)],
                ObjectRow::Part { upload, part } => vec![n(4), utf8(upload), n((*part).into())],
                ObjectRow::Answer(upload) => vec![n(5), utf8(upload)],
                ObjectRow::Outcome(intent) => vec![n(6), utf8(intent)],
                ObjectRow::Tree => vec![n(7)],
                ObjectRow::Folder(folder) => vec![n(8), id(*folder)],
                ObjectRow::FolderName { parent, name } => vec![n(9), id(*parent), utf8(name)],
            };
            [vec![n(0x30), id(bucket.0), utf8(name)], row].into_iter().flatten().collect()
        }
        Key::Blob { blob, row: BlobRow::State } => vec![n(0x31), n(blob.0), n(0)],
        Key::Blob { blob, row: BlobRow::User(BlobUser { bucket, name, upload }) } => {
            vec![n(0x31), n(blob.0), n(1), id(bucket.0), utf8(name), utf8(upload)]
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn stored_bytes_order_as_keys_do(a in any_key(), b in any_key()) {
        prop_assert_eq!(a.encode().cmp(&b.encode()), place(&a).cmp(&place(&b)));
    }

    #[test]
    fn a_key_is_read_as_it_was_written(key in any_key()) {
        let bytes = key.encode();
        prop_assert_eq!(Key::decode(&bytes), Ok(key.clone()));
        match key {
            Key::Entity { account, table, partition_key, row_key } => {
                let mut encoded_account = Vec::new();
                put_text_open(&mut encoded_account, &account);
                prop_assert_eq!(table_of(&bytes), Some((&encoded_account[..], table)));
                prop_assert_eq!(entity_keys(&bytes), Ok((partition_key.into(), row_key.into())));
            }
            _ => {
                prop_assert_eq!(table_of(&bytes), None);
                prop_assert!(entity_keys(&bytes).is_err());
            }
        }
    }

    /// Bytes that are read as a key are the encoding of that key: no key has two encodings.
    #[test]
    fn only_the_encoding_of_a_key_is_read_as_a_key(
        key in any_key(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cut in any::<prop::sample::Index>(),
        tail in prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x80, 0xED, 0xFF]), 0..3),
    ) {
        let mut bytes = key.encode();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let cut = bytes[..cut.index(bytes.len())].to_vec();
        let extended = [bytes.clone(), tail].concat();
        for bytes in [bytes, cut, extended] {
            match Key::decode(&bytes) {
                Ok(read) => prop_assert_eq!(&read.encode(), &bytes),
                Err(malformed) => prop_assert!(malformed.at <= bytes.len()),
            }
            table_of(&bytes);
            let _ = entity_keys(&bytes);
        }
    }

    #[test]
    fn texts_and_numbers_are_read_one_after_another(parts in prop::collection::vec((any_text(), any::<u64>()), 0..4)) {
        let mut bytes = Vec::new();
        for (text, number) in &parts {
            put_text(&mut bytes, text);
            put_u64(&mut bytes, *number);
            put_name(&mut bytes, text);
            put_u128(&mut bytes, u128::from(*number) << 60);
        }
        let mut reader = Reader::new(&bytes);
        for (text, number) in parts {
            prop_assert_eq!(reader.text(), Ok(text.clone()));
            prop_assert_eq!(reader.u64(), Ok(number));
            prop_assert_eq!(reader.name(), Ok(Cow::Owned(text)));
            prop_assert_eq!(reader.u128(), Ok(u128::from(number) << 60));
        }
        prop_assert!(reader.is_at_end());
        prop_assert!(reader.u8().is_err());
    }

    #[test]
    fn an_open_text_is_a_prefix_of_the_texts_that_begin_with_it(text in any_text(), other in any_text()) {
        let (mut open, mut closed) = (Vec::new(), Vec::new());
        put_text_open(&mut open, &text);
        put_text(&mut closed, &other);
        let begins = other.encode_utf16().collect::<Vec<_>>().starts_with(&text.encode_utf16().collect::<Vec<_>>());
        prop_assert_eq!(closed.starts_with(&open), begins);

        let (mut open, mut closed) = (Vec::new(), Vec::new());
        put_name_open(&mut open, &text);
        put_name(&mut closed, &other);
        prop_assert_eq!(closed.starts_with(&open), other.starts_with(&text));
    }

    #[test]
    fn a_partition_has_exactly_the_keys_that_begin_with_its_prefix(a in any_key(), b in any_key()) {
        for key in [&a, &b] {
            let whole = KeyRange::whole();
            prop_assert!(whole.contains(&key.encode()));
        }
        if let Key::Entity { account, table, partition_key, row_key } = &a {
            let prefix = PartitionPrefix::entity(account, *table, partition_key);
            prop_assert_eq!(prefix.key(row_key), a.encode());
            let is_inside = matches!(&b, Key::Entity { account: x, table: y, partition_key: z, .. }
                if (x, y, z) == (account, table, partition_key));
            prop_assert_eq!(b.encode().starts_with(prefix.as_bytes()), is_inside);
            prop_assert_eq!(KeyRange::prefix(prefix.as_bytes()).contains(&b.encode()), is_inside);

            let prefix = table_prefix(account, *table);
            let is_inside = matches!(&b, Key::Entity { account: x, table: y, .. } if (x, y) == (account, table));
            prop_assert_eq!(KeyRange::prefix(&prefix).contains(&b.encode()), is_inside);
        }
    }

    /// Keys and cuts that are near to each other.
    #[test]
    fn a_boundary_has_no_partition_on_both_sides(
        key in any_key(),
        other in any_key(),
        shares_partition in any::<bool>(),
        near in prop::sample::select(vec![0usize, 1, 2]),
        length in any::<prop::sample::Index>(),
        tail in prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x61, 0xFF]), 0..3),
    ) {
        let partition = partition_of(&key);
        let other = match (&key, other) {
            (Key::Entity { account, table, partition_key, .. }, Key::Entity { row_key, .. }) if shares_partition => {
                let (account, table, partition_key) = (account.clone(), *table, partition_key.clone());
                Key::Entity { account, table, partition_key, row_key }
            }
            (Key::Object(key), Key::Object(other)) if shares_partition => {
                Key::Object(ObjectKey { row: other.row, ..key.clone() })
            }
            (_, other) => other,
        };
        let mut at = [key.encode(), other.encode(), partition.as_bytes().to_vec()][near].clone();
        at.truncate(length.index(at.len() + 1));
        at.extend(tail);
        if is_partition_boundary(&at) && partition == partition_of(&other) {
            prop_assert_eq!(key.encode() < at, other.encode() < at);
        }
    }

    #[test]
    fn ends_of_whole_partitions_and_tables_are_boundaries(
        key in any_key(),
        length in any::<prop::sample::Index>(),
        tail in prop::collection::vec(any::<u8>(), 1..3),
    ) {
        let partition = partition_of(&key);
        let prefix = partition.as_bytes();
        prop_assert!(is_partition_boundary(&prefix[..length.index(prefix.len() + 1)]));
        prop_assert!(!is_partition_boundary(&[prefix, &tail].concat()));
        let table = match &key {
            Key::Entity { account, table, .. } => table_prefix(account, *table),
            Key::Object(key) => bucket_objects(key.bucket),
            _ => prefix.to_vec(),
        };
        for prefix in [prefix, &table[..]] {
            prop_assert!(is_partition_boundary(&after_prefix(prefix).unwrap()));
        }
    }

    #[test]
    fn a_catalogue_has_exactly_the_keys_that_begin_with_its_prefix(account in any_text(), key in any_key()) {
        let bytes = key.encode();
        let (catalogue, tables, dropped) = match &key {
            Key::ServiceProperties { account: x } => (*x == account, false, false),
            Key::Table { account: x, .. } => (*x == account, *x == account, false),
            Key::DroppedTable { account: x, .. } => (*x == account, false, *x == account),
            _ => (false, false, false),
        };
        prop_assert_eq!(bytes.starts_with(PartitionPrefix::catalogue(&account).as_bytes()), catalogue);
        prop_assert_eq!(bytes.starts_with(&tables_prefix(&account)), tables);
        prop_assert_eq!(bytes.starts_with(&dropped_prefix(&account)), dropped);
    }

    /// The bounds of listings.
    #[test]
    fn names_of_a_bucket_lie_between_the_bounds_for_them(key in any_object(), bucket in any_bucket(), text in any_text()) {
        let bytes = key.encode();
        prop_assert_eq!(bucket_of(&bytes), Some(key.bucket));
        prop_assert_eq!(bytes.starts_with(&bucket_objects(bucket)), key.bucket == bucket);
        let past = key.past_name();
        prop_assert!(bytes < past && is_partition_boundary(&past));
        if key.bucket == bucket {
            let begins = names_beginning_with(bucket, &text);
            prop_assert_eq!(bytes.starts_with(&begins), key.name.starts_with(&text));
            prop_assert_eq!(names_from(bucket, &text) <= bytes, *text <= *key.name);
            let other = ObjectKey { name: Cow::Owned(text.clone()), ..key.clone() }.encode();
            prop_assert_eq!(past <= other, *key.name < *text);
        }
        if let Cow::Owned(_) = ObjectKey::decode(&bytes).unwrap().name {
            prop_assert!(key.name.contains(['\0', '\u{1}']), "an ordinary name is not copied");
        }
    }

    #[test]
    fn the_end_of_a_prefix_is_the_least_key_above_it(
        prefix in prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x7F, 0xFE, 0xFF]), 0..4),
        key in prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 0x7F, 0x80, 0xFE, 0xFF]), 0..6),
    ) {
        let is_below_end = after_prefix(&prefix).is_none_or(|end| key < end);
        prop_assert_eq!(key.starts_with(&prefix), key >= prefix && is_below_end);
    }
}

/// One line of the golden file: the key in words, its texts in ASCII with escapes, and its bytes.
fn line(key: &Key) -> String {
    let words = match key {
        Key::ServiceProperties { account } => format!("service-properties {account}"),
        Key::Table { account, lower_name } => format!("table {account} {lower_name}"),
        Key::DroppedTable { account, table } => format!("dropped {account} {}", table.0),
        Key::Entity { account, table, partition_key, row_key } => {
            let (partition_key, row_key) = (partition_key.escape_default(), row_key.escape_default());
            format!("entity {account} {} \"{partition_key}\" \"{row_key}\"", table.0)
        }
        Key::Bucket { name, row: BucketRow::Bucket } => format!("bucket {name}"),
        Key::Bucket { name, row: BucketRow::Deleted(id) } => format!("bucket {name} deleted {}", id.0),
        Key::Bucket { name, row: BucketRow::Notification(id) } => format!("bucket {name} notification {id}"),
        Key::Bucket { name, row: BucketRow::Capacity(id) } => format!("bucket {name} capacity {}", id.0),
        Key::Bucket { row: BucketRow::LastId, .. } => "last bucket id".to_owned(),
        Key::Bucket { name, row: BucketRow::Operation(bucket, id) } => {
            format!("bucket {name} operation {} {id}", bucket.0)
        }
        Key::Project { project, row: ProjectRow::HmacKey(id) } => format!("project {project} key {id}"),
        Key::Object(key) => object_in_words(key),
        Key::Blob { blob, row: BlobRow::State } => format!("blob {blob}"),
        Key::Blob { blob, row: BlobRow::User(user) } => {
            format!(
                "blob {blob} used by {} \"{}\" {}",
                user.bucket.0,
                user.name.escape_default(),
                user.upload
            )
        }
    };
    format!("{words} = {}", const_hex::encode(key.encode()))
}

fn object_in_words(key: &ObjectKey<'_>) -> String {
    let row = match &key.row {
        ObjectRow::Head => "head".to_owned(),
        ObjectRow::Content(generation) => format!("content {}", generation.0),
        ObjectRow::NotLive(generation) => format!("not-live {}", generation.0),
        ObjectRow::Upload(upload) => format!("upload {upload}"),
        ObjectRow::Part { upload, part } => format!("part {upload} {part}"),
        ObjectRow::Answer(upload) => format!("answer {upload}"),
        ObjectRow::Outcome(intent) => format!("outcome {intent}"),
        ObjectRow::Tree => "tree".to_owned(),
        ObjectRow::Folder(id) => format!("folder {id}"),
        ObjectRow::FolderName { parent, name } => format!("folder-name {parent} {name}"),
    };
    format!("object {} \"{}\" {row}", key.bucket.0, key.name.escape_default())
}

/// Every store holds its keys in this form. If this test fails, stores of earlier releases cannot be read.
#[test]
fn the_golden_keys_never_change() {
    let golden = include_str!("../golden/keys.txt").lines().filter(|line| !line.starts_with('#'));
    let stored = golden.map(|told| {
        let (_, digits) = told.rsplit_once(" = ").expect("a key in words = its bytes");
        let bytes = const_hex::decode(digits).expect("hexadecimal digits");
        assert_eq!(Key::decode(&bytes).map(|key| line(&key)), Ok(told.to_owned()));
        bytes
    });
    let stored: Vec<_> = stored.collect();
    assert!(stored.len() >= 35 && stored.is_sorted_by(|one, next| one < next));
}

#[test]
fn bytes_that_are_not_a_key_are_refused() {
    let entity = PartitionPrefix::entity("acct", TableId(1), "p").key("r");
    for (bytes, at) in [
        (&[][..], 0),
        (b"\x01\x00", 0),
        (b"\x30a\x00", 1),
        (b"\x30\0\0\0\0\0\0\0\x01a\x00\x0A", 11),
        (b"\x30\0\0\0\0\0\0\0\x01a\x00\x00\x00", 12),
        (b"\x32a\x00", 0),
        (b"\x10a", 2),
        (b"\x10a\x00", 3),
        (b"\x10a\x00\x04", 3),
        (b"\x10a\x00\x01\x00", 4),
        (b"\x10a\x00\x03\x00", 4),
        (&entity[..entity.len() - 1], entity.len() - 1),
    ] {
        assert_eq!(Key::decode(bytes).unwrap_err().at, at, "{bytes:02x?}");
    }
    // Not CESU-8: a lone surrogate, UTF-8 of four bytes, overlong forms, a tail byte alone, escapes
    // of nothing.
    for text in [
        &b"\xED\xA0\x80"[..],
        b"\xF0\x90\x80\x80",
        b"\xC0\x80",
        b"\xE0\x80\x80",
        b"\x80",
        b"\xC3",
        b"\x01",
        b"\x01\x03",
        b"a\x01a",
    ] {
        let bytes = [b"\x10", text, b"\x00\x01"].concat();
        assert!(Key::decode(&bytes).is_err(), "{text:02x?}");
    }
}
