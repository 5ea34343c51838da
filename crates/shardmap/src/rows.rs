//! The rows of both maps: how they are read and written, and how the log has them.

use rangehold_map::KeyRange;
use rangehold_map::shard::{Lock, LockToken, MapKind, MappingId, ShardId, ShardKeyType, ShardMapping};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::location::Location;
use crate::store::{Row, StoreError, Value};

/// A shard map's row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MapRow {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    kind: String,
    key_type: String,
}

/// A shard's row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShardRow {
    pub(crate) id: Uuid,
    pub(crate) version: Uuid,
    pub(crate) location: Location,
    pub(crate) online: bool,
}

/// A mapping's row in the log. Its keys are in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MappingRow {
    pub(crate) id: Uuid,
    pub(crate) shard: Uuid,
    low: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    high: Option<String>,
    pub(crate) online: bool,
    pub(crate) fence: i64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    lock: Option<LockRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LockRow {
    token: Uuid,
    owner: String,
    until: i64,
}

/// A row of the global map, with the columns that only this map has.
#[derive(Debug, Clone)]
pub(crate) struct Marked<T> {
    pub(crate) row: T,
    /// Whether it may be read. It is false until the operation that adds the row is done.
    pub(crate) readable: bool,
    /// The operation that holds the row.
    pub(crate) operation: Option<Uuid>,
}

impl MapRow {
    pub(crate) const COLUMNS: &str = "map_id, name, kind, key_type";

    pub(crate) fn new(id: Uuid, name: &str, kind: MapKind, key_type: ShardKeyType) -> Self {
        Self { id, name: name.to_owned(), kind: kind.name().to_owned(), key_type: key_type.name().to_owned() }
    }

    /// Reads [`MapRow::COLUMNS`].
    pub(crate) fn read(row: &mut Row) -> Result<Self, StoreError> {
        let map = Self { id: row.uuid()?, name: row.text()?, kind: row.text()?, key_type: row.text()? };
        if map.key_type.parse::<ShardKeyType>().is_err() || !["list", "range"].contains(&map.kind.as_str()) {
            return Err(row.damaged(format!("map {:?} is {} of {}", map.name, map.kind, map.key_type)));
        }
        Ok(map)
    }

    pub(crate) fn kind(&self) -> MapKind {
        if self.kind == "list" { MapKind::List } else { MapKind::Range }
    }

    pub(crate) fn key_type(&self) -> ShardKeyType {
        self.key_type.parse().expect("checked when it was read or made")
    }

    pub(crate) fn values(&self) -> [Value; 4] {
        [self.id.into(), self.name.as_str().into(), self.kind.as_str().into(), self.key_type.as_str().into()]
    }
}

impl ShardRow {
    pub(crate) const COLUMNS: &str = "shard_id, version, protocol, server, port, database, online";

    /// Reads [`ShardRow::COLUMNS`].
    pub(crate) fn read(row: &mut Row) -> Result<Self, StoreError> {
        let (id, version) = (row.uuid()?, row.uuid()?);
        let (protocol, server, port, database) = (row.text()?, row.text()?, row.int()?, row.text()?);
        let location = match (protocol.as_str(), u16::try_from(port)) {
            ("postgres", Ok(port)) => {
                Location::Postgres { server: server.into(), port, database: database.into() }
            }
            // Earlier versions did not make paths absolute.
            ("sqlite", _) => Location::sqlite(&database).map_err(|error| row.damaged(error.to_string()))?,
            _ => return Err(row.damaged(format!("shard {id} is at {protocol} port {port}"))),
        };
        Ok(Self { id, version, location, online: row.bool()? })
    }

    pub(crate) fn values(&self) -> [Value; 7] {
        let [protocol, server, port, database] = place(&self.location);
        [self.id.into(), self.version.into(), protocol, server, port, database, self.online.into()]
    }
}

/// The columns `protocol, server, port, database` of a place.
pub(crate) fn place(location: &Location) -> [Value; 4] {
    match location {
        Location::Postgres { server, port, database } => {
            ["postgres".into(), server.as_ref().into(), i64::from(*port).into(), database.as_ref().into()]
        }
        Location::Sqlite { path } => ["sqlite".into(), "".into(), 0.into(), path.as_ref().into()],
    }
}

