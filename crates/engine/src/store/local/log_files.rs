//! Files of the logs of databases: small ones are in the [journal](super::journal), large ones are files of their own.
//!
//! Both kinds have names in one space: a name that is taken in one is taken in the other. Where both have an object, as for a
//! moment while one is moved out of the journal, they have the same bytes.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path as FilePath;

use object_store::path::Path;
use object_store::{
    CopyMode, Error, ListResult, ObjectMeta, ObjectStoreExt, PutMode, PutPayload, PutResult, Result,
};

use super::journal::{Journal, Place, Reservation, is_of_log};
use super::publish::{self, Publish};
use super::read::SealedFile;
use super::{Inner, SealedDirectory};
use crate::store::directory::remove_if_there;
use crate::store::limits::JOURNAL_TAKE_OVERS_MAX;
use crate::store::seal::Seal;

impl Inner {
    /// Puts a file of a log into the journal. `None` if it does not belong there.
    pub(super) fn write_to_journal(
        &self,
        location: &Path,
        target: &FilePath,
        payload: &PutPayload,
        seal: &Seal,
        mode: &PutMode,
    ) -> Result<Option<PutResult>> {
        if *mode != PutMode::Create && *mode != PutMode::Overwrite
            || !Journal::takes(location, payload.content_length() as u64)
        {
            return Ok(None);
        }
        let is_file = || target.symlink_metadata().is_ok();
        let put = self.journal.put(location, payload, seal, *mode == PutMode::Create, is_file);
        let failed = |error| self.io_error("write", target, error);
        let place = put.map_err(failed)?;
        if *mode == PutMode::Overwrite {
            remove_if_there(target).map_err(failed)?;
        }
        Ok(Some(PutResult { e_tag: Some(place.e_tag), version: None, extensions: Default::default() }))
    }

