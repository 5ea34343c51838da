//! An account's table service: the entrance of this crate.

use std::sync::Arc;

use futures::{Stream, TryStreamExt, stream};
use serde::Deserialize;

use crate::account::Account;
use crate::entity::NotAnEntity;
use crate::error::Error;
use crate::request::{Call, Invalid, Token, checked_table, next_page};
use crate::table::Table;
use crate::wire::{Options, Wire};

/// The table service of an account. Cheap to clone; all clones and their tables share their connections.
#[derive(Clone)]
pub struct Service(Arc<Wire>);

impl Service {
    /// The service that a connection string names; see [`Account::from_connection_string`]. Nothing is sent yet.
    pub fn from_connection_string(text: &str) -> Result<Self, Error> {
        Self::new(Account::from_connection_string(text)?, Options::default())
    }

    /// The service of `account`. Nothing is sent yet. Fails if the account needs TLS and this system has no certificate
    /// authorities.
    pub fn new(account: Account, options: Options) -> Result<Self, Error> {
        Ok(Self(Arc::new(Wire::new(account, options)?)))
    }

    /// A table of the account, which may not exist yet. Fails if no table can have this name.
    pub fn table(&self, name: &str) -> Result<Table, Invalid> {
        checked_table(name)?;
        Ok(Table::new(self.0.clone(), name))
    }

    /// The names of the account's tables, in their order.
    pub fn tables(&self) -> impl Stream<Item = Result<String, Error>> + Send + 'static {
        let wire = self.0.clone();
        let fetch = move |place: Option<Option<Token>>| {
            let wire = wire.clone();
            async move {
                let Some(token) = place else { return Ok(None) };
                let answer = wire.send_one(&Call::tables(token.as_ref())).await?;
                let page: Tables = serde_json::from_slice(answer.body()).map_err(NotAnEntity::page)?;
                let names = stream::iter(page.value.into_iter().map(|table| Ok(table.name)));
                Ok::<_, Error>(Some((names, next_page(answer.headers()).map(Some))))
            }
        };
        stream::try_unfold(Some(None), fetch).try_flatten()
    }
}

/// A page of the list of tables.
#[derive(Deserialize)]
struct Tables {
    value: Vec<TableName>,
}

#[derive(Deserialize)]
struct TableName {
    #[serde(rename = "TableName")]
    name: String,
}
