//! The keys of stored rows, and how they sort.
//!
//! A key begins with a byte for its kind. Kinds are stored, so a number is never reused and never changes its
//! meaning. The rows of one *partition* (the unit of batches, which is never cut in two) have keys that begin
//! with the same [`PartitionPrefix`].
//!
//! | kind | key after the kind byte | partition | value |
//! |---|---|---|---|
//! | `01` range meta | one byte for the sort of row, then its name | none: these rows lie outside all ranges | the engine's own |
//! | `10` catalogue | account, `01` | the account | service properties of the account |
//! | | account, `02`, table name in lower case | the account | name as given, table id, access policies |
//! | | account, `03`, table id | the account | a table that was deleted, whose rows may still be there |
//! | `11` bucket | bucket name, `01` | the bucket name | a bucket of objects |
//! | | bucket name, `02`, bucket id | the bucket name | a bucket that was deleted and can be restored |
//! | | bucket name, `03`, notification id | the bucket name | a notification configuration |
//! | | bucket name, `04`, bucket id | the bucket name | what the bucket bears |
//! | | bucket name, `05`, bucket id, operation id | the bucket name | a long-running operation |
//! | | the empty name, `06` | the empty name | the bucket id that was given last |
//! | `12` project | project, `01`, access id | the project | an HMAC key |
//! | `20` entity | account, table id, PartitionKey, RowKey | account, table id, PartitionKey | the entity |
//! | `30` object | bucket id, object name, then see [`ObjectRow`] | bucket id, object name | see [`ObjectRow`] |
//! | | bucket id, the empty name, then see [`ObjectRow`] | the bucket's folders | folders of the bucket |
//! | `31` blob | blob id, `00` | blob id | how many use the blob |
//! | | blob id, `01`, then the user, see [`BlobUser`] | blob id | one that uses the blob; no value |
//!
//! The kinds `10` and `20` have texts, in the order of UTF-16. All others have names, in the order of UTF-8.
//! [`codec`](crate::codec) says why.
//!
//! A table id is never used twice. It is the time at which the table was created, in ticks, and the times
//! that a partition hands out strictly grow. So a table that is deleted and created again has other keys than
//! before. Bucket names are partitions of their own, whose times may be equal, so bucket ids come from one row that
//! counts them.

mod blob;
mod bucket;
mod object;
mod partition;
mod table;

pub use blob::{BlobId, BlobRow, BlobUser};
pub use bucket::{BucketId, BucketRow, ProjectRow};
pub use object::{
    ObjectGeneration, ObjectKey, ObjectRow, bucket_objects, bucket_of, names_beginning_with, names_from,
};
pub use partition::{PartitionPrefix, after_prefix, is_of_objects, is_partition_boundary, partition_length};
pub use table::{
    TableId, account_prefix, dropped_prefix, entity_keys, table_of, table_prefix, tables_prefix,
};

use table::catalogue_prefix;

use crate::codec::{MalformedKey, Reader, put_text, put_u64};

/// First byte of the rows that a range keeps about itself. They lie below every range.
pub const KIND_RANGE_META: u8 = 0x01;
/// First byte of the catalogue of tables.
pub const KIND_CATALOGUE: u8 = 0x10;
/// First byte of buckets.
pub const KIND_BUCKET: u8 = 0x11;
/// First byte of what belongs to a project and not to a bucket.
pub const KIND_PROJECT: u8 = 0x12;
/// First byte of entities.
pub const KIND_ENTITY: u8 = 0x20;
/// First byte of objects.
pub const KIND_OBJECT: u8 = 0x30;
/// First byte of the references to blobs.
pub const KIND_BLOB: u8 = 0x31;

const CATALOGUE_SERVICE_PROPERTIES: u8 = 0x01;
const CATALOGUE_TABLE: u8 = 0x02;
const CATALOGUE_DROPPED: u8 = 0x03;