    /// Keeps the name of a large file of a log while it is made. `None` for other files.
    pub(super) fn reserve_in_journal<'i>(
        &'i self,
        location: &'i Path,
        publish: Publish,
    ) -> io::Result<Option<Reservation<'i>>> {
        let is_new = publish == Publish::New && is_of_log(location);
        is_new.then(|| self.journal.reserve(location)).transpose()
    }

    /// Called when a file was made. If it is one of a log, what the journal had under its name goes, and it is an error if
    /// another process has taken over the journal.
    pub(super) fn settle_with_journal(&self, location: &Path, publish: Publish) -> io::Result<()> {
        if !is_of_log(location) {
            return Ok(());
        }
        if publish == Publish::Replace && self.journal.delete(location)? {
            self.journal.sync()?;
        }
        self.journal.check_owner()
    }

    /// Opens an object of the journal. `None` if it is not there.
    pub(super) fn open_in_journal(&self, location: &Path) -> Result<Option<SealedFile>> {
        let failed = |error| self.io_error("read", FilePath::new(location.as_ref()), error);
        let mut tries = 0;
        while let Some(place) = self.journal.get(location).map_err(failed)? {
            tries += 1;
            let (opened, is_beside) =
                (SealedFile::in_journal(place.clone(), location), self.journal.is_beside());
            if !is_beside || tries == JOURNAL_TAKE_OVERS_MAX || place.is_there().map_err(failed)? {
                let shown = place.describe(location);
                let mut file = opened.map_err(|error| self.read_error(&shown, error))?;
                file.may_change = is_beside.then_some(place);
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Deletes a file of a log, wherever it is.
    pub(super) fn delete_log_file(&self, location: Path) -> Result<Path> {
        let target = self.plain.path_to_filesystem(&location)?;
        let failed = |error| self.io_error("delete", &target, error);
        let was_in_journal = self.journal.delete(&location).map_err(failed)?;
        let was_file = remove_if_there(&target).map_err(failed)?;
        self.open_files.forget(&location);
        if was_in_journal || was_file { Ok(location) } else { Err(failed(io::ErrorKind::NotFound.into())) }
    }

    /// The objects of the journal below `prefix`. A listing asks for them before it looks at files, so that it misses none that is
    /// moved out meanwhile.
    pub(super) fn in_journal(&self, prefix: Option<&Path>) -> Result<Vec<ObjectMeta>> {
        let listed = self.journal.below(prefix);
        listed.map_err(|error| self.io_error("list", FilePath::new(super::JOURNAL), error))
    }

    /// Keeps the journal small. Errors are for the log of the program; the next segment tries again.
    fn keep_journal_small(&self) {
        let warn = |error| tracing::warn!(%error, "the journal takes more space than it needs");
        let done = self.journal.upkeep(|location| self.move_out(location).unwrap_or_else(warn));
        if let Err(error) = done {
            warn(self.io_error("look after", FilePath::new(super::JOURNAL), error));
        }
    }

    /// Makes an object of the journal a file of its own, with the seal that it has.
    fn move_out(&self, location: &Path) -> Result<()> {
        let target = self.plain.path_to_filesystem(location)?;
        let moved = || {
            let Some(place) = self.journal.get(location)? else { return Ok(()) };
            if self.disk.admit_sorted_file(place.len).is_err() {
                // The last bytes of the disk are for others; a later upkeep moves it out.
                return Ok(());
            }
            let bytes = read_what_can_be_read(&place);
            self.directories.ensure(target.parent().unwrap_or(FilePath::new("/")))?;
            publish::write(&target, &[&bytes], Publish::Replace, self.fsync)?;
            if !self.journal.has_moved_out(location, &place)? {
                remove_if_there(&target)?;
            }
            Ok(())
        };
        moved().map_err(|error| self.io_error("move out", &target, error))
    }
}

/// The bytes of an object, with zeros for what the disk cannot read: its seal then refuses it where it goes, as it does here.
fn read_what_can_be_read(place: &Place) -> Vec<u8> {
    const PIECE: usize = 4096;
    let mut bytes = vec![0; place.len as usize];
    if place.file.read_exact_at(&mut bytes, place.start).is_err() {
        for (piece, at) in bytes.chunks_mut(PIECE).zip((place.start..).step_by(PIECE)) {
            if place.file.read_exact_at(piece, at).is_err() {
                piece.fill(0);
            }
        }
    }
    bytes
}

impl SealedDirectory {
    /// Copies a file of a log, or to the name of one.
    pub(super) async fn copy_log_file(&self, from: &Path, to: &Path, mode: CopyMode) -> Result<()> {
        let bytes = self.get(from).await?.bytes().await?;
        let mode = if mode == CopyMode::Create { PutMode::Create } else { PutMode::Overwrite };
        object_store::ObjectStore::put_opts(self, to, bytes.into(), mode.into()).await?;
        Ok(())
    }

    /// Looks after the journal, if it is time, on a thread that may block.
    pub(super) fn look_after_journal(&self) {
        if !self.0.journal.wants_upkeep() {
            return;
        }
        let inner = std::sync::Arc::clone(&self.0);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || inner.keep_journal_small())),
            Err(_) => inner.keep_journal_small(),
        }
    }
}

/// Leaves out those files that the journal has too.
pub(super) fn not_in(journal: &[ObjectMeta]) -> impl Fn(&ObjectMeta) -> bool + Send + Sync + 'static {
    let known: HashSet<Path> = journal.iter().map(|meta| meta.location.clone()).collect();
    move |meta| !known.contains(&meta.location)
}

/// Adds objects of the journal to a listing of the files of one directory.
pub(super) fn add_to(listed: &mut ListResult, journal: Vec<ObjectMeta>, prefix: Option<&Path>) {
    let is_other = not_in(&journal);
    listed.objects.retain(is_other);
    let mut folders: BTreeSet<Path> = listed.common_prefixes.drain(..).collect();
    let depth = prefix.map_or(0, |prefix| prefix.parts().count());
    for meta in journal {
        let mut parts = meta.location.parts();
        let folder: Path = parts.by_ref().take(depth + 1).collect();
        if parts.next().is_some() {
            folders.insert(folder);
        } else {
            listed.objects.push(meta);
        }
    }
    listed.common_prefixes = folders.into_iter().collect();
}

/// The error for a directory that still has objects in the journal.
pub(super) fn not_empty(path: &str) -> Error {
    let message = format!("cannot remove {path}: the journal still has files of its log");
    Error::Generic {
        store: "rangehold",
        source: Box::new(io::Error::new(io::ErrorKind::DirectoryNotEmpty, message)),
    }
}
