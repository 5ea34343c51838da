//! Filters by example: a golden file of texts and answers, and a test for each rule of the real service.

use rangehold_map::{PartitionPrefix, TableId, Timestamp};
use rangehold_protocol::error::ErrorCode;
use rangehold_protocol::table::filter::{Filter, Subject};
use rangehold_protocol::table::key_bounds::{KeyBounds, KeyEdge};
use rangehold_protocol::table::limits::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX};
use rangehold_protocol::table::row::{self, RowView};
use rangehold_protocol::table::value::{Value, ValueRef};
use rangehold_protocol::time::parse_iso;

use crate::golden;

fn filter(text: &str) -> Filter {
    Filter::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).expect("not blank")
}

/// The answer to a text of the golden file is the filter printed, or the error.
#[test]
fn the_golden_file_holds() {
    golden::holds(include_str!("../golden/filter.txt"), |text| match Filter::parse(text) {
        Ok(Some(filter)) => filter.to_string(),
        Ok(None) => "no filter".to_owned(),
        Err(error) => format!("{} {}", error.code.status(), error),
    });
}

/// The names of those `rows` that match. Every row has PartitionKey `p`, and its name as RowKey.
fn found<'a>(text: &str, rows: &[(&'a str, &[(&str, Value)])]) -> Vec<&'a str> {
    let filter = filter(text);
    let is_match = |row_key: &str, properties: &[(&str, Value)]| {
        let time = Timestamp::from_unix_seconds(1_000_000_000);
        let bytes = row::encode(time, properties.iter().map(|(name, value)| (*name, value.as_ref())));
        let row = RowView::new(&bytes).expect("just encoded");
        filter.matches(&Subject { partition_key: "p", row_key, row: &row }).expect("not damaged")
    };
    rows.iter().filter(|(name, properties)| is_match(name, properties)).map(|(name, _)| *name).collect()
}

const TYPES: [&str; 8] = ["bool", "bin", "date", "double", "guid", "i32", "i64", "str"];

/// The types whose entity matches. There is one entity for each type, with the property `v` of that type,
/// and one without `v`.
fn found_of_each_type(text: &str) -> Vec<&'static str> {
    let values = [
        Value::Boolean(true),
        Value::Binary(vec![1]),
        Value::DateTime(parse_iso("2020-01-01").expect("a date")),
        Value::Double(5.0),
        Value::Guid([1; 16]),
        Value::Int32(5),
        Value::Int64(5),
        Value::String("5".to_owned()),
    ];
    let properties = values.map(|value| [("v", value)]);
    let mut rows: Vec<(_, &[_])> = std::iter::zip(TYPES, properties.iter().map(<[_; 1]>::as_slice)).collect();
    rows.push(("none", &[]));
    found(text, &rows)
}

fn all_types_but(these: &[&str]) -> Vec<&'static str> {
    TYPES.into_iter().filter(|name| !these.contains(name)).collect()
}

// Filters that Azurite answers wrongly.

#[test]
fn int64_literal_over_mixed_types_is_answered() {
    assert_eq!(found_of_each_type("v eq 5L"), ["double", "i64"]);
}

#[test]
fn guid_and_binary_literals_equal_their_types_only() {
    assert_eq!(found_of_each_type("v eq guid'01010101-0101-0101-0101-010101010101'"), ["guid"]);
    assert_eq!(found_of_each_type("v eq X'01'"), ["bin"]);
    assert_eq!(found_of_each_type("v eq binary'01'"), ["bin"]);
}

#[test]
fn nothing_of_another_type_is_greater() {
    assert_eq!(found_of_each_type("v gt 4"), ["double", "i32", "i64"]);
    assert_eq!(found_of_each_type("v gt ''"), ["str"]);
    assert_eq!(found_of_each_type("v lt datetime'2019-01-01T00:00:00Z'"), all_types_but(&["date"]));
}

#[test]
fn not_equal_leaves_out_equal_numbers_of_each_width() {
    assert_eq!(found_of_each_type("v ne 5"), all_types_but(&["double", "i32", "i64"]));
}

#[test]
fn bare_property_matches_true_only() {
    assert_eq!(found_of_each_type("v"), ["bool"]);
}

#[test]
fn null_is_refused() {
    let error = Filter::parse("v eq null").expect_err("the service refuses it");
    assert_eq!(error.code, ErrorCode::InvalidInput);
    assert_eq!(error.text, "One of the request inputs is not valid.");
}

// Rules of the real service.

/// Each type of constant against each type of property, with all six operators: the answers of the real
/// service. Where the types can be compared, both sides are the same number or value.
#[test]
fn other_types_are_less_and_only_integer_literals_are_widened() {
    let constants = [
        ("true", vec!["bool"]),
        ("X'01'", vec!["bin"]),
        ("datetime'2020-01-01T00:00:00Z'", vec!["date"]),
        ("datetimeoffset'2020-01-01T01:00:00+01:00'", vec!["date"]),
        ("5D", vec!["double"]),
        ("guid'01010101-0101-0101-0101-010101010101'", vec!["guid"]),
        ("5", vec!["double", "i32", "i64"]),
        ("5L", vec!["double", "i64"]),
        ("'5'", vec!["str"]),
    ];
    for (constant, equal) in constants {
        let less = all_types_but(&equal);
        let answers = [
            ("eq", &equal),
            ("ne", &less),
            ("lt", &less),
            ("le", &TYPES.to_vec()),
            ("gt", &vec![]),
            ("ge", &equal),
        ];
        for (operator, expected) in answers {
            let text = format!("v {operator} {constant}");
            assert_eq!(found_of_each_type(&text), *expected, "{text}");
        }
    }
}

