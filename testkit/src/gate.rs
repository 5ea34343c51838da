//! An object store that can be stopped, forever or for a while. For the store, this is what a crash looks like.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, stream};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;
use slatedb_common::retry::NonRetryable;
use tokio::sync::{Notify, watch};

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// It goes through.
    Open,
    /// Writes wait until the gate opens.
    HoldWrites,
    /// Versions of the map that are written now wait until the gate opens.
    HoldMap,
    /// Manifests that are written now wait until they are [released](Gate::release). So databases are opened late.
    HoldManifests,
    /// Writes of the log fail in a way that is not tried again.
    FailLog,
    /// No database gets its first manifest, so no database can be made.
    FailFirstManifests,
    /// The next manifest cannot be written, and so its database cannot be opened.
    FailOneManifest,
    /// No call returns any more: the process has crashed.
    Dead,
}

/// A gate before a store. A new gate before the same store stands for a process that was started again.
#[derive(Debug)]
pub struct Gate {
    inner: Arc<dyn ObjectStore>,
    passage: watch::Sender<Passage>,
    held: AtomicUsize,
    release: Notify,
    puts: Mutex<Vec<(String, u64)>>,
    gets: Mutex<Vec<String>>,
    fuse: Arc<Fuse>,
    lists_backwards: AtomicBool,
}

/// How many more objects of databases and change records are written or deleted before the process dies.
#[derive(Debug, Default)]
struct Fuse(Mutex<Option<usize>>);

impl Fuse {
    /// Whether the process dies before this object is written or deleted.
    fn burns(&self, location: &Path) -> bool {
        let is_counted = ["ranges/", "changes/"].iter().any(|prefix| location.as_ref().starts_with(prefix));
        let mut left = self.0.lock();
        match left.as_mut() {
            Some(0) => true,
            Some(left) if is_counted => {
                *left -= 1;
                false
            }
            _ => false,
        }
    }
}

impl Gate {
    /// A gate before `inner`, which is open.
    pub fn before(inner: &Arc<dyn ObjectStore>) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            passage: watch::Sender::new(Passage::Open),
            held: AtomicUsize::new(0),
            release: Notify::new(),
            puts: Mutex::default(),
            gets: Mutex::default(),
            fuse: Arc::default(),
            lists_backwards: AtomicBool::new(false),
        })
    }

    /// What happens to calls from now on. Those that wait are looked at again.
    pub fn set(&self, passage: Passage) {
        self.passage.send_replace(passage);
    }

    /// Lets the process die after so many more objects of databases and change records are written or deleted.
    pub fn die_after(&self, objects: usize) {
        *self.fuse.0.lock() = Some(objects);
    }

    /// Whether the process has died.
    pub fn has_died(&self) -> bool {
        *self.passage.borrow() == Passage::Dead
    }

    /// Lists objects in the opposite order from now on. A directory may list them in any order.
    pub fn list_backwards(&self) {
        self.lists_backwards.store(true, Ordering::SeqCst);
    }

    /// Lets the manifests pass that are held.
    pub fn release(&self) {
        self.release.notify_waiters();
    }

    /// The number of writes that wait at the gate.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    /// What was written so far: names, each with a hash of the bytes.
    pub fn puts(&self) -> Vec<(String, u64)> {
        self.puts.lock().clone()
    }

    /// The names of what was read whole or in part so far.
    pub fn gets(&self) -> Vec<String> {
        self.gets.lock().clone()
    }

    async fn read(&self) {
        let mut passage = self.passage.subscribe();
        let alive = passage.wait_for(|p| *p != Passage::Dead).await;
        drop(alive.expect("the sender lives as long as the gate"));
    }

    async fn write(&self, location: &Path) -> Result<()> {
        let mut passage = self.passage.subscribe();
        self.held.fetch_add(1, Ordering::SeqCst);
        let is_held = *passage.borrow() == Passage::HoldManifests && location.as_ref().contains("/manifest/");
        if is_held {
            self.release.notified().await;
        }
        let is_map = location.as_ref().starts_with("cluster/map/");
        let open = passage
            .wait_for(|p| match p {
                Passage::HoldWrites | Passage::Dead => false,
                Passage::HoldMap => !is_map,
                _ => true,
            })
            .await
            .map(|p| *p)
            .expect("the sender lives as long as the gate");
        self.held.fetch_sub(1, Ordering::SeqCst);
        if self.fuse.burns(location) {
            self.set(Passage::Dead);
            std::future::pending::<()>().await;
        }
        let closed = match open {
            Passage::FailLog => "/wal/",
            Passage::FailFirstManifests => "/manifest/00000000000000000001.",
            Passage::FailOneManifest => "/manifest/",
            _ => return Ok(()),
        };
        if !location.as_ref().contains(closed) {
            return Ok(());
        }
        if open == Passage::FailOneManifest {
            self.set(Passage::Open);
        }
        let error = std::io::Error::other(format!("{closed} cannot be written"));
        let source = Box::new(NonRetryable(Box::new(error)));
        Err(object_store::Error::Generic { store: "gate", source })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Gate {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.write(location).await?;
        let mut hasher = DefaultHasher::new();
        payload.iter().for_each(|bytes| bytes.hash(&mut hasher));
        self.puts.lock().push((location.to_string(), hasher.finish()));
        let result = self.inner.put_opts(location, payload, opts).await;
        // A process that died meanwhile does not learn that the object is there.
        self.read().await;
        result
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.write(location).await?;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.read().await;
        if !options.head {
            self.gets.lock().push(location.to_string());
        }
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.read().await;
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, fuse, passage) = (Arc::clone(&self.inner), Arc::clone(&self.fuse), self.passage.clone());
        let passing = locations.then(move |location| {
            let (fuse, passage) = (Arc::clone(&fuse), passage.clone());
            async move {
                let mut seen = passage.subscribe();
                let _ = seen.wait_for(|p| !matches!(p, Passage::HoldWrites | Passage::Dead)).await;
                if location.as_ref().is_ok_and(|location| fuse.burns(location)) {
                    passage.send_replace(Passage::Dead);
                    std::future::pending::<()>().await;
                }
                location
            }
        });
        inner.delete_stream(passing.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let inner = Arc::clone(&self.inner);
        let prefix = prefix.cloned();
        let mut passage = self.passage.subscribe();
        let backwards = self.lists_backwards.load(Ordering::SeqCst);
        async move {
            let _ = passage.wait_for(|p| *p != Passage::Dead).await;
            let listed = inner.list(prefix.as_ref());
            if !backwards {
                return listed;
            }
            let mut listed: Vec<_> = listed.collect().await;
            listed.reverse();
            stream::iter(listed).boxed()
        }
        .flatten_stream()
        .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.read().await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.write(to).await?;
        self.inner.copy_opts(from, to, options).await
    }
}
