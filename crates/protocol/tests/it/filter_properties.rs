//! Filters against a second, independent evaluator: simple recursion over a map of properties.
//!
//! Texts come from a small alphabet that has the characters at which wrong orders differ (U+10000 sorts
//! before U+FFFF, and NUL is escaped in stored keys), and includes the empty text.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rangehold_map::{PartitionPrefix, TableId, Timestamp};
use rangehold_protocol::table::filter::{Filter, Subject};
use rangehold_protocol::table::row::{self, RowView};
use rangehold_protocol::table::value::Value;

#[derive(Debug, Clone)]
enum Node {
    Always(bool),
    Flag(&'static str),
    Compare {
        name: &'static str,
        operator: &'static str,
        literal: Value,
        mirrored: bool,
    },
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    /// Parentheses that do not change the meaning.
    Within(Box<Node>),
}

type Properties = BTreeMap<&'static str, Value>;

const OPERATORS: [&str; 6] = ["eq", "ne", "gt", "ge", "lt", "le"];

fn mirror(operator: &str) -> &str {
    match operator {
        "gt" => "lt",
        "ge" => "le",
        "lt" => "gt",
        "le" => "ge",
        same => same,
    }
}

fn literal_text(value: &Value) -> String {
    match value {
        Value::String(s) => format!("'{}'", s.replace('\'', "''")),
        Value::Boolean(b) => b.to_string(),
        Value::Int32(n) => n.to_string(),
        Value::Int64(n) => format!("{n}L"),
        Value::Double(n) if n.is_nan() => "NaN".to_owned(),
        Value::Double(n) if n.is_infinite() => if *n > 0.0 { "INF" } else { "-INF" }.to_owned(),
        Value::Double(n) => format!("{n:?}"),
        Value::DateTime(t) => format!("datetime'{}'", rangehold_protocol::time::iso7(*t)),
        Value::Guid(g) => format!("guid'{}'", hex(g)),
        Value::Binary(b) => format!("binary'{}'", hex(b)),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

impl Node {
    fn strength(&self) -> u8 {
        match self {
            Self::Or(..) => 0,
            Self::And(..) => 1,
            _ => 2,
        }
    }

    fn text(&self) -> String {
        let inside = |node: &Self, least: u8| {
            if node.strength() < least { format!("({})", node.text()) } else { node.text() }
        };
        match self {
            Self::Always(b) => b.to_string(),
            Self::Flag(name) => (*name).to_owned(),
            Self::Compare { name, operator, literal, mirrored: false } => {
                format!("{name} {operator} {}", literal_text(literal))
            }
            Self::Compare { name, operator, literal, mirrored: true } => {
                format!("{}\t{}  {name} ", literal_text(literal), mirror(operator))
            }
            Self::Not(inner) => format!("not({})", inner.text()),
            Self::And(a, b) => format!("{} and {}", inside(a, 1), inside(b, 1)),
            Self::Or(a, b) => format!("{} or {}", inside(a, 0), inside(b, 0)),
            Self::Within(inner) => format!("( {} )", inner.text()),
        }
    }

    fn holds(&self, properties: &Properties) -> bool {
        match self {
            Self::Always(b) => *b,
            Self::Flag(name) => properties.get(name) == Some(&Value::Boolean(true)),
            Self::Compare { name, operator, literal, .. } => {
                properties.get(name).is_some_and(|value| stands(value, operator, literal))
            }
            Self::Not(inner) => !inner.holds(properties),
            Self::And(a, b) => a.holds(properties) && b.holds(properties),
            Self::Or(a, b) => a.holds(properties) || b.holds(properties),
            Self::Within(inner) => inner.holds(properties),
        }
    }
}

/// The six operators as Rust's own, on a type to which both sides can be converted.
fn stands(value: &Value, operator: &str, literal: &Value) -> bool {
    fn by<T: PartialOrd>(a: T, operator: &str, b: T) -> bool {
        match operator {
            "eq" => a == b,
            "ne" => a != b,
            "gt" => a > b,
            "ge" => a >= b,
            "lt" => a < b,
            "le" => a <= b,
            _ => unreachable!(),
        }
    }
    let units = |s: &str| s.encode_utf16().collect::<Vec<_>>();
    match (value, literal) {
        (Value::String(a), Value::String(b)) => by(units(a), operator, units(b)),
        (Value::Binary(a), Value::Binary(b)) => by(a, operator, b),
        (Value::Boolean(a), Value::Boolean(b)) => by(a, operator, b),
        (Value::Int32(a), Value::Int32(b)) => by(a, operator, b),
        (Value::Int64(a), Value::Int64(b)) => by(a, operator, b),
        (Value::Int64(a), Value::Int32(b)) => by(*a, operator, (*b).into()),
        (Value::Double(a), Value::Double(b)) => by(a, operator, b),
        (Value::Double(a), Value::Int32(b)) => by(*a, operator, (*b).into()),
        (Value::Double(a), Value::Int64(b)) => by(*a, operator, *b as f64),
        (Value::DateTime(a), Value::DateTime(b)) => by(a, operator, b),
        (Value::Guid(a), Value::Guid(b)) => by(hex(a), operator, hex(b)),
        // Another type is less.
        _ => by(0, operator, 1),
    }
}

fn text() -> impl Strategy<Value = String> {
    "[ab'\u{0}\u{e000}\u{ffff}\u{10000}]{0,2}"
}

fn date_time() -> impl Strategy<Value = Value> {
    (-2i64..3).prop_map(|n| Value::DateTime(Timestamp::from_ticks(n * 3_000_000_007)))
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(Value::String),
        any::<bool>().prop_map(Value::Boolean),
        prop_oneof![-2i32..3, Just(i32::MIN), Just(i32::MAX)].prop_map(Value::Int32),
        prop_oneof![-2i64..3, Just(i64::MIN), Just(i64::MAX)].prop_map(Value::Int64),
        prop_oneof![(-2i32..3).prop_map(f64::from), any::<f64>(), Just(-0.0), Just(f64::NAN)]
            .prop_map(Value::Double),
        date_time(),
        (0u8..2, 0u8..3).prop_map(|(first, last)| {
            let mut guid = [0; 16];
            (guid[0], guid[15]) = (first * 0x90, last);
            Value::Guid(guid)
        }),
        proptest::collection::vec(0u8..2, 0..3).prop_map(Value::Binary),
    ]
}

fn comparison() -> impl Strategy<Value = Node> {
    let sides = prop_oneof![
        3 => (Just("PartitionKey"), text().prop_map(Value::String)),
        3 => (Just("RowKey"), text().prop_map(Value::String)),
        1 => (Just("Timestamp"), date_time()),
        3 => (prop_oneof![Just("P"), Just("Q_1"), Just("$é"), Just("TableName")], value()),
    ];
    (sides, 0..6usize, any::<bool>()).prop_map(|((name, literal), operator, mirrored)| Node::Compare {
        name,
        operator: OPERATORS[operator],
        literal,
        mirrored,
    })
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        8 => comparison(),
        1 => prop_oneof![Just("P"), Just("Q_1")].prop_map(Node::Flag),
        1 => any::<bool>().prop_map(Node::Always),
    ];
    leaf.prop_recursive(6, 40, 2, |inner| {
        let pair = (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            3 => pair.clone().prop_map(|(a, b)| Node::And(a, b)),
            3 => pair.prop_map(|(a, b)| Node::Or(a, b)),
            1 => inner.clone().prop_map(|a| Node::Not(Box::new(a))),
            1 => inner.prop_map(|a| Node::Within(Box::new(a))),
        ]
    })
}

fn entity() -> impl Strategy<Value = Properties> {
    let own = proptest::collection::btree_map(
        prop_oneof![Just("P"), Just("Q_1"), Just("$é"), Just("TableName")],
        value(),
        0..4,
    );
    (own, text(), text(), date_time()).prop_map(|(mut all, partition_key, row_key, timestamp)| {
        all.insert("PartitionKey", Value::String(partition_key));
        all.insert("RowKey", Value::String(row_key));
        all.insert("Timestamp", timestamp);
        all
    })
}

fn parsed(text: &str) -> Filter {
    Filter::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).expect("not blank")
}

