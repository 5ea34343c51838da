//! The map of ranges as it is stored: numbered objects that are only ever created.
//!
//! `cluster/map/00000000000000000001.json` is the first version, and so on. A process that changes the map
//! creates the object with the next number. If that exists, another process was faster. The newest number
//! counts, and the oldest ones are deleted after a while.
//!
//! ```json
//! {"format":2,"version":9,"next_range":4,"author":"1-17","ranges":[{"id":1,"low":"10","high":null,"generation":1,
//!  "database":"1-1-1","server":1,"online":true,"intent":null}]}
//! ```
//!
//! Keys are in hexadecimal. Format 1 named the attempt instead of the database, and had neither
//! `next_range` nor the members after `server`. It is read and never written.

mod error;
mod object;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use rangehold_map::{ChangeRefused, DatabaseName, Generation, Intent, RangeEntry, RangeId, RangeMap};
use tokio::sync::{Mutex, watch};

pub use self::error::{BadMap, MapError};
use crate::database::database_path;
use crate::limits::{CLONE_ATTEMPTS_MAX, MAP_VERSIONS_KEPT};
use crate::store::ObjectError;

/// The format that this release writes, and the greatest that it reads.
const FORMAT: u32 = 2;

/// Where the versions of the map are.
pub const MAP_PREFIX: &str = "cluster/map";

/// The newest version; `None` if none was ever stored.
pub(crate) async fn load(objects: &Arc<dyn ObjectStore>) -> Result<Option<RangeMap>, MapError> {
    match newest(objects).await? {
        Some(newest) => read(objects, &newest).await.map(Some),
        None => Ok(None),
    }
}

/// The name of the newest version.
async fn newest(objects: &Arc<dyn ObjectStore>) -> Result<Option<Path>, MapError> {
    // Numbers have leading zeros, so the last name is the greatest number.
    let Some(mut newest) = list(objects).await?.into_iter().max() else {
        return Ok(None);
    };
    // A listing may lag behind. A process must not take a range for its own because of that.
    while let Some(version) = version_of(&newest) {
        let next = object_path(version + 1);
        match objects.head(&next).await {
            Ok(_) => newest = next,
            Err(object_store::Error::NotFound { .. }) => break,
            Err(source) => return Err(ObjectError::while_doing("looking for", &next)(source).into()),
        }
    }
    Ok(Some(newest))
}

async fn read(objects: &Arc<dyn ObjectStore>, path: &Path) -> Result<RangeMap, MapError> {
    let failed = ObjectError::while_doing("reading", path);
    let got = objects.get(path).await.map_err(&failed)?;
    let bytes = got.bytes().await.map_err(&failed)?;
    let map = object::decode(&bytes).and_then(|map| match map.version() {
        version if object_path(version) != *path => Err(BadMap::Version(version)),
        _ => Ok(map),
    });
    map.map_err(|why| MapError::Bad(path.clone(), why))
}

/// The paths of the databases that must not be taken for unused: those of the ranges in the newest map, and
/// all those that changes under way may make. Call this *after* you listed the databases: a change is in
/// the map before it makes any database.
pub(crate) async fn living(objects: Arc<dyn ObjectStore>) -> Result<BTreeSet<String>, MapError> {
    let map = load(&objects).await?.ok_or(MapError::None)?;
    let mut living = BTreeSet::new();
    for entry in map.entries() {
        living.insert(database_path(entry.place.database));
        let expected = match &entry.intent {
            Some(Intent::Split { left, right, .. }) => vec![*left, *right],
            Some(Intent::Merge { into, .. }) => vec![*into],
            Some(Intent::MergeWith { .. } | Intent::Move { .. }) | None => Vec::new(),
        };
        living.extend(expected.into_iter().flat_map(attempts));
    }
    Ok(living)
}

/// The database of the attempt with this number to make `range`, an heir of a split or a merge.
pub(crate) fn heir(range: RangeId, attempt: u64) -> DatabaseName {
    DatabaseName { range, generation: Generation::FIRST, attempt }
}

/// The database of the attempt with this number to restore the range of this entry from a backup. It is named after the
/// generation in which the range will be, and no change makes a database for a generation but the first.
pub(crate) fn restored(entry: &RangeEntry, attempt: u64) -> DatabaseName {
    DatabaseName { range: entry.id, generation: entry.generation.next(), attempt }
}

/// The paths of all attempts to make a range.
fn attempts(range: RangeId) -> impl Iterator<Item = String> {
    (1..=CLONE_ATTEMPTS_MAX).map(move |attempt| database_path(heir(range, attempt)))
}

/// Stores a version. Returns false if a version with its number is there already. The author is a name that
/// no other process has or ever had. A map that breaks a rule is refused before anything is written, since
/// [`load`] would refuse it too, and a stored version cannot be taken back.
pub(crate) async fn create(
    objects: &Arc<dyn ObjectStore>,
    map: &RangeMap,
    author: &str,
) -> Result<bool, MapError> {
    let findings = map.check_homes();
    if !findings.is_empty() {
        return Err(MapError::Unsound(map.version(), findings));
    }
    let path = object_path(map.version());
    let payload = PutPayload::from(object::encode(map, author));
    match objects.put_opts(&path, payload, PutMode::Create.into()).await {
        Ok(_) => Ok(true),
        Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
        Err(error) => Err(ObjectError::while_doing("creating", &path)(error).into()),
    }
}

