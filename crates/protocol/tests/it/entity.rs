//! Reading entities, as recordings of the real service and its documentation show it.

use proptest::prelude::*;
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::entity::{Entity, KeyRule};
use rangehold_protocol::table::value::Value;
use rangehold_protocol::time::parse_iso;

fn insert(body: &str) -> Result<Entity, TableError> {
    Entity::from_json(body.as_bytes(), KeyRule::InBody)
}

/// The properties of an entity with good keys and these members.
fn properties(members: &str) -> Result<Vec<(String, Value)>, TableError> {
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"r",{members}}}"#);
    insert(&body).map(|entity| entity.properties)
}

/// The value of the single property that the members make.
fn value(members: &str) -> Result<Value, TableError> {
    properties(members).map(|mut properties| {
        assert_eq!(properties.len(), 1, "{members}");
        properties.remove(0).1
    })
}

fn refused(members: &str) -> ErrorCode {
    match properties(members) {
        Err(error) => error.code,
        Ok(properties) => panic!("{members} was taken as {properties:?}"),
    }
}

fn time(text: &str) -> Value {
    Value::DateTime(parse_iso(text).expect("the test has a good date"))
}

/// A body of the Python SDK's tests. The reply of the real service shows how it was read.
#[test]
fn a_recorded_insert_is_read_as_the_service_reads_it() {
    let body = r#"{"PartitionKey": "pk", "PartitionKey@odata.type": "Edm.String", "RowKey": "rk",
        "RowKey@odata.type": "Edm.String", "age": 39, "sex": "male", "sex@odata.type": "Edm.String",
        "married": true, "ratio": 3.1, "ratio@odata.type": "Edm.Double", "evenratio": 3.0,
        "double": 5, "double@odata.type": "Edm.Double", "Birthday": "1973-10-04T00:00:00.000000Z",
        "Birthday@odata.type": "Edm.DateTime", "birthday": "1970-10-04T00:00:00.000000Z",
        "birthday@odata.type": "Edm.DateTime", "binary": "YmluYXJ5", "binary@odata.type": "Edm.Binary",
        "clsid": "C9da6455-213d-42c9-9a79-3e9149a57833", "clsid@odata.type": "Edm.Guid",
        "Timestamp": 5, "none": null, "typednone": null, "typednone@odata.type": "Edm.Int32",
        "Data1": "12345", "Data1@odata.type": "Edm.Int32", "Data1@odata.type@odata.type": "Edm.String",
        "Data2": "False", "Data2@odata.type": "Edm.Boolean", "Data8@odata.type": "Edm.Int64",
        "Data8": "1152921504606846976", "odata.etag": "W/\"x\"", "odata.metadata": "m"}"#;
    let entity = insert(body).unwrap();
    assert_eq!(entity.partition_key.as_deref(), Some("pk"));
    assert_eq!(entity.row_key.as_deref(), Some("rk"));
    let mut guid = [0; 16];
    guid.copy_from_slice(b"\xc9\xda\x64\x55\x21\x3d\x42\xc9\x9a\x79\x3e\x91\x49\xa5\x78\x33");
    let expected = [
        ("age", Value::Int32(39)),
        ("sex", Value::String("male".into())),
        ("married", Value::Boolean(true)),
        ("ratio", Value::Double(3.1)),
        ("evenratio", Value::Double(3.0)),
        ("double", Value::Double(5.0)),
        ("Birthday", time("1973-10-04")),
        ("birthday", time("1970-10-04")),
        ("binary", Value::Binary(b"binary".to_vec())),
        ("clsid", Value::Guid(guid)),
        ("Data1", Value::Int32(12345)),
        ("Data2", Value::Boolean(false)),
        ("Data8", Value::Int64(1_152_921_504_606_846_976)),
    ];
    let expected: Vec<_> = expected.map(|(name, value)| (name.to_owned(), value)).into();
    assert_eq!(entity.properties, expected);
}

