//! A page of a query's answer.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::entity::{Entity, NotAnEntity, from_json};
use crate::error::Error;
use crate::request::Token;

/// Entities in the order of their keys, and where the next page begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The entities; there may be none.
    pub entities: Vec<Entity>,
    /// The token of the next page; `None` at the end of the query.
    pub next: Option<Token>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    value: Vec<&'a RawValue>,
}

impl Page {
    pub(super) fn read(body: &[u8], next: Option<Token>) -> Result<Self, Error> {
        let body: Body<'_> = serde_json::from_slice(body).map_err(NotAnEntity::page)?;
        let entities = body.value.iter().map(|one| from_json(one.get().as_bytes()));
        Ok(Self { entities: entities.collect::<Result<_, _>>()?, next })
    }
}
