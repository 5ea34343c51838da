//! Ageing: what has to be done with the rows of a bucket because time has passed.
//!
//! A walk shows the rows of a bucket to [`Ageing`] in their order. It answers with what is [`Due`], which is then carried
//! out by the judges of [`mod@super::write`] and of this module. A judge sees the row as it is at that moment, so
//! a row that changed since the walk saw it is left alone.
//!
//! | row | due when | judge |
//! |---|---|---|
//! | live or older generation | a lifecycle rule says so | [`Delete`](super::write::Delete), [`Change`](super::write::Change) |
//! | soft-deleted generation | it can no longer be restored | [`Expire`](super::write::Expire) |
//! | upload | it is a week old, or a lifecycle rule gives it up | [`EndUpload`] |
//! | part | its upload is gone | [`RemovePart`] |
//! | answer of an upload | it is a week old | [`RemoveAnswer`] |
//! | head with an intent | nobody carries the change out any more | [`Settle`](super::intent::Settle), [`End`](super::intent::End) |
//! | row of folders | its bucket can no longer be restored | [`RemoveRow`](super::folder::RemoveRow) |
//! | decision of a change | the same, or the change was undone a day ago | [`End`](super::intent::End), [`Forget`](super::intent::Forget) |
//!
//! In a bucket that was deleted and can no longer be restored, all of these rows are due.
//!
//! Rules speak of whole names. In a bucket with folders the caller has put the folders of the rows into [`Bucket::look`].

mod ended;

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use rangehold_map::key::{ObjectGeneration, ObjectKey, ObjectRow, PartitionPrefix};

use super::bucket::Bucket;
use super::bucket::lifecycle::LifecycleAction;
use super::condition::Conditions;
use super::error::ObjectError;
use super::generation::{Generation, Head, Intent, State};
use super::intent::Decided;
use super::limits::{NEWER_VERSIONS_COUNTED_MAX, UPLOADS_REMEMBERED_MAX};
use super::list::Want;
use super::micros::Micros;
use super::storage_class::StorageClass;
use super::upload::{Answer, Session, UploadKind};

pub use self::ended::{EndUpload, RemoveAnswer, RemovePart};

/// Something that has to be done, and the object's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The object's name.
    pub name: String,
    /// What has to be done.
    pub what: What,
}

/// What has to be done with one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A lifecycle rule deletes the generation.
    Delete(Target),
    /// A lifecycle rule gives the generation another class.
    SetStorageClass(Target, StorageClass),
    /// A soft-deleted generation is removed.
    Expire(ObjectGeneration),
    /// An upload is given up.
    EndUpload(String),
    /// A part of an upload that has ended is removed.
    RemovePart(String, u32),
    /// The answer of an upload is removed.
    RemoveAnswer(String),
    /// A change of several names that nobody carries out any more is finished or undone, at a source.
    Settle(Intent),
    /// A row of folders is removed, in a bucket whose life is over.
    RemoveFolderRow(ObjectRow<'static>),
    /// The row of a decided change, by the change's id, is removed at its target, after its sources.
    Forget(String),
}

/// The generation that a rule was applied to. If its metadata was written since, the rule does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    id: ObjectGeneration,
    metageneration: u64,
    is_live: bool,
}

impl Target {
    fn of(generation: &Generation) -> Self {
        let is_live = generation.state == State::Live;
        Self { id: generation.id, metageneration: generation.metageneration, is_live }
    }

    /// The generation as a request would name it. A live one is not named, so that a bucket with versions keeps it as an
    /// older version.
    pub fn generation(&self) -> Option<u64> {
        (!self.is_live).then_some(self.id.0)
    }

    /// The conditions that hold as long as the generation is as the rule saw it.
    pub fn conditions(&self) -> Conditions {
        Conditions {
            generation_match: Some(self.id.0),
            metageneration_match: Some(self.metageneration),
            ..Conditions::default()
        }
    }
}

/// What is remembered of the name that the walk is at.
#[derive(Debug, Clone, Default)]
pub struct Ageing {
    name: String,
    has_live: bool,
    /// The last older versions, oldest first. How many are newer is known only when they have been seen too.
    older: VecDeque<Generation>,
    /// The uploads that go on. Their parts stay.
    uploads: BTreeSet<String>,
}