#[test]
fn missing_property_fails_every_comparison_and_passes_its_negation() {
    for operator in ["eq", "ne", "gt", "ge", "lt", "le"] {
        assert_eq!(found(&format!("w {operator} ''"), &[("none", &[])]), Vec::<&str>::new());
        assert_eq!(found(&format!("not (w {operator} '')"), &[("none", &[])]), ["none"]);
    }
}

#[test]
fn timestamp_is_a_property() {
    assert_eq!(found("Timestamp gt datetime'2001-09-09T01:46:39.9999999Z'", &[("r", &[])]), ["r"]);
    assert_eq!(found("Timestamp gt datetime'2001-09-09T01:46:40Z'", &[("r", &[])]), Vec::<&str>::new());
    assert_eq!(found("Timestamp eq datetime'2001-09-09T03:46:40+02:00'", &[("r", &[])]), ["r"]);
}

#[test]
fn names_are_case_sensitive() {
    assert_eq!(found("rowkey eq 'r'", &[("r", &[])]), Vec::<&str>::new());
    assert_eq!(found("V eq 1", &[("r", &[("v", Value::Int32(1))])]), Vec::<&str>::new());
}

#[test]
fn a_damaged_row_is_an_error() {
    let mut bytes = row::encode(Timestamp::default(), [("v", ValueRef::Boolean(true))].into_iter());
    bytes[15] = 99; // the number of the type
    let row = RowView::new(&bytes).expect("the frame is right");
    let subject = Subject { partition_key: "p", row_key: "r", row: &row };
    assert!(filter("v eq 1").matches(&subject).is_err());
    assert!(filter("v").matches(&subject).is_err());
    assert_eq!(filter("RowKey eq 'r' or v").matches(&subject), Ok(true));
}

#[test]
fn tables_are_filtered_by_their_name() {
    assert!(filter("TableName eq 'people'").matches_table("people"));
    assert!(!filter("TableName eq 'people'").matches_table("People"));
    assert!(filter("TableName ge 'pe' and TableName lt 'pf'").matches_table("people"));
    assert!(!filter("PartitionKey ne 'x' or Timestamp gt datetime'1999-01-01' or v").matches_table("people"));
    assert_eq!(filter("true and TableName eq 'people'").only_table(), Some("people"));
    assert_eq!(filter("TableName eq 'a' or TableName eq 'b'").only_table(), None);
    assert_eq!(filter("TableName ge 'a'").only_table(), None);
}

// Limits.

#[test]
fn a_chain_of_a_thousand_is_flat_however_it_is_nested() {
    let flat = (0..1000).map(|n| format!("v eq {n}")).collect::<Vec<_>>().join(" or ");
    let left = (1..1000).fold("v eq 0".to_owned(), |text, n| format!("({text}) or (v eq {n})"));
    let right = (0..999).rev().fold("v eq 999".to_owned(), |text, n| format!("v eq {n} or ({text})"));
    let flat = filter(&flat);
    assert_eq!(filter(&left), flat);
    assert_eq!(filter(&right), flat);
    assert_eq!(filter(&flat.to_string()), flat);
    assert_eq!(found("v eq 999", &[("r", &[("v", Value::Int32(999))])]), ["r"]);
}

