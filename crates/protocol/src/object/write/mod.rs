//! Decides what a write about an object changes.
//!
//! Every change of a name is one batch with one [`Judge`]. A write of this module says which rows of the name it wants to
//! see ([`Name`] makes their keys), and judges them: a pure function of those rows, the request and the time of the
//! write. The engine calls the judge while the name is locked, perhaps several times, and applies what it decided.
//!
//! | write | rows that it reads | what it does |
//! |---|---|---|
//! | [`Create`] | head, and the upload that it ends | a new live generation; the old one is retired |
//! | [`Change`] | head, and the generation if one is named | settings, access control list or storage class |
//! | [`Delete`] | the same | the generation is retired, or removed |
//! | [`Restore`] | head, the soft-deleted generation, its content | it is live again, as a new generation |
//! | [`BeginUpload`], [`SaveUpload`], [`CancelUpload`] | the upload | an upload that goes on over several requests |
//!
//! The generation is the time of the write in microseconds. The engine's times grow for each name, so generations do.
//!
//! A generation that stops being live is *retired*: it becomes an older version if its bucket keeps versions, else a
//! soft-deleted one if the bucket has a policy for that, and else it is removed with its content. A blob that lost a user by
//! that is in [`Outcome::releases`]; its reference is removed after the change is durable.

mod change;
mod create;
mod delete;
mod restore;
mod upload;

use bytes::Bytes;
use rangehold_map::Timestamp;
use rangehold_map::key::{ObjectGeneration, ObjectRow, PartitionPrefix};

use super::bucket::Bucket;
use super::error::ObjectError;
use super::generation::{Generation, Head, Intent, Release, State};
use super::micros::Micros;

pub use self::change::{AclEdit, Change, Edit};
pub use self::create::{Create, Payload};
pub use self::delete::{Delete, Expire};
pub use self::restore::Restore;
pub use self::upload::{BeginUpload, CancelUpload, SaveUpload};

/// Rows to put (with a value) and to delete (without).
pub type RowChanges = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// What a judge decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<T> {
    /// The rows that change, all of one name. None for a request that repeats one that was done.
    pub changes: RowChanges,
    /// The blobs that lose a user by this change.
    pub releases: Vec<Release>,
    /// What the reply tells.
    pub answer: T,
}

impl<T> Outcome<T> {
    /// Nothing changes.
    fn unchanged(answer: T) -> Self {
        Self { changes: Vec::new(), releases: Vec::new(), answer }
    }
}

/// Why a judge decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The client gets this error.
    #[error(transparent)]
    Refused(#[from] ObjectError),
    /// A change of several names is under way at this name. It must be finished or undone first.
    #[error("a change to {} is under way", .0.target)]
    Intent(Intent),
}

/// What a judge answers.
pub type Verdict<T> = Result<Outcome<T>, Refusal>;

/// A write about one name.
pub trait Judge: Sync {
    /// What the reply needs to know of the decision.
    type Answer: Send;

    /// The name whose rows change.
    fn name(&self) -> Name<'_>;

    /// The rows that the judge reads, all of the name.
    fn keys(&self) -> Vec<Vec<u8>>;

    /// Decides the write, by the rows of [`keys`](Self::keys) as they are now and by the time of the write. It may be
    /// called several times; the last decision counts.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<Self::Answer>;

    /// Whether it only removes. Such a write is let in on a disk that is too full for others.
    fn only_removes(&self) -> bool {
        false
    }
}

/// A name in a bucket, and the keys of its rows.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    /// The bucket as it was read for this request.
    pub bucket: &'a Bucket,
    /// The object's name as it is stored. In a bucket with folders that is not the name that clients know:
    /// [`Bucket::shown`].
    pub name: &'a str,
}

