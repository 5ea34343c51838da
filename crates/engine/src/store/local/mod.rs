//! A directory as an object store, with the properties that SlateDB needs and a plain directory lacks.
//!
//! It adds these to `LocalFileSystem` of the `object_store` crate:
//!
//! - **Durable.** A write returns when the file, its name and its directories are synced ([`publish`]).
//! - **Sealed.** Each file carries its check ([`super::seal`]). A damaged file is refused at once, with an
//!   error that names it, where SlateDB would serve it, panic, or try again forever.
//! - **Update.** The garbage collection of SlateDB advances boundary objects by compare-and-set on their
//!   ETag (`PutMode::Update`). `LocalFileSystem` does not support this. Then collection stops after its
//!   first round without an error, and manifests and log files become more and more. Here an update is made
//!   under a lock inside the process. That is enough, since one process at a time serves a directory (it
//!   holds the lock of the directory), and only that process collects garbage.
//! - **Together.** The small files of logs lie in a few large ones ([`journal`]).
//! - **Quick.** Small files and directories are read ([`read`]) and listed ([`list`]) by the calling
//!   thread.
//! - **Shared.** A file that never changes can be taken over from another directory by a link ([`adopt`]).

mod adopt;
mod journal;
mod list;
mod log_files;
mod publish;
mod read;
mod upload;

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt, future};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    RenameOptions, RenameTargetMode, Result, UpdateVersion,
};

use slatedb_common::retry::NonRetryable;

pub(crate) use self::adopt::Adopted;
pub(super) use self::journal::{Access, JOURNAL, OpenError, is_new as journal_is_new, make as make_journal};
use self::journal::{Journal, TakenOver};
use self::publish::{Publish, Staging};
use self::read::{OpenFiles, ReadError, SealedFile};
use self::upload::SealedUpload;
use super::damage::DamageLog;
use super::directory::Directories;
use super::disk::DiskWatch;
use super::limits::{DELETES_AT_ONCE, INLINE_READ_BYTES_MAX};
use super::seal::{SEAL_LEN, Sealer};

/// The object store on a directory. The module says what it adds.
#[derive(Debug, Clone)]
pub(super) struct SealedDirectory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    plain: LocalFileSystem,
    fsync: bool,
    journal: Journal,
    directories: Directories,
    open_files: OpenFiles,
    /// Held by an update from its comparison to its publication.
    update: Mutex<()>,
    damage: DamageLog,
    disk: DiskWatch,
}

impl SealedDirectory {
    /// A store on `root`, which must exist.
    pub(super) fn new(
        root: &FilePath,
        fsync: bool,
        access: Access,
        damage: DamageLog,
        disk: DiskWatch,
    ) -> std::result::Result<Self, OpenError> {
        let plain = LocalFileSystem::new_with_prefix(root).map_err(io::Error::other)?;
        Ok(Self(Arc::new(Inner {
            plain: plain.with_fsync(fsync),
            fsync,
            journal: Journal::open(root, fsync, access)?,
            directories: Directories::new(fsync),
            open_files: OpenFiles::default(),
            update: Mutex::new(()),
            damage,
            disk,
        })))
    }

    /// Makes the directories of the objects below `paths`, so that the first write there need not make
    /// them.
    pub(in super::super) async fn make_directories(&self, paths: &[String]) -> Result<()> {
        let targets = paths.iter().map(|path| self.0.plain.path_to_filesystem(&Path::from(path.as_str())));
        let targets: Vec<PathBuf> = targets.collect::<Result<_>>()?;
        self.blocking(move |inner| {
            targets.iter().try_for_each(|target| {
                let made = inner.directories.ensure(target);
                made.map_err(|error| inner.io_error("make", target, error))
            })
        })
        .await
    }

    /// Removes the directory of the objects below `path`. It is an error if one of the objects is still
    /// there.
    pub(in super::super) async fn remove_directory(&self, path: &str) -> Result<()> {
        if !self.0.in_journal(Some(&Path::from(path)))?.is_empty() {
            return Err(log_files::not_empty(path));
        }
        let target = self.0.plain.path_to_filesystem(&Path::from(path))?;
        self.blocking(move |inner| {
            let removed = inner.directories.remove(&target);
            removed.map_err(|error| inner.io_error("remove", &target, error))
        })
        .await
    }

