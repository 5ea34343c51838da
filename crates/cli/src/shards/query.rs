//! `rangehold shards query`, `view` and `guard`: reading all shards, and the SQL with which shards know their keys.

use anyhow::{Context, Result};
use clap::Args;
use rangehold_shardmap::query::{Cell, Policy, Readers, owned_view};
use rangehold_shardmap::{KindOfMap, Location, MapInfo, ShardKey, ShardMap};
use serde_json::{Map, Value, json};

use super::Common;
use super::answer::Answer;
use super::any_map::{AnyMap, of_either};

/// `rangehold shards query`
#[derive(Debug, Args)]
pub(crate) struct Query {
    /// One statement that reads. To see each key once, read the views that `view` makes.
    sql: String,
    /// Go on without the shards that fail.
    #[arg(long)]
    partial: bool,
}

/// `rangehold shards view` and `guard`
#[derive(Debug, Args)]
pub(crate) struct Table {
    /// The table.
    #[arg(long, value_name = "TABLE")]
    table: String,
    /// Its column with the key.
    #[arg(long, value_name = "COLUMN")]
    column: String,
}

/// Runs a statement in all shards of the map, and shows the rows.
pub(super) async fn query(map: &AnyMap, common: &Common, query: &Query) -> Result<Answer> {
    let readers = Readers::new(common.reach()?.1.postgres);
    of_either!(map, map => rows(map, &readers, query).await)
}

async fn rows<M: KindOfMap>(map: &ShardMap<ShardKey, M>, readers: &Readers, query: &Query) -> Result<Answer> {
    let policy = if query.partial { Policy::Partial } else { Policy::Complete };
    let mut rows = map.query(&query.sql).policy(policy).run(readers).await?;
    let (mut text, mut json) = (String::new(), Vec::new());
    while let Some(row) = rows.next().await? {
        let cells: Vec<Value> = row.cells().iter().map(cell).collect();
        let words = cells.iter().map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned));
        text += &format!("{}\t{}\n", words.collect::<Vec<_>>().join("\t"), row.shard());
        let mut object: Map<String, Value> = row.columns().map(str::to_owned).zip(cells).collect();
        object.insert("shard".to_owned(), row.shard().to_string().into());
        json.push(Value::Object(object));
    }
    let failed = rows.failures().len();
    let why = format!("{failed} shards failed, and their rows are missing");
    Ok(Answer::new(Value::Array(json), text).or_failed((failed > 0).then_some(why)))
}

fn cell(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => (*value).into(),
        Cell::Int(value) => (*value).into(),
        Cell::Float(value) => (*value).into(),
        Cell::Text(value) => value.as_str().into(),
        Cell::Uuid(value) => value.to_string().into(),
        Cell::Bytes(bytes) | Cell::Other { bytes, .. } => {
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
        }
    }
}

/// The statement that makes a view of the rows whose keys are in the shard. `exec` runs it in all shards.
pub(super) async fn view(map: &AnyMap, table: &Table) -> Result<Answer> {
    let (info, shard) = of_either!(map, map => first_shard(map).await?);
    let sql = owned_view(&info, &shard, &table.table, &table.column)?;
    Ok(Answer::new(json!({ "sql": sql }), format!("{sql};\n")))
}

/// The statement that makes a table refuse rows whose keys are not in the shard. `exec` runs it in all shards.
pub(super) async fn guard(map: &AnyMap, table: &Table) -> Result<Answer> {
    let (info, shard) = of_either!(map, map => first_shard(map).await?);
    anyhow::ensure!(
        matches!(shard, Location::Postgres { .. }),
        "only PostgreSQL has a guard: in SQLite, use the connections of the library"
    );
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let (table, column, map) = (quoted(&table.table), quoted(&table.column), quoted(&info.name));
    let sql = format!("select __shard_management.guard({table}, {column}, {map})");
    Ok(Answer::new(json!({ "sql": sql }), format!("{sql};\n")))
}

async fn first_shard<M: KindOfMap>(map: &ShardMap<ShardKey, M>) -> Result<(MapInfo, Location)> {
    let shards = map.shards().await?;
    let first = shards.first().context("the map has no shard: add one by 'rangehold shards shard add'")?;
    Ok((map.info(), first.location().clone()))
}
