//! Queries: which entities, which of their properties, and from where on.

use http::HeaderMap;
pub use rangehold_protocol::table::filter::Operator;
use rangehold_protocol::table::filter::{Comparison, Expr, Field, Literal};

use crate::entity::Value;

/// A condition on the entities of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter(Expr);

impl Filter {
    /// A property compared with a constant. The type of the constant counts: a property of another type never meets
    /// the condition.
    pub fn compare(name: &str, operator: Operator, value: impl Into<Value>) -> Self {
        let (field, literal) = (Field::named(name), Literal(value.into()));
        Self(Expr::Compare(Comparison { field, operator, literal }))
    }

    /// The entities of one partition.
    pub fn partition(partition_key: &str) -> Self {
        Self::compare("PartitionKey", Operator::Equal, partition_key)
    }

    /// Entities whose `key` (PartitionKey or RowKey) is at or above `low` and below `high`, in the order of keys.
    pub fn key_range(key: &str, low: &str, high: &str) -> Self {
        Self::compare(key, Operator::GreaterOrEqual, low).and(Self::compare(key, Operator::Less, high))
    }

    /// Both conditions.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut all = Vec::new();
        for one in [self.0, other.0] {
            match one {
                Expr::And(list) => all.extend(list),
                one => all.push(one),
            }
        }
        Self(Expr::And(all))
    }

    /// One of the conditions, or both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut all = Vec::new();
        for one in [self.0, other.0] {
            match one {
                Expr::Or(list) => all.extend(list),
                one => all.push(one),
            }
        }
        Self(Expr::Or(all))
    }

    /// The opposite.
    #[must_use]
    pub fn negated(self) -> Self {
        Self(Expr::Not(Box::new(self.0)))
    }
}

impl std::fmt::Display for Filter {
    /// Writes the text of a `$filter`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What a query asks for. The default asks for all entities with all their properties.
///
/// A condition on PartitionKey, alone or with one on RowKey, makes the service read only those entities. Every other
/// condition is checked on each entity that is read, so a query without a condition on PartitionKey reads the table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Query {
    filter: Option<String>,
    select: Vec<String>,
    page_items: Option<u32>,
}

impl Query {
    /// A query of the entities that meet `filter`.
    pub fn of(filter: Filter) -> Self {
        Self { filter: Some(filter.to_string()), ..Self::default() }
    }

    /// A query with a `$filter` in the words of the service.
    pub fn of_text(filter: impl Into<String>) -> Self {
        Self { filter: Some(filter.into()), ..Self::default() }
    }

    /// Asks for these properties only. Name PartitionKey and RowKey too if you need the keys.
    #[must_use]
    pub fn select(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.select = names.into_iter().map(Into::into).collect();
        self
    }

    /// Asks for pages of at most `items` entities: 1 to 1,000, which is also the service's own limit.
    #[must_use]
    pub fn page_items(mut self, items: u32) -> Self {
        self.page_items = Some(items.clamp(1, 1000));
        self
    }

    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let filter = self.filter.iter().map(|filter| ("$filter", filter.clone()));
        let select = (!self.select.is_empty()).then(|| ("$select", self.select.join(",")));
        let top = self.page_items.map(|items| ("$top", items.to_string()));
        filter.chain(select).chain(top).collect()
    }
}

/// Where the next page of a query begins. A token stays valid, so a program can store it and go on later.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Token {
    partition_key: Option<String>,
    row_key: Option<String>,
    table: Option<String>,
}

impl Token {
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&'static str, String)> {
        let parts = [
            ("NextPartitionKey", &self.partition_key),
            ("NextRowKey", &self.row_key),
            ("NextTableName", &self.table),
        ];
        parts.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)))
    }
}

/// The token in an answer's headers; `None` at the end.
pub(crate) fn next_page(headers: &HeaderMap) -> Option<Token> {
    let part = |name: &str| {
        let value = headers.get(format!("x-ms-continuation-{name}"))?.to_str().ok()?;
        Some(value.to_owned())
    };
    let token = Token {
        partition_key: part("NextPartitionKey"),
        row_key: part("NextRowKey"),
        table: part("NextTableName"),
    };
    (token != Token::default()).then_some(token)
}

#[cfg(test)]
mod tests {
    use rangehold_protocol::table::filter::Filter as Parsed;

    use super::*;

    #[test]
    fn a_filter_is_written_so_that_the_service_reads_the_same_tree() {
        let young = Filter::compare("Age", Operator::Less, 18_i64);
        let name = Filter::compare("Name", Operator::Equal, "O'Neil");
        for (filter, text) in [
            (young.clone(), "Age lt 18L"),
            (
                Filter::partition("p").and(young.clone()).and(name.clone()),
                "PartitionKey eq 'p' and Age lt 18L and Name eq 'O''Neil'",
            ),
            (
                young.clone().or(name.clone()).and(Filter::partition("p")),
                "(Age lt 18L or Name eq 'O''Neil') and PartitionKey eq 'p'",
            ),
            (young.or(name).negated(), "not (Age lt 18L or Name eq 'O''Neil')"),
            (Filter::key_range("RowKey", "a", "b"), "RowKey ge 'a' and RowKey lt 'b'"),
        ] {
            assert_eq!(filter.to_string(), text);
            let parsed = Parsed::parse(text).expect("it is a filter").expect("it is not blank");
            assert_eq!(parsed.root(), &filter.0);
        }
    }
}
