//! A table as its owner sees it: only the rows whose keys the shard's own local map holds.
//!
//! While rows are moved, and after a move until they are cleaned up, a shard has rows whose keys it does not own.
//! Views and policies hide these rows. The owner of the table makes both, because only the owner knows which column
//! is the key. In PostgreSQL the functions of the local map encode the key. A SQLite file cannot hold functions, so
//! there the view encodes the key in SQL.

use rangehold_map::shard::ShardKeyType;

use crate::error::Error;
use crate::location::Location;
use crate::manager::MapInfo;

/// The statement that makes a view `{table}_here` of the rows whose keys the shard at `location` holds.
///
/// # Errors
///
/// [`crate::Code::InvalidArgument`] for key types of time in SQLite, because each program writes times there in its
/// own way. Store them as the text or the number that you map.
pub fn owned_view(map: &MapInfo, location: &Location, table: &str, column: &str) -> Result<String, Error> {
    let (view, source) = (quoted(&format!("{table}_here")), quoted(table));
    match location {
        Location::Postgres { .. } => Ok(format!(
            "create or replace view {view} as select * from {source}
    where {}",
            postgres_owns(map, column)
        )),
        Location::Sqlite { .. } => {
            let key = sqlite_key(map.key_type, &format!("t.{}", quoted(column)))?;
            Ok(format!(
                "create view if not exists {view} as select t.* from {source} t
    where exists (
        select 1 from __shard_management_local_mappings m
        where m.map_id = '{map}' and (m.high is null or m.high > {key}) and m.low = (
            select max(o.low) from __shard_management_local_mappings o
            where o.map_id = '{map}' and o.low <= {key}))",
                map = map.id
            ))
        }
    }
}

/// The statements with which PostgreSQL itself hides the rows whose keys are not here. It does so in every query of
/// every role, except the table's owner and superusers.
pub fn owned_policy(map: &MapInfo, table: &str, column: &str) -> String {
    let (table, owns) = (quoted(table), postgres_owns(map, column));
    format!(
        "alter table {table} enable row level security;
drop policy if exists rangehold_here on {table};
create policy rangehold_here on {table} using ({owns})"
    )
}

/// The SQL for whether the local map holds the key in a column. The cast chooses the function. The planner puts
/// `encode_key` into the query, and asks for the keys of the map once in a query and not for each row.
fn postgres_owns(map: &MapInfo, column: &str) -> String {
    let sql_type = match map.key_type {
        ShardKeyType::Int32 | ShardKeyType::Int64 => "bigint",
        ShardKeyType::Guid | ShardKeyType::Uuid => "uuid",
        ShardKeyType::Binary => "bytea",
        ShardKeyType::Text => "text",
        ShardKeyType::DateTime => "timestamp",
        ShardKeyType::DateTimeOffset => "timestamptz",
        ShardKeyType::TimeSpan => "interval",
    };
    let name = map.name.replace('\'', "''");
    let (key_type, column) = (map.key_type.name(), quoted(column));
    format!(
        "__shard_management.encode_key('{key_type}', {column}::{sql_type})
        <@ (select __shard_management.owned_keys('{name}'))"
    )
}

/// The SQL in SQLite for the bytes of a key. Hexadecimal digits stand for the bytes until the last step.
fn sqlite_key(key_type: ShardKeyType, column: &str) -> Result<String, Error> {
    // The sign bit is in the first digit, and it is flipped: 0 becomes 8, and 8 becomes 0.
    let flipped = |digits: &str| {
        format!(
            "unhex(substr('89abcdef01234567', instr('0123456789abcdef', substr({digits}, 1, 1)), 1) || substr({digits}, 2))"
        )
    };
    Ok(match key_type {
        ShardKeyType::Int64 => format!(
            "case when {column} = -9223372036854775807 - 1 then x'' else {} end",
            flipped(&format!("printf('%016x', {column})"))
        ),
        ShardKeyType::Int32 => format!(
            "case when {column} = -2147483648 then x'' else {} end",
            flipped(&format!("printf('%08x', {column} & 4294967295)"))
        ),
        ShardKeyType::Text => format!("cast({column} as blob)"),
        // Zero bytes at the end do not count. If only one digit of a byte was cut off, it is added again.
        ShardKeyType::Binary => {
            let digits = format!("rtrim(hex({column}), '0')");
            format!("unhex({digits} || substr('0', 1, length({digits}) % 2))")
        }
        ShardKeyType::Guid => guid(column),
        ShardKeyType::Uuid => {
            let digits = format!("replace({column}, '-', '')");
            format!(
                "case when {digits} = '00000000000000000000000000000000' then x'' else unhex({digits}) end"
            )
        }
        ShardKeyType::DateTime | ShardKeyType::TimeSpan | ShardKeyType::DateTimeOffset => {
            return Err(Error::argument(format!(
                "SQLite has no type of its own for {key_type} keys: keep them as int64 or text"
            )));
        }
    })
}

/// The bytes of a uuid that is written with hyphens, in the order that keys have.
fn guid(column: &str) -> String {
    // The places of bytes 10-15, 8, 9, 7, 6, 5, 4, 3, 2, 1 and 0 in the 32 digits.
    const DIGITS: [(u32, u32); 10] =
        [(21, 12), (17, 4), (15, 2), (13, 2), (11, 2), (9, 2), (7, 2), (5, 2), (3, 2), (1, 2)];
    let digits = format!("replace({column}, '-', '')");
    let parts: Vec<String> =
        DIGITS.iter().map(|(from, length)| format!("substr({digits}, {from}, {length})")).collect();
    format!(
        "case when {digits} = '00000000000000000000000000000000' then x'' else unhex({}) end",
        parts.join(" || ")
    )
}

/// A name in quotes, as SQL needs it.
pub(crate) fn quoted(name: &str) -> String {
    let part = |part: &str| format!("\"{}\"", part.replace('"', "\"\""));
    name.split('.').map(part).collect::<Vec<_>>().join(".")
}
