//! The disk watch: refuses new writes early enough that the disk has room for the writes that are under
//! way.
//!
//! A write that has entered the engine waits until the disk has room, however long that takes. If many
//! waited, requests would pile up and time out, and no reply would say why. So new writes are refused
//! while free space is below a reserve; reads go on. They are accepted again when a quarter of the reserve
//! more is free. Without this gap a volume at the mark would change between the two states all the time.
//!
//! A user with a full disk can still free some: deletes of single rows are refused only below half of the reserve, and
//! drops of tables only below [`DISK_LAST_BYTES`]. The difference is for compactions, without which deletes free nothing;
//! a drop is one small row, and many deletes are many.
//!
//! Sorted files are what the engine writes by itself: it moves rows out of memory, and compacts. While the disk is low,
//! a sorted file must leave [`SORTED_FILE_LEAVES`] free ([`DiskWatch::admit_sorted_file`]). Otherwise one such file would
//! take the last bytes, and a table could not be dropped.
//!
//! [`DiskWatch::has_room_for`] costs one load of an atomic; only once in [`DISK_CHECK_EVERY`] it asks the system.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::time::Instant;

use super::limits::{
    DISK_CHECK_EVERY, DISK_INODES_MIN, DISK_LAST_BYTES, DISK_RESERVE_BYTES, DISK_RESERVE_PART_MAX,
    SORTED_FILE_LEAVES, SPARE_BYTES,
};
use super::spare;

/// What a write does to the space of the disk. It decides how full the disk may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// It takes space.
    Takes,
    /// It gives back the space of a row or a few.
    Returns,
    /// It gives back a table or a blob, or what is left of one.
    ReturnsMuch,
}

/// The space of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that this process may still use.
    pub free_bytes: u64,
    /// Bytes of the whole volume.
    pub total_bytes: u64,
    /// Files that can still be created; `u64::MAX` if the file system has no limit.
    pub free_files: u64,
}

/// Watches the free space of the volume that holds a store. Cheap to clone; clones share the state.
#[derive(Debug, Clone)]
pub struct DiskWatch(Arc<State>);

#[derive(Debug)]
struct State {
    /// `None` for a store in memory.
    directory: Option<PathBuf>,
    reserve_bytes: u64,
    low: AtomicBool,
    /// Below half of the reserve.
    exhausted: AtomicBool,
    /// Below the last bytes.
    full: AtomicBool,
    /// Whether the spare file is made again when there is room.
    keeps_spare: AtomicBool,
    free_bytes: AtomicU64,
    total_bytes: AtomicU64,
    began: Instant,
    /// When the system is to be asked again, in milliseconds since `began`.
    next_check_ms: AtomicU64,
}

impl DiskWatch {
    /// Watches the volume of `directory`. Without a configured reserve, a hundredth of the volume is kept,
    /// within [`DISK_RESERVE_BYTES`]. Fails if the system does not tell the volume's space.
    pub(super) fn of_directory(directory: &Path, reserve_bytes: Option<u64>) -> std::io::Result<Self> {
        let space = space(directory)?;
        let reserve_bytes = reserve_bytes.unwrap_or_else(|| default_reserve_bytes(space.total_bytes));
        let watch = Self::new(Some(directory.to_owned()), reserve_bytes);
        watch.judge(space);
        Ok(watch)
    }

    /// A watch that is never low.
    pub(super) fn of_memory() -> Self {
        Self::new(None, 0)
    }

    fn new(directory: Option<PathBuf>, reserve_bytes: u64) -> Self {
        Self(Arc::new(State {
            directory,
            reserve_bytes,
            low: AtomicBool::new(false),
            exhausted: AtomicBool::new(false),
            full: AtomicBool::new(false),
            keeps_spare: AtomicBool::new(false),
            free_bytes: AtomicU64::new(u64::MAX),
            total_bytes: AtomicU64::new(u64::MAX),
            began: Instant::now(),
            next_check_ms: AtomicU64::new(0),
        }))
    }

    /// Whether new writes are to be refused.
    pub fn is_low(&self) -> bool {
        self.check_when_due();
        self.0.low.load(Ordering::Relaxed)
    }

    /// Whether a write that does this to the space is to be let in; if not, the free bytes that it needs.
    pub fn has_room_for(&self, space: Space) -> Result<(), u64> {
        self.check_when_due();
        let (refuses, least_bytes) = match space {
            Space::Takes => (&self.0.low, self.0.reserve_bytes),
            Space::Returns => (&self.0.exhausted, self.0.reserve_bytes / 2),
            Space::ReturnsMuch => (&self.0.full, self.last_bytes()),
        };
        if refuses.load(Ordering::Relaxed) { Err(least_bytes) } else { Ok(()) }
    }

