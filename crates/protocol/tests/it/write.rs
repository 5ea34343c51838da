//! The decision of a write, compared with a naive model, and at its limits.

use proptest::prelude::*;
use rangehold_map::Timestamp;
use rangehold_protocol::error::ErrorCode;
use rangehold_protocol::table::etag::IfMatch;
use rangehold_protocol::table::row::{self, RowView};
use rangehold_protocol::table::value::{Value, ValueRef};
use rangehold_protocol::table::write::{Change, Write, WriteKind, entity_bytes, judge};

const THEN: Timestamp = Timestamp::from_ticks(1_000);
const NOW: Timestamp = Timestamp::from_ticks(2_000);

type Properties = Vec<(String, Value)>;

fn encode(time: Timestamp, properties: &Properties) -> Vec<u8> {
    row::encode(time, properties.iter().map(|(name, value)| (name.as_str(), value.as_ref())))
}

fn decode(bytes: &[u8]) -> (Timestamp, Properties) {
    let row = RowView::new(bytes).expect("a row that was just written");
    let properties = row.properties().map(|property| {
        let (name, value) = property.expect("a row that was just written");
        (name.to_owned(), value.to_value())
    });
    (row.timestamp(), properties.collect())
}

/// The result of a write to an entity with these properties, last written at `THEN`.
fn run(kind: WriteKind, new: &Properties, old: Option<&Properties>) -> Result<Option<Properties>, ErrorCode> {
    let write = Write { kind, partition_key: "p".into(), row_key: "r".into(), properties: new.clone() };
    let stored = old.map(|old| encode(THEN, old));
    let current = stored.as_deref().map(|bytes| RowView::new(bytes).expect("a good row"));
    match judge(&write, current.as_ref(), NOW).expect("a good row") {
        Ok(Change::Delete) => Ok(None),
        Ok(Change::Put(bytes)) => {
            let (time, properties) = decode(&bytes);
            assert_eq!(time, NOW, "a new row has the time of its write");
            Ok(Some(properties))
        }
        Err(error) => Err(error.code),
    }
}

fn numbered(names: &[(&str, i32)]) -> Properties {
    names.iter().map(|(name, value)| ((*name).to_owned(), Value::Int32(*value))).collect()
}

#[test]
fn each_kind_of_write_meets_a_row_or_none() {
    let (old, new) = (numbered(&[("a", 1)]), numbered(&[("b", 2)]));
    let both = numbered(&[("a", 1), ("b", 2)]);
    let fresh = IfMatch::Exactly(THEN);
    let stale = IfMatch::Exactly(NOW);
    let mismatch = Err(ErrorCode::UpdateConditionNotSatisfied);
    let absent = Err(ErrorCode::ResourceNotFound);
    for (kind, without_row, with_row) in [
        (WriteKind::Insert, Ok(Some(&new)), Err(ErrorCode::EntityAlreadyExists)),
        (WriteKind::InsertOrReplace, Ok(Some(&new)), Ok(Some(&new))),
        (WriteKind::InsertOrMerge, Ok(Some(&new)), Ok(Some(&both))),
        (WriteKind::Replace(IfMatch::Any), absent, Ok(Some(&new))),
        (WriteKind::Replace(fresh), absent, Ok(Some(&new))),
        (WriteKind::Replace(stale), absent, mismatch),
        (WriteKind::Merge(IfMatch::Any), absent, Ok(Some(&both))),
        (WriteKind::Merge(fresh), absent, Ok(Some(&both))),
        (WriteKind::Merge(stale), absent, mismatch),
        (WriteKind::Delete(IfMatch::Any), absent, Ok(None)),
        (WriteKind::Delete(fresh), absent, Ok(None)),
        (WriteKind::Delete(stale), absent, mismatch),
    ] {
        assert_eq!(run(kind, &new, None), without_row.map(|p| p.cloned()), "{kind:?} without a row");
        assert_eq!(run(kind, &new, Some(&old)), with_row.map(|p| p.cloned()), "{kind:?} with a row");
    }
}

