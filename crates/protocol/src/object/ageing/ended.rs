//! Removes what uploads leave behind.

use bytes::Bytes;
use rangehold_map::Timestamp;
use rangehold_map::key::ObjectRow;

use super::{answer_is_over, is_over};
use crate::object::generation::Release;
use crate::object::micros::Micros;
use crate::object::parts::Part;
use crate::object::upload::Session;
use crate::object::write::{Judge, Name, Outcome, Verdict};

/// Gives an upload up that is too old, or that a lifecycle rule gives up. A client that asks for it later is told that
/// there is no such upload.
#[derive(Debug, Clone, Copy)]
pub struct EndUpload<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The upload id.
    pub upload: &'a str,
}

impl Judge for EndUpload<'_> {
    type Answer = bool;

    fn name(&self) -> Name<'_> {
        self.of
    }

    fn only_removes(&self) -> bool {
        true
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.of.key(&ObjectRow::Upload(self.upload.into()))]
    }

    /// Decides whether it is removed. The answer says so.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<bool> {
        let Some(row) = &rows[0] else { return Ok(kept()) };
        let session = Session::decode(row)?;
        if !is_over(self.of.bucket, self.of.name, &session, Micros::from(stamp)) {
            return Ok(kept());
        }
        let releases = session.progress.releases(self.of.bucket.id, self.of.name, self.upload);
        Ok(removed(self.keys(), releases))
    }
}

/// Removes a part whose upload is gone: it came while the upload ended, or the upload was given up.
#[derive(Debug, Clone, Copy)]
pub struct RemovePart<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The upload id.
    pub upload: &'a str,
    /// The number of the part.
    pub number: u32,
}

impl Judge for RemovePart<'_> {
    type Answer = bool;

    fn name(&self) -> Name<'_> {
        self.of
    }

    fn only_removes(&self) -> bool {
        true
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        let part = ObjectRow::Part { upload: self.upload.into(), part: self.number };
        vec![self.of.key(&part), self.of.key(&ObjectRow::Upload(self.upload.into()))]
    }

    /// Decides whether it is removed. The answer says so.
    fn judge(&self, rows: &[Option<Bytes>], _: Timestamp) -> Verdict<bool> {
        match (&rows[0], &rows[1]) {
            (Some(part), None) => {
                let releases = Part::decode(part)?.releases(&self.of, self.upload);
                Ok(removed(self.keys().into_iter().take(1), releases))
            }
            _ => Ok(kept()),
        }
    }
}

/// Removes the answer of an upload that ended a week ago.
#[derive(Debug, Clone, Copy)]
pub struct RemoveAnswer<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The upload id.
    pub upload: &'a str,
}

impl Judge for RemoveAnswer<'_> {
    type Answer = bool;

    fn name(&self) -> Name<'_> {
        self.of
    }

    fn only_removes(&self) -> bool {
        true
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.of.key(&ObjectRow::Answer(self.upload.into()))]
    }

    /// Decides whether it is removed. The answer says so.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<bool> {
        match &rows[0] {
            Some(row) if answer_is_over(self.of.bucket, row, Micros::from(stamp))? => {
                Ok(removed(self.keys(), Vec::new()))
            }
            _ => Ok(kept()),
        }
    }
}

fn kept() -> Outcome<bool> {
    Outcome { changes: Vec::new(), releases: Vec::new(), answer: false }
}

fn removed(keys: impl IntoIterator<Item = Vec<u8>>, releases: Vec<Release>) -> Outcome<bool> {
    Outcome { changes: keys.into_iter().map(|key| (key, None)).collect(), releases, answer: true }
}
