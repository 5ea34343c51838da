//! Shard keys: their bytes, their order, and the next key.

use std::fmt::Debug;

use proptest::prelude::*;
use rangehold_map::shard::{
    DateTime, DateTimeOffset, NotAKey, ShardKey, ShardKeyType, ShardKeyValue, TICKS_PER_DAY, TimeSpan,
};
use uuid::Uuid;

fn raw<K: ShardKeyValue>(value: K) -> String {
    const_hex::encode(value.to_key().unwrap().raw())
}

/// A value, its bytes and its text can be made from each other.
fn round_trip<K: ShardKeyValue + PartialEq + Debug>(value: &K) {
    let key = value.to_key().unwrap();
    assert_eq!(&K::from_key(&key).unwrap(), value);
    assert_eq!(ShardKey::from_raw(key.key_type(), key.raw()).unwrap(), key);
    assert_eq!(ShardKey::parse(key.key_type(), &key.to_string()).unwrap(), key, "{key}");
}

fn date(year: i32, month: u8, day: u8) -> DateTime {
    DateTime::from_date(year, month, day).unwrap()
}

fn a_guid(text: &str) -> Uuid {
    Uuid::parse_str(text).unwrap()
}

/// Acceptance 2, 3: the library's test vectors, to bytes and back.
#[test]
fn every_test_vector_has_the_bytes_of_the_reference_library() {
    for (value, bytes) in [
        (i32::MIN, ""),
        (i32::MIN + 1, "00000001"),
        (-1, "7fffffff"),
        (0, "80000000"),
        (1, "80000001"),
        (i32::MAX, "ffffffff"),
    ] {
        assert_eq!(raw(value), bytes);
        round_trip(&value);
    }
    assert_eq!(raw(0i64), "8000000000000000");
    assert_eq!(raw(i64::MIN), "");
    assert_eq!(raw(a_guid("a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf")), "aaabacadaeafa8a9a7a6a5a4a3a2a1a0");
    assert_eq!(raw(Uuid::nil()), "");
    assert_eq!(raw(Vec::new()), "");
    assert_eq!(raw(vec![1u8]), "01");
    assert_eq!(raw(date(1900, 1, 1)), "8851055320574000");
    assert_eq!(raw(DateTime::MAX), "abca2875f4373fff");
    assert_eq!(raw(DateTime::MIN), "");
    let minute = TimeSpan(600_000_000);
    let seen = DateTimeOffset::new(date(1900, 1, 1), minute);
    assert_eq!(const_hex::encode(seen.reference_bytes()), "88510553205740008000000023c34600");
    assert_eq!(raw("shop".to_owned()), const_hex::encode(b"shop"));
}

/// Acceptance 1, 3, 8, 11: values of every type read back, least and greatest ones too.
#[test]
fn extremes_read_back() {
    for value in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX] {
        round_trip(&value);
        round_trip(&TimeSpan(value));
    }
    for value in [Uuid::nil(), Uuid::max(), a_guid("00000000-0000-0000-0000-000000000001")] {
        round_trip(&value);
    }
    for value in [vec![], vec![0, 1], vec![255; 128]] {
        round_trip::<Vec<u8>>(&value);
    }
    for value in [DateTime::MIN, date(2024, 2, 29), DateTime::MAX] {
        round_trip(&value);
        round_trip(&DateTimeOffset::new(value, TimeSpan(0)));
    }
    for value in ["", "a", "ÿ\u{10ffff}", &"x".repeat(128)] {
        round_trip(&value.to_owned());
    }
}

/// Acceptance 4: bytes padded with zeros are the same key, not only the same value.
#[test]
fn zero_bytes_at_the_end_are_not_part_of_a_key() {
    let padded = ShardKey::from_raw(ShardKeyType::Binary, &[1, 2, 0, 0]).unwrap();
    assert_eq!(padded, vec![1u8, 2].to_key().unwrap());
    assert_eq!(vec![1u8, 2, 0].to_key().unwrap(), padded);
    assert_eq!(ShardKey::from_raw(ShardKeyType::Int32, &[0; 4]).unwrap(), i32::MIN.to_key().unwrap());
}