#[test]
fn a_merge_keeps_the_order_and_changes_types() {
    let old = numbered(&[("c", 1), ("a", 2), ("b", 3)]);
    let new = vec![("z".to_owned(), Value::Int32(4)), ("a".to_owned(), Value::String("two".into()))];
    let merged = run(WriteKind::InsertOrMerge, &new, Some(&old)).unwrap().unwrap();
    let expected = vec![
        ("c".to_owned(), Value::Int32(1)),
        ("a".to_owned(), Value::String("two".into())),
        ("b".to_owned(), Value::Int32(3)),
        ("z".to_owned(), Value::Int32(4)),
    ];
    assert_eq!(merged, expected);
}

#[test]
fn the_merged_entity_has_at_most_252_properties() {
    let names = |from: usize, to: usize| -> Properties {
        (from..to).map(|i| (format!("p{i}"), Value::Boolean(true))).collect()
    };
    let merge = WriteKind::Merge(IfMatch::Any);
    assert!(run(merge, &names(200, 252), Some(&names(0, 200))).is_ok());
    assert!(run(merge, &names(100, 252), Some(&names(0, 200))).is_ok());
    assert_eq!(run(merge, &names(200, 253), Some(&names(0, 200))), Err(ErrorCode::TooManyProperties));
    assert_eq!(run(WriteKind::InsertOrReplace, &names(0, 253), None), Err(ErrorCode::TooManyProperties));
}

/// The example from the publication of the rule, and sizes around 1 MiB.
#[test]
fn an_entity_is_as_large_as_the_service_counts_it() {
    let address = ("Address", ValueRef::String("Mountain View "));
    let age = ("Age", ValueRef::Int32(23));
    assert_eq!(entity_bytes("", "", [address].into_iter()), 4 + 8 + 14 + 32);
    assert_eq!(entity_bytes("ab", "\u{1F600}", [age].into_iter()), 4 + 2 * 4 + 8 + 6 + 4);

    let texts = |last: usize| -> Properties {
        let filler = (0..15).map(|i| (format!("p{i:02}"), Value::String("x".repeat(32 * 1024))));
        filler.chain([("last".to_owned(), Value::String("é".repeat(last)))]).collect()
    };
    // 1 MiB without keys and header (8), without 15 texts of 64 KiB with 18 bytes each around them, and
    // without 20 bytes around the last one.
    let room = (1024 * 1024 - 8 - 15 * (64 * 1024 + 18) - 20) / 2;
    assert!(run(WriteKind::Insert, &texts(room), None).is_ok());
    assert_eq!(run(WriteKind::Insert, &texts(room + 1), None), Err(ErrorCode::EntityTooLarge));
    let more = vec![("q".to_owned(), Value::Boolean(true))];
    let merged = run(WriteKind::Merge(IfMatch::Any), &more, Some(&texts(room)));
    assert_eq!(merged, Err(ErrorCode::EntityTooLarge), "the limit holds for what a merge makes");
}

#[test]
fn a_damaged_row_is_not_reported_as_a_refusal() {
    let mut bytes = encode(THEN, &numbered(&[("a", 1)]));
    let type_at = 11 + 4;
    bytes[type_at] = 99;
    let row = RowView::new(&bytes).unwrap();
    let write = Write {
        kind: WriteKind::InsertOrMerge,
        partition_key: String::new(),
        row_key: String::new(),
        properties: vec![],
    };
    assert!(judge(&write, Some(&row), NOW).is_err());
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        "\\PC{0,12}".prop_map(Value::String),
        prop::collection::vec(any::<u8>(), 0..12).prop_map(Value::Binary),
        any::<bool>().prop_map(Value::Boolean),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        (-1e300..1e300).prop_map(Value::Double),
        any::<i64>().prop_map(|ticks| Value::DateTime(Timestamp::from_ticks(ticks))),
        any::<[u8; 16]>().prop_map(Value::Guid),
    ]
}

