//! The owner's end of the journal: taking it over, putting and deleting.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use object_store::PutPayload;
use object_store::path::Path;
use parking_lot::Mutex;

use super::super::super::directory;
use super::super::super::limits::JOURNAL_SEGMENT_BYTES;
use super::super::super::seal::Seal;
use super::index::Entry;
use super::record::Draft;
use super::segment::{Name, Segment};
use super::synced::SyncedFile;
use super::{Journal, OpenError, Place, Role, is_of_log, owner, scan, segments_in, synced, taken_over};

/// What an owner has.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) directory: PathBuf,
    pub(super) synced: SyncedFile,
    /// The segments before this number were found by the opening. A process from before may still have them open, so they are not
    /// written over.
    pub(super) first_own: u64,
    pub(super) appender: Mutex<Appender>,
    /// May be locked while the appender is, but not the other way round.
    pub(super) next: Mutex<Next>,
    /// Held by an upkeep.
    pub(super) upkeep: Mutex<()>,
    /// Whether another process was found to have taken over the journal. Then nothing is written any more.
    is_lost: AtomicBool,
}

/// The end of the journal. Its lock is held while a record is written, but not while it is synced.
#[derive(Debug, Default)]
pub(super) struct Appender {
    /// Oldest first. Only an upkeep takes segments away.
    pub(super) segments: VecDeque<Arc<Segment>>,
    /// Whether records go to the last segment. Not to one that was found by the opening, nor behind the end of a segment.
    pub(super) is_open: bool,
    /// Whether the next segment is to be made in advance.
    pub(super) is_next_asked_for: bool,
    /// Names that are being made as files of their own.
    reserved: HashSet<String>,
}

/// The segment that comes next. Its lock is held while the segment is made.
#[derive(Debug, Default)]
pub(super) struct Next {
    /// The greatest number that was ever used.
    last_number: u64,
    /// The segment, if it was made in advance.
    pub(super) made: Option<Segment>,
}

impl Journal {
    /// Makes this process the owner, and reads what earlier ones have written.
    pub(super) fn take_over(&self, root: &FilePath) -> Result<Owned, OpenError> {
        let directory = owner::take_over(root, self.fsync)?;
        let (mut appender, mut last_number) = (Appender::default(), 0);
        for name in segments_in(&directory)? {
            appender.segments.push_back(self.read_segment(&directory, name)?);
            last_number = name.number;
        }
        self.check_chain(appender.segments.iter().map(|segment| (segment.name, segment.written() > 0)))?;
        Ok(Owned {
            synced: SyncedFile::make(&directory)?,
            directory,
            first_own: last_number + 1,
            appender: Mutex::new(appender),
            next: Mutex::new(Next { last_number, made: None }),
            upkeep: Mutex::default(),
            is_lost: AtomicBool::new(false),
        })
    }

    /// Reads a segment. What it holds is made durable, as others may build on it now: an earlier process may have been killed before
    /// its sync.
    fn read_segment(&self, directory: &FilePath, name: Name) -> Result<Arc<Segment>, OpenError> {
        let path = directory.join(name.to_string());
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let scanned = scan::scan(&file, name.life, synced::read(directory, name.life))
            .map_err(|source| OpenError::Segment { path: path.clone(), source })?;
        let segment = Arc::new(Segment::found(name, path, file, scanned.end)?);
        if !scanned.is_finished && !scanned.records.is_empty() {
            segment.finish(self.fsync)?;
        }
        self.take_records(&segment, &scanned.records)?;
        Ok(segment)
    }

