//! A soft-deleted generation becomes live again, under a new number.

use bytes::Bytes;
use rangehold_map::Timestamp;
use rangehold_map::key::{ObjectGeneration, ObjectRow};

use super::{Judge, Name, Outcome, Verdict, live, micros, row};
use crate::object::condition::{Conditions, Purpose};
use crate::object::error::{ErrorKind, ObjectError};
use crate::object::generation::{Generation, State};

/// Restores a soft-deleted generation. The live one, if there is one, is retired.
#[derive(Debug, Clone, Copy)]
pub struct Restore<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The soft-deleted generation.
    pub generation: ObjectGeneration,
    /// What tells it apart from others, in a bucket with a hierarchical namespace.
    pub token: Option<&'a str>,
    /// On the live generation.
    pub conditions: &'a Conditions,
    /// Whether the list of the old generation is taken, rather than the bucket's default.
    pub copies_acl: bool,
}

impl Judge for Restore<'_> {
    type Answer = Generation;

    fn name(&self) -> Name<'_> {
        self.of
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        let rows =
            [ObjectRow::Head, ObjectRow::NotLive(self.generation), ObjectRow::Content(self.generation)];
        rows.iter().map(|row| self.of.key(row)).collect()
    }

    /// Decides the restoration. The answer is the new live generation.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<Generation> {
        let now = micros(stamp);
        let old = live(row(rows, 0))?;
        let deleted = row(rows, 1).map(Generation::decode).transpose()?;
        let Some(deleted) = deleted else {
            return Err(match old {
                Some(old) if old.id == self.generation => self.not_deleted().into(),
                _ => self.of.missing(Some(self.generation.0)).into(),
            });
        };
        if let Some(token) = self.token.filter(|token| *token != deleted.restore_token()) {
            let hint = "Send the restoreToken of the soft-deleted object.";
            return Err(ObjectError::invalid("restoreToken", token, hint).into());
        }
        if !deleted.can_be_restored(now) {
            return Err(self.not_deleted().into());
        }
        let content = row(rows, 2);
        if deleted.bytes.is_none() && content.is_none() {
            let (bucket, name) = (&self.of.bucket.name, self.of.shown());
            let damage = format_args!("{bucket}/{name}#{} has no content", self.generation.0);
            return Err(ObjectError::damaged(damage).into());
        }
        self.conditions.check(old.as_ref(), Purpose::Write)?;
        let mut new = Generation {
            id: ObjectGeneration::of(stamp),
            metageneration: 1,
            state: State::Live,
            created: now,
            updated: now,
            ..deleted.clone()
        };
        if !self.copies_acl {
            new.acl = self.of.bucket.default_object_acl.clone();
        }
        let mut out = Outcome::unchanged(new.clone());
        if let Some(old) = old {
            self.of.retire(old, true, now, &mut out)?;
        }
        self.of.put(&new, &mut out.changes);
        // The new generation takes the content over, so the blobs keep their user.
        out.changes.push((self.of.key(&ObjectRow::NotLive(deleted.id)), None));
        if let Some(content) = content {
            out.changes.push((self.of.key(&ObjectRow::Content(new.id)), Some(content.to_vec())));
            out.changes.push((self.of.key(&ObjectRow::Content(deleted.id)), None));
        }
        Ok(out)
    }
}

impl Restore<'_> {
    fn not_deleted(&self) -> ObjectError {
        let message = format!(
            "Generation {} of {}/{} is not soft-deleted, or can no longer be restored.",
            self.generation.0,
            self.of.bucket.name,
            self.of.shown()
        );
        ObjectError::new(ErrorKind::BucketRule, message)
    }
}