    /// Whether a sorted file of `length` bytes may be written now; if not, an error that says how much must stay free.
    /// The engine tries again, with longer and longer pauses. The volume is not marked as full by that.
    pub(super) fn admit_sorted_file(&self, length: u64) -> std::io::Result<()> {
        let (Some(directory), true) = (&self.0.directory, self.is_low()) else {
            return Ok(());
        };
        // Asked again: many such files may have been written since the last check.
        let free_bytes = space(directory)?.free_bytes;
        let leaves = SORTED_FILE_LEAVES.min(self.0.reserve_bytes);
        if free_bytes.saturating_sub(length) >= leaves {
            return Ok(());
        }
        let message = format!(
            "{length} bytes for a sorted file would leave less than {leaves} of {free_bytes} free bytes"
        );
        Err(std::io::Error::new(std::io::ErrorKind::StorageFull, message))
    }

    fn last_bytes(&self) -> u64 {
        DISK_LAST_BYTES.min(self.0.reserve_bytes / 2)
    }

    /// Keeps a file in the directory whose space lets a server start on a full disk.
    pub(crate) fn keep_spare(&self) {
        self.0.keeps_spare.store(true, Ordering::Relaxed);
        if !self.is_low() {
            self.make_spare();
        }
    }

    fn make_spare(&self) {
        if let Some(directory) = &self.0.directory
            && let Err(error) = spare::make(directory)
        {
            let directory = directory.display();
            tracing::warn!(%directory, %error, "no space is kept for a start on a full disk");
        }
    }