    /// Puts an object that [`Journal::takes`]. It is durable when this returns. With `create`, the error is
    /// [`io::ErrorKind::AlreadyExists`] if the journal has the object, or `is_file` says that there is a file of its name.
    pub(in super::super) fn put(
        &self,
        location: &Path,
        payload: &PutPayload,
        seal: &Seal,
        create: bool,
        is_file: impl FnOnce() -> bool,
    ) -> io::Result<Place> {
        let owned = self.owned()?;
        let pieces: Vec<&[u8]> = payload.iter().map(Bytes::as_ref).collect();
        let mut draft = Draft::put(location.as_ref(), &pieces, seal);
        let (entry, end) = {
            let mut appender = owned.appender.lock();
            if create && (self.has_or_makes(&appender, location) || is_file()) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let segment = self.room_for(owned, &mut appender, draft.len())?;
            let (header, modified) = segment.append(&mut draft)?;
            let (start, len) = (header.payload_start(), u64::from(header.payload_len));
            let entry = Entry { segment, start, len, modified };
            self.index.lock().insert(location.as_ref().to_owned(), entry.clone());
            (entry, header.end())
        };
        if let Err(error) = entry.segment.sync_until(end, self.fsync, &owned.synced) {
            self.take_back(owned, &entry.segment);
            return Err(owned.lost_if_so(error));
        }
        Ok(Place::of(&entry))
    }

    /// Notes that an object was deleted. Returns whether the journal had it.
    pub(in super::super) fn delete(&self, location: &Path) -> io::Result<bool> {
        self.delete_if(location, |_| true)
    }

    /// Notes that the object that lay at `place` became a file of its own. False if it was deleted meanwhile: then the file must go
    /// too.
    pub(in super::super) fn has_moved_out(&self, location: &Path, place: &Place) -> io::Result<bool> {
        self.delete_if(location, |entry| place.is_of(entry))
    }

    fn delete_if(&self, location: &Path, condition: impl Fn(&Entry) -> bool) -> io::Result<bool> {
        let owned = self.owned()?;
        let mut appender = owned.appender.lock();
        if !is_of_log(location) || !self.index.lock().get(location.as_ref()).is_some_and(condition) {
            return Ok(false);
        }
        let mut draft = Draft::delete(location.as_ref());
        self.room_for(owned, &mut appender, draft.len())?.append(&mut draft)?;
        let mut index = self.index.lock();
        let removed = index.remove(location.as_ref());
        if removed.is_some_and(|entry| index.live_bytes(entry.segment.name.number) == 0) {
            self.needs_upkeep.store(true, Ordering::Relaxed);
        }
        Ok(true)
    }

    /// Makes the notes of deletions durable.
    pub(in super::super) fn sync(&self) -> io::Result<()> {
        let owned = self.owned()?;
        let last = owned.appender.lock().segments.back().cloned();
        let synced = last.map_or(Ok(()), |last| last.sync_until(last.written(), self.fsync, &owned.synced));
        synced.map_err(|error| owned.lost_if_so(error))
    }

    /// Keeps the name of a file of a log that is too large for the journal, while it is made. The error is
    /// [`io::ErrorKind::AlreadyExists`] if the journal has the object.
    pub(in super::super) fn reserve<'j>(&'j self, location: &'j Path) -> io::Result<Reservation<'j>> {
        let owned = self.owned()?;
        let mut appender = owned.appender.lock();
        if self.has_or_makes(&appender, location) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        appender.reserved.insert(location.as_ref().to_owned());
        Ok(Reservation { appender: &owned.appender, location })
    }

    fn has_or_makes(&self, appender: &Appender, location: &Path) -> bool {
        appender.reserved.contains(location.as_ref()) || self.index.lock().get(location.as_ref()).is_some()
    }

    /// Fails if another process has taken over the journal since it was opened.
    pub(in super::super) fn check_owner(&self) -> io::Result<()> {
        let owned = self.owned()?;
        if owned.is_taken_over() { Err(owned.lost_if_so(taken_over())) } else { Ok(()) }
    }

