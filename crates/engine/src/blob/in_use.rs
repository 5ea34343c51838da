//! What this process is doing with blobs: downloads pin them, and requests are about to write rows that name them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use rangehold_map::blob::{BlobId, BlobUser};
use tokio::sync::Notify;

use crate::limits::BLOBS_REMEMBERED_MAX;

/// Counts pins and requests.
#[derive(Debug, Clone, Default)]
pub(super) struct InUse(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    counts: Mutex<Counts>,
    /// Notified when a dead blob has lost its last pin.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Counts {
    pins: BTreeMap<BlobId, u64>,
    users: BTreeMap<BlobUser, u64>,
    /// Dead blobs that could not be buried yet.
    waiting: BTreeSet<BlobId>,
    next_chunks: NextChunks,
}

/// The next chunk of each blob that is being written, and of those that were written last. A client that hangs up ends its
/// request, but not the write of a chunk that is on its way: it may still give the file its name.
#[derive(Debug, Default)]
struct NextChunks {
    /// The blobs that were asked for lately.
    young: BTreeMap<BlobId, Arc<AtomicU32>>,
    /// Those that were asked for before them.
    old: BTreeMap<BlobId, Arc<AtomicU32>>,
}

impl NextChunks {
    fn of(&mut self, blob: BlobId) -> Arc<AtomicU32> {
        let known = self.old.remove(&blob).or_else(|| self.young.get(&blob).cloned());
        let next = known.unwrap_or_default();
        self.young.insert(blob, Arc::clone(&next));
        if self.young.len() > BLOBS_REMEMBERED_MAX / 2 {
            let young = std::mem::take(&mut self.young);
            let forgotten = std::mem::replace(&mut self.old, young);
            // A blob that is being written is not forgotten.
            self.young = forgotten.into_iter().filter(|(_, next)| Arc::strong_count(next) > 1).collect();
        }
        next
    }
}

/// A request that is about to write the row by which a user names a blob. Keep it until the row is durable, or will not
/// be written. Until then the audit does not ask the user.
#[derive(Debug)]
pub struct UnderWay {
    user: BlobUser,
    counts: InUse,
}

/// Keeps the files of a blob.
#[derive(Debug)]
pub(super) struct Pin {
    blob: BlobId,
    counts: InUse,
}

/// The numbers of the chunks that the writers of one blob have not taken yet.
#[derive(Debug)]
pub(super) struct ChunkNumbers {
    blob: BlobId,
    next: Arc<AtomicU32>,
    counts: InUse,
}

impl ChunkNumbers {
    /// A number that no other chunk of the blob has, nor had lately.
    pub(super) fn take(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

impl InUse {
    /// Notes a request of this user.
    pub(super) fn under_way(&self, user: &BlobUser) -> UnderWay {
        *self.0.counts.lock().users.entry(user.clone()).or_default() += 1;
        UnderWay { user: user.clone(), counts: self.clone() }
    }

    /// Whether a request of this user is under way.
    pub(super) fn is_under_way(&self, user: &BlobUser) -> bool {
        self.0.counts.lock().users.contains_key(user)
    }

    /// Where the writers of `blob` take the numbers of their chunks: from `least` on, each number once. Two requests of
    /// one upload may write at once, if a client gave one of them up, and neither may replace a chunk of the other.
    pub(super) fn chunk_numbers(&self, blob: BlobId, least: u32) -> ChunkNumbers {
        let next = self.0.counts.lock().next_chunks.of(blob);
        next.fetch_max(least, Ordering::Relaxed);
        ChunkNumbers { blob, next, counts: self.clone() }
    }

    /// Keeps the files of `blob` until the pin is dropped.
    pub(super) fn pin(&self, blob: BlobId) -> Pin {
        *self.0.counts.lock().pins.entry(blob).or_default() += 1;
        Pin { blob, counts: self.clone() }
    }

    /// Whether a download reads the blob.
    pub(super) fn is_pinned(&self, blob: BlobId) -> bool {
        self.0.counts.lock().pins.contains_key(&blob)
    }

    /// Remembers a dead blob that cannot be buried now.
    pub(super) fn wait(&self, blob: BlobId) {
        self.0.counts.lock().waiting.insert(blob);
    }

    /// Takes the dead blobs that wait and that no download reads.
    pub(super) fn take_waiting(&self) -> Vec<BlobId> {
        let mut counts = self.0.counts.lock();
        let Counts { pins, waiting, .. } = &mut *counts;
        let free: Vec<_> = waiting.iter().filter(|blob| !pins.contains_key(blob)).copied().collect();
        waiting.retain(|blob| pins.contains_key(blob));
        free
    }

    /// Waits until a dead blob has lost its last pin.
    pub(super) async fn freed(&self) {
        self.0.freed.notified().await;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        count_down(&mut self.counts.0.counts.lock().users, &self.user);
    }
}

impl Drop for ChunkNumbers {
    fn drop(&mut self) {
        // The blob counts as written last from now on.
        self.counts.0.counts.lock().next_chunks.of(self.blob);
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut counts = self.counts.0.counts.lock();
        count_down(&mut counts.pins, &self.blob);
        if counts.waiting.contains(&self.blob) && !counts.pins.contains_key(&self.blob) {
            self.counts.0.freed.notify_one();
        }
    }
}

fn count_down<K: Ord>(counts: &mut BTreeMap<K, u64>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_not_taken_again_when_the_writer_that_took_it_is_gone() {
        let in_use = InUse::default();
        assert_eq!(in_use.chunk_numbers(BlobId(1), 3).take(), 3);
        assert_eq!(in_use.chunk_numbers(BlobId(1), 3).take(), 4);
        let held = in_use.chunk_numbers(BlobId(0), 0);
        in_use.chunk_numbers(BlobId(2), 0).take();
        for other in 1..=3 * BLOBS_REMEMBERED_MAX as u128 {
            in_use.chunk_numbers(BlobId(1_000 + other), 0);
            if other % (BLOBS_REMEMBERED_MAX as u128 / 4) == 0 {
                assert_eq!(
                    in_use.chunk_numbers(BlobId(1), 0).next.load(Ordering::Relaxed),
                    5,
                    "it is asked for again and again"
                );
            }
        }
        assert_eq!(held.take(), 0);
        drop(held);
        for other in 0..BLOBS_REMEMBERED_MAX as u128 / 4 {
            in_use.chunk_numbers(BlobId(1_000_000 + other), 0);
        }
        assert_eq!(in_use.chunk_numbers(BlobId(0), 0).take(), 1, "it was written lately");
        assert_eq!(in_use.chunk_numbers(BlobId(2), 0).take(), 0, "it was forgotten");
        let NextChunks { young, old } = &in_use.0.counts.lock().next_chunks;
        assert!(young.len() + old.len() <= BLOBS_REMEMBERED_MAX + 1);
    }
}