impl Ageing {
    /// Takes the next row of `bucket`, and adds to `due` what is due at `now`. Returns what the walk wants to see next.
    ///
    /// # Errors
    /// `Internal` for a row that cannot be read. The walk can go on behind it.
    pub fn visit(
        &mut self,
        bucket: &Bucket,
        now: Micros,
        key: &[u8],
        row: &Bytes,
        due: &mut Vec<Due>,
    ) -> Result<Want, ObjectError> {
        let key = ObjectKey::decode(key).map_err(ObjectError::damaged)?;
        if key.name != self.name {
            self.finish(bucket, now, due);
            key.name.as_ref().clone_into(&mut self.name);
        }
        let mut push = |what| due.push(Due { name: key.name.to_string(), what });
        match key.row {
            ObjectRow::Head => {
                let Head { live, intent } = Head::decode(row)?;
                let has_content_row = live.bytes.is_none();
                self.has_live = true;
                match intent {
                    None => self.apply_rules(bucket, &live, 0, now, due),
                    Some(intent) if intent.is_left(now) || bucket.is_over(now) => push(What::Settle(intent)),
                    Some(_) => {}
                }
                if has_content_row {
                    return Ok(past_contents(bucket, &self.name));
                }
            }
            ObjectRow::Content(_) => return Ok(past_contents(bucket, &self.name)),
            ObjectRow::NotLive(id) => {
                let generation = Generation::decode(row)?;
                match generation.state {
                    State::SoftDeleted { .. } if !generation.can_be_restored(now) || bucket.is_over(now) => {
                        push(What::Expire(id));
                    }
                    State::SoftDeleted { .. } | State::Live => {}
                    State::Noncurrent(_) if bucket.settings.lifecycle.is_none() => {}
                    State::Noncurrent(_) => {
                        self.older.push_back(generation);
                        if self.older.len() > NEWER_VERSIONS_COUNTED_MAX {
                            self.decide_oldest(bucket, now, due);
                        }
                    }
                }
            }
            ObjectRow::Upload(upload) => {
                if is_over(bucket, &self.name, &Session::decode(row)?, now) {
                    push(What::EndUpload(upload.into_owned()));
                } else if self.uploads.len() < UPLOADS_REMEMBERED_MAX {
                    self.uploads.insert(upload.into_owned());
                }
            }
            ObjectRow::Part { upload, part } => {
                if !self.uploads.contains(upload.as_ref()) {
                    push(What::RemovePart(upload.into_owned(), part));
                }
            }
            ObjectRow::Answer(upload) => {
                if answer_is_over(bucket, row, now)? {
                    push(What::RemoveAnswer(upload.into_owned()));
                }
            }
            ObjectRow::Tree | ObjectRow::Folder(_) | ObjectRow::FolderName { .. } => {
                if bucket.is_over(now) {
                    push(What::RemoveFolderRow(key.row.into_owned()));
                }
            }
            ObjectRow::Outcome(id) => {
                if Decided::decode(row)?.is_over(now) || bucket.is_over(now) {
                    push(What::Forget(id.into_owned()));
                }
            }
        }
        Ok(Want::Next)
    }

    /// Decides about what is left of the last name.
    pub fn finish(&mut self, bucket: &Bucket, now: Micros, due: &mut Vec<Due>) {
        while !self.older.is_empty() {
            self.decide_oldest(bucket, now, due);
        }
        *self = Self::default();
    }

    fn decide_oldest(&mut self, bucket: &Bucket, now: Micros, due: &mut Vec<Due>) {
        let Some(oldest) = self.older.pop_front() else { return };
        let newer = self.older.len() + usize::from(self.has_live);
        self.apply_rules(bucket, &oldest, u32::try_from(newer).unwrap_or(u32::MAX), now, due);
    }

    fn apply_rules(&self, bucket: &Bucket, of: &Generation, newer: u32, now: Micros, due: &mut Vec<Due>) {
        let rules = bucket.settings.lifecycle.as_ref();
        let what = match rules.and_then(|rules| rules.action(&bucket.whole(&self.name), of, newer, now)) {
            None => return,
            Some(LifecycleAction::Delete) => What::Delete(Target::of(of)),
            Some(LifecycleAction::SetStorageClass(class)) => What::SetStorageClass(Target::of(of), class),
        };
        due.push(Due { name: self.name.clone(), what });
    }
}

/// Whether an upload of `name` is given up at `now`. Lifecycle rules speak of uploads in parts only.
fn is_over(bucket: &Bucket, name: &str, session: &Session, now: Micros) -> bool {
    let rules = bucket.settings.lifecycle.as_ref().filter(|_| session.kind == UploadKind::Parts);
    session.is_over(now)
        || bucket.is_over(now)
        || rules.is_some_and(|rules| rules.aborts_upload(&bucket.whole(name), session.begun, now))
}

/// Whether the answer of an upload is removed at `now`.
fn answer_is_over(bucket: &Bucket, row: &[u8], now: Micros) -> Result<bool, ObjectError> {
    Ok(Answer::is_over(row, now)? || bucket.is_over(now))
}

/// The rows of a name behind its contents, which can be large.
fn past_contents(bucket: &Bucket, name: &str) -> Want {
    let first = ObjectRow::NotLive(ObjectGeneration(0));
    Want::Seek(PartitionPrefix::object(bucket.id, name).object_row(&first))
}

#[cfg(test)]
mod tests;
