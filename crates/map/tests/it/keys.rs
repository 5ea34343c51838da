//! Keys: their order, their stored bytes, their prefixes.

use proptest::prelude::*;
use rangehold_map::codec::{Reader, put_text, put_text_open, put_u64};
use rangehold_map::key::{
    after_prefix, dropped_prefix, entity_keys, is_partition_boundary, table_of, table_prefix, tables_prefix,
};
use rangehold_map::{Key, KeyRange, PartitionPrefix, TableId};

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
    }
}

/// The order of keys by numbers and code units, without the codec.
type Place = (u8, Vec<u16>, u8, u64, Vec<u16>, Vec<u16>);

fn place(key: &Key) -> Place {
    let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
    match key {
        Key::ServiceProperties { account } => (0x10, units(account), 1, 0, vec![], vec![]),
        Key::Table { account, lower_name } => (0x10, units(account), 2, 0, units(lower_name), vec![]),
        Key::DroppedTable { account, table } => (0x10, units(account), 3, table.0, vec![], vec![]),
        Key::Entity { account, table, partition_key, row_key } => {
            (0x20, units(account), 0, table.0, units(partition_key), units(row_key))
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
                prop_assert_eq!(entity_keys(&bytes), Ok((partition_key, row_key)));
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
        }
        let mut reader = Reader::new(&bytes);
        for (text, number) in parts {
            prop_assert_eq!(reader.text(), Ok(text));
            prop_assert_eq!(reader.u64(), Ok(number));
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
            _ => prefix.to_vec(),
        };
        for prefix in [prefix, &table] {
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
            Key::Entity { .. } => (false, false, false),
        };
        prop_assert_eq!(bytes.starts_with(PartitionPrefix::catalogue(&account).as_bytes()), catalogue);
        prop_assert_eq!(bytes.starts_with(&tables_prefix(&account)), tables);
        prop_assert_eq!(bytes.starts_with(&dropped_prefix(&account)), dropped);
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
    };
    format!("{words} = {}", const_hex::encode(key.encode()))
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
        (b"\x30a\x00", 0),
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