impl<T> Marked<T> {
    /// Reads the columns of the row, and then `readable, operation_id`.
    pub(crate) fn read(
        row: &mut Row,
        read: impl FnOnce(&mut Row) -> Result<T, StoreError>,
    ) -> Result<Self, StoreError> {
        Ok(Self { row: read(row)?, readable: row.bool()?, operation: row.optional(Row::uuid)? })
    }
}

/// The columns of a global mapping that [`read_mapping`] reads.
pub(crate) const MAPPING_COLUMNS: &str =
    "mapping_id, shard_id, low, high, online, fence, lock_token, lock_owner, lock_until";

/// Reads [`MAPPING_COLUMNS`].
pub(crate) fn read_mapping(row: &mut Row) -> Result<ShardMapping, StoreError> {
    let mut mapping = read_local_mapping(row)?;
    let token = row.optional(Row::uuid)?;
    let (owner, until) = (row.optional(Row::text)?, row.optional(Row::int)?);
    mapping.lock = match (token, owner, until) {
        (Some(token), Some(owner), Some(until)) => Some(Lock { token: LockToken(token), owner, until }),
        _ => None,
    };
    Ok(mapping)
}

/// Reads the columns of a mapping that both maps have: those of [`MAPPING_COLUMNS`] before the columns of the lock.
pub(crate) fn read_local_mapping(row: &mut Row) -> Result<ShardMapping, StoreError> {
    Ok(ShardMapping {
        id: MappingId(row.uuid()?),
        shard: ShardId(row.uuid()?),
        keys: KeyRange::new(row.bytes()?, row.optional(Row::bytes)?),
        online: row.bool()?,
        fence: row.int()?,
        lock: None,
    })
}

/// The values of the columns that [`read_local_mapping`] reads.
pub(crate) fn local_mapping_values(mapping: &ShardMapping) -> Vec<Value> {
    vec![
        mapping.id.0.into(),
        mapping.shard.0.into(),
        mapping.keys.low().into(),
        mapping.keys.high().into(),
        mapping.online.into(),
        mapping.fence.into(),
    ]
}

/// The values of the columns that [`read_mapping`] reads.
pub(crate) fn mapping_values(mapping: &ShardMapping) -> Vec<Value> {
    let mut values = local_mapping_values(mapping);
    let lock = mapping.lock.as_ref();
    values.push(lock.map(|lock| lock.token.0).into());
    values.push(lock.map(|lock| lock.owner.as_str()).into());
    values.push(lock.map(|lock| lock.until).into());
    values
}

impl From<&ShardMapping> for MappingRow {
    fn from(mapping: &ShardMapping) -> Self {
        Self {
            id: mapping.id.0,
            shard: mapping.shard.0,
            low: hexadecimal(mapping.keys.low()),
            high: mapping.keys.high().map(hexadecimal),
            online: mapping.online,
            fence: mapping.fence,
            lock: mapping.lock.as_ref().map(|lock| LockRow {
                token: lock.token.0,
                owner: lock.owner.clone(),
                until: lock.until,
            }),
        }
    }
}

impl MappingRow {
    /// The mapping; `None` if the keys in the log are not hexadecimal digits.
    pub(crate) fn mapping(&self) -> Option<ShardMapping> {
        let high = match &self.high {
            Some(high) => Some(bytes(high)?),
            None => None,
        };
        let lock = self.lock.as_ref();
        Some(ShardMapping {
            id: MappingId(self.id),
            keys: KeyRange::new(bytes(&self.low)?, high),
            shard: ShardId(self.shard),
            online: self.online,
            fence: self.fence,
            lock: lock.map(|lock| Lock {
                token: LockToken(lock.token),
                owner: lock.owner.clone(),
                until: lock.until,
            }),
        })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    // Two hexadecimal digits make a byte.
    digits?.chunks(2).map(|pair| Some((pair[0] << 4 | *pair.get(1)?) as u8)).collect()
}
