//! The entities of a file, while others work on those before them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rangehold_client::Entity;
use tokio::sync::mpsc;

use super::format::Format;
use super::limits::PIECES_WAITING;

/// Reads a file on a thread of its own, in pieces of about `bytes` bytes, without its first entities.
pub(crate) fn pieces(path: PathBuf, skip: u64, bytes: usize) -> mpsc::Receiver<Result<Vec<Entity>>> {
    let (sender, receiver) = mpsc::channel(PIECES_WAITING);
    tokio::task::spawn_blocking(move || {
        let sent = send_pieces(&path, skip, bytes, &sender);
        if let Err(error) = sent {
            // If the receiver is gone, another error has ended the command.
            let _gone = sender.blocking_send(Err(error));
        }
    });
    receiver
}

fn send_pieces(path: &Path, skip: u64, bytes: usize, out: &mpsc::Sender<Result<Vec<Entity>>>) -> Result<()> {
    let (mut piece, mut size) = (Vec::new(), 0);
    let rows = Format::of(path)?.read(path)?;
    for entity in rows.skip(usize::try_from(skip)?) {
        let entity = entity?;
        size += entity.bytes();
        piece.push(entity);
        if size >= bytes {
            size = 0;
            if out.blocking_send(Ok(std::mem::take(&mut piece))).is_err() {
                return Ok(());
            }
        }
    }
    if !piece.is_empty() {
        // As above.
        let _gone = out.blocking_send(Ok(piece));
    }
    Ok(())
}
