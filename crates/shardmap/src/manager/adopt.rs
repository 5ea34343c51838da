//! Makes an existing database a shard. Its rows stay where they are.

use std::collections::BTreeSet;

use rangehold_map::KeyRange;
use rangehold_map::shard::{ShardKey, ShardKeyType};

use super::query::quoted;
use super::{KindOfMap, ListShardMap, RangeShardMap, Shard, ShardMap};
use crate::error::{Category, Error};
use crate::limits::MAPPINGS_PER_OPERATION_MAX;
use crate::location::Location;
use crate::store::{For, StoreError, Tx};

impl ListShardMap<ShardKey> {
    /// Adds a database as a shard, if it is not one yet, and maps to it each key in a column that has no mapping yet.
    /// The table is one of the user's own. Returns the shard, and how many keys were mapped. A second call maps none.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`] for a column with a value that is not a key of the map;
    /// [`crate::Code::StorageOperationFailure`], also if there is no such table.
    pub async fn adopt(
        &self,
        location: &Location,
        table: &str,
        column: &str,
    ) -> Result<(Shard, usize), Error> {
        let keys = self.keys_in(location, table, column).await?;
        let shard = self.shard_or_new(location).await?;
        let mapped: BTreeSet<ShardKey> =
            self.mappings().await?.into_iter().map(|mapping| mapping.value().clone()).collect();
        let new: Vec<&ShardKey> = keys.iter().filter(|key| !mapped.contains(key)).collect();
        for some in new.chunks(MAPPINGS_PER_OPERATION_MAX) {
            self.add_many(some.iter().map(|key| (*key, &shard)).collect()).await?;
        }
        Ok((shard, new.len()))
    }

    /// The keys in a column. Each is there once, even if the column has it in different forms.
    async fn keys_in(
        &self,
        location: &Location,
        table: &str,
        column: &str,
    ) -> Result<BTreeSet<ShardKey>, Error> {
        let key_type = self.map.key_type();
        let read = async {
            let mut tx = self.manager.0.operations.databases.at(location)?.begin(For::Reading).await?;
            let (column, table) = (quoted(column), quoted(table));
            let words = in_words(&tx, key_type, &column);
            let sql = format!("select distinct {words} from {table} where {column} is not null");
            let rows = tx.query(&sql, &[]).await?;
            tx.commit().await?;
            rows.into_iter().map(|mut row| row.text()).collect::<Result<Vec<_>, StoreError>>()
        };
        let words = read.await.map_err(|error: StoreError| error.seen_by(Category::ListShardMap))?;
        words.iter().map(|text| Ok(ShardKey::parse(key_type, text)?)).collect()
    }
}

impl RangeShardMap<ShardKey> {
    /// Adds a database as a shard, if it is not one yet. If the map has no mappings, maps all keys to the shard.
    /// Returns the shard, and how many mappings were added.
    ///
    /// # Errors
    ///
    /// [`crate::Code::StorageOperationFailure`].
    pub async fn adopt(&self, location: &Location) -> Result<(Shard, usize), Error> {
        let shard = self.shard_or_new(location).await?;
        if !self.mappings().await?.is_empty() {
            return Ok((shard, 0));
        }
        let least = ShardKey::min(self.map.key_type());
        debug_assert_eq!(least.up_to(None), KeyRange::new(Vec::new(), None), "all keys");
        self.add(&least, None, &shard).await?;
        Ok((shard, 1))
    }
}

impl<M: KindOfMap> ShardMap<ShardKey, M> {
    async fn shard_or_new(&self, location: &Location) -> Result<Shard, Error> {
        match self.try_shard(location).await? {
            Some(shard) => Ok(shard),
            None => self.create_shard(location).await,
        }
    }
}

/// The values of a column, in the form that [`ShardKey::parse`] reads.
fn in_words(tx: &Tx, key_type: ShardKeyType, column: &str) -> String {
    match (tx, key_type) {
        (Tx::Postgres(_), ShardKeyType::Binary) => format!("'0x' || encode({column}, 'hex')"),
        (Tx::Sqlite(_), ShardKeyType::Binary) => format!("'0x' || hex({column})"),
        (Tx::Postgres(_), ShardKeyType::DateTime) => format!("replace({column}::timestamp::text, ' ', 'T')"),
        (Tx::Postgres(_), ShardKeyType::DateTimeOffset) => {
            format!("replace(({column} at time zone 'UTC')::text, ' ', 'T') || '+00:00'")
        }
        (Tx::Postgres(_), ShardKeyType::TimeSpan) => {
            // The cast goes through text, so that the column may be a text too.
            let interval = format!("{column}::text::interval");
            let seconds = format!("extract(epoch from {interval})");
            // An interval with months has no fixed length. It stays as it is, and is refused as such.
            format!(
                "case when pg_typeof({column}) <> 'interval'::regtype then {column}::text
                    when date_trunc('month', {interval}) <> '0' then {column}::text
                    else case when {seconds} < 0 then '-' else '' end || div(abs({seconds}), 86400) || '.' ||
                        to_char(make_interval(secs => (abs({seconds}) % 86400)::float8), 'HH24:MI:SS.US') end"
            )
        }
        _ => format!("cast({column} as text)"),
    }
}
