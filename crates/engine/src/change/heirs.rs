//! The steps of a change on the ranges that it makes.

use std::sync::Arc;

use futures::future::join_all;
use uuid::Uuid;

use super::clone::{self, Source};
use super::replacement::Replacement;
use super::table::Attempt;
use super::{StepError, parents};
use crate::database::DatabaseError;
use crate::limits::CLONE_ATTEMPTS_MAX;
use crate::partition_server::PartitionServer;
use crate::range::{Inheritance, Range};

/// Makes the directories of the first attempt, as far as that is possible by now: what is made before writes are held
/// need not be made while they are.
pub(super) async fn make_directories(server: &PartitionServer, change: &Replacement) {
    clone::make_directories(&server.context().store, change.heirs_of(1).map(|heir| heir.database)).await;
}

/// Makes the databases of the heirs from checkpoints of the retired parents; returns the attempt that succeeded.
pub(super) async fn make(
    server: &PartitionServer,
    change: &Replacement,
    retired: &[Arc<Range>],
    checkpoints: &[Uuid],
) -> Result<Attempt, StepError> {
    let mut failed = match make_attempt(server, change, 1, retired, checkpoints).await {
        Ok(()) => return Ok(1),
        Err(error) => error,
    };
    for attempt in 2..=CLONE_ATTEMPTS_MAX {
        // The memtable may have been cut between the last row and the flush.
        let checkpoints = parents::retire(retired, change.record()).await?;
        match make_attempt(server, change, attempt, retired, &checkpoints).await {
            Ok(()) => return Ok(attempt),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

async fn make_attempt(
    server: &PartitionServer,
    change: &Replacement,
    attempt: Attempt,
    retired: &[Arc<Range>],
    checkpoints: &[Uuid],
) -> Result<(), StepError> {
    let making = change.heirs_of(attempt).map(async |heir| {
        let sources: Vec<Source<'_>> = retired
            .iter()
            .zip(checkpoints)
            .map(|(range, checkpoint)| Source {
                range,
                checkpoint: *checkpoint,
                keys: range.keys().intersect(&heir.keys),
            })
            .collect();
        clone::make(&server.context().databases, heir.database, &sources)
            .await
            .map_err(|source| StepError::NotMade { database: heir.database, source })
    });
    // Each writes a checkpoint into the manifest of the same range, and writes it again if another one was faster.
    join_all(making).await.into_iter().collect()
}

/// Opens the heirs of an attempt. If one cannot be opened, none stays open.
pub(super) async fn open(
    server: &PartitionServer,
    change: &Replacement,
    attempt: Attempt,
    inheritance: &Inheritance,
) -> Result<Vec<Arc<Range>>, DatabaseError> {
    let opening = change.heirs_of(attempt).map(|heir| server.open_heir(heir, inheritance));
    // Waits for all of them: one that is left half open would stay so.
    let (mut heirs, mut failed) = (Vec::new(), None);
    for opened in join_all(opening).await {
        match opened {
            Ok(heir) => heirs.push(heir),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let Some(error) = failed else { return Ok(heirs) };
    give_up(server, heirs);
    Err(error)
}

/// Ends heirs that were never served, in the background.
pub(super) fn give_up(server: &PartitionServer, heirs: Vec<Arc<Range>>) {
    heirs.iter().for_each(|heir| heir.let_go());
    server.abandon(heirs);
}

/// Writes into the heirs what they inherit.
pub(super) async fn save_inheritance(
    heirs: &[Arc<Range>],
    inheritance: &Inheritance,
) -> Result<(), StepError> {
    for heir in heirs {
        heir.save_inheritance(inheritance).await?;
    }
    Ok(())
}
