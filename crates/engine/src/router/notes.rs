//! Notes that every range makes that holds some of the keys of a table or bucket.

use rangehold_map::{BucketId, KeyRange, TableId};

use super::Router;
use crate::error::{ReadError, Reason};

/// What the ranges are to note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Note {
    /// A table of an account was dropped.
    Dropped(String, TableId),
    /// A bucket is closed.
    Closed(BucketId),
    /// A bucket is open again.
    Open(BucketId),
    /// The folders of a bucket are about to be changed: the number of the change.
    Fence(BucketId, u64),
    /// A bucket is gone for good, and so is its fence.
    Unfence(BucketId),
}

impl Router {
    /// Makes every range note it that holds some of `keys`. Ranges that are split, merged or moved meanwhile are asked
    /// again at their new owners.
    pub(super) async fn note_in_ranges(&self, note: &Note, keys: KeyRange) -> Result<(), ReadError> {
        // A map that is older than the caller's own rows could say that a range is offline although it serves by now.
        self.0.maps.refresh().await.map_err(|error| ReadError::Unavailable(Reason::failed(error)))?;
        let mut rest = keys;
        let mut search = self.search();
        while !rest.is_empty() {
            let map = self.0.maps.current();
            let entry = map.overlapping(&rest).next().ok_or(ReadError::NotOwned)?;
            let part = entry.keys.intersect(&rest);
            let server = self.server_of(entry.place.server).filter(|_| entry.online);
            let answer = match (note, server) {
                // A range that is offline learns of a dropped table from the catalogue when it comes back.
                (Note::Dropped(..), _) if !entry.online => Ok(()),
                _ if !entry.online => Err(ReadError::Offline(entry.id)),
                (_, None) => Err(ReadError::NotOwned),
                (Note::Dropped(account, table), Some(server)) => {
                    server.drop_table(account, *table, &part).await
                }
                (Note::Closed(bucket), Some(server)) => server.set_closed(*bucket, true, &part).await,
                (Note::Open(bucket), Some(server)) => server.set_closed(*bucket, false, &part).await,
                (Note::Fence(bucket, to), Some(server)) => server.fence(*bucket, Some(*to), &part).await,
                (Note::Unfence(bucket), Some(server)) => server.fence(*bucket, None, &part).await,
            };
            match answer {
                Err(ReadError::NotOwned) => self.again(&mut search).await?,
                Err(error) => return Err(error),
                Ok(()) => {
                    let Some(next) = part.high() else { break };
                    rest = rest.intersect(&KeyRange::new(next.to_vec(), None));
                }
            }
        }
        Ok(())
    }
}
