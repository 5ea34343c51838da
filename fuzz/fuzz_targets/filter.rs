//! Filters: any text is read as a filter or is refused, and a printed filter is read as the same filter. For
//! entities with values from the filter's own constants, its answer equals that of a very simple evaluator.

#![no_main]

use std::cmp::Ordering;
use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use rangehold_map::{PartitionPrefix, TableId, Timestamp};
use rangehold_protocol::table::filter::{Comparison, Expr, Field, Filter, Operator, Subject};
use rangehold_protocol::table::row::{RowView, encode};
use rangehold_protocol::table::value::Value;

fuzz_target!(|data: &[u8]| {
    // The last bytes choose the entity. The others are the text.
    let (text, choices) = data.split_at(data.len() - data.len().min(8));
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let Ok(Some(filter)) = Filter::parse(text) else {
        return;
    };
    let printed = filter.to_string();
    let again = Filter::parse(&printed).unwrap_or_else(|error| panic!("{printed:?} is refused: {error:?}"));
    assert_eq!(again.as_ref(), Some(&filter), "printed as {printed:?}");

    let mut comparisons = Vec::new();
    collect(filter.root(), &mut comparisons);
    let entity = Entity::choose(&comparisons, choices);
    let expected = entity.meets(filter.root());
    let properties = entity.properties.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
    let stored = encode(entity.timestamp, properties);
    let row = RowView::new(&stored).expect("what was just stored is a row");
    let subject = Subject { partition_key: &entity.partition_key, row_key: &entity.row_key, row: &row };
    assert_eq!(filter.matches(&subject).ok(), Some(expected), "{printed} of {entity:?}");
    if expected {
        let range = filter.bounds().to_range("a", TableId(1));
        let key = PartitionPrefix::entity("a", TableId(1), &entity.partition_key).key(&entity.row_key);
        assert!(range.contains(&key), "{printed} loses {entity:?}");
    }
});

fn collect<'a>(expr: &'a Expr, into: &mut Vec<&'a Comparison>) {
    match expr {
        Expr::Always(_) | Expr::Flag(_) => {}
        Expr::Compare(comparison) => into.push(comparison),
        Expr::Not(inner) => collect(inner, into),
        Expr::And(all) | Expr::Or(all) => all.iter().for_each(|one| collect(one, into)),
    }
}

#[derive(Debug)]
struct Entity {
    partition_key: String,
    row_key: String,
    timestamp: Timestamp,
    properties: BTreeMap<String, Value>,
}

impl Entity {
    /// An entity whose values are the filter's constants, or near them.
    fn choose(comparisons: &[&Comparison], choices: &[u8]) -> Self {
        let mut entity = Self {
            partition_key: "p".into(),
            row_key: "r".into(),
            timestamp: Timestamp::from_ticks(0),
            properties: BTreeMap::new(),
        };
        for (index, comparison) in comparisons.iter().enumerate() {
            let choice = choices.get(index % choices.len().max(1)).copied().unwrap_or(0);
            let value = beside(&comparison.literal.0, choice);
            match (&comparison.field, value) {
                (Field::PartitionKey, Value::String(text)) => entity.partition_key = text,
                (Field::RowKey, Value::String(text)) => entity.row_key = text,
                (Field::Timestamp, Value::DateTime(time)) => entity.timestamp = time,
                (Field::PartitionKey | Field::RowKey | Field::Timestamp, _) => {}
                (_, _) if choice & 0x80 != 0 => {}
                (field, value) => {
                    entity.properties.insert(field.name().to_owned(), value);
                }
            }
        }
        entity
    }

    fn meets(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Always(answer) => *answer,
            Expr::Flag(field) => self.value(field) == Some(Value::Boolean(true)),
            Expr::Compare(comparison) => self
                .value(&comparison.field)
                .is_some_and(|value| holds(comparison.operator, stands(&value, &comparison.literal.0))),
            Expr::Not(inner) => !self.meets(inner),
            Expr::And(all) => all.iter().all(|one| self.meets(one)),
            Expr::Or(any) => any.iter().any(|one| self.meets(one)),
        }
    }

    fn value(&self, field: &Field) -> Option<Value> {
        match field {
            Field::PartitionKey => Some(Value::String(self.partition_key.clone())),
            Field::RowKey => Some(Value::String(self.row_key.clone())),
            Field::Timestamp => Some(Value::DateTime(self.timestamp)),
            other => self.properties.get(other.name()).cloned(),
        }
    }
}

/// The constant itself, a value next to it, or a value of another type.
fn beside(value: &Value, choice: u8) -> Value {
    let step = i64::from(choice % 3) - 1;
    match value {
        _ if choice & 0x40 != 0 => Value::Int32(i32::from(choice)),
        Value::String(text) => match choice % 4 {
            0 => Value::String(text.clone()),
            1 => Value::String(format!("{text}\u{FFFF}")),
            2 => Value::String(format!("{text}\u{10000}")),
            _ => Value::String(text.chars().skip(1).collect()),
        },
        Value::Int32(number) => match choice % 8 {
            0..3 => Value::Int32(number.wrapping_add(step as i32)),
            3..5 => Value::Int64(i64::from(*number) + step),
            5..7 => Value::Double(f64::from(*number) + step as f64 / 2.0),
            _ => Value::Double(f64::NAN),
        },
        Value::Int64(number) => match choice % 4 {
            3 => Value::Int32(*number as i32),
            _ => Value::Int64(number.wrapping_add(step)),
        },
        Value::Double(number) => Value::Double(number + step as f64),
        Value::DateTime(time) => Value::DateTime(Timestamp::from_ticks(time.ticks().saturating_add(step))),
        Value::Boolean(flag) => Value::Boolean(*flag != (choice % 2 == 1)),
        Value::Binary(bytes) => Value::Binary(bytes.iter().copied().skip(usize::from(choice % 2)).collect()),
        Value::Guid(guid) => {
            let mut guid = *guid;
            guid[usize::from(choice % 16)] ^= choice >> 4;
            Value::Guid(guid)
        }
    }
}

/// The order of a value and a constant. It is less if their types cannot be compared, and `None` if one is NaN.
fn stands(value: &Value, literal: &Value) -> Option<Ordering> {
    match (value, literal) {
        (Value::String(a), Value::String(b)) => Some(a.encode_utf16().cmp(b.encode_utf16())),
        (Value::Int64(a), Value::Int32(b)) => Some(a.cmp(&i64::from(*b))),
        (Value::Double(a), Value::Int32(b)) => a.partial_cmp(&f64::from(*b)),
        (Value::Double(a), Value::Int64(b)) => a.partial_cmp(&(*b as f64)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int32(a), Value::Int32(b)) => Some(a.cmp(b)),
        (Value::Int64(a), Value::Int64(b)) => Some(a.cmp(b)),
        (Value::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (Value::Binary(a), Value::Binary(b)) => Some(a.cmp(b)),
        (Value::Guid(a), Value::Guid(b)) => Some(a.cmp(b)),
        (Value::DateTime(a), Value::DateTime(b)) => Some(a.ticks().cmp(&b.ticks())),
        _ => Some(Ordering::Less),
    }
}

fn holds(operator: Operator, order: Option<Ordering>) -> bool {
    match operator {
        Operator::Equal => order == Some(Ordering::Equal),
        Operator::NotEqual => order != Some(Ordering::Equal),
        Operator::Greater => order == Some(Ordering::Greater),
        Operator::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Operator::Less => order == Some(Ordering::Less),
        Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
    }
}
