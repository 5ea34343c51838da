//! Deletions, and the end of what was soft-deleted.

use bytes::Bytes;
use rangehold_map::Timestamp;
use rangehold_map::key::{ObjectGeneration, ObjectRow};

use super::{Judge, Name, Outcome, Verdict, micros, row};
use crate::object::condition::{Conditions, Purpose};
use crate::object::generation::{Generation, State};

/// Deletes a generation. Without a number it is the live one, and a bucket that keeps versions keeps it as an older
/// one. With a number it is gone, or soft-deleted.
#[derive(Debug, Clone, Copy)]
pub struct Delete<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The generation; the live one if `None`.
    pub generation: Option<u64>,
    /// On that generation.
    pub conditions: &'a Conditions,
}

impl Judge for Delete<'_> {
    type Answer = ();

    fn name(&self) -> Name<'_> {
        self.of
    }

    fn only_removes(&self) -> bool {
        true
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        self.of.keys_of(self.generation)
    }

    /// Decides the deletion.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<()> {
        let generation = self.of.find(self.generation, rows)?;
        self.conditions.check(Some(&generation), Purpose::Write)?;
        let mut out = Outcome::unchanged(());
        if generation.state == State::Live {
            out.changes.push((self.of.key(&ObjectRow::Head), None));
        }
        self.of.retire(generation, self.generation.is_none(), micros(stamp), &mut out)?;
        Ok(out)
    }
}

/// Removes a soft-deleted generation whose time to be restored is over, or whose bucket's time is.
#[derive(Debug, Clone, Copy)]
pub struct Expire<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The generation.
    pub generation: ObjectGeneration,
}

impl Judge for Expire<'_> {
    type Answer = bool;

    fn name(&self) -> Name<'_> {
        self.of
    }

    fn only_removes(&self) -> bool {
        true
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.of.key(&ObjectRow::NotLive(self.generation))]
    }

    /// Decides whether it is removed: nothing changes if it is not there any more, or can still be restored. The
    /// answer says whether it is removed.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<bool> {
        let Some(row) = row(rows, 0) else { return Ok(Outcome::unchanged(false)) };
        let generation = Generation::decode(row)?;
        let now = micros(stamp);
        let is_over = matches!(generation.state, State::SoftDeleted { .. })
            && (!generation.can_be_restored(now) || self.of.bucket.is_over(now));
        let mut out = Outcome::unchanged(is_over);
        if is_over {
            self.of.remove(&generation, &mut out);
        }
        Ok(out)
    }
}
