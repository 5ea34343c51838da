//! Commands that show entities.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use clap::Args;
use futures::TryStreamExt;
use rangehold_client::{DateTime, Entity, Query};
use serde_json::Value;

use super::{In, KeyFlags};
use crate::account::Output;
use crate::text_table::text_table;
use crate::typed;

/// `rangehold entity show`
#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    place: In,
    #[command(flatten)]
    keys: KeyFlags,
    /// Only these properties.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    select: Vec<String>,
}

impl Show {
    pub(super) async fn run(&self) -> Result<()> {
        let keys = self.keys.keys();
        let Some(mut entity) = self.place.table()?.get(&keys.partition_key, &keys.row_key).await? else {
            bail!("there is no entity {keys} in the table {}", self.place.table_name);
        };
        if !self.select.is_empty() {
            entity.properties.retain(|name, _| self.select.contains(name));
        }
        match self.place.account.output {
            Output::Json => println!("{:#}", json(&entity)?),
            Output::Table => print!("{}", text_table(["name", "type", "value"], &lines(&entity))),
        }
        Ok(())
    }
}

/// `rangehold entity query`
#[derive(Debug, Args)]
pub(crate) struct Queried {
    #[command(flatten)]
    place: In,
    /// Only entities that meet this condition: "PartitionKey eq 'maths' and Born lt 1900".
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Only these properties, and the keys.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    select: Vec<String>,
    /// The first N entities only.
    #[arg(long, value_name = "N")]
    num_results: Option<usize>,
}

impl Queried {
    pub(super) async fn run(&self) -> Result<()> {
        let mut query = self.filter.as_ref().map_or_else(Query::default, Query::of_text);
        if !self.select.is_empty() {
            let keys = ["PartitionKey".to_owned(), "RowKey".to_owned()];
            query = query.select(keys.iter().chain(&self.select).cloned());
        }
        let most = self.num_results.unwrap_or(usize::MAX);
        if let Ok(most) = u32::try_from(most) {
            query = query.page_items(most);
        }
        let mut found = Vec::new();
        let mut pages = std::pin::pin!(self.place.table()?.pages(query, None));
        while found.len() < most
            && let Some(page) = pages.try_next().await?
        {
            found.extend(page.entities);
        }
        found.truncate(most);
        match self.place.account.output {
            Output::Json => {
                let all: Vec<Value> = found.iter().map(json).collect::<Result<_>>()?;
                println!("{:#}", Value::from(all));
            }
            Output::Table => print!("{}", columns(&found)),
        }
        Ok(())
    }
}

/// An entity as the service writes it, with its version and time.
fn json(entity: &Entity) -> Result<Value> {
    let mut value: Value = serde_json::from_slice(&entity.to_json())?;
    if let Some(time) = entity.timestamp {
        value["Timestamp"] = DateTime(time).to_string().into();
    }
    if let Some(etag) = &entity.etag {
        value["etag"] = etag.as_str().into();
    }
    Ok(value)
}

/// A line for each property, with its type.
fn lines(entity: &Entity) -> Vec<[String; 3]> {
    let keys = [("PartitionKey", &entity.keys.partition_key), ("RowKey", &entity.keys.row_key)];
    let mut lines: Vec<[String; 3]> =
        keys.map(|(name, key)| [name.to_owned(), String::new(), key.clone()]).into();
    if let Some(time) = entity.timestamp {
        lines.push(["Timestamp".to_owned(), String::new(), DateTime(time).to_string()]);
    }
    if let Some(etag) = &entity.etag {
        lines.push(["etag".to_owned(), String::new(), etag.as_str().to_owned()]);
    }
    lines.extend(entity.properties.iter().map(|(name, value)| {
        [name.clone(), value.as_ref().edm_type().name().to_owned(), typed::write(value)]
    }));
    lines
}

/// A column for each name.
fn columns(entities: &[Entity]) -> String {
    let names: BTreeSet<&str> =
        entities.iter().flat_map(|entity| entity.properties.keys().map(String::as_str)).collect();
    let head: Vec<&str> = ["PartitionKey", "RowKey"].into_iter().chain(names.iter().copied()).collect();
    let row = |entity: &Entity| -> Vec<String> {
        let values = names.iter().map(|name| entity.get(name).map_or_else(String::new, typed::write));
        [entity.keys.partition_key.clone(), entity.keys.row_key.clone()].into_iter().chain(values).collect()
    };
    let rows: Vec<Vec<String>> = entities.iter().map(row).collect();
    text_table(head, &rows)
}
