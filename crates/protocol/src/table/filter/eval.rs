//! Whether a filter holds of a row.
//!
//! Rows are read in place and nothing is allocated. The rules, all of the real service:
//!
//! - A property that the entity lacks makes every comparison false, `ne` too. `not` turns that
//!   false into true: `not (Age eq 5)` finds entities without an Age.
//! - Types must match. The one exception is an Int32 constant, which also matches Int64 and Double
//!   properties; an Int64 constant matches Int64 properties alone. A mismatch is false, `ne` too.
//! - Texts compare ordinally, by UTF-16 code unit; binaries byte by byte; GUIDs in the order of
//!   their text; false before true.

use std::cmp::Ordering;

use super::Subject;
use super::syntax::{Comparison, Expr, Field, Literal};
use crate::table::ordinal;
use crate::table::row::DamagedRow;
use crate::table::value::{Value, ValueRef};

/// What a filter is asked of.
#[derive(Clone, Copy)]
pub(super) enum Row<'a> {
    Entity(&'a Subject<'a>),
    Table { name: &'a str },
}

impl<'a> Row<'a> {
    fn get(self, field: &Field) -> Result<Option<ValueRef<'a>>, DamagedRow> {
        match (self, field) {
            (Self::Entity(entity), Field::PartitionKey) => Ok(Some(ValueRef::String(entity.partition_key))),
            (Self::Entity(entity), Field::RowKey) => Ok(Some(ValueRef::String(entity.row_key))),
            (Self::Entity(entity), Field::Timestamp) => Ok(Some(ValueRef::DateTime(entity.row.timestamp()))),
            (Self::Entity(entity), other) => entity.row.get(other.name()),
            (Self::Table { name }, Field::TableName) => Ok(Some(ValueRef::String(name))),
            (Self::Table { .. }, _) => Ok(None),
        }
    }
}

/// Whether `expr` holds of `row`. Recursion is as deep as the tree, which is limited.
pub(super) fn holds(expr: &Expr, row: Row<'_>) -> Result<bool, DamagedRow> {
    match expr {
        Expr::Always(answer) => Ok(*answer),
        Expr::Flag(field) => Ok(row.get(field)? == Some(ValueRef::Boolean(true))),
        Expr::Compare(comparison) => compare(comparison, row),
        Expr::Not(inner) => Ok(!holds(inner, row)?),
        Expr::And(all) => {
            for one in all {
                if !holds(one, row)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Expr::Or(any) => {
            for one in any {
                if holds(one, row)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

fn compare(comparison: &Comparison, row: Row<'_>) -> Result<bool, DamagedRow> {
    let Some(value) = row.get(&comparison.field)? else {
        return Ok(false);
    };
    Ok(order(value, &comparison.literal).is_some_and(|order| comparison.operator.holds(order)))
}

/// How `value` stands to the constant: `None` where their types do not match, `Some(None)` where
/// one of them is NaN.
pub(super) fn order(value: ValueRef<'_>, literal: &Literal) -> Option<Option<Ordering>> {
    Some(match (value, &literal.0) {
        (ValueRef::String(a), Value::String(b)) => Some(ordinal::compare(a, b)),
        (ValueRef::Binary(a), Value::Binary(b)) => Some(a.cmp(b.as_slice())),
        (ValueRef::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (ValueRef::Int32(a), Value::Int32(b)) => Some(a.cmp(b)),
        (ValueRef::Int64(a), Value::Int64(b)) => Some(a.cmp(b)),
        (ValueRef::Int64(a), Value::Int32(b)) => Some(a.cmp(&i64::from(*b))),
        (ValueRef::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (ValueRef::Double(a), Value::Int32(b)) => a.partial_cmp(&f64::from(*b)),
        (ValueRef::DateTime(a), Value::DateTime(b)) => Some(a.cmp(b)),
        (ValueRef::Guid(a), Value::Guid(b)) => Some(a.cmp(b)),
        _ => return None,
    })
}
