//! The tree of a filter.
//!
//! Chains of `and` and of `or` are flat lists, and an `and` never lies directly in an `and`, so a chain of a
//! thousand conditions is two levels deep. The parser limits the depth (see `parse`), so code that walks the
//! tree may recurse.

use std::cmp::Ordering;

use strum::{EnumString, IntoStaticStr};

use crate::table::row::PropertyName;
use crate::table::value::{EdmType, Value};

/// A condition, which is true or false for each row.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// `true` or `false`.
    Always(bool),
    /// A property by itself: true if its value is the Boolean true.
    Flag(Field),
    /// A property compared with a constant.
    Compare(Comparison),
    /// True if the inner condition is false.
    Not(Box<Expr>),
    /// True if all are true. There are at least two.
    And(Vec<Expr>),
    /// True if one is true. There are at least two.
    Or(Vec<Expr>),
}

impl Expr {
    /// Whether PartitionKey or RowKey is in it.
    pub(super) fn reads_keys(&self) -> bool {
        match self {
            Self::Always(_) => false,
            Self::Flag(field) | Self::Compare(Comparison { field, .. }) => {
                matches!(field, Field::PartitionKey | Field::RowKey)
            }
            Self::Not(inner) => inner.reads_keys(),
            Self::And(list) | Self::Or(list) => list.iter().any(Self::reads_keys),
        }
    }
}

/// A property compared with a constant; the property is on the left.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The property.
    pub field: Field,
    /// The comparison.
    pub operator: Operator,
    /// The constant.
    pub literal: Literal,
}

/// What a name in a filter refers to. Names are case-sensitive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// `PartitionKey`
    PartitionKey,
    /// `RowKey`
    RowKey,
    /// `Timestamp`
    Timestamp,
    /// `TableName`: the only property of a table, and an ordinary property of an entity.
    TableName,
    /// Any other property.
    Property(PropertyName),
}

impl Field {
    /// The field with this name.
    pub fn named(name: &str) -> Self {
        match name {
            "PartitionKey" => Self::PartitionKey,
            "RowKey" => Self::RowKey,
            "Timestamp" => Self::Timestamp,
            "TableName" => Self::TableName,
            _ => Self::Property(PropertyName::new(name)),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::PartitionKey => "PartitionKey",
            Self::RowKey => "RowKey",
            Self::Timestamp => "Timestamp",
            Self::TableName => "TableName",
            Self::Property(name) => name.as_str(),
        }
    }

    /// The type of this field, if it is the same in all entities; `None` if each entity has its own.
    pub const fn edm_type(&self) -> Option<EdmType> {
        match self {
            Self::PartitionKey | Self::RowKey => Some(EdmType::String),
            Self::Timestamp => Some(EdmType::DateTime),
            Self::TableName | Self::Property(_) => None,
        }
    }
}

/// A comparison operator. `parse` reads the word for it in a filter; words are case-sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
pub enum Operator {
    /// `eq`
    #[strum(serialize = "eq")]
    Equal,
    /// `ne`
    #[strum(serialize = "ne")]
    NotEqual,
    /// `gt`
    #[strum(serialize = "gt")]
    Greater,
    /// `ge`
    #[strum(serialize = "ge")]
    GreaterOrEqual,
    /// `lt`
    #[strum(serialize = "lt")]
    Less,
    /// `le`
    #[strum(serialize = "le")]
    LessOrEqual,
}

impl Operator {
    /// The word for it in a filter.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Its name in the service's error texts.
    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::Equal => "Equal",
            Self::NotEqual => "NotEqual",
            Self::Greater => "GreaterThan",
            Self::GreaterOrEqual => "GreaterThanOrEqual",
            Self::Less => "LessThan",
            Self::LessOrEqual => "LessThanOrEqual",
        }
    }

    /// The operator that means the same after its two sides are exchanged.
    pub const fn mirrored(self) -> Self {
        match self {
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            same => same,
        }
    }

    /// The operator that is true for two ordered values exactly where this one is false.
    pub const fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
        }
    }

    /// Whether the comparison is true when the left side has this order to the right side. `None` means that
    /// one side is NaN: it is unequal to everything, and neither greater nor less.
    pub fn holds(self, order: Option<Ordering>) -> bool {
        match (self, order) {
            (Self::NotEqual, None) => true,
            (_, None) => false,
            (Self::Equal, Some(order)) => order.is_eq(),
            (Self::NotEqual, Some(order)) => order.is_ne(),
            (Self::Greater, Some(order)) => order.is_gt(),
            (Self::GreaterOrEqual, Some(order)) => order.is_ge(),
            (Self::Less, Some(order)) => order.is_lt(),
            (Self::LessOrEqual, Some(order)) => order.is_le(),
        }
    }
}

/// A constant. Two constants are equal if they are written alike: NaN equals NaN, and 0.0 does not equal -0.0.
#[derive(Debug, Clone)]
pub struct Literal(pub Value);

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (a, b) => a == b,
        }
    }
}

impl Literal {
    /// Its type.
    pub fn edm_type(&self) -> EdmType {
        self.0.as_ref().edm_type()
    }
}