/// The PartitionKey and RowKey of an entity.
fn keys(properties: &Properties) -> (&str, &str) {
    match (&properties["PartitionKey"], &properties["RowKey"]) {
        (Value::String(partition_key), Value::String(row_key)) => (partition_key, row_key),
        _ => unreachable!(),
    }
}

fn matches(filter: &Filter, properties: &Properties) -> bool {
    let (partition_key, row_key) = keys(properties);
    let Value::DateTime(timestamp) = properties["Timestamp"] else { unreachable!() };
    let own: Vec<_> = properties
        .iter()
        .filter(|(name, _)| !["PartitionKey", "RowKey", "Timestamp"].contains(name))
        .map(|(name, value)| (*name, value.as_ref()))
        .collect();
    let bytes = row::encode(timestamp, own.into_iter());
    let row = RowView::new(&bytes).expect("just encoded");
    filter.matches(&Subject { partition_key, row_key, row: &row }).expect("not damaged")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn print_then_parse_is_the_same_filter(node in node()) {
        let filter = parsed(&node.text());
        prop_assert_eq!(&parsed(&filter.to_string()), &filter, "{}", filter);
    }

    #[test]
    fn matches_what_the_naive_evaluator_matches(node in node(), entities in proptest::collection::vec(entity(), 1..8)) {
        let filter = parsed(&node.text());
        for entity in &entities {
            prop_assert_eq!(matches(&filter, entity), node.holds(entity), "{} of {:?}", filter, entity);
        }
    }

    #[test]
    fn bounds_contain_every_match(node in node(), entities in proptest::collection::vec(entity(), 1..8)) {
        let filter = parsed(&node.text());
        let range = filter.bounds().to_range("account", TableId(7));
        for entity in entities.iter().filter(|entity| node.holds(entity)) {
            let (partition_key, row_key) = keys(entity);
            let key = PartitionPrefix::entity("account", TableId(7), partition_key).key(row_key);
            prop_assert!(range.contains(&key), "{} and {:?}", filter, entity);
        }
    }

    /// If all conditions are on keys and are joined by `and`, the bounds are exact, except for `ne`.
    #[test]
    fn bounds_of_one_partition_are_exact(partition in text(), low in text(), high in text(), row_key in text()) {
        let quoted = |s: &str| literal_text(&Value::String(s.to_owned()));
        let filter = parsed(&format!("PartitionKey eq {} and RowKey gt {} and RowKey le {}",
            quoted(&partition), quoted(&low), quoted(&high)));
        let range = filter.bounds().to_range("account", TableId(7));
        let key = PartitionPrefix::entity("account", TableId(7), &partition).key(&row_key);
        let entity = Properties::from([
            ("PartitionKey", Value::String(partition)),
            ("RowKey", Value::String(row_key)),
            ("Timestamp", Value::DateTime(Timestamp::default())),
        ]);
        prop_assert_eq!(range.contains(&key), matches(&filter, &entity));
    }

    #[test]
    fn parsing_any_text_never_panics(text in "\\PC{0,40}") {
        let _ = Filter::parse(&text);
    }

    #[test]
    fn a_printed_filter_is_parsed_again(words in proptest::collection::vec(prop_oneof![
        Just("("), Just(")"), Just("not"), Just("and"), Just("or"), Just("eq"), Just("lt"), Just("P"), Just("true"),
        Just("RowKey"), Just("Timestamp"), Just("'a'"), Just("1"), Just("2L"), Just("1.5f"), Just("NaN"), Just("-INF"),
        Just("null"), Just("X'00'"), Just("datetime'9999-12-31T23:59:59-14:00'"), Just("datetime'0001-01-01T00:00:00+14:00'"),
        Just("datetime'2020-02-29'"), Just("guid'{00000000-0000-0000-0000-00000000000a}'"), Just("1e3"), Just("-5"),
    ], 0..9)) {
        if let Ok(Some(filter)) = Filter::parse(&words.join(" ")) {
            prop_assert_eq!(parsed(&filter.to_string()), filter);
        }
    }
}
