//! The memory that the row caches of all ranges of a process share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::core::Core;
use crate::limits::{CACHE_EVICTION_STEPS, CACHE_EVICTIONS_MAX, FILL_PIECE_BYTES};

/// See the module.
///
/// The search for blocks to evict is one hand that goes round all caches, each from its first block to its last.
#[derive(Debug)]
pub(crate) struct RowBudget {
    most: usize,
    used: AtomicUsize,
    caches: Mutex<Caches>,
}

#[derive(Debug, Default)]
struct Caches {
    all: Vec<Weak<Mutex<Core>>>,
    /// Where the hand is.
    at: usize,
}

impl RowBudget {
    /// A budget of so many bytes; with none, nothing is kept.
    pub(crate) fn new(bytes: u64) -> Arc<Self> {
        let most = usize::try_from(bytes).unwrap_or(usize::MAX);
        Arc::new(Self { most, used: AtomicUsize::new(0), caches: Mutex::default() })
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.most == 0
    }

    pub(super) fn enter(&self, cache: &Arc<Mutex<Core>>) {
        let mut caches = self.caches.lock();
        caches.all.retain(|cache| cache.strong_count() > 0);
        caches.all.push(Arc::downgrade(cache));
    }

    /// The blocks of a cache took `before` bytes and take `after` now.
    pub(super) fn changed(&self, before: usize, after: usize) {
        self.used.fetch_add(after, Ordering::AcqRel);
        self.used.fetch_sub(before, Ordering::AcqRel);
    }

    /// Evicts blocks while more is used than may be. The caller holds no cache.
    pub(super) fn keep(&self) {
        for _ in 0..CACHE_EVICTIONS_MAX {
            if self.used.load(Ordering::Acquire) <= self.most {
                break;
            }
            self.evict(CACHE_EVICTION_STEPS);
        }
    }

    /// Whether the next piece of a scan may be kept. It may take free room, and that of blocks that were not read of
    /// late. It takes the life of one other block at most, so that a large scan hardly ages the others.
    pub(super) fn has_room_for_scans(&self) -> bool {
        while self.is_full() && self.evict(1) {}
        !self.is_full()
    }

    /// With so many bytes a piece of a scan is large enough to be kept.
    pub(super) fn piece_bytes(&self) -> usize {
        FILL_PIECE_BYTES.min(self.most / 16)
    }

    /// Whether a piece of a scan has no room beside the blocks that are there.
    pub(super) fn is_full(&self) -> bool {
        self.used.load(Ordering::Acquire) + self.piece_bytes() > self.most
    }

    /// Moves the hand over at most so many blocks, until one is evicted; false if none was.
    fn evict(&self, most: usize) -> bool {
        let Some(cache) = self.at_hand() else { return false };
        let mut core = cache.lock();
        let before = core.bytes();
        let is_at_end = core.evict(most);
        let after = core.bytes();
        self.changed(before, after);
        drop(core);
        if is_at_end {
            self.caches.lock().at += 1;
        }
        after < before
    }

    /// The cache where the hand is, or the next that has something.
    fn at_hand(&self) -> Option<Arc<Mutex<Core>>> {
        let mut caches = self.caches.lock();
        for _ in 0..caches.all.len() {
            caches.at %= caches.all.len();
            let cache = caches.all[caches.at].upgrade();
            if cache.as_ref().is_some_and(|cache| cache.lock().bytes() > 0) {
                return cache;
            }
            caches.at += 1;
        }
        None
    }
}
