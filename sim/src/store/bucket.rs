//! The objects themselves, as the one store that all processes of a cluster share has them.
//!
//! It follows the rules that S3, Google Cloud Storage and Azure Blobs have in common: a put is whole
//! or not at all, a read sees the last put, a put can be conditional. Listings may be asked for *as
//! they were*, so the bucket remembers for a while what was deleted.
//!
//! Everything here happens at once. Waiting, and everything that goes wrong, is the part of [`super::Door`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use object_store::path::Path;
use object_store::{Attributes, Error, ListResult, ObjectMeta, PutMode, Result};

/// How far back a listing may be asked for.
pub const LISTED_BACK_MAX: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub struct Bucket {
    /// The store's own wall clock when the run begins.
    epoch: DateTime<Utc>,
    objects: BTreeMap<Path, Object>,
    deleted: Vec<(Duration, ObjectMeta)>,
    puts: u64,
}

/// An object.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its bytes.
    pub bytes: Bytes,
    /// The attributes that were stored with them.
    pub attributes: Attributes,
    /// Its description.
    pub meta: ObjectMeta,
    /// When an object of this name was put here.
    since: Duration,
}

impl Bucket {
    /// An empty bucket. `epoch` is the store's wall clock when the run begins.
    pub fn new(epoch: DateTime<Utc>) -> Self {
        Self { epoch, objects: BTreeMap::new(), deleted: Vec::new(), puts: 0 }
    }

    /// Puts an object, and returns its tag.
    pub fn put(
        &mut self,
        now: Duration,
        path: &Path,
        bytes: Bytes,
        attributes: Attributes,
        mode: &PutMode,
    ) -> Result<String> {
        let there = self.objects.get(path);
        match (mode, there) {
            (PutMode::Create, Some(_)) => {
                return Err(Error::AlreadyExists { path: path.to_string(), source: "it is there".into() });
            }
            (PutMode::Update(wanted), there) => {
                let tag = there.and_then(|object| object.meta.e_tag.as_ref());
                if tag.is_none() || tag != wanted.e_tag.as_ref() {
                    let why = format!("its tag is {tag:?}, and {:?} was wanted", wanted.e_tag);
                    return Err(Error::Precondition { path: path.to_string(), source: why.into() });
                }
            }
            _ => {}
        }
        let since = there.map_or(now, |object| object.since);
        self.puts += 1;
        let tag = format!("\"{}\"", self.puts);
        let meta = ObjectMeta {
            location: path.clone(),
            last_modified: self.epoch + now,
            size: bytes.len() as u64,
            e_tag: Some(tag.clone()),
            version: None,
        };
        self.objects.insert(path.clone(), Object { bytes, attributes, meta, since });
        Ok(tag)
    }

    /// The object at `path`.
    pub fn get(&self, path: &Path) -> Result<&Object> {
        self.objects
            .get(path)
            .ok_or_else(|| Error::NotFound { path: path.to_string(), source: "there is none".into() })
    }

    /// All objects whose names have the same ending, for example `.sst`.
    pub fn alike<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Object> {
        self.objects
            .iter()
            .filter(|(other, _)| other.extension() == path.extension())
            .map(|(_, object)| object)
    }

    /// Deletes the object at `path`; does nothing if there is none.
    pub fn delete(&mut self, now: Duration, path: &Path) {
        self.deleted.retain(|(when, _)| *when + LISTED_BACK_MAX >= now);
        if let Some(object) = self.objects.remove(path) {
            self.deleted.push((now, object.meta));
        }
    }

    /// The objects below `prefix` in the order of their names, as they were at `moment`, at most
    /// [`LISTED_BACK_MAX`] ago.
    pub fn list(&self, moment: Duration, prefix: Option<&Path>) -> Vec<ObjectMeta> {
        let root = Path::default();
        let prefix = prefix.unwrap_or(&root);
        let below = |path: &Path| path.prefix_match(prefix).is_some_and(|mut rest| rest.next().is_some());
        let here = self.objects.range(prefix.clone()..);
        let mut listed: Vec<ObjectMeta> = here
            .take_while(|(path, _)| path.as_ref().starts_with(prefix.as_ref()))
            .filter(|(path, object)| below(path) && object.since <= moment)
            .map(|(_, object)| object.meta.clone())
            .collect();
        let gone = self.deleted.iter().filter(|(when, meta)| *when > moment && below(&meta.location));
        let before = listed.len();
        listed.extend(gone.map(|(_, meta)| meta.clone()));
        if listed.len() > before {
            listed.sort_by(|a, b| a.location.cmp(&b.location));
            listed.dedup_by(|b, a| a.location == b.location);
        }
        listed
    }

    /// The objects directly below `prefix`, and the names that have more below them.
    pub fn list_level(&self, moment: Duration, prefix: Option<&Path>) -> ListResult {
        let root = Path::default();
        let prefix = prefix.unwrap_or(&root);
        let (mut objects, mut common_prefixes) = (Vec::new(), BTreeSet::new());
        for meta in self.list(moment, Some(prefix)) {
            let mut rest = meta.location.prefix_match(prefix).into_iter().flatten();
            match (rest.next(), rest.next()) {
                (Some(first), Some(_)) => {
                    common_prefixes.insert(prefix.clone().join(first));
                }
                _ => objects.push(meta.clone()),
            }
        }
        ListResult {
            objects,
            common_prefixes: common_prefixes.into_iter().collect(),
            extensions: Default::default(),
        }
    }
}
