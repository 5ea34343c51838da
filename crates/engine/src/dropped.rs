//! What the catalogue says about dropped tables, and the sweeper that brings them to their end.
//!
//! See [`crate::range`]'s `dropped` for the life of a dropped table.

use std::ops::ControlFlow;

use bytes::Bytes;
use rangehold_map::key::{KIND_CATALOGUE, after_prefix, dropped_prefix};
use rangehold_map::{Key, KeyRange, PartitionPrefix, TableId};

use crate::error::{Damaged, ReadError};
use crate::router::Router;

/// The dropped tables of all accounts, as the catalogue has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DroppedInCatalogue(Vec<(String, TableId)>);

impl DroppedInCatalogue {
    /// Steps from account to account, so that it costs the same with ten tables and with ten
    /// thousand.
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

/// The first `most` keys of `range`.
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
    ReadError::Damaged(Damaged(format!("a row of the catalogue has the unknown key {key:02x?}")))
}