impl Name<'_> {
    /// The partition of the name.
    pub fn partition(&self) -> PartitionPrefix {
        PartitionPrefix::object(self.bucket.id, self.name)
    }

    /// The key of a row of the name.
    pub fn key(&self, row: &ObjectRow<'_>) -> Vec<u8> {
        self.partition().object_row(row)
    }

    /// The name that clients know.
    pub fn shown(&self) -> &str {
        self.bucket.shown(self.name)
    }

    /// There is no such object, or not the generation that was asked for.
    pub fn missing(&self, generation: Option<u64>) -> ObjectError {
        match generation {
            None => ObjectError::no_such_object(&self.bucket.name, self.shown()),
            Some(number) => {
                ObjectError::no_such_object(&self.bucket.name, &format!("{}#{number}", self.shown()))
            }
        }
    }

    /// The keys of the head and of a generation that is perhaps not live.
    fn keys_of(&self, generation: Option<u64>) -> Vec<Vec<u8>> {
        let older = generation.map(|number| ObjectRow::NotLive(ObjectGeneration(number)));
        std::iter::once(ObjectRow::Head).chain(older).map(|row| self.key(&row)).collect()
    }

    /// The live generation, or the one with this number, from the rows of [`keys_of`](Self::keys_of). A soft-deleted
    /// one does not count.
    fn find(&self, generation: Option<u64>, rows: &[Option<Bytes>]) -> Result<Generation, Refusal> {
        let live = live(row(rows, 0))?;
        let Some(number) = generation else { return Ok(live.ok_or_else(|| self.missing(None))?) };
        if let Some(live) = live.filter(|live| live.id.0 == number) {
            return Ok(live);
        }
        let older = row(rows, 1).map(Generation::decode).transpose()?;
        let older = older.filter(|older| matches!(older.state, State::Noncurrent(_)));
        Ok(older.ok_or_else(|| self.missing(generation))?)
    }

    /// Puts a generation into the row that its state asks for.
    fn put(&self, generation: &Generation, changes: &mut RowChanges) {
        let (row, value) = match generation.state {
            State::Live => (ObjectRow::Head, Head { live: generation.clone(), intent: None }.encode()),
            _ => (ObjectRow::NotLive(generation.id), generation.encode()),
        };
        changes.push((self.key(&row), Some(value)));
    }

    /// Retires a generation at `now`. If it was live, the caller changes the head. `may_version` is false if the request
    /// names the generation: such a deletion is final even if the bucket keeps versions.
    fn retire<T>(
        &self,
        generation: Generation,
        may_version: bool,
        now: Micros,
        out: &mut Outcome<T>,
    ) -> Result<(), ObjectError> {
        if !(may_version && self.bucket.keeps_versions()) {
            let period = self.bucket.protected_seconds();
            generation.check_unprotected(&self.bucket.name, self.shown(), period, now)?;
        }
        self.retire_checked(generation, may_version && self.bucket.keeps_versions(), now, out);
        Ok(())
    }

    /// Retires a generation of which it was checked before that nothing protects it. `keeps` says whether it becomes an
    /// older version. In a bucket that was deleted it is removed at once.
    pub(in crate::object) fn retire_checked<T>(
        &self,
        mut generation: Generation,
        keeps: bool,
        now: Micros,
        out: &mut Outcome<T>,
    ) {
        if self.bucket.deleted.is_some() {
            self.remove(&generation, out);
        } else if keeps {
            generation.state = State::Noncurrent(now);
            self.put(&generation, &mut out.changes);
        } else if let Some(seconds) = self.bucket.soft_delete_seconds() {
            let noncurrent = match generation.state {
                State::Noncurrent(at) => Some(at),
                _ => None,
            };
            let hard_delete = now.plus_seconds(seconds);
            generation.state = State::SoftDeleted { at: now, hard_delete, noncurrent };
            self.put(&generation, &mut out.changes);
        } else {
            self.remove(&generation, out);
        }
    }

    /// Removes the rows of a generation. If it was live, the caller changes the head.
    fn remove<T>(&self, generation: &Generation, out: &mut Outcome<T>) {
        if generation.state != State::Live {
            out.changes.push((self.key(&ObjectRow::NotLive(generation.id)), None));
        }
        if generation.bytes.is_none() {
            out.changes.push((self.key(&ObjectRow::Content(generation.id)), None));
        }
        out.releases.extend(generation.releases(self.bucket.id, self.name));
    }
}

/// The row at a place, if it exists. The engine hands a judge as many rows as it asked for.
fn row(rows: &[Option<Bytes>], at: usize) -> Option<&Bytes> {
    rows[at].as_ref()
}

/// The live generation of a head row. Fails if a change of several names is under way.
fn live(head: Option<&Bytes>) -> Result<Option<Generation>, Refusal> {
    let Some(head) = head else { return Ok(None) };
    let head = Head::decode(head)?;
    match head.intent {
        None => Ok(Some(head.live)),
        Some(intent) => Err(Refusal::Intent(intent)),
    }
}

/// The time of a write in microseconds.
fn micros(stamp: Timestamp) -> Micros {
    Micros::from(stamp)
}

#[cfg(test)]
mod tests;
