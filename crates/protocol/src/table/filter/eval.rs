//! Decides whether a row meets a filter.
//!
//! Rows are read in place, and nothing is allocated. These are the rules of the real service:
//!
//! - A property that the entity lacks makes every comparison false, `ne` too. `not` turns that
//!   false into true: `not (Age eq 5)` finds entities without an Age.
//! - A value of another type than the constant's counts as *less* than the constant, whatever the
//!   two types: `eq`, `gt` and `ge` are false, `ne`, `lt` and `le` are true.
//! - Only an integer constant is widened, to the type of the property: an Int32 to Int64 and Double,
//!   an Int64 to Double. The property is never widened: an Int32 property is less than `3L`.
//! - Texts compare by UTF-16 code unit, binaries byte by byte, and GUIDs in the order of their texts. False
//!   is less than true.

use std::cmp::Ordering;

use super::Subject;
use super::syntax::{Comparison, Expr, Field, Literal};
use crate::table::ordinal;
use crate::table::row::DamagedRow;
use crate::table::value::{Value, ValueRef};

/// An item to which a filter is applied.
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
            (Self::Entity(entity), Field::Property(name)) => entity.row.get_named(name),
            (Self::Entity(entity), other) => entity.row.get(other.name()),
            (Self::Table { name }, Field::TableName) => Ok(Some(ValueRef::String(name))),
            (Self::Table { .. }, _) => Ok(None),
        }
    }
}

/// Whether `row` meets `expr`. Recurses as deep as the tree, whose depth is limited.
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
    Ok(comparison.operator.holds(order(value, &comparison.literal)))
}

/// The order of `value` and the constant; `None` if one of them is NaN.
fn order(value: ValueRef<'_>, literal: &Literal) -> Option<Ordering> {
    match (value, &literal.0) {
        (ValueRef::String(a), Value::String(b)) => Some(ordinal::compare(a, b)),
        (ValueRef::Binary(a), Value::Binary(b)) => Some(a.cmp(b.as_slice())),
        (ValueRef::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (ValueRef::Int32(a), Value::Int32(b)) => Some(a.cmp(b)),
        (ValueRef::Int64(a), Value::Int64(b)) => Some(a.cmp(b)),
        (ValueRef::Int64(a), Value::Int32(b)) => Some(a.cmp(&i64::from(*b))),
        (ValueRef::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (ValueRef::Double(a), Value::Int32(b)) => a.partial_cmp(&f64::from(*b)),
        // Converted to the nearest Double, as .NET does.
        (ValueRef::Double(a), Value::Int64(b)) => a.partial_cmp(&(*b as f64)),
        (ValueRef::DateTime(a), Value::DateTime(b)) => Some(a.cmp(b)),
        (ValueRef::Guid(a), Value::Guid(b)) => Some(a.cmp(b)),
        _ => Some(Ordering::Less),
    }
}