async fn list(objects: &Arc<dyn ObjectStore>) -> Result<Vec<Path>, ObjectError> {
    let prefix = Path::from(MAP_PREFIX);
    let listed: Result<Vec<_>, _> =
        objects.list(Some(&prefix)).map_ok(|object| object.location).try_collect().await;
    listed.map_err(ObjectError::while_doing("listing", &prefix))
}

fn object_path(version: u64) -> Path {
    Path::from(format!("{MAP_PREFIX}/{version:020}.json"))
}

/// The reverse of [`object_path`]; `None` for a name that is not a version.
fn version_of(path: &Path) -> Option<u64> {
    path.filename()?.strip_suffix(".json")?.parse().ok()
}

/// The map as a process knows it, and the way to change it. Clones share it.
#[derive(Clone)]
pub struct Maps(Arc<Inner>);

struct Inner {
    objects: Arc<dyn ObjectStore>,
    author: String,
    current: watch::Sender<Arc<RangeMap>>,
    /// Held while a version is made, so that this process does not race with itself.
    changing: Mutex<()>,
}

impl Maps {
    /// Begins with a map that was just loaded or stored. Versions that are made here bear the author's
    /// name: see [`create`].
    pub(crate) fn new(objects: Arc<dyn ObjectStore>, map: RangeMap, author: String) -> Self {
        Self(Arc::new(Inner {
            objects,
            author,
            current: watch::Sender::new(Arc::new(map)),
            changing: Mutex::default(),
        }))
    }

    /// A second view of the same stored map, for example for a front end of its own. It learns of newer
    /// versions only by [`Maps::show`] and [`Maps::refresh`].
    pub fn apart(&self) -> Self {
        Self(Arc::new(Inner {
            objects: Arc::clone(&self.0.objects),
            author: self.0.author.clone(),
            current: watch::Sender::new(self.current()),
            changing: Mutex::default(),
        }))
    }

    /// The store that holds the map, as this process reaches it.
    pub(crate) fn objects(&self) -> &Arc<dyn ObjectStore> {
        &self.0.objects
    }

    /// The newest version that this process knows.
    pub fn current(&self) -> Arc<RangeMap> {
        self.0.current.borrow().clone()
    }

    /// Tells of new versions.
    pub fn subscribe(&self) -> watch::Receiver<Arc<RangeMap>> {
        self.0.current.subscribe()
    }