/// A key in its readable form. [`Key::encode`] gives the form that is stored and compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// The service properties of an account.
    ServiceProperties {
        /// Account name.
        account: String,
    },
    /// A table, by name.
    Table {
        /// Account name.
        account: String,
        /// Table name in lower case: names are unique without regard to case.
        lower_name: String,
    },
    /// A deleted table, some of whose rows may still be stored.
    DroppedTable {
        /// Account name.
        account: String,
        /// The id the table had.
        table: TableId,
    },
    /// An entity.
    Entity {
        /// Account name.
        account: String,
        /// The incarnation of the table.
        table: TableId,
        /// PartitionKey, as the client gave it.
        partition_key: String,
        /// RowKey, as the client gave it.
        row_key: String,
    },
    /// A row of a bucket name.
    Bucket {
        /// The bucket name.
        name: String,
        /// Which of its rows.
        row: BucketRow,
    },
    /// A row of a project.
    Project {
        /// The id of the project.
        project: String,
        /// Which of its rows.
        row: ProjectRow,
    },
    /// A row of an object name.
    Object(ObjectKey<'static>),
    /// A row of a blob.
    Blob {
        /// The blob.
        blob: BlobId,
        /// Which of its rows.
        row: BlobRow,
    },
}

impl Key {
    /// The bytes under which the row is stored. They compare as keys sort.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::ServiceProperties { account } => catalogue_prefix(account, &[CATALOGUE_SERVICE_PROPERTIES]),
            Self::Table { account, lower_name } => {
                let mut out = catalogue_prefix(account, &[CATALOGUE_TABLE]);
                put_text(&mut out, lower_name);
                out
            }
            Self::DroppedTable { account, table } => {
                let mut out = catalogue_prefix(account, &[CATALOGUE_DROPPED]);
                put_u64(&mut out, table.0);
                out
            }
            Self::Entity { account, table, partition_key, row_key } => {
                PartitionPrefix::entity(account, *table, partition_key).key(row_key)
            }
            Self::Bucket { name, row } => PartitionPrefix::bucket(name).bucket_row(row),
            Self::Project { project, row } => PartitionPrefix::project(project).project_row(row),
            Self::Object(object) => object.encode(),
            Self::Blob { blob, row } => PartitionPrefix::blob(*blob).blob_row(row),
        }
    }

    /// The readable form of a stored key. Fails on bytes that [`Key::encode`] does not make.
    pub fn decode(bytes: &[u8]) -> Result<Self, MalformedKey> {
        let mut reader = Reader::new(bytes);
        let key = match reader.u8()? {
            KIND_CATALOGUE => Self::in_catalogue(&mut reader)?,
            KIND_ENTITY => {
                let (account, table) = (reader.text()?, TableId(reader.u64()?));
                Self::Entity { account, table, partition_key: reader.text()?, row_key: reader.text()? }
            }
            KIND_BUCKET => {
                Self::Bucket { name: reader.name()?.into_owned(), row: BucketRow::read(&mut reader)? }
            }
            KIND_PROJECT => {
                Self::Project { project: reader.name()?.into_owned(), row: ProjectRow::read(&mut reader)? }
            }
            KIND_OBJECT => return Ok(Self::Object(ObjectKey::decode(bytes)?.into_owned())),
            KIND_BLOB => Self::Blob { blob: BlobId(reader.u128()?), row: BlobRow::read(&mut reader)? },
            _ => return Err(MalformedKey { at: 0, what: "a known kind of key" }),
        };
        reader.end()?;
        Ok(key)
    }

    fn in_catalogue(reader: &mut Reader<'_>) -> Result<Self, MalformedKey> {
        let account = reader.text()?;
        Ok(match reader.u8()? {
            CATALOGUE_SERVICE_PROPERTIES => Self::ServiceProperties { account },
            CATALOGUE_TABLE => Self::Table { account, lower_name: reader.text()? },
            CATALOGUE_DROPPED => Self::DroppedTable { account, table: TableId(reader.u64()?) },
            _ => return Err(reader.unknown_row()),
        })
    }
}
