//! The audit: finds blobs and users that a crash has left behind.
//!
//! It walks over the rows of all blobs, a page at a time, and asks each user whether one of its rows still names the
//! blob. Only the caller can read those rows. A user whose request is under way in this process is not asked, since its
//! row may come yet. A request whose client hung up, or whose deadline passed, is not under way any more, but its row may be
//! on its way into the log. So before a user is removed, the audit waits until all earlier writes of its name are durable, and
//! asks again. Files that no row names are found by another look ([`Blobs::audit_files`]).

use std::future::Future;

use rangehold_map::blob::{BlobId, BlobUser};
use rangehold_map::key::{BlobRow, KIND_BLOB};
use rangehold_map::{Key, KeyRange, PartitionPrefix};
use tokio::time::Instant;

use super::error::Never;
use super::rows::Rows;
use super::{BlobError, Blobs};
use crate::error::ReadError;
use crate::limits::{AUDITED_ROWS_MAX, OWN_WRITE_WAITS_MAX};
use crate::range::{Visit, WriteRequest};
use crate::store::Space;

/// Where an audit goes on. The default is the beginning.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct AuditCursor(Vec<u8>);

/// What a part of an audit did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audited {
    /// Where to go on; `None` at the end, or if a copy is being made (then try again later).
    pub next: Option<AuditCursor>,
    /// Users that were looked at.
    pub users: u64,
    /// Users that did not name the blob any more, and were removed.
    pub removed: u64,
    /// Blobs that were dead.
    pub buried: u64,
}

impl Blobs {
    /// Looks at the next rows of blobs. `names` tells whether a row of this user names this blob: the content of a
    /// generation, an upload or a part.
    pub async fn audit<F>(
        &self,
        from: &AuditCursor,
        names: impl Fn(BlobId, BlobUser) -> F,
    ) -> Result<Audited, BlobError>
    where
        F: Future<Output = Result<bool, ReadError>>,
    {
        let mut audited = Audited::default();
        if self.is_held().await? {
            return Ok(audited);
        }
        let (rows, next) = self.rows_from(from).await?;
        audited.next = next;
        for (blob, row) in rows {
            match row {
                BlobRow::State if self.readable_rows_of(blob).await?.is_some_and(Rows::is_dead) => {
                    self.bury(blob).await?;
                    audited.buried += 1;
                }
                BlobRow::State => {}
                BlobRow::User(user) => {
                    audited.users += 1;
                    // In this order: a request whose row is not there when it is asked for is still under way, or has
                    // failed, or has put its row into the log.
                    let is_named = async || match names(blob, user.clone()).await {
                        // A row that cannot be read may name the blob. The other blobs do not depend on it.
                        Err(ReadError::Damaged(damage)) => {
                            tracing::error!(%blob, %damage, "the audit cannot ask a user of a blob");
                            Ok(true)
                        }
                        is_named => is_named.map_err(BlobError::Read),
                    };
                    let is_used = self.0.in_use.is_under_way(&user) || is_named().await? || {
                        self.wait_for_writes(blob, &user).await?;
                        is_named().await?
                    };
                    if !is_used {
                        self.release_one(blob, &user).await?;
                        audited.removed += 1;
                    }
                }
            }
        }
        Ok(audited)
    }

    /// Waits until all writes of a user's name are durable that have put their rows into the log.
    async fn wait_for_writes(&self, blob: BlobId, user: &BlobUser) -> Result<(), BlobError> {
        let partition = PartitionPrefix::object(user.bucket, &user.name);
        let deadline = Instant::now() + OWN_WRITE_WAITS_MAX;
        let request = WriteRequest {
            of_closed: true,
            space: Space::Returns,
            ..WriteRequest::new(&partition, &[], deadline)
        };
        // A write without changes is answered when what it was judged on is durable.
        let waited = self.0.router.write(&request, |_, _| Ok::<_, Never>(Vec::new())).await;
        waited.map_err(|source| BlobError::Row { blob, source })?;
        Ok(())
    }

    /// The rows of a blob; `None` if they are damaged. The other blobs do not depend on them.
    pub(super) async fn readable_rows_of(&self, blob: BlobId) -> Result<Option<Rows>, BlobError> {
        match self.rows_of(blob).await {
            Err(BlobError::Damaged(damage) | BlobError::Read(ReadError::Damaged(damage))) => {
                tracing::error!(%blob, %damage, "the audit passes a blob over");
                Ok(None)
            }
            rows => rows.map(Some),
        }
    }

    async fn rows_from(
        &self,
        from: &AuditCursor,
    ) -> Result<(Vec<(BlobId, BlobRow)>, Option<AuditCursor>), BlobError> {
        let low = if from.0.is_empty() { vec![KIND_BLOB] } else { from.0.clone() };
        let keys = KeyRange::prefix(&[KIND_BLOB]).intersect(&KeyRange::new(low, None));
        let (rows, next) = self.rows_in(keys).await?;
        Ok((rows, next.map(AuditCursor)))
    }

    /// The first rows of blobs with these keys, at most [`AUDITED_ROWS_MAX`], and the key of the next one.
    pub(super) async fn rows_in(
        &self,
        keys: KeyRange,
    ) -> Result<(Vec<(BlobId, BlobRow)>, Option<Vec<u8>>), BlobError> {
        let visit = |found: &mut Vec<Vec<u8>>, key: &[u8], _: &bytes::Bytes| {
            found.push(key.to_vec());
            if found.len() > AUDITED_ROWS_MAX { Visit::Stop } else { Visit::Next }
        };
        let mut found = self.0.router.scan(&keys, Vec::new, visit).await.map_err(BlobError::Read)?;
        let next = (found.len() > AUDITED_ROWS_MAX).then(|| found.pop()).flatten();
        let rows = found.iter().filter_map(|key| match Key::decode(key) {
            Ok(Key::Blob { blob, row }) => Some((blob, row)),
            _ => {
                // The rows of other blobs do not depend on it.
                tracing::error!(?key, "a row of a blob has an unknown key, and the audit passes it over");
                None
            }
        });
        Ok((rows.collect(), next))
    }
}
