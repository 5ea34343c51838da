//! Dropping a table in all ranges that hold a part of it, and what the catalogue says about dropped tables.
//!
//! The steps of dropping a table are described in `range::dropped`.

use std::ops::ControlFlow;

use bytes::Bytes;
use futures::future::BoxFuture;
use rangehold_map::key::{KIND_CATALOGUE, after_prefix, dropped_prefix, table_prefix};
use rangehold_map::{Key, KeyRange, PartitionPrefix, TableId};
use tokio::time::{Instant, timeout_at};

use super::Router;
use super::notes::Note;
use crate::error::{Damaged, ReadError, Reason};
use crate::run_to_end::RunToEnd;

impl Router {
    /// Refuses every later read and write of the table. Its rows are removed in the background.
    /// The drop is durable when this returns, and harmless to repeat.
    ///
    /// Before this, the caller has written `Key::DroppedTable` into the account's catalogue, in the batch
    /// that deletes the table's own row. The `DroppedTable` row is deleted when nothing of the table is left. Until
    /// then a failure here is repaired in the background: an error means that the drop is not done *yet*.
    ///
    /// A range that is offline learns of the drop when it comes back, before it serves.
    ///
    /// What was begun goes on after `deadline`, and also if the caller gives up.
    pub fn drop_table<'a>(
        &'a self,
        account: &'a str,
        table: TableId,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<(), ReadError>> {
        Box::pin(async move {
            let (router, account) = (self.clone(), account.to_owned());
            let noting = RunToEnd::new(Box::pin(async move {
                let keys = KeyRange::prefix(&table_prefix(&account, table));
                let noted = router.note_in_ranges(&Note::Dropped(account, table), keys).await;
                router.0.dropped.notify_one();
                noted
            }));
            timeout_at(deadline, noting).await.unwrap_or_else(|_| {
                let why = "the deadline passed before every range had noted that the table is dropped";
                Err(ReadError::Unavailable(Reason::Found(why)))
            })
        })
    }
}

/// The dropped tables of all accounts, as the catalogue has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DroppedInCatalogue(Vec<(String, TableId)>);

impl DroppedInCatalogue {
    /// Reads the dropped tables of all accounts. It jumps from account to account, so that it costs the same for ten
    /// tables and for ten thousand.
    pub(crate) async fn read(router: &Router) -> Result<Self, ReadError> {
        let mut found = Vec::new();
        let end = after_prefix(&[KIND_CATALOGUE]);
        let mut rest = KeyRange::new(vec![KIND_CATALOGUE], end.clone());
        while let Some(key) = keys(router, &rest, 1).await?.pop() {
            let account = account_of(&key)?;
            let dropped = KeyRange::prefix(&dropped_prefix(&account));
            for key in keys(router, &dropped, usize::MAX).await? {
                match Key::decode(&key) {
                    Ok(Key::DroppedTable { account, table }) => found.push((account, table)),
                    _ => return Err(bad_catalogue_key(&key)),
                }
            }
            let Some(next) = after_prefix(PartitionPrefix::catalogue(&account).as_bytes()) else {
                break;
            };
            rest = KeyRange::new(next, end.clone());
        }
        Ok(Self(found))
    }

    pub(crate) fn tables(&self) -> &[(String, TableId)] {
        &self.0
    }
}

/// The first `most` keys in `range` that have rows.
async fn keys(router: &Router, range: &KeyRange, most: usize) -> Result<Vec<Vec<u8>>, ReadError> {
    let take = |keys: &mut Vec<Vec<u8>>, key: &[u8], _: &Bytes| {
        keys.push(key.to_vec());
        if keys.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    router.scan(range, Vec::new, take).await
}

fn account_of(key: &[u8]) -> Result<String, ReadError> {
    match Key::decode(key) {
        Ok(
            Key::ServiceProperties { account }
            | Key::Table { account, .. }
            | Key::DroppedTable { account, .. },
        ) => Ok(account),
        _ => Err(bad_catalogue_key(key)),
    }
}

fn bad_catalogue_key(key: &[u8]) -> ReadError {
    ReadError::Damaged(Damaged::new(format!("a row of the catalogue has the unknown key {key:02x?}")))
}
