//! Notes on the tables of a shard map: which tables are sharded, and by which column, and which tables every shard
//! has as a whole.
//!
//! Tools that move rows read these notes. The notes are kept in the global map by name, which usually is the name of
//! a shard map. It is not checked whether there is such a map.

use serde::{Deserialize, Serialize};

use crate::error::{Category, Code, Error};
use crate::manager::ShardMapManager;
use crate::operation::Trouble;
use crate::store::{Row, StoreError};

/// A table, by schema and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableInfo {
    /// The schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The column with the shard's key; absent for a table that every shard has whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub key_column: Option<String>,
}

/// The notes on the tables of one shard map.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SchemaInfo {
    tables: Vec<TableInfo>,
}

impl SchemaInfo {
    /// Notes a table whose rows are spread by the key in a column.
    ///
    /// # Errors
    ///
    /// [`Code::TableInfoAlreadyPresent`], whether the table is noted as sharded or not.
    pub fn add_sharded(&mut self, schema: &str, table: &str, key_column: &str) -> Result<(), Error> {
        self.add(schema, table, Some(key_column.to_owned()))
    }

    /// Notes a table that every shard has whole.
    ///
    /// # Errors
    ///
    /// As [`SchemaInfo::add_sharded`].
    pub fn add_reference(&mut self, schema: &str, table: &str) -> Result<(), Error> {
        self.add(schema, table, None)
    }

    fn add(&mut self, schema: &str, table: &str, key_column: Option<String>) -> Result<(), Error> {
        if self.tables.iter().any(|info| info.schema == schema && info.table == table) {
            let text = format!("table {schema}.{table} is noted already: remove it first");
            return Err(Error::new(Category::SchemaInfo, Code::TableInfoAlreadyPresent, text));
        }
        self.tables.push(TableInfo { schema: schema.to_owned(), table: table.to_owned(), key_column });
        self.tables.sort();
        Ok(())
    }

    /// Removes a table. Returns whether it was noted.
    pub fn remove(&mut self, schema: &str, table: &str) -> bool {
        let before = self.tables.len();
        self.tables.retain(|info| info.schema != schema || info.table != table);
        self.tables.len() < before
    }

    /// The tables whose rows are spread.
    pub fn sharded(&self) -> impl Iterator<Item = &TableInfo> {
        self.tables.iter().filter(|table| table.key_column.is_some())
    }

    /// The tables that every shard has whole.
    pub fn reference(&self) -> impl Iterator<Item = &TableInfo> {
        self.tables.iter().filter(|table| table.key_column.is_none())
    }
}

/// The notes of a global map.
#[derive(Debug, Clone)]
pub struct SchemaInfos(ShardMapManager);

impl ShardMapManager {
    /// The notes on sharded tables.
    pub fn schema_infos(&self) -> SchemaInfos {
        SchemaInfos(self.clone())
    }
}

impl SchemaInfos {
    /// Adds a note.
    ///
    /// # Errors
    ///
    /// [`Code::SchemaInfoNameConflict`].
    pub async fn add(&self, name: &str, info: &SchemaInfo) -> Result<(), Error> {
        let sql = "insert into __shard_management.global_schema_infos (name, info) values ($1, $2)
            on conflict (name) do nothing";
        if self.write(sql, name, Some(info)).await? == 0 {
            let text = format!("there is a note {name:?}: replace it, or choose another name");
            return Err(Error::new(Category::SchemaInfo, Code::SchemaInfoNameConflict, text));
        }
        Ok(())
    }

    /// Replaces a note.
    ///
    /// # Errors
    ///
    /// [`Code::SchemaInfoNameDoesNotExist`].
    pub async fn replace(&self, name: &str, info: &SchemaInfo) -> Result<(), Error> {
        let sql = "update __shard_management.global_schema_infos set info = $2 where name = $1";
        if self.write(sql, name, Some(info)).await? == 0 { Err(missing(name)) } else { Ok(()) }
    }

    /// Removes a note. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`Code::StorageOperationFailure`].
    pub async fn remove(&self, name: &str) -> Result<bool, Error> {
        let sql = "delete from __shard_management.global_schema_infos where name = $1";
        Ok(self.write(sql, name, None).await? > 0)
    }

    /// A note.
    ///
    /// # Errors
    ///
    /// [`Code::SchemaInfoNameDoesNotExist`].
    pub async fn get(&self, name: &str) -> Result<SchemaInfo, Error> {
        self.try_get(name).await?.ok_or_else(|| missing(name))
    }

    /// A note; `None` if there is none of this name.
    ///
    /// # Errors
    ///
    /// [`Code::StorageOperationFailure`].
    pub async fn try_get(&self, name: &str) -> Result<Option<SchemaInfo>, Error> {
        Ok(self.all().await?.into_iter().find(|(found, _)| found == name).map(|(_, info)| info))
    }

    /// All notes, by name.
    ///
    /// # Errors
    ///
    /// [`Code::StorageOperationFailure`].
    pub async fn all(&self) -> Result<Vec<(String, SchemaInfo)>, Error> {
        let read = async {
            let mut tx = self.0.reading().await?;
            let sql = "select name, info from __shard_management.global_schema_infos order by name";
            let rows = tx.query(sql, &[]).await?;
            tx.commit().await?;
            let one = |mut row: Row| {
                let (name, info) = (row.text()?, row.text()?);
                let read = serde_json::from_str(&info);
                let info =
                    read.map_err(|error| row.damaged(format!("note {name:?} does not read: {error}")))?;
                Ok((name, info))
            };
            rows.into_iter().map(one).collect::<Result<Vec<_>, StoreError>>()
        };
        read.await.map_err(|error: StoreError| error.seen_by(Category::SchemaInfo))
    }

    async fn write(&self, sql: &str, name: &str, info: Option<&SchemaInfo>) -> Result<u64, Error> {
        let write = async {
            let mut tx = self.0.writing().await?;
            let mut values = vec![name.into()];
            if let Some(info) = info {
                let json = serde_json::to_string(info).expect("a note has text keys alone");
                values.push(json.as_str().into());
            }
            let changed = tx.execute(sql, &values).await?;
            tx.commit().await?;
            Ok(changed)
        };
        write.await.map_err(|trouble: Trouble| trouble.seen_by(Category::SchemaInfo))
    }
}

fn missing(name: &str) -> Error {
    let text = format!("there is no note {name:?}: add it first");
    Error::new(Category::SchemaInfo, Code::SchemaInfoNameDoesNotExist, text)
}