    /// Looks for a newer version in the store. A map that is known already is not read again: with many ranges,
    /// reading takes long, and a change may hold writes meanwhile.
    pub fn refresh<'a>(&'a self) -> BoxFuture<'a, Result<Arc<RangeMap>, MapError>> {
        Box::pin(async move {
            let known = object_path(self.current().version());
            if let Some(newest) = newest(&self.0.objects).await?.filter(|newest| *newest > known) {
                self.show(Arc::new(read(&self.0.objects, &newest).await?));
            }
            Ok(self.current())
        })
    }

    /// Makes and stores the next version from the newest one. If another process was faster, `change` is
    /// asked again, with the version of that process. After an error of the store it is unknown whether the
    /// version was stored; the next change finds out.
    pub(crate) async fn change(
        &self,
        change: impl Fn(&RangeMap) -> Result<RangeMap, ChangeRefused>,
    ) -> Result<Result<Arc<RangeMap>, ChangeRefused>, MapError> {
        let _changing = self.0.changing.lock().await;
        loop {
            let base = self.current();
            let next = match change(&base) {
                // The new version has the next number, however many steps the change took. Another process
                // that makes a version from the same one then makes the same number, and finds that it is
                // taken.
                Ok(next) => RangeMap::new(base.version() + 1, next.next_range(), next.entries().to_vec()),
                Err(refused) => return Ok(Err(refused)),
            };
            match create(&self.0.objects, &next, &self.0.author).await {
                Ok(true) if self.is_long_past(&next).await? => {
                    self.refresh().await?;
                }
                Ok(true) => {
                    self.show(Arc::new(next));
                    self.forget_old().await;
                    return Ok(Ok(self.current()));
                }
                Ok(false) => {
                    let newest = self.refresh().await?;
                    if self.is_ours(&newest, &next).await {
                        return Ok(Ok(newest));
                    }
                }
                Err(error @ MapError::Unsound(..)) => return Err(error),
                Err(error) => {
                    // It is unknown whether the version was stored, so look at what is there.
                    match self.refresh().await {
                        Ok(newest) if self.is_ours(&newest, &next).await => return Ok(Ok(newest)),
                        _ => return Err(error),
                    }
                }
            }
        }
    }

    /// Whether the newest version is the one that we meant to store: the answer to an earlier try may have
    /// been lost. Two processes that begin the same change at the same time mean the same map, so the
    /// version must also bear our name.
    async fn is_ours(&self, newest: &RangeMap, meant: &RangeMap) -> bool {
        if newest != meant {
            return false;
        }
        let Ok(stored) = self.0.objects.get(&object_path(newest.version())).await else { return false };
        let Ok(bytes) = stored.bytes().await else { return false };
        object::author(&bytes).as_deref() == Some(self.0.author.as_str())
    }

    /// Takes over a version. A version that is older than the known one changes nothing.
    pub fn show(&self, map: Arc<RangeMap>) {
        self.0.current.send_if_modified(|current| {
            let newer = map.version() > current.version();
            if newer {
                *current = map;
            }
            newer
        });
    }

    /// Whether `stored` took the number of a version that was deleted because it was old: a process that
    /// slept through that many changes finds its next number free.
    async fn is_long_past(&self, stored: &RangeMap) -> Result<bool, MapError> {
        let newest = list(&self.0.objects).await?.into_iter().max();
        Ok(newest > Some(object_path(stored.version() + MAP_VERSIONS_KEPT)))
    }

    /// Deletes versions that are not needed any more. If this fails, it is done after a later change.
    async fn forget_old(&self) {
        let version = self.current().version();
        // This is not done each time, since listing is more expensive than deleting.
        if !version.is_multiple_of(MAP_VERSIONS_KEPT) {
            return;
        }
        let Ok(versions) = list(&self.0.objects).await else { return };
        let oldest = object_path(version.saturating_sub(MAP_VERSIONS_KEPT));
        let old = versions.into_iter().filter(|path| *path < oldest);
        futures::stream::iter(old)
            .for_each(|path| async move {
                let _ = self.0.objects.delete(&path).await;
            })
            .await;
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use rangehold_map::{Home, KeyRange, ServerId};

    use super::*;

    /// The same map, `by` versions later.
    fn later(map: &RangeMap, by: u64) -> Result<RangeMap, ChangeRefused> {
        // Both numbers differ, so that the two changes are not the same one.
        let next_range = RangeId(map.next_range().0 + by);
        Ok(RangeMap::new(map.version() + by, next_range, map.entries().to_vec()))
    }

    async fn two_processes() -> (Arc<dyn ObjectStore>, Maps, Maps) {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let database = DatabaseName { range: RangeId(1), generation: Generation::FIRST, attempt: 1 };
        let map = RangeMap::single(RangeId(1), Home { server: ServerId(1), database });
        assert!(create(&objects, &map, "first").await.unwrap());
        let maps = |author: &str| Maps::new(Arc::clone(&objects), map.clone(), author.to_owned());
        let (one, other) = (maps("one"), maps("other"));
        (objects, one, other)
    }

    #[tokio::test]
    async fn a_change_of_two_steps_meets_one_of_one_step() {
        let (_, one, other) = two_processes().await;
        one.change(|map| later(map, 2)).await.unwrap().unwrap();
        let second = other.change(|map| later(map, 1)).await.unwrap().unwrap();
        assert_eq!((one.current().version(), second.version()), (2, 3));
    }

    /// Both processes mean the same map, but only one of them made it.
    #[tokio::test]
    async fn of_two_processes_that_make_the_same_change_one_has_made_it() {
        let (_, one, other) = two_processes().await;
        let map = one.current();
        let (range, place) = (RangeId(1), map.entries()[0].place);
        let assigned = [(range, Generation::FIRST, place)];
        one.change(|map| map.assigned(&assigned)).await.unwrap().unwrap();
        assert!(other.change(|map| map.assigned(&assigned)).await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_version_that_breaks_the_rules_of_a_map_is_refused_and_not_stored() {
        let (objects, maps, _) = two_processes().await;
        let stored = maps.current();
        let with_gap = |map: &RangeMap| {
            let mut entries = map.entries().to_vec();
            entries[0].keys = KeyRange::new(vec![0x30], None);
            Ok(RangeMap::new(map.version() + 1, map.next_range(), entries))
        };
        let refused = maps.change(with_gap).await.unwrap_err();
        assert!(matches!(refused, MapError::Unsound(2, _)), "{refused}");
        assert!(refused.to_string().contains("keys before r1 belong to no range"), "{refused}");
        assert_eq!(load(&objects).await.unwrap().as_ref(), Some(&*stored), "the store can still be opened");
        assert_eq!(maps.current(), stored);
    }

    #[tokio::test]
    async fn a_process_that_slept_until_its_number_was_free_again_makes_the_next_version() {
        let (objects, awake, asleep) = two_processes().await;
        for _ in 0..3 * MAP_VERSIONS_KEPT {
            awake.change(|map| later(map, 1)).await.unwrap().unwrap();
        }
        assert!(!list(&objects).await.unwrap().contains(&object_path(2)), "it is free");
        let made = asleep.change(|map| later(map, 1)).await.unwrap().unwrap();
        assert_eq!(made.version(), awake.current().version() + 1);
    }
}