    /// Opens the file. Sorted files and chunks never change under their name, so they are kept open.
    async fn opened(&self, file: &FilePath, location: &Path) -> Result<Arc<SealedFile>> {
        if !is_read_in_parts(location) {
            return self.0.open(file, location).map(Arc::new);
        }
        let object = if self.0.journal.answers_at_once(location) {
            self.0.open_in_journal(location)?
        } else {
            let location = location.clone();
            self.blocking(move |inner| inner.open_in_journal(&location)).await?
        };
        if let Some(object) = object {
            return Ok(Arc::new(object));
        }
        if let Some(open) = self.0.open_files.get(location) {
            return Ok(open);
        }
        // When a database is opened, it asks for the files of its log, one after another, until one does
        // not exist.
        if let Err(error) = fs::symlink_metadata(file)
            && error.kind() == io::ErrorKind::NotFound
        {
            return Err(self.0.io_error("read", file, error));
        }
        // After a crash there may be thousands of files to open that are in no cache.
        let (file, location) = (file.to_owned(), location.clone());
        self.blocking(move |inner| inner.open_kept(&file, &location)).await
    }

    /// Runs `work`, which may wait for the disk, on a thread that may block. It begins at once, and not when the future is
    /// polled.
    fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send + 'static {
        let inner = Arc::clone(&self.0);
        if tokio::runtime::Handle::try_current().is_err() {
            return future::Either::Left(future::ready(work(&inner)));
        }
        let working = tokio::task::spawn_blocking(move || work(&inner));
        future::Either::Right(async move { working.await? })
    }
}

impl Inner {
    fn write(&self, location: &Path, payload: &PutPayload, mode: PutMode) -> Result<PutResult> {
        let target = self.plain.path_to_filesystem(location)?;
        self.admit(location, &target, payload.content_length() as u64)?;
        let mut sealer = Sealer::default();
        payload.iter().for_each(|piece| sealer.update(piece));
        let seal = sealer.finish();
        if let Some(written) = self.write_to_journal(location, &target, payload, &seal, &mode)? {
            return Ok(written);
        }
        let encoded = seal.encode();
        let pieces: Vec<&[u8]> = payload.iter().map(Bytes::as_ref).chain([encoded.as_slice()]).collect();
        let publish = if mode == PutMode::Create { Publish::New } else { Publish::Replace };

        let _only_update = match &mode {
            PutMode::Update(expected) => {
                let guard = self.update.lock().expect("a panic here would have ended the update");
                self.compare(&target, location, expected)?;
                Some(guard)
            }
            PutMode::Create | PutMode::Overwrite => None,
        };
        let failed = |error| self.io_error("write", &target, error);
        let _reserved = self.reserve_in_journal(location, publish).map_err(failed)?;
        let parent = target.parent().unwrap_or(FilePath::new("/"));
        let made = self.directories.ensure(parent);
        let made = made.and_then(|()| publish::write(&target, &pieces, publish, self.fsync));
        let metadata = made.map_err(failed)?;
        self.settle_with_journal(location, publish).map_err(failed)?;
        if publish == Publish::Replace {
            // The file that was open under this name is not the one that now has it.
            self.open_files.forget(location);
        }
        let e_tag = Some(read::e_tag(&metadata, &seal));
        Ok(PutResult { e_tag, version: None, extensions: Default::default() })
    }

    /// Refuses a sorted file that would take the last bytes of the disk.
    fn admit(&self, location: &Path, target: &FilePath, length: u64) -> Result<()> {
        if !is_sorted_file(location) {
            return Ok(());
        }
        self.disk.admit_sorted_file(length).map_err(|error| file_error("write", target, &error))
    }

    /// Fails unless the object is still the one that the update was made from.
    fn compare(&self, target: &FilePath, location: &Path, expected: &UpdateVersion) -> Result<()> {
        let refused =
            |reason: String| Error::Precondition { path: location.to_string(), source: reason.into() };
        let Some(wanted) = &expected.e_tag else {
            return Err(refused("an update needs the ETag of what it replaces".to_owned()));
        };
        let found = match self.open(target, location) {
            Ok(file) => file.meta.e_tag,
            Err(Error::NotFound { .. }) => return Err(refused("there is nothing to update".to_owned())),
            Err(error) => return Err(error),
        };
        if found.as_ref() == Some(wanted) {
            return Ok(());
        }
        Err(refused(format!("the ETag is {found:?}, not {wanted}")))
    }