#[test]
fn parentheses_do_not_count_as_depth() {
    let text = format!("{}true{}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(filter(&text), filter("true"));
}

#[test]
fn depth_is_limited() {
    let nested = |depth: usize| format!("{}true", "not ".repeat(depth));
    assert!(Filter::parse(&nested(FILTER_DEPTH_MAX)).is_ok());
    let error = Filter::parse(&nested(FILTER_DEPTH_MAX + 1)).expect_err("too deep");
    assert_eq!(error.code, ErrorCode::InvalidInput);
    assert!(error.text.starts_with("Recursion depth exceeded allowed limit."), "{}", error.text);
    let error = Filter::parse(&nested(5_000)).expect_err("far too deep");
    assert!(error.text.starts_with("Recursion depth exceeded allowed limit."), "{}", error.text);
    let alternating = (0..FILTER_DEPTH_MAX).fold("true".to_owned(), |text, n| {
        format!("({text}) {} false", if n % 2 == 0 { "and" } else { "or" })
    });
    assert!(Filter::parse(&alternating).is_ok());
    assert!(Filter::parse(&format!("({alternating}) and not ({alternating})")).is_err());
}

#[test]
fn nodes_and_bytes_are_limited() {
    let many = vec!["true"; 1_500].join(" or ");
    assert!(Filter::parse(&many).expect_err("too many").text.contains("more than 1024 conditions"));
    let long = format!("v eq '{}'", "x".repeat(FILTER_BYTES_MAX));
    assert!(Filter::parse(&long).expect_err("too long").text.contains("at most 24576"));
}

// Bounds.

#[track_caller]
fn assert_bounds(text: &str, low: KeyEdge, high: KeyEdge) {
    assert_eq!(filter(text).bounds(), KeyBounds { low, high }, "{text}");
}

#[test]
fn bounds_are_tight() {
    use KeyEdge as E;
    assert_bounds(
        "PartitionKey eq 'a' and RowKey ge 'b' and RowKey lt 'c'",
        E::before_row("a", "b"),
        E::before_row("a", "c"),
    );
    assert_bounds("PartitionKey eq 'a'", E::before_partition("a"), E::after_partition("a"));
    assert_bounds("PartitionKey eq 'a' and v eq 1", E::before_partition("a"), E::after_partition("a"));
    assert_bounds(
        "'a' lt PartitionKey and PartitionKey le 'c'",
        E::after_partition("a"),
        E::after_partition("c"),
    );
    assert_bounds("PartitionKey ge 'a' and RowKey ge 'b'", E::before_row("a", "b"), E::end());
    assert_bounds("PartitionKey le 'a' and RowKey lt 'b'", E::start(), E::before_row("a", "b"));
    assert_bounds(
        "PartitionKey eq 'a' and (RowKey eq '5' or RowKey eq '1')",
        E::before_row("a", "1"),
        E::after_row("a", "5"),
    );
    assert_bounds(
        "(PartitionKey eq 'a' and RowKey eq '9') or (PartitionKey eq 'b' and RowKey eq '1')",
        E::before_row("a", "9"),
        E::after_row("b", "1"),
    );
    assert_bounds(
        "not (PartitionKey lt 'a' or PartitionKey gt 'b')",
        E::before_partition("a"),
        E::after_partition("b"),
    );
    assert_bounds(
        "not (PartitionKey ne 'a' or not (RowKey eq 'r'))",
        E::before_row("a", "r"),
        E::after_row("a", "r"),
    );
    assert_bounds(
        "(PartitionKey eq 'a' and false) or PartitionKey eq 'b'",
        E::before_partition("b"),
        E::after_partition("b"),
    );
    for whole in
        ["v eq 1", "PartitionKey ne 'a'", "PartitionKey eq 'a' or v eq 1", "RowKey eq 'a'", "true", "not v"]
    {
        assert_eq!(filter(whole).bounds(), KeyBounds::all(), "{whole}");
    }
    for nothing in [
        "false",
        "not true",
        "PartitionKey eq 'a' and PartitionKey eq 'b'",
        "RowKey gt 'b' and RowKey lt 'b'",
        "PartitionKey eq 'a' and v eq 1 and not (PartitionKey le 'a')",
    ] {
        let bounds = filter(nothing).bounds();
        assert!(
            bounds.is_empty() && bounds.to_range("account", TableId(1)).is_empty(),
            "{nothing}: {bounds:?}"
        );
    }
}

#[test]
fn edges_have_the_order_of_keys() {
    let key = |p: &str, r: &str| PartitionPrefix::entity("account", TableId(1), p).key(r);
    let range = |low, high| KeyBounds { low, high }.to_range("account", TableId(1));
    let below = |edge: &KeyEdge| range(KeyEdge::start(), edge.clone());
    // In the order of the keys. Wrong orders usually differ at NUL, or between U+10000 and U+FFFF.
    let keys = [
        ("", ""),
        ("", "\0"),
        ("", "a"),
        ("a", ""),
        ("a", "b"),
        ("a", "b\0"),
        ("a", "\u{10000}"),
        ("a", "\u{ffff}"),
        ("a\0", ""),
        ("a\u{10000}", ""),
        ("a\u{ffff}", ""),
        ("b", ""),
    ];
    for (at, (p, r)) in keys.iter().enumerate() {
        for (other, (op, or)) in keys.iter().enumerate() {
            let key = key(op, or);
            assert_eq!(
                below(&KeyEdge::before_row(p, r)).contains(&key),
                other < at,
                "{op:?} {or:?} before {p:?} {r:?}"
            );
            assert_eq!(
                below(&KeyEdge::after_row(p, r)).contains(&key),
                other <= at,
                "{op:?} {or:?} to {p:?} {r:?}"
            );
            let whole = range(KeyEdge::before_partition(p), KeyEdge::after_partition(p));
            assert_eq!(whole.contains(&key), op == p, "{op:?} {or:?} in {p:?}");
            assert_eq!(KeyBounds::row(p, r).to_range("account", TableId(1)).contains(&key), other == at);
        }
    }
    let all = KeyBounds::all().to_range("account", TableId(1));
    assert!(all.contains(&key("", "")) && all.contains(&key("\u{ffff}", "\u{ffff}")));
    let next_table = PartitionPrefix::entity("account", TableId(2), "").key("");
    assert!(!all.contains(&next_table));
}
