//! Replies, byte for byte as recordings of the real service show them, except for line breaks.

use proptest::prelude::*;
use rangehold_map::Timestamp;
use rangehold_protocol::table::entity::{Entity, KeyRule};
use rangehold_protocol::table::format::MetadataLevel;
use rangehold_protocol::table::render::{EntityWriter, TableWriter};
use rangehold_protocol::table::row::{self, RowView};
use rangehold_protocol::table::select::Select;
use rangehold_protocol::table::value::Value;
use rangehold_protocol::time::parse_iso;

const BASE: &str = "https://fakeendpoint.table.core.windows.net";

/// The entity of the recordings of the Python SDK's tests.
const BODY: &str = r#"{"PartitionKey":"pk","RowKey":"rk","age":39,"sex":"male","married":true,"deceased":false,
    "ratio":3.1,"evenratio":3.0,"double":5,"double@odata.type":"Edm.Double","large":933311100,
    "Birthday":"1973-10-04T00:00:00.000000Z","Birthday@odata.type":"Edm.DateTime","binary":"YmluYXJ5",
    "binary@odata.type":"Edm.Binary","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833",
    "clsid@odata.type":"Edm.Guid","long":"1152921504606846976","long@odata.type":"Edm.Int64",
    "nan":"NaN","nan@odata.type":"Edm.Double","low":"-Infinity","low@odata.type":"Edm.Double",
    "high":"Infinity","high@odata.type":"Edm.Double"}"#;

fn stored(body: &str, time: &str) -> Vec<u8> {
    let entity = Entity::from_json(body.as_bytes(), KeyRule::InBody).expect("the test's body is good");
    let time = parse_iso(time).expect("the test's time is good");
    encode(time, &entity.properties)
}

fn encode(time: Timestamp, properties: &[(String, Value)]) -> Vec<u8> {
    row::encode(time, properties.iter().map(|(name, value)| (name.as_str(), value.as_ref())))
}

fn writer(level: MetadataLevel, select: Option<&Select>) -> EntityWriter<'_> {
    EntityWriter { base: BASE, account: "acct", table: "mytable", level, select }
}

fn one(writer: EntityWriter<'_>, row: &[u8]) -> String {
    let mut out = Vec::new();
    let row = RowView::new(row).expect("the test's row is good");
    writer.one(&mut out, "pk", "rk", &row).expect("the test's row is good");
    String::from_utf8(out).expect("a reply is UTF-8")
}

/// Joins the lines of a reply that is broken into lines here for reading.
fn joined(lines: &str) -> String {
    lines.lines().map(str::trim_start).collect()
}

const PLAIN: &str = r#""age":39,"sex":"male","married":true,"deceased":false,"ratio":3.1,"evenratio":3.0,"double":5.0,
    "large":933311100,"#;
const TYPED: &str = r#""Birthday@odata.type":"Edm.DateTime","Birthday":"1973-10-04T00:00:00Z",
    "binary@odata.type":"Edm.Binary","binary":"YmluYXJ5",
    "clsid@odata.type":"Edm.Guid","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833",
    "long@odata.type":"Edm.Int64","long":"1152921504606846976",
    "nan@odata.type":"Edm.Double","nan":"NaN","low@odata.type":"Edm.Double","low":"-Infinity",
    "high@odata.type":"Edm.Double","high":"Infinity""#;
const ETAG: &str = r#""odata.etag":"W/\"datetime'2021-12-09T01%3A10%3A50.507143Z'\"","#;

#[test]
fn an_entity_is_written_at_each_level() {
    let row = stored(BODY, "2021-12-09T01:10:50.507143Z");
    let full = format!(
        r#"{{"odata.metadata":"{BASE}/$metadata#mytable/@Element","odata.type":"acct.mytable",
        "odata.id":"{BASE}/mytable(PartitionKey='pk',RowKey='rk')",{ETAG}
        "odata.editLink":"mytable(PartitionKey='pk',RowKey='rk')","PartitionKey":"pk","RowKey":"rk",
        "Timestamp@odata.type":"Edm.DateTime","Timestamp":"2021-12-09T01:10:50.507143Z",{PLAIN}{TYPED}}}"#
    );
    assert_eq!(one(writer(MetadataLevel::Full, None), &row), joined(&full));
    let minimal = format!(
        r#"{{"odata.metadata":"{BASE}/$metadata#mytable/@Element",{ETAG}"PartitionKey":"pk","RowKey":"rk",
        "Timestamp":"2021-12-09T01:10:50.507143Z",{PLAIN}{TYPED}}}"#
    );
    assert_eq!(one(writer(MetadataLevel::Minimal, None), &row), joined(&minimal));
    let none = format!(
        r#"{{"PartitionKey":"pk","RowKey":"rk","Timestamp":"2021-12-09T01:10:50.507143Z",{PLAIN}
        "Birthday":"1973-10-04T00:00:00Z","binary":"YmluYXJ5","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833",
        "long":"1152921504606846976","nan":"NaN","low":"-Infinity","high":"Infinity"}}"#
    );
    assert_eq!(one(writer(MetadataLevel::None, None), &row), joined(&none));
}