    /// Free bytes when last asked; `u64::MAX` for a store in memory.
    pub fn free_bytes(&self) -> u64 {
        self.check_when_due();
        self.0.free_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the volume; `u64::MAX` for a store in memory.
    pub fn total_bytes(&self) -> u64 {
        self.0.total_bytes.load(Ordering::Relaxed)
    }

    /// Free bytes below which writes are refused.
    pub fn reserve_bytes(&self) -> u64 {
        self.0.reserve_bytes
    }

    /// The directory of the data, for messages; `None` for a store in memory.
    pub fn directory(&self) -> Option<&Path> {
        self.0.directory.as_deref()
    }

    /// Notes that a write found no room, even if the numbers say otherwise (they do not show quotas). Writes
    /// are refused until the next check of the volume finds room.
    pub(super) fn found_full(&self) {
        self.0.low.store(true, Ordering::Relaxed);
        self.0.exhausted.store(true, Ordering::Relaxed);
        self.0.full.store(true, Ordering::Relaxed);
        self.0.next_check_ms.store(self.now_ms() + every_ms(), Ordering::Relaxed);
    }

    fn now_ms(&self) -> u64 {
        self.0.began.elapsed().as_millis() as u64
    }

    fn check_when_due(&self) {
        let Some(directory) = &self.0.directory else {
            return;
        };
        let (due, now) = (self.0.next_check_ms.load(Ordering::Relaxed), self.now_ms());
        let next = now + every_ms();
        // Of the callers that find a check due, one asks the system; the others use the last answer.
        let mine = now >= due
            && self.0.next_check_ms.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if mine {
            match space(directory) {
                Ok(space) => self.judge(space),
                Err(error) => tracing::warn!(directory = %directory.display(), %error, "free space unknown"),
            }
        }
    }

    /// Notes the space of the volume, and decides whether it is low.
    fn judge(&self, space: DiskSpace) {
        self.0.free_bytes.store(space.free_bytes, Ordering::Relaxed);
        self.0.total_bytes.store(space.total_bytes, Ordering::Relaxed);
        let reserve = self.0.reserve_bytes;
        let was_low = self.0.low.load(Ordering::Relaxed);
        let wanted = if was_low { reserve.saturating_add(reserve / 4) } else { reserve };
        let no_files = space.free_files < DISK_INODES_MIN;
        let low = space.free_bytes < wanted || no_files;
        self.0.low.store(low, Ordering::Relaxed);
        self.0.exhausted.store(space.free_bytes < reserve / 2 || no_files, Ordering::Relaxed);
        self.0.full.store(space.free_bytes < self.last_bytes() || no_files, Ordering::Relaxed);
        if low != was_low {
            let directory = self.0.directory.as_deref().unwrap_or(Path::new("")).display();
            let free_bytes = space.free_bytes;
            tracing::warn!(%directory, free_bytes, reserve_bytes = reserve, low, "free space of the volume");
            if !low && self.0.keeps_spare.load(Ordering::Relaxed) {
                self.make_spare();
            }
        }
    }
}

/// Before a start writes anything: gives the spare space free if the volume has less than that.
pub(super) fn make_room_for_start(directory: &Path) -> std::io::Result<()> {
    let free_bytes = space(directory)?.free_bytes;
    if free_bytes < SPARE_BYTES && spare::release(directory)? {
        let directory = directory.display();
        tracing::warn!(%directory, free_bytes, "the disk is full: the start uses the space that was kept for it");
    }
    Ok(())
}

fn every_ms() -> u64 {
    DISK_CHECK_EVERY.as_millis() as u64
}

fn default_reserve_bytes(total_bytes: u64) -> u64 {
    let (least, most) = DISK_RESERVE_BYTES;
    (total_bytes / 100).clamp(least, most).min(total_bytes / DISK_RESERVE_PART_MAX)
}

fn space(directory: &Path) -> std::io::Result<DiskSpace> {
    let volume = rustix::fs::statvfs(directory)?;
    Ok(DiskSpace {
        free_bytes: volume.f_bavail.saturating_mul(volume.f_frsize),
        total_bytes: volume.f_blocks.saturating_mul(volume.f_frsize),
        // A file system without a limit says that 0 of 0 files are free.
        free_files: if volume.f_files == 0 { u64::MAX } else { volume.f_favail },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn watch(reserve_bytes: u64) -> impl FnMut(u64, u64) -> bool {
        let mut state_at = states(reserve_bytes);
        move |free_bytes, free_files| !state_at(free_bytes, free_files)[0]
    }

    /// Whether a watch lets in each kind of write, with this free space.
    fn states(reserve_bytes: u64) -> impl FnMut(u64, u64) -> [bool; 3] {
        let watch = DiskWatch::new(None, reserve_bytes);
        move |free_bytes, free_files| {
            watch.judge(DiskSpace { free_bytes, total_bytes: 1 << 40, free_files });
            [Space::Takes, Space::Returns, Space::ReturnsMuch].map(|space| watch.has_room_for(space).is_ok())
        }
    }

    #[test]
    fn writes_that_give_space_back_are_let_in_longer() {
        let mut state_at = states(100 * MIB);
        assert_eq!(state_at(200 * MIB, 1_000), [true, true, true]);
        assert_eq!(state_at(100 * MIB - 1, 1_000), [false, true, true]);
        assert_eq!(state_at(50 * MIB, 1_000), [false, true, true]);
        assert_eq!(state_at(50 * MIB - 1, 1_000), [false, false, true]);
        assert_eq!(state_at(MIB, 1_000), [false, false, true]);
        assert_eq!(state_at(MIB - 1, 1_000), [false, false, false]);
        assert_eq!(state_at(60 * MIB, 1_000), [false, true, true]);
        assert_eq!(state_at(200 * MIB, DISK_INODES_MIN - 1), [false, false, false]);
    }

    #[test]
    fn a_sorted_file_leaves_the_last_bytes_of_a_low_disk() {
        let directory = tempfile::tempdir().unwrap();
        let free_bytes = space(directory.path()).unwrap().free_bytes;
        let watch = DiskWatch::new(Some(directory.path().to_owned()), u64::MAX);
        watch.admit_sorted_file(1 << 10).unwrap();
        let refused = watch.admit_sorted_file(free_bytes).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
        assert!(watch.has_room_for(Space::ReturnsMuch).is_ok(), "{refused}");
        let with_room = DiskWatch::new(Some(directory.path().to_owned()), 0);
        with_room.admit_sorted_file(u64::MAX).unwrap();
    }

    #[test]
    fn the_spare_file_is_made_again_when_there_is_room() {
        let directory = tempfile::tempdir().unwrap();
        let watch = DiskWatch::new(Some(directory.path().to_owned()), 100 * MIB);
        watch.0.next_check_ms.store(u64::MAX, Ordering::Relaxed);
        let spare = directory.path().join("spare");
        let space = |free_bytes| DiskSpace { free_bytes, total_bytes: 1 << 40, free_files: 1_000 };
        watch.judge(space(0));
        watch.keep_spare();
        assert!(!spare.exists(), "a full disk has no room for it");
        watch.judge(space(200 * MIB));
        assert!(spare.exists());
        make_room_for_start(directory.path()).unwrap();
        assert!(spare.exists(), "the disk of this test has room");
    }

    #[test]
    fn refuses_below_the_reserve_and_resumes_above_it() {
        let mut low_at = watch(100 * MIB);
        assert!(!low_at(100 * MIB, 1_000));
        assert!(low_at(100 * MIB - 1, 1_000));
        assert!(low_at(125 * MIB - 1, 1_000), "flickers at the mark");
        assert!(!low_at(125 * MIB, 1_000));
        assert!(low_at(125 * MIB, DISK_INODES_MIN - 1), "no file can be made");
    }

    #[test]
    fn the_default_reserve_suits_the_volume() {
        assert_eq!(default_reserve_bytes(100 * MIB), 10 * MIB);
        assert_eq!(default_reserve_bytes(1_000 * MIB), 64 * MIB);
        assert_eq!(default_reserve_bytes(100_000 * MIB), 1_000 * MIB);
        assert_eq!(default_reserve_bytes(u64::MAX), 4_096 * MIB);
    }

    #[tokio::test(start_paused = true)]
    async fn looks_again_when_it_is_time() {
        let directory = tempfile::tempdir().unwrap();
        let watch = DiskWatch::of_directory(directory.path(), Some(0)).unwrap();
        assert!(!watch.is_low());
        watch.found_full();
        assert!(watch.is_low());
        tokio::time::advance(DISK_CHECK_EVERY).await;
        assert!(!watch.is_low());
        assert!(DiskWatch::of_directory(directory.path(), Some(u64::MAX)).unwrap().is_low());
    }
}