#[test]
fn an_annotation_may_stand_anywhere() {
    for members in [
        r#""v@odata.type":"Edm.Int64","v":"5""#,
        r#""v":"5","v@odata.type":"Edm.Int64""#,
        r#""v":"5","n":null,"v@odata.type":"Edm.Int64""#,
        r#""n@odata.type":"Edm.Guid","v@odata.type":"Edm.Int64","n":null,"v":"5""#,
        r#""\u0076@odata.type":"Edm.Int64","v":"5""#,
        r#""v":"5","v@odata.type":"Edm.Int64","w@odata.type":"Edm.Binary""#,
    ] {
        assert_eq!(value(members), Ok(Value::Int64(5)), "{members}");
    }
}

#[test]
fn a_number_without_a_type_is_an_int32_or_a_double() {
    for (number, expected) in [
        ("2147483647", Value::Int32(i32::MAX)),
        ("-2147483648", Value::Int32(i32::MIN)),
        ("2147483648", Value::Double(2_147_483_648.0)),
        ("5454161346626", Value::Double(5_454_161_346_626.0)),
        ("9223372036854775808", Value::Double(9_223_372_036_854_775_808.0)),
        // Recorded: comes back as 9.2233720368547758E+21.
        ("9223372036854775808000", Value::Double(9.223_372_036_854_776e21)),
        ("5.0", Value::Double(5.0)),
        ("1e3", Value::Double(1000.0)),
    ] {
        assert_eq!(value(&format!(r#""v":{number}"#)), Ok(expected), "{number}");
    }
    assert_eq!(refused(r#""v":1e400"#), ErrorCode::InvalidInput);
}

#[test]
fn values_have_their_declared_types() {
    for (edm_type, json, expected) in [
        ("Int64", "5", Value::Int64(5)),
        ("Int64", r#""-9223372036854775808""#, Value::Int64(i64::MIN)),
        ("Double", r#""2.75""#, Value::Double(2.75)),
        ("Double", r#""Infinity""#, Value::Double(f64::INFINITY)),
        ("Double", r#""-Infinity""#, Value::Double(f64::NEG_INFINITY)),
        ("Boolean", r#""true""#, Value::Boolean(true)),
        ("DateTime", r#""2008-07-10T00:00:00+02:00""#, time("2008-07-09T22:00:00Z")),
        ("DateTime", r#""2008-07-10""#, time("2008-07-10T00:00:00Z")),
        ("DateTime", r#""1601-01-01T00:00:00Z""#, time("1601-01-01")),
        ("Guid", r#""{00000000-0000-0000-0000-00000000000F}""#, Value::Guid(guid_ending_in(15))),
        ("Guid", r#""00000000000000000000000000000001""#, Value::Guid(guid_ending_in(1))),
        ("Binary", r#""""#, Value::Binary(vec![])),
        ("Binary", r#""Ym lu\nYXJ5""#, Value::Binary(b"binary".to_vec())),
        ("Binary", r#""YR==""#, Value::Binary(b"a".to_vec())),
        ("String", r#""""#, Value::String(String::new())),
    ] {
        let members = format!(r#""v":{json},"v@odata.type":"Edm.{edm_type}""#);
        assert_eq!(value(&members), Ok(expected), "{members}");
    }
    let nan = value(r#""v":"NaN","v@odata.type":"Edm.Double""#);
    assert!(matches!(nan, Ok(Value::Double(v)) if v.is_nan()));
}

fn guid_ending_in(last: u8) -> [u8; 16] {
    let mut guid = [0; 16];
    guid[15] = last;
    guid
}

#[test]
fn values_that_do_not_fit_their_declared_type_are_refused() {
    for (edm_type, json) in [
        ("Int32", "3000000000"),
        ("Int32", "5.5"),
        ("Int32", r#""""#),
        ("Int32", "true"),
        // Recorded, with the text below.
        ("Int64", r#""9223372036854775808""#),
        ("Int64", "9223372036854775808"),
        ("Int64", "1.5"),
        ("Double", r#""inf""#),
        ("Double", r#""1e400""#),
        ("Double", r#""x""#),
        ("Boolean", "1"),
        ("Boolean", r#""yes""#),
        ("DateTime", r#""hello""#),
        ("DateTime", "5"),
        ("Guid", r#""hello""#),
        ("Guid", r#""c9da6455-213d-42c9-9a79-3e9149a5783g""#),
        ("Guid", r#""c9da64550213d042c909a7903e9149a57833""#),
        ("Binary", r#""YmluYXJ""#),
        ("Binary", r#""%%%%""#),
        ("String", "5"),
        ("Nonsense", "5"),
        ("Decimal", r#""5""#),
    ] {
        let members = format!(r#""v":{json},"v@odata.type":"Edm.{edm_type}""#);
        let error = properties(&members).expect_err(&members);
        assert_eq!(error.code, ErrorCode::InvalidInput, "{members}");
        assert_eq!(error.text, "An error occurred while processing this request.", "{members}");
    }
    // The first is recorded.
    for (date, written) in [
        ("0001-01-01T00:00:00Z", "01/01/0001 00:00:00"),
        ("1600-12-31T23:59:59.9999999Z", "12/31/1600 23:59:59"),
    ] {
        let members = format!(r#""when":"{date}","when@odata.type":"Edm.DateTime""#);
        let error = properties(&members).expect_err(date);
        assert_eq!(error.code, ErrorCode::OutOfRangeInput);
        assert_eq!(error.text, format!("The 'when' parameter of value '{written}' is out of range."));
    }
    for date in ["9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00"] {
        let members = format!(r#""v":"{date}","v@odata.type":"Edm.DateTime""#);
        assert_eq!(refused(&members), ErrorCode::InvalidInput, "{date}");
    }
}

#[test]
fn the_keys_of_an_insert_are_texts() {
    // Recorded: InvalidInput for every key that is not a text, with or without a declared type.
    for body in [
        r#"{"PartitionKey":"PK","RowKey":1}"#,
        r#"{"PartitionKey":"PK","RowKey":true}"#,
        r#"{"PartitionKey":"PK","RowKey":3.14,"RowKey@odata.type":"Edm.Double"}"#,
        r#"{"PartitionKey@odata.type":"Edm.DateTime","PartitionKey":"2022-04-01T09:30:45Z","RowKey":"r"}"#,
        r#"{"PartitionKey@odata.type":"Edm.Binary","PartitionKey":"YmluYXJ5ZGF0YQ==","RowKey":"r"}"#,
    ] {
        let error = insert(body).expect_err(body);
        assert_eq!(error, ErrorCode::InvalidInput.into(), "{body}");
    }
    // Recorded of {"String":"stringystring","Value":10}.
    for body in [
        r#"{"String":"stringystring","Value":10}"#,
        r#"{"PartitionKey":"p"}"#,
        r#"{"PartitionKey":"p","RowKey":null}"#,
        r#"{"PartitionKey@odata.type":"Edm.String","RowKey":"r"}"#,
    ] {
        let error = insert(body).expect_err(body);
        assert_eq!(error, ErrorCode::PropertiesNeedValue.into(), "{body}");
    }
    let error = insert(r#"{"PartitionKey":"a/b","RowKey":""}"#).unwrap_err();
    assert_eq!(error.text, "The 'PartitionKey' parameter of value 'a/b' is out of range.");
    assert!(insert(r#"{"PartitionKey":"","RowKey":""}"#).is_ok());
}

/// Recorded: the keys of the URI count, and typed keys in the body are not an error.
#[test]
fn keys_in_the_body_are_ignored_where_the_uri_has_them() {
    for body in [
        r#"{"PartitionKey":"2022-04-01T09:30:45.000000Z","PartitionKey@odata.type":"Edm.DateTime","Data":true}"#,
        r#"{"PartitionKey":5,"RowKey":null,"Data":true}"#,
        r#"{"Data":true}"#,
    ] {
        let entity = Entity::from_json(body.as_bytes(), KeyRule::InUri).unwrap();
        assert_eq!((entity.partition_key, entity.row_key), (None, None));
        assert_eq!(entity.properties, [("Data".to_owned(), Value::Boolean(true))]);
    }
}

#[test]
fn names_and_sizes_have_limits() {
    assert_eq!(refused(r#""123":456"#), ErrorCode::PropertyNameInvalid);
    assert_eq!(refused(r#""a b":1"#), ErrorCode::PropertyNameInvalid);
    assert_eq!(refused(r#""a-b":1"#), ErrorCode::PropertyNameInvalid);
    assert_eq!(refused(r#""":1"#), ErrorCode::PropertyNameInvalid);
    let long = format!(r#""{}":1"#, "a".repeat(256));
    assert_eq!(refused(&long), ErrorCode::PropertyNameTooLong);

    let count = |n: usize, value: &str| {
        let members: Vec<_> = (0..n).map(|i| format!(r#""key{i}":{value}"#)).collect();
        properties(&members.join(",")).map(|properties| properties.len()).map_err(|error| error.code)
    };
    assert_eq!(count(252, "1"), Ok(252));
    assert_eq!(count(253, "1"), Err(ErrorCode::TooManyProperties));
    assert_eq!(count(253, "null"), Ok(0));
    assert_eq!(count(100_000, "null"), Err(ErrorCode::TooManyProperties));

    let text = |units: usize| value(&format!(r#""v":"{}""#, "é".repeat(units))).map_err(|error| error.code);
    assert!(text(32 * 1024).is_ok());
    assert_eq!(text(32 * 1024 + 1), Err(ErrorCode::PropertyValueTooLarge));
    let binary = |groups: usize, rest: &str| {
        let base64 = "AAAA".repeat(groups) + rest;
        value(&format!(r#""v":"{base64}","v@odata.type":"Edm.Binary""#)).map_err(|error| error.code)
    };
    assert!(binary(21_845, "AA==").is_ok());
    assert_eq!(binary(21_845, "AAA="), Err(ErrorCode::PropertyValueTooLarge));
    // Recorded for one binary of 1 MiB.
    assert_eq!(binary(350_000, ""), Err(ErrorCode::EntityTooLarge));
}

#[test]
fn a_property_that_comes_twice_is_refused() {
    for members in
        [r#""v":1,"v":1"#, r#""v":null,"w":1,"v":1"#, r#""\u0076":1,"v":1"#, r#""PartitionKey":"p""#]
    {
        assert_eq!(refused(members), ErrorCode::DuplicatePropertiesSpecified, "{members}");
    }
    // Names are case-sensitive.
    assert!(properties(r#""v":1,"V":1"#).is_ok());
}

#[test]
fn a_body_that_is_not_a_flat_object_is_refused() {
    let deep = "[".repeat(100_000);
    for body in [
        "",
        "null",
        "5",
        "[]",
        "{",
        "{}{}",
        r#"{"v":1"#,
        r#"{"v":}"#,
        r#"{"v":1,}"#,
        r#"{v:1}"#,
        r#"{"v":{}}"#,
        r#"{"v":[1]}"#,
        r#"{"odata.x":{}}"#,
        r#"{"v":"\ud800"}"#,
        "{\"v\":\"\u{1}\"}",
        r#"{"v":1,"v@odata.type":5}"#,
        r#"{"v":"1","v@odata.type":"Edm.Int32","v@odata.type":"Edm.Int32"}"#,
        &format!(r#"{{"v":{deep}"#),
    ] {
        let error = Entity::from_json(body.as_bytes(), KeyRule::InUri).expect_err(body);
        assert_eq!(error.code, ErrorCode::InvalidInput, "{body:.40}");
    }
    assert!(Entity::from_json(b"{\"v\":\"\xFF\"}", KeyRule::InUri).is_err());
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