/// Properties with each name once. There are few names, so two such lists often share some.
fn any_properties() -> impl Strategy<Value = Properties> {
    prop::collection::vec(("[a-eé]{1,2}", any_value()), 0..8).prop_map(|mut properties| {
        let mut seen = std::collections::BTreeSet::new();
        properties.retain(|(name, _)| seen.insert(name.clone()));
        properties
    })
}

proptest! {
    #[test]
    fn a_merge_equals_a_naive_merge(old in any_properties(), new in any_properties()) {
        let mut expected = old.clone();
        for (name, value) in &new {
            match expected.iter_mut().find(|(known, _)| known == name) {
                Some((_, old)) => *old = value.clone(),
                None => expected.push((name.clone(), value.clone())),
            }
        }
        prop_assert_eq!(run(WriteKind::InsertOrMerge, &new, Some(&old)), Ok(Some(expected)));
        prop_assert_eq!(run(WriteKind::InsertOrReplace, &new, Some(&old)), Ok(Some(new)));
    }

    #[test]
    fn an_encoded_row_is_read_back(properties in any_properties(), ticks: i64, other in "[a-f]{1,2}") {
        let time = Timestamp::from_ticks(ticks);
        let bytes = encode(time, &properties);
        prop_assert_eq!(decode(&bytes), (time, properties.clone()));
        let row = RowView::new(&bytes).unwrap();
        prop_assert_eq!(row.len(), properties.len());
        for name in properties.iter().map(|(name, _)| name).chain([&other]) {
            let expected = properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_ref());
            prop_assert_eq!(row.get(name).unwrap(), expected);
        }
    }

    /// Reading any bytes gives values or an error.
    #[test]
    fn a_damaged_row_is_never_a_panic(
        properties in any_properties(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encode(NOW, &properties);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
            if let Ok(row) = RowView::new(bytes) {
                for property in row.properties() {
                    let _ = property;
                }
                let _ = row.get("a");
            }
        }
    }

    #[test]
    fn bytes_that_are_not_a_row_are_never_a_panic(bytes in prop::collection::vec(0..20u8, 0..80)) {
        let mut bytes = bytes;
        if let Some(format) = bytes.first_mut() {
            *format = 1;
        }
        if let Ok(row) = RowView::new(&bytes) {
            row.properties().for_each(drop);
            let _ = row.get("a");
        }
    }
}

#[test]
fn rows_of_a_later_format_and_cut_rows_are_refused() {
    let good = encode(NOW, &numbered(&[("a", 1), ("b", 2)]));
    assert_eq!(good[0], 1, "the format number is persisted");
    let mut later = good.clone();
    later[0] = 2;
    assert!(RowView::new(&later).is_err());
    for length in 0..good.len() {
        assert!(RowView::new(&good[..length]).is_err(), "cut at {length}");
    }
    let empty = encode(NOW, &vec![]);
    assert!(RowView::new(&empty).unwrap().is_empty());
}

/// The stored form must not change: rows of every earlier release must stay readable.
#[test]
fn the_stored_form_of_a_row() {
    let properties = vec![("a".to_owned(), Value::Int32(258)), ("b".to_owned(), Value::String("é".into()))];
    let mut expected = vec![1, 0xD0, 7, 0, 0, 0, 0, 0, 0, 2, 0];
    expected.extend_from_slice(&[0x2C, 0x29, 0x0C, 0xE4, 4, 7, 0, 0]);
    expected.extend_from_slice(&[0xE5, 0x2D, 0x0C, 0xE7, 1, 12, 0, 0]);
    expected.extend_from_slice(&[1, 0, b'a', 2, 1, 0, 0]);
    expected.extend_from_slice(&[1, 0, b'b', 0xC3, 0xA9]);
    assert_eq!(encode(NOW, &properties), expected);
}
