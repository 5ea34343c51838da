//! Reads everything that the service holds, and sorts it by writer.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::op::{Key, State};
use super::{TABLE, TALLY};
use crate::client::{self, ACCOUNT, Client, Credential};

/// Everything found.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Observed {
    /// By writer.
    pub writers: Vec<State>,
    /// The tally's value, when it is there.
    pub tally: Option<u64>,
    /// Tables and entities that belong to no writer.
    pub strangers: Vec<String>,
    /// Whether the shared table is there.
    pub prepared: bool,
}

/// Lists all tables and all their entities, by pages. What a load of this many writers wrote is sorted by writer.
pub fn observe(address: SocketAddr, credential: Credential, writers: usize) -> Result<Observed> {
    let mut client = Client::new(address, credential);
    let mut observed = Observed { writers: vec![State::default(); writers], ..Observed::default() };
    for table in all_pages(&mut client, &format!("/{ACCOUNT}/Tables"))? {
        let name = table["TableName"].as_str().context("a table without a name")?.to_owned();
        let entities = all_pages(&mut client, &format!("/{ACCOUNT}/{name}()"))?;
        observed.take_table(&name, entities)?;
    }
    Ok(observed)
}

fn all_pages(client: &mut Client, target: &str) -> Result<Vec<Value>> {
    let mut items = Vec::new();
    let mut query = String::new();
    loop {
        let answer = client.send(client::get(format!("{target}{query}")), "observe")?;
        let page = match client::page(answer) {
            Ok(page) => page,
            Err(answer) => bail!("reading {target}{query} was answered {}: {}", answer.status, answer.body),
        };
        items.extend(page.items);
        let Some(next) = page.next else { return Ok(items) };
        query = format!("?{next}");
    }
}

impl Observed {
    fn take_table(&mut self, name: &str, entities: Vec<Value>) -> Result<()> {
        let scratch_of: Option<usize> = name.strip_prefix("scratch").and_then(|text| text.parse().ok());
        match scratch_of {
            Some(index) if index < self.writers.len() => {
                self.writers[index].tables.insert(name.to_owned());
            }
            _ if name == TABLE => self.prepared = true,
            _ => self.strangers.push(format!("table {name}")),
        }
        for entity in entities {
            let Value::Object(mut row) = entity else { bail!("an entity that is not an object: {entity}") };
            let mut text = |property: &str| match row.remove(property) {
                Some(Value::String(text)) => Ok(text),
                other => bail!("{property} of an entity is {other:?}"),
            };
            let (partition, row_key) = (text("PartitionKey")?, text("RowKey")?);
            text("Timestamp")?;
            if name == TABLE && (partition.as_str(), row_key.as_str()) == TALLY {
                self.tally = row.get("n").and_then(Value::as_u64);
                continue;
            }
            let owner = if name == TABLE { owner(&row_key) } else { scratch_of };
            let key = Key { table: name.to_owned(), partition, row: row_key };
            match owner.and_then(|index| self.writers.get_mut(index)) {
                Some(state) => {
                    if state.rows.insert(key.clone(), row).is_some() {
                        self.strangers.push(format!("{key}, listed twice"));
                    }
                }
                None => self.strangers.push(key.to_string()),
            }
        }
        Ok(())
    }
}

/// The writer that owns a row key `w3-000123`.
fn owner(row_key: &str) -> Option<usize> {
    row_key.strip_prefix('w')?.split_once('-')?.0.parse().ok()
}
