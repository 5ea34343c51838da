//! One process's way to the store.

mod upload;

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, stream};
use object_store::path::Path;
use object_store::{
    Attributes, CopyMode, CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use tokio::sync::watch;

use self::upload::Upload;
use super::bucket::{Bucket, LISTED_BACK_MAX};
use super::fate::{self, Fate, Refused, Standing, Wish};
use crate::chance::Dice;
use crate::events::{self, Events};
use crate::faults::{Fault, Weather};

/// What happens to calls at a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// They go through.
    Open,
    /// They wait, on their way there or back: the process stands still.
    Held,
    /// They never return: the process is dead.
    Closed,
}

/// One process's way to the store, in one of its lives. Clones are the same door.
#[derive(Debug, Clone)]
pub struct Door(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    bucket: Arc<Mutex<Bucket>>,
    passage: watch::Sender<Passage>,
    weather: Weather,
    dice: Mutex<Dice>,
    standing: Mutex<Standing>,
    events: Events,
}

impl Door {
    /// A new door to `bucket`, for the process that `name` names in the log.
    pub fn new(
        name: String,
        bucket: Arc<Mutex<Bucket>>,
        weather: Weather,
        dice: Dice,
        events: Events,
    ) -> Self {
        Self(Arc::new(Inner {
            name,
            bucket,
            passage: watch::Sender::new(Passage::Open),
            weather,
            dice: Mutex::new(dice),
            standing: Mutex::default(),
            events,
        }))
    }

    /// Holds, opens or closes the door. A closed door stays closed.
    pub fn set(&self, passage: Passage) {
        self.0.passage.send_if_modified(|now| {
            let changes = *now != Passage::Closed && *now != passage;
            if changes {
                *now = passage;
            }
            changes
        });
    }

    /// Makes its calls slow, or as fast as those of others.
    pub fn set_slow(&self, slow: bool) {
        self.standing().is_slow = slow;
    }

    /// Refuses these of its calls, and no others.
    pub fn set_refused(&self, refused: Refused) {
        self.standing().refused = refused;
    }

    /// Which of its calls are refused.
    pub fn refused(&self) -> Refused {
        self.standing().refused
    }

    /// Makes one call: waits, has its effect, waits, returns; see [`Fate`].
    pub(crate) async fn call<T>(
        &self,
        wish: Wish,
        path: &Path,
        effect: impl FnOnce(&mut Bucket, Duration, &Fate, &mut Dice) -> (Result<T>, u64),
    ) -> Result<T> {
        let begun = self.0.events.now();
        self.passed().await;
        let standing = *self.standing();
        let fate = fate::choose(wish, path.as_ref(), standing, &self.0.weather, &mut self.dice());
        tokio::time::sleep(fate.before).await;
        self.passed().await;
        let now = self.0.events.now();
        let error = fate::error(fate.fault, wish, path);
        let (result, hash) = if fate::has_effect(fate.fault) {
            effect(&mut self.bucket(), now, &fate, &mut self.dice())
        } else {
            (Err(error_of(wish, path)), 0)
        };
        self.log(wish, path, hash, result.is_ok(), &fate, now.saturating_sub(begun));
        if !fate.after.is_zero() {
            tokio::time::sleep(fate.after).await;
            self.passed().await;
        }
        match error {
            // If the call itself fails too, the caller gets the error of the fault.
            Some(error) if result.is_ok() || !fate::has_effect(fate.fault) => Err(error),
            _ => result,
        }
    }

    fn log(&self, wish: Wish, path: &Path, hash: u64, ok: bool, fate: &Fate, took: Duration) {
        let outcome = if ok { "ok" } else { "refused" };
        let wish = match wish {
            Wish::Get => "get",
            Wish::List => "list",
            Wish::Put { conditional: false } => "put",
            Wish::Put { conditional: true } => "create",
            Wish::Part => "part",
            Wish::Delete => "delete",
        };
        let (name, ms) = (&self.0.name, took.as_millis());
        match fate.fault {
            None => self.0.events.add(name, format_args!("{wish:<6} {path} {hash:016x} {outcome} {ms} ms")),
            Some(fault) => self
                .0
                .events
                .add(name, format_args!("{wish:<6} {path} {hash:016x} {outcome} {ms} ms, {fault}")),
        }
    }