/// Acceptance 5: the least key has no bytes, and lies in every interval that begins with it.
#[test]
fn the_least_key_has_no_bytes() {
    for &key_type in ShardKeyType::ALL {
        let least = ShardKey::min(key_type);
        assert!(least.raw().is_empty() && least.is_min());
        assert!(least.up_to(None).contains(least.raw()));
        assert!(least.up_to(None).contains(least.next().unwrap().raw()));
        assert_eq!(least.up_to(None).high(), None);
    }
}

/// Acceptance 6: bytes 10 to 15 are compared first, then 8 and 9, then 7 down to 0.
#[test]
fn guids_are_in_the_order_of_sql_server() {
    let weight = [10, 11, 12, 13, 14, 15, 8, 9, 7, 6, 5, 4, 3, 2, 1, 0];
    let one_at = |byte: usize| {
        let mut bytes = [0u8; 16];
        bytes[byte] = 1;
        Uuid::from_bytes(bytes).to_key().unwrap()
    };
    for pair in weight.windows(2) {
        assert!(one_at(pair[0]) > one_at(pair[1]), "{pair:?}");
    }
}

/// Acceptance 7, 9: two spellings of one instant are one key; others are in the order of UTC.
#[test]
fn offsets_are_not_part_of_a_key() {
    let noon =
        |offset_hours: i64| DateTimeOffset::new(date(2026, 5, 1), TimeSpan(offset_hours * 36_000_000_000));
    assert_eq!(noon(2), noon(-7));
    assert_eq!(noon(2).to_key().unwrap(), noon(-7).to_key().unwrap());
    let stored = ShardKey::from_raw(ShardKeyType::DateTimeOffset, &noon(2).reference_bytes()).unwrap();
    assert_eq!(stored, noon(0).to_key().unwrap());
    let parse = |text| ShardKey::parse(ShardKeyType::DateTimeOffset, text).unwrap();
    assert_eq!(parse("2026-05-01T02:00:00+02:00"), parse("2026-05-01T00:00:00Z"));
    assert!(parse("2026-05-01T02:00:00+02:00") < parse("2026-05-01T00:00:00.0000001Z"));
}

/// Acceptance 10: the key after the last but one is the last, and after that there is none.
#[test]
fn after_the_last_key_there_is_none() {
    fn ends<K: ShardKeyValue>(last_but_one: K, last: K) {
        let last = last.to_key().unwrap();
        assert_eq!(last_but_one.to_key().unwrap().next().unwrap(), last);
        assert_eq!(last.next(), None);
    }
    ends(i32::MAX - 1, i32::MAX);
    ends(i64::MAX - 1, i64::MAX);
    ends(TimeSpan(i64::MAX - 1), TimeSpan(i64::MAX));
    ends(a_guid("feffffff-ffff-ffff-ffff-ffffffffffff"), Uuid::max());
    let mut bytes = vec![255u8; 128];
    bytes[127] = 254;
    ends(bytes, vec![255; 128]);
    let before = DateTime::from_ticks(DateTime::MAX.ticks() - 1).unwrap();
    ends(before, DateTime::MAX);
    ends(DateTimeOffset::new(before, TimeSpan(0)), DateTimeOffset::new(DateTime::MAX, TimeSpan(1)));
    assert_eq!(i32::MIN.to_key().unwrap().next().unwrap(), (i32::MIN + 1).to_key().unwrap());
    assert_eq!(
        raw(DateTime::from_ticks(1).unwrap()),
        const_hex::encode(DateTime::MIN.to_key().unwrap().next().unwrap().raw())
    );
    assert!("x".repeat(128).to_key().unwrap().next().is_some(), "texts have no last one");
}

