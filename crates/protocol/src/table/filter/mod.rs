//! `$filter`: the condition that the rows of a query must meet.
//!
//! ```text
//!   text --parse--> Expr (a tree, flat in its chains) --matches--> per row, on its stored bytes
//!                     |--bounds--> the interval of keys that must be read
//!                     `--print---> text again
//! ```
//!
//! The grammar is that of OData 3 without functions and arithmetic: comparisons `eq ne gt ge lt le` of a
//! property with a constant, on either side; `and`, `or`, `not`, parentheses; and a Boolean property or
//! constant by itself. `eval` says what each comparison means, `literal` lists the constants, and `parse`
//! has the limits.
//!
//! Recordings show that the service answers with the error texts of Microsoft's OData library. They also
//! show that PartitionKey, RowKey and Timestamp have a type in its schema, and all other properties have
//! none. So `RowKey eq 5` is an error, but `Age eq '5'` is allowed, and is false for an Age of another type.

mod bounds;
mod eval;
mod lexer;
mod literal;
mod parse;
mod print;
mod syntax;

use std::fmt;

pub use syntax::{Comparison, Expr, Field, Literal, Operator};

use super::key_bounds::KeyBounds;
use super::row::{DamagedRow, RowView};
use super::value::Value;
use crate::error::TableError;

/// A parsed filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    root: Expr,
}

/// An entity to which a filter is applied.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The entity's PartitionKey. It is looked at only if [`Filter::reads_keys`]; the same holds for the RowKey.
    pub partition_key: &'a str,
    /// The entity's RowKey.
    pub row_key: &'a str,
    /// The stored row, with all other properties.
    pub row: &'a RowView<'a>,
}

impl Filter {
    /// Parses the decoded value of a `$filter`. `None` if the text is blank.
    ///
    /// Fails with `InvalidInput`, in the service's words, if the text is not a filter or is above the limits.
    /// Fails with `NotImplemented` if it uses parts of OData that the service does not have: functions,
    /// arithmetic, or a comparison of two properties or of two constants.
    pub fn parse(text: &str) -> Result<Option<Self>, TableError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { root: parse::parse(text)? }))
    }

    /// The tree.
    pub fn root(&self) -> &Expr {
        &self.root
    }

    /// Whether the answer depends on PartitionKey or RowKey. If it does not, a caller need not decode them.
    pub fn reads_keys(&self) -> bool {
        self.root.reads_keys()
    }

    /// Whether an entity meets the filter. Fails if the entity's stored row is damaged.
    pub fn matches(&self, entity: &Subject<'_>) -> Result<bool, DamagedRow> {
        eval::holds(&self.root, eval::Row::Entity(entity))
    }

    /// Whether a table meets the filter. Its only property is `TableName`, the name as it was created.
    pub fn matches_table(&self, name: &str) -> bool {
        eval::holds(&self.root, eval::Row::Table { name }).expect("only a stored row can be damaged")
    }

    /// An interval that has the keys of all entities that can match.
    pub fn bounds(&self) -> KeyBounds {
        bounds::of(&self.root)
    }

    /// The only table name that can match, if the filter is `TableName eq '...'`, alone or joined by `and`.
    /// With it the caller looks up one table, and need not read a list of ten thousand.
    pub fn only_table(&self) -> Option<&str> {
        let parts = match &self.root {
            Expr::And(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        parts.iter().find_map(|part| match part {
            Expr::Compare(Comparison {
                field: Field::TableName,
                operator: Operator::Equal,
                literal: Literal(Value::String(name)),
            }) => Some(name.as_str()),
            _ => None,
        })
    }
}

impl fmt::Display for Filter {
    /// Writes a text from which [`Filter::parse`] makes an equal filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}
