//! Commands that change an entity.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rangehold_client::{Change, EdmType, Entity};
use serde_json::json;

use super::{In, KeyFlags, condition};
use crate::account::Output;
use crate::typed;

/// How a pair names the type of another pair.
const TYPE: &str = "@odata.type";

/// The entity of a command.
#[derive(Debug, Args)]
struct Properties {
    /// The entity: PartitionKey=... RowKey=... NAME=VALUE... A value that looks like a number is one; NAME@odata.type=Edm.TYPE
    /// says otherwise.
    #[arg(long, short = 'e', value_name = "NAME=VALUE", num_args = 1.., required = true)]
    entity: Vec<String>,
}

impl Properties {
    fn read(&self) -> Result<Entity> {
        let (mut values, mut types) = (BTreeMap::new(), BTreeMap::new());
        for pair in &self.entity {
            let (name, value) = pair
                .split_once('=')
                .with_context(|| format!("{pair:?} is not a property: write NAME=VALUE"))?;
            match name.strip_suffix(TYPE) {
                Some(name) => types.insert(name, typed::edm_type(value)?),
                None => {
                    if values.insert(name, value).is_some() {
                        bail!("{name} comes twice");
                    }
                    None
                }
            };
        }
        let mut key = |wanted: &str| {
            let name = values.keys().copied().find(|name| name.eq_ignore_ascii_case(wanted));
            name.and_then(|name| values.remove(name)).with_context(|| format!("the entity has no {wanted}"))
        };
        let mut entity = Entity::new(key("PartitionKey")?, key("RowKey")?);
        for (name, value) in values {
            let value = match types.remove(name) {
                Some(edm_type) => {
                    typed::read(edm_type, value).with_context(|| format!("the property {name}"))?
                }
                None => typed::guess(value),
            };
            entity.properties.insert(name.to_owned(), value);
        }
        // A key may be given its type, as long as that is the one that it has.
        match types.into_iter().find(|(name, edm_type)| !(is_key(name) && *edm_type == EdmType::String)) {
            Some((name, _)) => bail!("{name}{TYPE} has no value beside it: give {name}=VALUE too"),
            None => Ok(entity),
        }
    }
}

fn is_key(name: &str) -> bool {
    ["PartitionKey", "RowKey"].iter().any(|key| key.eq_ignore_ascii_case(name))
}

/// What happens to an entity that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IfExists {
    /// The command fails.
    Fail,
    /// It gets these properties, and keeps its others.
    Merge,
    /// It gets these properties and no others.
    Replace,
}

/// `rangehold entity insert`
#[derive(Debug, Args)]
pub(crate) struct Insert {
    #[command(flatten)]
    place: In,
    #[command(flatten)]
    properties: Properties,
    /// What happens if the entity exists.
    #[arg(long, value_name = "WHAT", default_value = "fail")]
    if_exists: IfExists,
}

impl Insert {
    pub(super) async fn run(&self) -> Result<()> {
        let entity = self.properties.read()?;
        let change = match self.if_exists {
            IfExists::Fail => Change::Insert(entity),
            IfExists::Merge => Change::InsertOrMerge(entity),
            IfExists::Replace => Change::InsertOrReplace(entity),
        };
        apply(&self.place, change, "written").await
    }
}

/// `rangehold entity merge` and `rangehold entity replace`
#[derive(Debug, Args)]
pub(crate) struct Update {
    #[command(flatten)]
    place: In,
    #[command(flatten)]
    properties: Properties,
    /// The version that the entity must have, as `show` prints it; * is any.
    #[arg(long, value_name = "ETAG", default_value = "*")]
    if_match: String,
}

impl Update {
    pub(super) async fn merge(&self) -> Result<()> {
        let change = Change::Merge(self.properties.read()?, condition(&self.if_match));
        apply(&self.place, change, "merged").await
    }

    pub(super) async fn replace(&self) -> Result<()> {
        let change = Change::Replace(self.properties.read()?, condition(&self.if_match));
        apply(&self.place, change, "replaced").await
    }
}

/// `rangehold entity delete`
#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    place: In,
    #[command(flatten)]
    keys: KeyFlags,
    /// The version that the entity must have, as `show` prints it; * is any.
    #[arg(long, value_name = "ETAG", default_value = "*")]
    if_match: String,
}

impl Delete {
    pub(super) async fn run(&self) -> Result<()> {
        apply(&self.place, Change::Delete(self.keys.keys(), condition(&self.if_match)), "deleted").await
    }
}

/// Carries out a change and says that it is `done`.
async fn apply(place: &In, change: Change, done: &str) -> Result<()> {
    let keys = change.keys().clone();
    let etag = place.table()?.apply(change).await?;
    match place.account.output {
        Output::Json => println!("{:#}", json!({ "etag": etag.as_ref().map(|etag| etag.as_str()) })),
        Output::Table => println!("{keys} is {done}"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rangehold_client::Value;

    use super::*;

    fn read(pairs: &[&str]) -> Result<Entity> {
        Properties { entity: pairs.iter().map(|&pair| pair.to_owned()).collect() }.read()
    }

    #[test]
    fn pairs_are_an_entity_as_az_reads_them() {
        let pairs = [
            "partitionkey=007",
            "RowKey=r=1",
            "Age=39",
            "Zip=10115",
            "Zip@odata.type=Edm.String",
            "Name=Noether",
        ];
        let entity = read(&pairs).expect("it has keys");
        assert_eq!((entity.keys.partition_key.as_str(), entity.keys.row_key.as_str()), ("007", "r=1"));
        assert_eq!(entity.get("Age"), Some(&Value::Int32(39)));
        assert_eq!(entity.get("Zip"), Some(&Value::from("10115")));
        for (pairs, part) in [
            (&["RowKey=r"][..], "no PartitionKey"),
            (&["PartitionKey=p", "RowKey=r", "A"], "NAME=VALUE"),
            (&["PartitionKey=p", "RowKey=r", "A=1", "A=2"], "A comes twice"),
            (&["PartitionKey=p", "RowKey=r", "A@odata.type=Edm.Int32"], "no value"),
            (&["PartitionKey=p", "RowKey=r", "A=x", "A@odata.type=Edm.Int32"], "property A"),
        ] {
            let error = format!("{:#}", read(pairs).expect_err(part));
            assert!(error.contains(part), "{error}");
        }
    }
}