/// Keys are written and read as text. A text that is not a key is refused with an example.
#[test]
fn keys_are_written_and_read_as_text() {
    let parse = |key_type: ShardKeyType, text: &str| ShardKey::parse(key_type, text);
    for (key_type, text) in [
        (ShardKeyType::Int32, "-7"),
        (ShardKeyType::Binary, "0x01ff"),
        (ShardKeyType::DateTime, "2026-02-28T13:45:00.25"),
        (ShardKeyType::TimeSpan, "-1.02:03:04.5"),
        (ShardKeyType::TimeSpan, "02:03:04"),
        (ShardKeyType::DateTimeOffset, "2026-02-28T13:45:00Z"),
        (ShardKeyType::Guid, "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"),
        (ShardKeyType::Uuid, "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"),
    ] {
        assert_eq!(parse(key_type, text).unwrap().to_string(), text);
    }
    assert_eq!(
        TimeSpan::from_key(&parse(ShardKeyType::TimeSpan, "1.00:00").unwrap()).unwrap(),
        TimeSpan(TICKS_PER_DAY)
    );
    for (key_type, text) in [
        (ShardKeyType::Int32, "2147483648"),
        (ShardKeyType::Binary, "0x0"),
        (ShardKeyType::Binary, "0x\u{e9}"),
        (ShardKeyType::DateTime, "2026-02-30"),
        (ShardKeyType::DateTime, "2026-02-28T24:00"),
        (ShardKeyType::TimeSpan, "4294967295.00:00"),
        (ShardKeyType::DateTimeOffset, "2026-02-28T13:45:00"),
        (ShardKeyType::Guid, "7"),
    ] {
        let refused = parse(key_type, text).unwrap_err();
        assert!(matches!(refused, NotAKey::Unreadable { .. }), "{text}: {refused}");
    }
    // Ids that were made one after the other (version 7) are in this order by uuid, and not by guid.
    let made = ["019b5f00-0001-7fff-bfff-ffffffffffff", "019b5f00-0002-7000-8000-000000000000"];
    let greater = |key_type| parse(key_type, made[1]).unwrap() > parse(key_type, made[0]).unwrap();
    assert!(greater(ShardKeyType::Uuid) && !greater(ShardKeyType::Guid));
    assert!("y".repeat(129).to_key().is_err());
    assert!(ShardKey::from_raw(ShardKeyType::Int64, &[1, 2, 3]).is_err());
    assert!(ShardKey::from_raw(ShardKeyType::DateTime, &[0xff; 8]).is_err());
    assert!(i64::from_key(&7i32.to_key().unwrap()).is_err());
}

proptest! {
    /// Acceptance 1, 10: keys compare as values, and the next key is the least above.
    #[test]
    fn keys_compare_as_values_and_next_is_the_least_above(a: i64, b: i64, text_a in ".{0,20}", text_b in ".{0,20}") {
        let (key_a, key_b) = (a.to_key().unwrap(), b.to_key().unwrap());
        prop_assert_eq!(a.cmp(&b), key_a.cmp(&key_b));
        prop_assert_eq!(key_a.next(), a.checked_add(1).map(|next| next.to_key().unwrap()));
        let span = TimeSpan(a).to_key().unwrap();
        prop_assert_eq!(ShardKey::parse(ShardKeyType::TimeSpan, &span.to_string()).unwrap(), span);
        let (key_a, key_b) = (text_a.to_key().unwrap(), text_b.to_key().unwrap());
        prop_assert_eq!(text_a.cmp(&text_b), key_a.cmp(&key_b));
        if key_a < key_b {
            prop_assert!(key_a.next().unwrap() <= key_b);
        }
    }

    /// Acceptance 10: the same for guids and bytes.
    #[test]
    fn next_is_the_least_above_for_guids_and_bytes(guid: u128, bytes in prop::collection::vec(any::<u8>(), 0..129)) {
        for key in [Uuid::from_u128(guid).to_key().unwrap(), bytes.to_key().unwrap()] {
            if let Some(next) = key.next() {
                prop_assert!(next > key);
                prop_assert_eq!(ShardKey::from_raw(key.key_type(), next.raw()).unwrap(), next);
            }
        }
    }

    /// Any bytes are a key or are refused.
    #[test]
    fn any_bytes_are_a_key_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..140), text in ".{0,40}") {
        for &key_type in ShardKeyType::ALL {
            let keys = [ShardKey::from_raw(key_type, &bytes), ShardKey::parse(key_type, &text)];
            for key in keys.into_iter().flatten() {
                let _ = (key.to_string(), key.next(), key.point());
            }
        }
    }
}
