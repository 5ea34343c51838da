//! `$filter`: which rows a query wants.
//!
//! ```text
//!   text --parse--> Expr (a tree, flat in its chains) --matches--> per row, on its stored bytes
//!                     |--bounds--> the interval of keys that has to be read
//!                     `--print---> text again
//! ```
//!
//! The grammar is OData 3's without functions and arithmetic: comparisons `eq ne gt ge lt le` of a
//! property with a constant, on either side; `and`, `or`, `not`, parentheses; a bare Boolean
//! property or constant. What each comparison means is said in `eval`, the constants in
//! `literal`, the limits in `parse`.
//!
//! The service was recorded answering with the error texts of Microsoft's OData library, and its
//! errors show that PartitionKey, RowKey and Timestamp have their types in its schema while all
//! other properties have none. So `RowKey eq 5` is an error, and `Age eq '5'` is a comparison that
//! an Age of another type does not meet.

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

/// An entity that a filter is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its PartitionKey.
    pub partition_key: &'a str,
    /// Its RowKey.
    pub row_key: &'a str,
    /// Everything else.
    pub row: &'a RowView<'a>,
}

impl Filter {
    /// Parses the decoded value of a `$filter`. Blank text is no filter.
    ///
    /// Fails with `InvalidInput`, in the service's words, where the text is no filter or above the
    /// limits; with `NotImplemented` where it uses what OData has and the service has not: functions,
    /// arithmetic, a comparison of two properties or of two constants.
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

    /// Whether it holds of an entity. Fails if the entity's stored row is damaged.
    pub fn matches(&self, entity: &Subject<'_>) -> Result<bool, DamagedRow> {
        eval::holds(&self.root, eval::Row::Entity(entity))
    }

    /// Whether it holds of a table, whose only property is its `TableName`, as it was created.
    pub fn matches_table(&self, name: &str) -> bool {
        eval::holds(&self.root, eval::Row::Table { name }).expect("a name is no stored row")
    }

    /// The keys that entities must have to match; never loses a match.
    pub fn bounds(&self) -> KeyBounds {
        bounds::of(&self.root)
    }

    /// The one table name that can match, if the filter says `TableName eq '...'` and perhaps more.
    /// A list of ten thousand tables need not be read to find it.
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
    /// Text that [`Filter::parse`] reads as an equal filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}
