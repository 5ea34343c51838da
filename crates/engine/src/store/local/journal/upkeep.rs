//! Old segments and the next one: what is done beside the puts, on a thread that may wait for the disk.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use object_store::path::Path;

use super::super::super::limits::{
    JOURNAL_COLD_PART, JOURNAL_DEAD_SEGMENTS_MAX, JOURNAL_SEGMENT_BYTES, JOURNAL_SEGMENTS_MAX,
    JOURNAL_SEGMENTS_MIN,
};
use super::append::{Appender, Owned};
use super::segment::Segment;
use super::{Journal, Role, location};

impl Journal {
    /// Whether it is time for [`Journal::upkeep`]; says so once.
    pub(in super::super) fn wants_upkeep(&self) -> bool {
        let is_under_way = || matches!(&self.role, Role::Owner(owned) if owned.upkeep.is_locked());
        self.needs_upkeep.load(Ordering::Relaxed)
            && !is_under_way()
            && self.needs_upkeep.swap(false, Ordering::Relaxed)
    }

    /// Removes segments that are no longer needed, and makes the next one in advance. This waits for the disk. Calls `move_out` for
    /// objects of an old segment that are to become files, so that the segment can go; it tells [`Journal::has_moved_out`]
    /// of each. Does nothing if another upkeep is under way.
    pub(in super::super) fn upkeep(&self, mut move_out: impl FnMut(&Path)) -> io::Result<()> {
        let owned = self.owned()?;
        let Some(_alone) = owned.upkeep.try_lock() else { return Ok(()) };
        self.remove_needless(owned)?;
        self.make_next(owned)?;
        let cold = self.cold_objects(&owned.appender.lock());
        for location in cold {
            move_out(&location);
            self.make_next(owned)?;
        }
        Ok(())
    }

    fn remove_needless(&self, owned: &Owned) -> io::Result<()> {
        loop {
            let needless = self.needless(owned, &owned.appender.lock());
            let Some(dead) = needless else { return Ok(()) };
            match fs::remove_file(&dead.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound || owned.is_taken_over() => {
                    return Err(owned.lost_if_so(error));
                }
                _ => owned.appender.lock().segments.pop_front(),
            };
        }
    }

    /// Makes the segment that comes next, if it was asked for and there is none.
    fn make_next(&self, owned: &Owned) -> io::Result<()> {
        let appender = owned.appender.lock();
        if !appender.is_next_asked_for {
            return Ok(());
        }
        let before = appender.segments.back().map_or(0, |last| last.name.number);
        let dead = self.reusable(owned, &appender);
        let mut next = owned.next.lock();
        drop(appender);
        if next.made.as_ref().is_some_and(|made| made.name.before == before) {
            return Ok(());
        }
        if let Some(unused) = next.made.take() {
            // If it stays, the next opening removes it: it is empty.
            let _ = fs::remove_file(&unused.path);
        }
        let made = self.make_segment(owned, &mut next, before, dead.as_deref());
        let has_other_name = dead.is_some_and(|dead| !dead.path.exists());
        let failed = match made {
            Ok(made) => {
                next.made = Some(made);
                None
            }
            Err(error) => Some(error),
        };
        drop(next);
        if has_other_name {
            owned.appender.lock().segments.pop_front();
        }
        failed.map_or(Ok(()), Err)
    }

    /// The oldest segment, if it has no objects and may be written over.
    fn reusable(&self, owned: &Owned, appender: &Appender) -> Option<Arc<Segment>> {
        let oldest = appender.segments.front().filter(|_| self.dead_segments(appender) > 0)?;
        // A reader may still have the file open, and a segment whose sync failed may be on a bad place of the disk.
        let is_read = Arc::strong_count(&oldest.file) > 1;
        let is_own = oldest.name.number >= owned.first_own;
        (is_own && !is_read && !oldest.has_failed()).then(|| Arc::clone(oldest))
    }

    /// The oldest segment, if it has no objects and there are enough of those that can be written over.
    fn needless(&self, owned: &Owned, appender: &Appender) -> Option<Arc<Segment>> {
        let oldest = appender.segments.front()?;
        let kept = if oldest.name.number < owned.first_own { 0 } else { JOURNAL_DEAD_SEGMENTS_MAX };
        (self.dead_segments(appender) > kept).then(|| Arc::clone(oldest))
    }

    /// How many of the oldest segments have no objects. The last one does not count while it is written.
    fn dead_segments(&self, appender: &Appender) -> usize {
        let index = self.index.lock();
        let full = appender.segments.len() - usize::from(appender.is_open);
        let is_dead = |segment: &&Arc<Segment>| index.live_bytes(segment.name.number) == 0;
        appender.segments.iter().take(full).take_while(is_dead).count()
    }

    /// The objects of the oldest segment, if there are few and the segment is old.
    fn cold_objects(&self, appender: &Appender) -> Vec<Path> {
        let Some(oldest) = appender.segments.front() else { return Vec::new() };
        let (number, segments) = (oldest.name.number, appender.segments.len());
        let index = self.index.lock();
        let is_cold = index.live_bytes(number) <= JOURNAL_SEGMENT_BYTES / JOURNAL_COLD_PART;
        if segments > JOURNAL_SEGMENTS_MAX || (segments > JOURNAL_SEGMENTS_MIN && is_cold) {
            return index.in_segment(number).map(|path| location(path)).collect();
        }
        Vec::new()
    }
}