    fn open(&self, file: &FilePath, location: &Path) -> Result<SealedFile> {
        SealedFile::open(file, location).map_err(|error| self.read_error(file, error))
    }

    fn open_kept(&self, file: &FilePath, location: &Path) -> Result<Arc<SealedFile>> {
        let opened = Arc::new(self.open(file, location)?);
        self.open_files.keep(&opened);
        Ok(opened)
    }

    /// The objects below `prefix`, if there are few.
    fn few(&self, prefix: Option<&Path>) -> Option<Vec<ObjectMeta>> {
        let prefix = prefix?;
        list::few(&self.plain.path_to_filesystem(prefix).ok()?, prefix)
    }

    fn read_error(&self, file: &FilePath, error: ReadError) -> Error {
        match error {
            ReadError::Damaged(reason) => self.damage.note(file, reason),
            ReadError::Io(error) => self.io_error("read", file, error),
        }
    }

    /// Adds the name of the file to the error. A full disk is noted, so that writes are refused.
    fn io_error(&self, action: &'static str, file: &FilePath, source: io::Error) -> Error {
        let path = file.display().to_string();
        match source.kind() {
            io::ErrorKind::NotFound => Error::NotFound { path, source: Box::new(source) },
            io::ErrorKind::AlreadyExists => Error::AlreadyExists { path, source: Box::new(source) },
            kind => {
                if matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                    self.disk.found_full();
                }
                if source.get_ref().is_some_and(|source| source.is::<TakenOver>()) {
                    return Error::Generic {
                        store: "rangehold",
                        source: Box::new(NonRetryable(Box::new(source))),
                    };
                }
                file_error(action, file, &source)
            }
        }
    }

    /// Answers a request for `file`, and reads as little as possible.
    fn answer(&self, file: &SealedFile, options: &GetOptions) -> Result<GetResult> {
        options.check_preconditions(&file.meta)?;
        let range = match &options.range {
            Some(range) => range.as_range(file.meta.size).map_err(invalid_range)?,
            None => 0..file.meta.size,
        };
        let bytes = if options.head {
            Ok(Bytes::new())
        } else if file.in_parts && range != (0..file.meta.size) {
            file.read(range.clone())
        } else {
            file.read_whole().map(|whole| whole.slice(range.start as usize..range.end as usize))
        };
        if let Some(place) = &file.may_change
            && !place.is_there().map_err(|error| self.io_error("read", &file.shown, error))?
        {
            return Err(file_error(
                "read",
                &file.shown,
                &io::Error::other("it was moved meanwhile; read it again"),
            ));
        }
        let bytes = bytes.map_err(|error| self.read_error(&file.shown, error))?;
        Ok(answer(file, range, bytes))
    }
}

/// The error for a file that the system, or the disk watch, does not let be written or read.
fn file_error(action: &'static str, file: &FilePath, source: &io::Error) -> Error {
    let message = format!("cannot {action} {}: {source}", file.display());
    Error::Generic { store: "rangehold", source: Box::new(io::Error::new(source.kind(), message)) }
}

/// Whether this is a sorted file of SlateDB. The files of its log end in the same way, but lie elsewhere.
fn is_sorted_file(location: &Path) -> bool {
    location.as_ref().ends_with(".sst") && location.parts().any(|part| part.as_ref() == "compacted")
}

/// Whether this is a file that never changes and has checksums of its own inside, so that a part of it can be read: a
/// sorted file of SlateDB or a chunk of a blob.
fn is_read_in_parts(location: &Path) -> bool {
    location.as_ref().ends_with(".sst") || is_chunk(location)
}

/// Whether this is a chunk of a blob.
fn is_chunk(location: &Path) -> bool {
    location.as_ref().ends_with(".chunk")
}

/// The error for a range that is outside the whole file. It is a mistake of the caller, so trying again is
/// of no use.
fn invalid_range(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "rangehold", source: Box::new(NonRetryable(Box::new(error))) }
}

fn answer(file: &SealedFile, range: Range<u64>, bytes: Bytes) -> GetResult {
    GetResult {
        payload: GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed()),
        meta: file.meta.clone(),
        range,
        attributes: Default::default(),
        extensions: Default::default(),
    }
}