    pub(super) fn owned(&self) -> io::Result<&Owned> {
        match &self.role {
            Role::Owner(owned) if owned.is_lost.load(Ordering::Relaxed) => Err(taken_over()),
            Role::Owner(owned) => Ok(owned),
            Role::Beside(_) => Err(io::Error::other("the store is only read by this process")),
        }
    }

    /// The segment to which a record of `len` bytes goes.
    pub(super) fn room_for(
        &self,
        owned: &Owned,
        appender: &mut Appender,
        len: u64,
    ) -> io::Result<Arc<Segment>> {
        let last = appender.segments.back().filter(|_| appender.is_open).cloned();
        if let Some(last) = &last {
            if last.has_room(len) && !last.has_failed() {
                if last.written() >= JOURNAL_SEGMENT_BYTES / 2 && !appender.is_next_asked_for {
                    appender.is_next_asked_for = true;
                    self.needs_upkeep.store(true, Ordering::Relaxed);
                }
                return Ok(Arc::clone(last));
            }
            // Nothing may be written behind the end, even if no other segment can be made.
            appender.is_open = false;
            self.finish(owned, last);
        }
        let mut next = owned.next.lock();
        let before = appender.segments.back().map_or(0, |last| last.name.number);
        let segment = match next.made.take_if(|made| made.name.before == before) {
            Some(made) => made,
            None => self.make_segment(owned, &mut next, before, None)?,
        };
        let segment = Arc::new(segment);
        appender.segments.push_back(Arc::clone(&segment));
        (appender.is_open, appender.is_next_asked_for) = (true, false);
        self.needs_upkeep.store(true, Ordering::Relaxed);
        Ok(segment)
    }

    /// Makes everything in a full segment durable, and writes its end. If that fails, those who wait for it will see it.
    fn finish(&self, owned: &Owned, last: &Segment) {
        let synced = last.sync_until(last.written(), self.fsync, &owned.synced);
        if let Err(error) = synced.and_then(|()| last.finish(self.fsync)) {
            tracing::warn!(segment = %last.path.display(), %error, "a segment of the journal was not finished");
        }
    }

    /// A durable, empty segment that follows the one of number `before`, in place of `dead` if there is one.
    pub(super) fn make_segment(
        &self,
        owned: &Owned,
        next: &mut Next,
        before: u64,
        dead: Option<&Segment>,
    ) -> io::Result<Segment> {
        // A number whose segment could not be made is not used again: a part of it may be there.
        next.last_number += 1;
        let name = Name::new(next.last_number, before);
        let made = match dead {
            Some(dead) => dead.reborn(&owned.directory, name),
            None => Segment::create(&owned.directory, name),
        };
        let made = made.map_err(|error| owned.lost_if_so(error))?;
        let synced = if self.fsync { directory::sync(&owned.directory) } else { Ok(()) };
        match synced {
            Ok(()) => Ok(made),
            Err(error) => {
                // If it stays, the next opening removes it: it is empty.
                let _ = fs::remove_file(&made.path);
                Err(owned.lost_if_so(error))
            }
        }
    }

    /// Takes back what was not durable when a sync of `segment` failed.
    fn take_back(&self, owned: &Owned, segment: &Segment) {
        let _appender = owned.appender.lock();
        self.index.lock().remove_behind(segment.name.number, segment.synced());
    }
}

impl Owned {
    /// Whether another process has taken over the journal.
    pub(super) fn is_taken_over(&self) -> bool {
        let found = self.directory.symlink_metadata();
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Notes that another process has taken over the journal, if that is why something failed.
    pub(super) fn lost_if_so(&self, error: io::Error) -> io::Error {
        if !self.is_taken_over() {
            return error;
        }
        self.is_lost.store(true, Ordering::Relaxed);
        taken_over()
    }
}

/// The name of a file of a log that is being made outside of the journal.
pub(in super::super) struct Reservation<'j> {
    appender: &'j Mutex<Appender>,
    location: &'j Path,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.appender.lock().reserved.remove(self.location.as_ref());
    }
}
