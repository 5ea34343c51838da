//! Queries over the entities of a table, or over the tables of an account.
//!
//! The service has `$filter`, `$select` and `$top` of OData's options. The other options of OData 3 would
//! change the answer, so they are refused, as in the real service. A parameter that is not an option of
//! OData is ignored.

use super::continuation::{Continuation, NEXT_PARTITION_KEY, NEXT_ROW_KEY, NEXT_TABLE_NAME};
use super::filter::Filter;
use super::limits::PAGE_ITEMS_MAX;
use super::select::Select;
use crate::error::{ErrorCode, TableError};
use crate::uri::Query;

/// Options of OData 3 that the service does not have.
const NOT_IMPLEMENTED: [&str; 4] = ["$orderby", "$skip", "$expand", "$inlinecount"];

/// A query of a table's entities.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EntityQuery {
    /// The condition that entities must meet; `None` for all entities.
    pub filter: Option<Filter>,
    /// The properties to show; `None` for all properties.
    pub select: Option<Select>,
    /// How many entities a page may have, 0 to [`PAGE_ITEMS_MAX`].
    pub top: Option<u32>,
    /// The first entity that may be returned: its PartitionKey, and perhaps its RowKey.
    pub from: Option<(String, Option<String>)>,
}

impl EntityQuery {
    /// Reads the parameters of a request. An empty parameter counts as absent.
    ///
    /// Fails with `InvalidInput` where a parameter is malformed, or `$top` is negative or above
    /// [`PAGE_ITEMS_MAX`]; with `NotImplemented` on an option of OData that the service does not have.
    pub fn from_query(query: &Query) -> Result<Self, TableError> {
        refuse_not_implemented(query)?;
        let from = Continuation::of_entities(query.get(NEXT_PARTITION_KEY), query.get(NEXT_ROW_KEY))?;
        Ok(Self {
            filter: Filter::parse(query.get("$filter").unwrap_or_default())?,
            select: Select::parse(query.get("$select").unwrap_or_default())?,
            top: top(query)?,
            from: match from {
                Some(Continuation::Entity { partition_key, row_key }) => Some((partition_key, row_key)),
                Some(Continuation::Table { .. }) | None => None,
            },
        })
    }
}

/// A query of an account's tables. `$select` is ignored, because a table has only its name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableQuery {
    /// The condition that tables must meet; `None` for all tables.
    pub filter: Option<Filter>,
    /// How many tables a page may have, 0 to [`PAGE_ITEMS_MAX`].
    pub top: Option<u32>,
    /// Name of the first table that may be returned.
    pub from: Option<String>,
}

impl TableQuery {
    /// Reads the parameters of a request; see [`EntityQuery::from_query`].
    pub fn from_query(query: &Query) -> Result<Self, TableError> {
        refuse_not_implemented(query)?;
        Ok(Self {
            filter: Filter::parse(query.get("$filter").unwrap_or_default())?,
            top: top(query)?,
            from: match Continuation::of_tables(query.get(NEXT_TABLE_NAME))? {
                Some(Continuation::Table { name }) => Some(name),
                Some(Continuation::Entity { .. }) | None => None,
            },
        })
    }
}

fn refuse_not_implemented(query: &Query) -> Result<(), TableError> {
    match NOT_IMPLEMENTED.iter().any(|option| query.get(option).is_some()) {
        true => Err(ErrorCode::NotImplemented.into()),
        false => Ok(()),
    }
}

fn top(query: &Query) -> Result<Option<u32>, TableError> {
    let Some(text) = query.get("$top").map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    match text.parse() {
        Ok(top) if top as usize <= PAGE_ITEMS_MAX => Ok(Some(top)),
        _ => Err(ErrorCode::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entities(raw: &str) -> Result<EntityQuery, ErrorCode> {
        EntityQuery::from_query(&Query::parse(raw).expect("a query")).map_err(|error| error.code)
    }

    fn tables(raw: &str) -> Result<TableQuery, ErrorCode> {
        TableQuery::from_query(&Query::parse(raw).expect("a query")).map_err(|error| error.code)
    }

    #[test]
    fn all_options_are_read() {
        let query = entities(
            "%24filter=a%20eq%201&$select=a,b&$top=5&NextPartitionKey=1!8!U21pdGg-&NextRowKey=1%2112%21QmVuMTg5OA--",
        );
        let query = query.expect("a query of entities");
        assert_eq!(query.filter.expect("a filter").to_string(), "a eq 1");
        assert_eq!(query.select.expect("a selection").names(), ["a", "b"]);
        assert_eq!(query.top, Some(5));
        assert_eq!(query.from, Some(("Smith".to_owned(), Some("Ben1898".to_owned()))));
        let query = tables("$filter=TableName ge 'a'&$top=2&NextTableName=people&$select=x")
            .expect("a query of tables");
        assert_eq!(query.filter.expect("a filter").to_string(), "TableName ge 'a'");
        assert_eq!((query.top, query.from.as_deref()), (Some(2), Some("people")));
    }

    #[test]
    fn empty_and_unknown_options_are_ignored() {
        let empty = "$filter=&$select=&$top=&NextPartitionKey=&NextRowKey=&NextTableName=";
        for raw in ["", empty, "timeout=30&$format=application/json&$top10=x&$orderbyABC=y&zebra"] {
            assert_eq!(entities(raw), Ok(EntityQuery::default()), "{raw}");
            assert_eq!(tables(raw), Ok(TableQuery::default()), "{raw}");
        }
    }

    /// Recorded: 0 gives an empty page; numbers below 0 and above 1,000 are refused.
    #[test]
    fn top_is_between_0_and_1000() {
        for (text, expected) in [("0", 0), ("1000", 1000), ("+7", 7), (" 7", 7)] {
            let raw = format!("$top={text}").replace('+', "%2B");
            assert_eq!(entities(&raw).map(|q| q.top), Ok(Some(expected)), "{text}");
        }
        for text in ["-1", "1001", "4294967296", "1.5", "ten", "0x1"] {
            let raw = format!("$top={text}");
            assert_eq!(entities(&raw), Err(ErrorCode::InvalidInput), "{text}");
            assert_eq!(tables(&raw), Err(ErrorCode::InvalidInput), "{text}");
        }
    }

    #[test]
    fn options_that_the_service_does_not_have_are_refused() {
        for option in ["$orderby=a", "$skip=1", "$expand=a", "$inlinecount=allpages", "%24OrderBy=a"] {
            assert_eq!(entities(option), Err(ErrorCode::NotImplemented), "{option}");
            assert_eq!(tables(option), Err(ErrorCode::NotImplemented), "{option}");
        }
    }

    #[test]
    fn malformed_options_are_refused() {
        for raw in ["$filter=aaa bbb ccc", "$select=a b", "NextPartitionKey=1!9!x", "NextRowKey=a"] {
            assert_eq!(entities(raw), Err(ErrorCode::InvalidInput), "{raw}");
        }
        assert_eq!(tables("NextTableName=1!9!x"), Err(ErrorCode::InvalidInput));
    }
}
