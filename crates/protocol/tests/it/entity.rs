//! Reading entities: a golden file of bodies and what is read, limits, and bytes of any kind.

use proptest::prelude::*;
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::entity::{Entity, KeyRule};
use rangehold_protocol::table::value::Value;
use rangehold_protocol::time::iso;

use crate::golden;

/// Reads an entity with good keys and these members.
fn with(members: &str) -> Result<Entity, TableError> {
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"r",{members}}}"#);
    Entity::from_json(body.as_bytes(), KeyRule::InBody)
}

fn show_value(value: &Value) -> String {
    match value {
        Value::Binary(bytes) => format!("Binary({})", const_hex::encode(bytes)),
        Value::Guid(bytes) => format!("Guid({})", const_hex::encode(bytes)),
        Value::DateTime(time) => format!("DateTime({})", iso(*time)),
        plain => format!("{plain:?}"),
    }
}

fn show(entity: &Entity) -> String {
    let keys = [("PartitionKey", &entity.partition_key), ("RowKey", &entity.row_key)];
    let keys = keys.into_iter().filter_map(|(name, key)| Some(format!("{name}={:?}", key.as_ref()?)));
    let properties = entity.properties.iter().map(|(name, value)| format!("{name}={}", show_value(value)));
    keys.chain(properties).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_golden_file_holds() {
    golden::holds(include_str!("../golden/entity.txt"), |line| {
        let (how, text) = line.split_once(' ').unwrap_or((line, ""));
        let read = match how {
            "insert" => Entity::from_json(text.as_bytes(), KeyRule::InBody),
            "update" => Entity::from_json(text.as_bytes(), KeyRule::InUri),
            "with" => with(text).map(|entity| Entity { partition_key: None, row_key: None, ..entity }),
            _ => panic!("a line begins with insert, update or with: {line}"),
        };
        match read {
            Ok(entity) if entity.properties.is_empty() && entity.row_key.is_none() => "nothing".to_owned(),
            Ok(entity) => show(&entity),
            Err(error) if error == error.code.into() => format!("{:?}", error.code),
            Err(error) => format!("{:?}: {}", error.code, error.text),
        }
    });
}

#[test]
fn names_and_sizes_have_limits() {
    let code =
        |members: &str| with(members).map(|entity| entity.properties.len()).map_err(|error| error.code);
    assert_eq!(code(&format!(r#""{}":1"#, "a".repeat(256))), Err(ErrorCode::PropertyNameTooLong));

    let count = |n: usize, value: &str| {
        code(&(0..n).map(|i| format!(r#""key{i}":{value}"#)).collect::<Vec<_>>().join(","))
    };
    assert_eq!(count(252, "1"), Ok(252));
    assert_eq!(count(253, "1"), Err(ErrorCode::TooManyProperties));
    assert_eq!(count(253, "null"), Ok(0));
    assert_eq!(count(100_000, "null"), Err(ErrorCode::TooManyProperties));

    let text = |units: usize| code(&format!(r#""v":"{}""#, "é".repeat(units)));
    assert_eq!(text(32 * 1024), Ok(1));
    assert_eq!(text(32 * 1024 + 1), Err(ErrorCode::PropertyValueTooLarge));
    let binary = |groups: usize, rest: &str| {
        code(&format!(r#""v":"{}{rest}","v@odata.type":"Edm.Binary""#, "AAAA".repeat(groups)))
    };
    assert_eq!(binary(21_845, "AA=="), Ok(1));
    assert_eq!(binary(21_845, "AAA="), Err(ErrorCode::PropertyValueTooLarge));
    // Recorded for one binary of 1 MiB.
    assert_eq!(binary(350_000, ""), Err(ErrorCode::EntityTooLarge));
}

#[test]
fn a_body_that_no_text_file_can_hold_is_refused() {
    let deep = format!(r#"{{"v":{}"#, "[".repeat(100_000));
    for body in [deep.as_bytes(), b"{\"v\":\"\x01\"}", b"{\"v\":\"\xFF\"}"] {
        let error = Entity::from_json(body, KeyRule::InUri).expect_err("it is not a flat object");
        assert_eq!(error.code, ErrorCode::InvalidInput);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_safe(body in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = Entity::from_json(&body, KeyRule::InBody);
    }

    #[test]
    fn any_members_are_safe(members in prop::collection::vec(
        "\"(v|w|PartitionKey|odata.x|é)(@odata.type)?\":(1|1.5|-0|null|true|\"Edm.(Int32|Guid|x)\"|\"[0-9a-f-]{0,36}\")",
        0..6,
    )) {
        let body = format!("{{{}}}", members.join(","));
        let _ = Entity::from_json(body.as_bytes(), KeyRule::InBody);
        let _ = Entity::from_json(body.as_bytes(), KeyRule::InUri);
    }
}