    /// Returns when the door is open. If the door is closed, it never returns.
    async fn passed(&self) {
        if *self.0.passage.borrow() == Passage::Open {
            return;
        }
        let mut passage = self.0.passage.subscribe();
        if passage.wait_for(|now| *now == Passage::Open).await.is_err() {
            // The caller holds the door, so the door's sender exists. If it did not, this would never return.
            std::future::pending::<()>().await;
        }
    }

    fn dice(&self) -> MutexGuard<'_, Dice> {
        self.0.dice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.0.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bucket(&self) -> MutexGuard<'_, Bucket> {
        self.0.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn put(
        &self,
        path: &Path,
        bytes: Bytes,
        attributes: Attributes,
        mode: PutMode,
    ) -> Result<PutResult> {
        let wish = Wish::Put { conditional: mode != PutMode::Overwrite };
        let hash = events::hash([&bytes]);
        let tag = self
            .call(wish, path, |bucket, now, _, _| (bucket.put(now, path, bytes, attributes, &mode), hash))
            .await?;
        Ok(PutResult { e_tag: Some(tag), version: None, extensions: Default::default() })
    }

    async fn listed(&self, prefix: Option<Path>) -> Result<Vec<ObjectMeta>> {
        let name = prefix.clone().unwrap_or_default();
        self.call(Wish::List, &name, |bucket, now, fate, dice| {
            let listed = bucket.list(moment(now, fate, dice), prefix.as_ref());
            let hash = events::hash(listed.iter().map(|meta| meta.location.as_ref()));
            (Ok(listed), hash)
        })
        .await
    }
}

/// The moment that a stale listing shows.
fn moment(now: Duration, fate: &Fate, dice: &mut Dice) -> Duration {
    match fate.fault {
        Some(Fault::StaleList) => {
            let back = dice.below(LISTED_BACK_MAX.as_millis().try_into().unwrap_or(u64::MAX));
            now.saturating_sub(Duration::from_millis(back))
        }
        _ => now,
    }
}

/// Takes the place of the fault's own error until that is returned.
fn error_of(wish: Wish, path: &Path) -> object_store::Error {
    object_store::Error::Generic { store: "bucket", source: format!("{wish:?} {path}").into() }
}

/// The last bytes of a sorted file say where its index is, and have no checksum: SlateDB panics if they are wrong. In
/// a directory the seals of the files protect them.
const UNCHECKED_BYTES: u64 = 16;

/// What a faulty read returns instead of `bytes`, which begin at `start` in the object at `path`.
fn spoilt(bucket: &Bucket, path: &Path, start: u64, bytes: &Bytes, fate: &Fate, dice: &mut Dice) -> Bytes {
    let left = bucket.get(path).map_or(0, |object| object.meta.size - start);
    let checked = index(left.saturating_sub(UNCHECKED_BYTES)).min(bytes.len());
    match fate.fault {
        Some(Fault::FlippedBit) if checked > 0 => {
            let mut flipped = BytesMut::from(&bytes[..]);
            let at = dice.index(checked);
            flipped[at] ^= 1 << dice.below(8);
            flipped.freeze()
        }
        Some(Fault::MisdirectedRead) if checked > 0 => {
            let other = elsewhere(bucket, path, index(start), checked, dice);
            let mut misdirected = BytesMut::from(&bytes[..]);
            if let Some(other) = other {
                misdirected[..checked].copy_from_slice(&other);
            }
            misdirected.freeze()
        }
        Some(Fault::TruncatedRead) if !bytes.is_empty() => bytes.slice(..dice.index(bytes.len())),
        _ => bytes.clone(),
    }
}

