//! The restoration of many soft-deleted objects: which of them, and how far it is.
//!
//! Of each name, the soft-deleted generation that was made last and fits the request is restored. A [`Search`] goes over the
//! rows of a bucket in their order. It stops between two names, so the name after which it goes on is all that must be kept.
//!
//! Patterns are of whole names. In a bucket with folders the caller has put the folders of the rows into [`Bucket::look`].

use bytes::Bytes;
use rangehold_map::key::{ObjectKey, ObjectRow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::bucket::Bucket;
use super::error::ObjectError;
use super::generation::{Generation, Head, State};
use super::glob::Glob;
use super::limits::MATCH_GLOBS_MAX;
use super::list::Want;
use super::merge::typed;
use super::micros::Micros;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BulkRestore {
    /// Names fit one of these patterns; all names do if there are none.
    pub match_globs: Vec<String>,
    /// They were made after this time.
    pub created_after_time: Option<Micros>,
    /// They were made before this time.
    pub created_before_time: Option<Micros>,
    /// They were deleted after this time.
    pub soft_deleted_after_time: Option<Micros>,
    /// They were deleted before this time.
    pub soft_deleted_before_time: Option<Micros>,
    /// Whether objects that live under the names are replaced. Otherwise these names are skipped.
    pub allow_overwrite: bool,
    /// Whether the lists of the soft-deleted objects are taken.
    pub copy_source_acl: bool,
}

/// A restoration and how far it is, as its operation keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Job {
    /// What the client asked for.
    pub request: BulkRestore,
    /// All names up to this one, as they are stored, are done.
    pub after: String,
    /// Objects that were restored.
    pub succeeded: u64,
    /// Objects that were not, as others lived under their names, or were changed meanwhile.
    pub skipped: u64,
    /// Objects that could not be restored.
    pub failed: u64,
}

/// A generation that is to be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The name as it is stored.
    pub name: String,
    /// The soft-deleted generation.
    pub generation: u64,
    /// The live generation that it replaces; 0 if there is none.
    pub live: u64,
}

/// What a stretch of rows had.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// What is to be restored.
    pub candidates: Vec<Candidate>,
    /// Names that are skipped because objects live there.
    pub skipped: u64,
    /// The last name that was looked at, if there are others behind it.
    pub last: Option<String>,
}

/// Goes over rows.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    request: &'a BulkRestore,
    globs: &'a [Glob],
    now: Micros,
    /// When the operation began. What lives since then is not replaced: it may be what the operation restored.
    begun: Micros,
    rows_max: usize,
    rows: usize,
    open: Option<Open>,
    found: Found,
}

/// The name that is looked at.
#[derive(Debug, Clone)]
struct Open {
    name: String,
    /// The live generation, and when it was made.
    live: Option<(u64, Micros)>,
    /// The generation that is to be restored.
    candidate: Option<u64>,
}

impl BulkRestore {
    /// Reads the body of a request, and its patterns.
    ///
    /// # Errors
    /// `Invalid` for a field or pattern that cannot be read, and for more than [`MATCH_GLOBS_MAX`] patterns.
    pub fn from_body(body: Map<String, Value>) -> Result<Self, ObjectError> {
        let read: Self = typed(body)?;
        if read.match_globs.len() > MATCH_GLOBS_MAX {
            let hint = format!("A request has at most {MATCH_GLOBS_MAX} patterns.");
            return Err(ObjectError::invalid("matchGlobs", read.match_globs.len(), &hint));
        }
        read.globs()?;
        Ok(read)
    }

    /// The patterns.
    ///
    /// # Errors
    /// `Invalid` for one that cannot be read.
    pub fn globs(&self) -> Result<Vec<Glob>, ObjectError> {
        let read = |text: &String| {
            Glob::new(text).map_err(|error| ObjectError::invalid("matchGlobs", text, &error.to_string()))
        };
        self.match_globs.iter().map(read).collect()
    }

    fn wants(&self, generation: &Generation, now: Micros) -> bool {
        let State::SoftDeleted { at, .. } = generation.state else { return false };
        let between = |time, after: Option<Micros>, before: Option<Micros>| {
            after.is_none_or(|after| time > after) && before.is_none_or(|before| time < before)
        };
        generation.can_be_restored(now)
            && between(generation.created, self.created_after_time, self.created_before_time)
            && between(at, self.soft_deleted_after_time, self.soft_deleted_before_time)
    }
}

impl Job {
    /// The counts, as the metadata of the operation shows them.
    pub fn counts(&self) -> Value {
        json!({
            "succeededCount": self.succeeded.to_string(),
            "skippedCount": self.skipped.to_string(),
            "failedCount": self.failed.to_string(),
        })
    }
}

impl<'a> Search<'a> {
    /// A search that looks at about `rows_max` rows. `begun` is when the operation began.
    pub fn new(
        request: &'a BulkRestore,
        globs: &'a [Glob],
        (now, begun): (Micros, Micros),
        rows_max: usize,
    ) -> Self {
        Self { request, globs, now, begun, rows_max, rows: 0, open: None, found: Found::default() }
    }

    /// Looks at a row of the bucket.
    ///
    /// # Errors
    /// `Internal` for a row that cannot be read.
    pub fn visit(&mut self, bucket: &Bucket, key: &[u8], row: &Bytes) -> Result<Want, ObjectError> {
        let key = ObjectKey::decode(key).map_err(ObjectError::damaged)?;
        if self.open.as_ref().is_none_or(|open| *open.name != *key.name) {
            self.close();
            if self.rows >= self.rows_max {
                self.found.last = self.open.take().map(|open| open.name);
                return Ok(Want::Stop);
            }
            let whole = bucket.whole(&key.name);
            let is_wanted = self.globs.is_empty() || self.globs.iter().any(|glob| glob.matches(&whole));
            self.open = Some(Open { name: key.name.to_string(), live: None, candidate: None });
            if !is_wanted {
                self.rows += 1;
                return Ok(Want::Seek(key.past_name()));
            }
        }
        self.rows += 1;
        let open = self.open.as_mut().expect("a name was opened above");
        match key.row {
            ObjectRow::Head => {
                let head = Head::decode(row)?;
                open.live = Some((head.live.id.0, head.live.created));
            }
            ObjectRow::NotLive(generation) if self.request.wants(&Generation::decode(row)?, self.now) => {
                open.candidate = Some(generation.0);
            }
            _ => {}
        }
        Ok(Want::Next)
    }

    /// What was found, when no more rows come.
    pub fn finish(mut self) -> Found {
        self.close();
        self.found
    }

    /// Decides about the name that is open. It stays known as the last one.
    fn close(&mut self) {
        let Some(open) = &mut self.open else { return };
        let Some(generation) = open.candidate.take() else { return };
        let is_replaceable = |created: Micros| self.request.allow_overwrite && created < self.begun;
        let live = match open.live {
            Some((_, created)) if !is_replaceable(created) => {
                self.found.skipped += 1;
                return;
            }
            live => live.map_or(0, |(id, _)| id),
        };
        self.found.candidates.push(Candidate { name: open.name.clone(), generation, live });
    }
}