/// Whether a request is small enough to be answered by the thread that asks.
fn is_small(file: &SealedFile, options: &GetOptions) -> bool {
    // Other files are always read as a whole, since only then they can be checked.
    let range = options.range.as_ref().filter(|_| file.in_parts);
    let range = range.and_then(|range| range.as_range(file.meta.size).ok());
    let len = range.map_or(file.meta.size, |range| range.end - range.start);
    options.head || len <= INLINE_READ_BYTES_MAX
}

#[async_trait]
impl ObjectStore for SealedDirectory {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        if !options.attributes.is_empty() {
            return Err(no_attributes("put_opts"));
        }
        let location = location.clone();
        let written = self.blocking(move |inner| inner.write(&location, &payload, options.mode)).await;
        self.look_after_journal();
        written
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        if !options.attributes.is_empty() {
            return Err(no_attributes("put_multipart_opts"));
        }
        let target = self.0.plain.path_to_filesystem(location)?;
        let file = target.clone();
        let staging = self.blocking(move |inner| {
            let parent = file.parent().unwrap_or(FilePath::new("/"));
            let made = inner.directories.ensure(parent).and_then(|()| Staging::beside(&file, inner.fsync));
            made.map_err(|error| inner.io_error("write", &file, error))
        });
        Ok(Box::new(SealedUpload::new(self.clone(), location.clone(), target, staging.await?)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let path: PathBuf = self.0.plain.path_to_filesystem(location)?;
        let file = self.opened(&path, location).await?;
        if is_small(&file, &options) {
            return self.0.answer(&file, &options);
        }
        self.blocking(move |inner| inner.answer(&file, &options)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let delete = move |location: Result<Path>| {
            let this = this.clone();
            async move {
                let location = location?;
                if journal::is_of_log(&location) {
                    let deleted = this.blocking(move |inner| inner.delete_log_file(location)).await;
                    this.look_after_journal();
                    return deleted;
                }
                this.0.plain.delete(&location).await?;
                this.0.open_files.forget(&location);
                Ok(location)
            }
        };
        locations.map(delete).buffered(DELETES_AT_ONCE).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let journal = match self.0.in_journal(prefix) {
            Ok(journal) => journal,
            Err(error) => return stream::iter([Err(error)]).boxed(),
        };
        let is_other = log_files::not_in(&journal);
        let files = match self.0.few(prefix) {
            Some(few) => stream::iter(few.into_iter().map(Ok)).boxed(),
            None => self.0.plain.list(prefix),
        };
        let files = files.try_filter(move |meta| future::ready(is_other(meta)));
        let objects = stream::iter(journal.into_iter().map(Ok)).chain(files);
        objects.map_ok(without_seal).boxed()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let offset = offset.clone();
        self.list(prefix).try_filter(move |meta| future::ready(meta.location > offset)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let journal = self.0.in_journal(prefix)?;
        let mut listed = self.0.plain.list_with_delimiter(prefix).await?;
        log_files::add_to(&mut listed, journal, prefix);
        listed.objects = listed.objects.into_iter().map(without_seal).collect();
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        if [from, to].into_iter().any(journal::is_of_log) {
            return self.copy_log_file(from, to, options.mode).await;
        }
        self.0.plain.copy_opts(from, to, options).await?;
        self.0.open_files.forget(to);
        Ok(())
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        if [from, to].into_iter().any(journal::is_of_log) {
            let mode = if options.target_mode == RenameTargetMode::Create {
                CopyMode::Create
            } else {
                CopyMode::Overwrite
            };
            self.copy_log_file(from, to, mode).await?;
            return self.delete(from).await;
        }
        self.0.plain.rename_opts(from, to, options).await?;
        self.0.open_files.forget(from);
        self.0.open_files.forget(to);
        Ok(())
    }
}

/// A listing shows the length of a file, but not whether the file is whole.
fn without_seal(mut meta: ObjectMeta) -> ObjectMeta {
    meta.size = meta.size.saturating_sub(SEAL_LEN);
    meta.e_tag = None;
    meta
}

fn no_attributes(operation: &str) -> Error {
    Error::NotImplemented {
        operation: format!("`{operation}` with attributes"),
        implementer: "a directory".to_owned(),
    }
}

impl std::fmt::Display for SealedDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sealed {}", self.0.plain)
    }
}