/// Recorded: a missing property is null, without a type.
#[test]
fn selected_properties_are_written_and_missing_ones_are_null() {
    let row = stored(BODY, "2021-12-09T01:10:50.507143Z");
    let select = Select::parse("long,sex,xyz").unwrap();
    let minimal = format!(
        r#"{{"odata.metadata":"{BASE}/$metadata#mytable/@Element&$select=long,sex,xyz",{ETAG}
        "long@odata.type":"Edm.Int64","long":"1152921504606846976","sex":"male","xyz":null}}"#
    );
    assert_eq!(one(writer(MetadataLevel::Minimal, select.as_ref()), &row), joined(&minimal));
    let select = Select::parse("Timestamp").unwrap();
    let minimal = format!(
        r#"{{"odata.metadata":"{BASE}/$metadata#mytable/@Element&$select=Timestamp",{ETAG}
        "Timestamp":"2021-12-09T01:10:50.507143Z"}}"#
    );
    assert_eq!(one(writer(MetadataLevel::Minimal, select.as_ref()), &row), joined(&minimal));
    let select = Select::parse("RowKey,xyz,PartitionKey").unwrap();
    let none = r#"{"RowKey":"rk","xyz":null,"PartitionKey":"pk"}"#;
    assert_eq!(one(writer(MetadataLevel::None, select.as_ref()), &row), none);
}

#[test]
fn pages_are_as_recorded() {
    let row = stored(r#"{"PartitionKey":"pk","RowKey":"a\"b","v":1}"#, "2021-12-09T01:10:50.507143Z");
    let row = RowView::new(&row).unwrap();
    let page = |level, count: usize, select: Option<&Select>| {
        let mut out = Vec::new();
        let mut writer = writer(level, select).page(&mut out);
        for _ in 0..count {
            writer.item(&mut out, "pk", "a\"b", &row).unwrap();
        }
        writer.end(&mut out);
        String::from_utf8(out).unwrap()
    };
    let empty = format!(r#"{{"odata.metadata":"{BASE}/$metadata#mytable","value":[]}}"#);
    assert_eq!(page(MetadataLevel::Full, 0, None), empty);
    assert_eq!(page(MetadataLevel::None, 0, None), r#"{"value":[]}"#);
    let item = r#"{"PartitionKey":"pk","RowKey":"a\"b","Timestamp":"2021-12-09T01:10:50.507143Z","v":1}"#;
    assert_eq!(page(MetadataLevel::None, 2, None), format!(r#"{{"value":[{item},{item}]}}"#));
    let full = format!(
        r#"{{"odata.metadata":"{BASE}/$metadata#mytable","value":[{{"odata.type":"acct.mytable",
        "odata.id":"{BASE}/mytable(PartitionKey='pk',RowKey='a%22b')",{ETAG}
        "odata.editLink":"mytable(PartitionKey='pk',RowKey='a%22b')","PartitionKey":"pk","RowKey":"a\"b",
        "Timestamp@odata.type":"Edm.DateTime","Timestamp":"2021-12-09T01:10:50.507143Z","v":1}}]}}"#
    );
    assert_eq!(page(MetadataLevel::Full, 1, None), joined(&full));
    let select = Select::parse("v,w").unwrap();
    let selected = format!(
        r#"{{"odata.metadata":"{BASE}/$metadata#mytable&$select=v,w","value":[{{{ETAG}"v":1,"w":null}}]}}"#
    );
    assert_eq!(page(MetadataLevel::Minimal, 1, select.as_ref()), selected);
}

