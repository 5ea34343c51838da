//! The names of tables and buckets. Keys are written with them for people.

use std::ops::ControlFlow;

use bytes::Bytes;
use rangehold_engine::Router;
use rangehold_map::key::{KIND_BUCKET, KIND_CATALOGUE, table_prefix};
use rangehold_map::load::{Titles, Verdict};
use rangehold_map::script::{KeyName, Names, TableRef};
use rangehold_map::{BucketId, BucketRow, Key, KeyRange, TableId};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::table::catalogue::TableRecord;
use tokio::time::timeout;
use tracing::debug;

use crate::limits::{NAMED_TABLES_MAX, NAMES_WITHIN};

/// The names of all tables, or of the first [`NAMED_TABLES_MAX`]. A key without an account belongs to `account`.
/// `None` if the catalogue cannot be read in time.
pub(super) async fn read(router: &Router, account: &str) -> Option<Names> {
    let tables = tables(router).await?;
    let mut names = Names::new(account);
    for (account, name, id) in &tables {
        names.add_table(Some(account), name, *id);
    }
    for (name, id, has_folders) in buckets(router).await.unwrap_or_default() {
        names.add_bucket(&name, id);
        if has_folders {
            names.add_folders(id);
        }
    }
    Some(if tables.len() < NAMED_TABLES_MAX { names } else { names.partial() })
}

/// The prefix of the keys of each table that has a name here; none if the catalogue cannot be read in time.
pub(crate) async fn table_prefixes(router: &Router) -> Vec<Vec<u8>> {
    let tables = tables(router).await.unwrap_or_default();
    tables.into_iter().map(|(account, _, id)| table_prefix(&account, id)).collect()
}

/// The name and id of each bucket, or of the first [`NAMED_TABLES_MAX`], and whether its objects lie in folders.
async fn buckets(router: &Router) -> Option<Vec<(String, BucketId, bool)>> {
    let note = |buckets: &mut Vec<(String, BucketId, bool)>, key: &[u8], value: &Bytes| {
        if let (Ok(Key::Bucket { name, row: BucketRow::Bucket }), Ok(bucket)) =
            (Key::decode(key), Bucket::decode(value))
        {
            buckets.push((name, bucket.id, bucket.has_folders()));
        }
        if buckets.len() < NAMED_TABLES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let keys = KeyRange::prefix(&[KIND_BUCKET]);
    match timeout(NAMES_WITHIN, router.scan(&keys, Vec::new, note)).await {
        Ok(Ok(buckets)) => Some(buckets),
        Ok(Err(error)) => {
            debug!(%error, "the names of buckets could not be read");
            None
        }
        Err(_) => None,
    }
}

/// The account, name and id of each table.
async fn tables(router: &Router) -> Option<Vec<(String, String, TableId)>> {
    let catalogue = KeyRange::prefix(&[KIND_CATALOGUE]);
    match timeout(NAMES_WITHIN, router.scan(&catalogue, Vec::new, note_table)).await {
        Ok(Ok(tables)) => return Some(tables),
        Ok(Err(error)) => debug!(%error, "the names of tables could not be read"),
        Err(_) => debug!("the names of tables could not be read in time"),
    }
    None
}

fn note_table(tables: &mut Vec<(String, String, TableId)>, key: &[u8], value: &Bytes) -> ControlFlow<()> {
    if let (Ok(Key::Table { account, .. }), Ok(table)) = (Key::decode(key), TableRecord::decode(value)) {
        tables.push((account, table.name, table.id));
    }
    if tables.len() < NAMED_TABLES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// A verdict in words, with the names of tables and buckets.
pub(crate) fn told(verdict: &Verdict, names: &Names) -> String {
    verdict.sentence(Titles {
        table: &|account, table| table_name(names, account, table),
        bucket: &|bucket| names.bucket_title(bucket),
    })
}

/// The name of an account's table, if it is known.
fn table_name(names: &Names, account: &str, table: TableId) -> Option<String> {
    match names.name(&table_prefix(account, table)) {
        KeyName::Table(table) => match table.table {
            TableRef::Name(name) => Some(name),
            TableRef::Id(_) => None,
        },
        _ => None,
    }
}