/// `length` bytes of any object of the same kind as the one at `path`, but not from `start` on: a checksum does not
/// say which file it belongs to, so a whole block of another file passes for the right one if it is as long and in the
/// same place. `None` if the place that was drawn is `start`, or if no object is large enough.
fn elsewhere(bucket: &Bucket, path: &Path, start: usize, length: usize, dice: &mut Dice) -> Option<Bytes> {
    let alike: Vec<&Bytes> =
        bucket.alike(path).map(|object| &object.bytes).filter(|bytes| bytes.len() > length).collect();
    let bytes = alike.get(dice.index(alike.len().max(1)))?;
    let at = dice.index(bytes.len() - length + 1);
    (at != start).then(|| bytes.slice(at..at + length))
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Door({})", self.0.name)
    }
}

#[async_trait]
impl ObjectStore for Door {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.put(location, payload.into(), opts.attributes, opts.mode).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Upload::new(self.clone(), location.clone(), opts.attributes)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.call(Wish::Get, location, |bucket, _, fate, dice| {
            let result = bucket.get(location).and_then(|object| {
                options.check_preconditions(&object.meta)?;
                let length = object.meta.size;
                let range = match &options.range {
                    _ if options.head => 0..0,
                    Some(range) => range.as_range(length).map_err(|error| object_store::Error::Generic {
                        store: "bucket",
                        source: error.to_string().into(),
                    })?,
                    None => 0..length,
                };
                let bytes = object.bytes.slice(index(range.start)..index(range.end));
                let bytes = spoilt(bucket, location, range.start, &bytes, fate, dice);
                Ok(GetResult {
                    payload: GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed()),
                    meta: object.meta.clone(),
                    range,
                    attributes: object.attributes.clone(),
                    extensions: Default::default(),
                })
            });
            let size = result.as_ref().map_or(0, |got| got.range.end - got.range.start);
            (result, size)
        })
        .await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.call(Wish::Get, location, |bucket, _, fate, dice| {
            let result = bucket.get(location).and_then(|object| {
                let part = |range: &Range<u64>| {
                    let range = GetRange::Bounded(range.clone()).as_range(object.meta.size);
                    let range = range.map_err(|error| object_store::Error::Generic {
                        store: "bucket",
                        source: error.to_string().into(),
                    })?;
                    let bytes = object.bytes.slice(index(range.start)..index(range.end));
                    Ok(spoilt(bucket, location, range.start, &bytes, fate, dice))
                };
                ranges.iter().map(part).collect()
            });
            (result, ranges.len() as u64)
        })
        .await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let door = self.clone();
        locations
            .then(move |location| {
                let door = door.clone();
                async move {
                    let location = location?;
                    let deleting = door.call(Wish::Delete, &location, |bucket, now, _, _| {
                        bucket.delete(now, &location);
                        (Ok(()), 0)
                    });
                    deleting.await?;
                    Ok(location)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (door, prefix) = (self.clone(), prefix.cloned());
        async move {
            match door.listed(prefix).await {
                Ok(listed) => stream::iter(listed.into_iter().map(Ok)).boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        }
        .flatten_stream()
        .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let name = prefix.cloned().unwrap_or_default();
        self.call(Wish::List, &name, |bucket, now, fate, dice| {
            let level = bucket.list_level(moment(now, fate, dice), prefix);
            let hash = events::hash(level.objects.iter().map(|meta| meta.location.as_ref()));
            (Ok(level), hash)
        })
        .await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let mode = match options.mode {
            CopyMode::Overwrite => PutMode::Overwrite,
            CopyMode::Create => PutMode::Create,
        };
        let wish = Wish::Put { conditional: mode != PutMode::Overwrite };
        self.call(wish, to, |bucket, now, _, _| {
            let copied = bucket
                .get(from)
                .cloned()
                .and_then(|object| bucket.put(now, to, object.bytes, object.attributes, &mode).map(|_| ()));
            (copied, 0)
        })
        .await
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}