#[test]
fn tables_are_as_recorded() {
    let writer = |level| TableWriter { base: BASE, account: "acct", level };
    let one = |level| {
        let mut out = Vec::new();
        writer(level).one(&mut out, "x");
        String::from_utf8(out).unwrap()
    };
    let page = |level| {
        let mut out = Vec::new();
        writer(level).page_begin(&mut out);
        writer(level).page_item(&mut out, true, "x");
        writer(level).page_item(&mut out, false, "y");
        writer(level).page_end(&mut out);
        String::from_utf8(out).unwrap()
    };
    let minimal = format!(r#"{{"odata.metadata":"{BASE}/$metadata#Tables/@Element","TableName":"x"}}"#);
    assert_eq!(one(MetadataLevel::Minimal), minimal);
    assert_eq!(one(MetadataLevel::None), r#"{"TableName":"x"}"#);
    let full = format!(
        r#"{{"odata.metadata":"{BASE}/$metadata#Tables/@Element","odata.type":"acct.Tables",
        "odata.id":"{BASE}/Tables('x')","odata.editLink":"Tables('x')","TableName":"x"}}"#
    );
    assert_eq!(one(MetadataLevel::Full), joined(&full));
    let minimal = format!(
        r#"{{"odata.metadata":"{BASE}/$metadata#Tables","value":[{{"TableName":"x"}},{{"TableName":"y"}}]}}"#
    );
    assert_eq!(page(MetadataLevel::Minimal), minimal);
    assert_eq!(page(MetadataLevel::None), r#"{"value":[{"TableName":"x"},{"TableName":"y"}]}"#);
}

#[test]
fn a_damaged_row_is_an_error() {
    let mut row = stored(r#"{"PartitionKey":"pk","RowKey":"rk","v":1}"#, "2021-12-09");
    let type_at = 11 + 4;
    row[type_at] = 99;
    let row = RowView::new(&row).unwrap();
    assert!(writer(MetadataLevel::None, None).one(&mut Vec::new(), "", "", &row).is_err());
}

fn any_value() -> impl Strategy<Value = Value> {
    let date_times = Timestamp::MIN_DATE_TIME.ticks()..=Timestamp::MAX_DATE_TIME.ticks();
    prop_oneof![
        any::<String>().prop_map(Value::String),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Binary),
        any::<bool>().prop_map(Value::Boolean),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        any::<u64>()
            .prop_map(f64::from_bits)
            .prop_filter("NaN is unequal to itself", |v| !v.is_nan())
            .prop_map(Value::Double),
        date_times.prop_map(|ticks| Value::DateTime(Timestamp::from_ticks(ticks))),
        any::<[u8; 16]>().prop_map(Value::Guid),
    ]
}

proptest! {
    /// A page remembers how the members of its last entity began, so entities with other names and types follow each other here.
    #[test]
    fn a_page_shows_each_entity_as_it_is_shown_alone(
        entities in prop::collection::vec(
            prop::collection::vec(("[abé]{0,2}", any_value()), 0..5),
            1..6,
        ),
        level in prop::sample::select(vec![MetadataLevel::None, MetadataLevel::Minimal, MetadataLevel::Full]),
    ) {
        let mut out = Vec::new();
        let mut page = writer(level, None).page(&mut out);
        let begin = out.len();
        let mut alone = Vec::new();
        for properties in &entities {
            let bytes = encode(Timestamp::from_ticks(0), properties);
            let row = RowView::new(&bytes).unwrap();
            page.item(&mut out, "pk", "rk", &row).unwrap();
            let text = one(writer(level, None), &bytes);
            // What stands for the whole reply is before the first entity of a page.
            let own = text.find("\"odata.type\"").or(text.find("\"odata.etag\"")).unwrap_or(1);
            let own = if level == MetadataLevel::None { 1 } else { own };
            alone.push(format!("{{{}", &text[own..]));
        }
        prop_assert_eq!(String::from_utf8(out[begin..].to_vec()).unwrap(), alone.join(","));
    }

    /// A client that sends back what it read stores the same entity.
    #[test]
    fn a_reply_is_read_as_the_entity_it_shows(
        properties in prop::collection::btree_map("[a-zé_][a-z0-9_]{0,8}", any_value(), 0..8),
        partition_key in "[^/\\\\#?\\pC]{0,8}",
        row_key in "[^/\\\\#?\\pC]{0,8}",
        full: bool,
    ) {
        let properties: Vec<_> = properties.into_iter().collect();
        let bytes = encode(Timestamp::from_ticks(0), &properties);
        let row = RowView::new(&bytes).unwrap();
        let level = if full { MetadataLevel::Full } else { MetadataLevel::Minimal };
        let mut out = Vec::new();
        writer(level, None).one(&mut out, &partition_key, &row_key, &row).unwrap();
        let read = Entity::from_json(&out, KeyRule::InBody).unwrap();
        prop_assert_eq!(read.partition_key, Some(partition_key));
        prop_assert_eq!(read.row_key, Some(row_key));
        prop_assert_eq!(read.properties, properties);
    }
}
