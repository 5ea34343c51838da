//! Uploads that go on over several requests.

use bytes::Bytes;
use rangehold_map::Timestamp;
use rangehold_map::key::ObjectRow;

use super::{Judge, Name, Outcome, Verdict, micros, row};
use crate::object::error::{ErrorKind, ObjectError};
use crate::object::upload::{Answer, Progress, Session};

/// Begins an upload: stores its session.
#[derive(Debug, Clone, Copy)]
pub struct BeginUpload<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The upload id, which was never used for this name.
    pub upload: &'a str,
    /// The session.
    pub session: &'a Session,
}

impl Judge for BeginUpload<'_> {
    type Answer = ();

    fn name(&self) -> Name<'_> {
        self.of
    }

    /// The rows that the judge reads: none.
    fn keys(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Decides the beginning, which never fails.
    fn judge(&self, _: &[Option<Bytes>], _: Timestamp) -> Verdict<()> {
        let mut out = Outcome::unchanged(());
        let key = self.of.key(&ObjectRow::Upload(self.upload.into()));
        out.changes.push((key, Some(self.session.encode())));
        Ok(out)
    }
}

/// Saves how far an upload is. Its chunks are durable already, so a reply may tell of them afterwards.
#[derive(Debug, Clone, Copy)]
pub struct SaveUpload<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The upload id.
    pub upload: &'a str,
    /// Bytes that the upload had when this request began. If another request has changed that, this one is refused.
    pub from: u64,
    /// How far it is now.
    pub progress: &'a Progress,
}

impl Judge for SaveUpload<'_> {
    type Answer = Session;

    fn name(&self) -> Name<'_> {
        self.of
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.of.key(&ObjectRow::Upload(self.upload.into()))]
    }

    /// Decides the change. The answer is the session as it is afterwards.
    fn judge(&self, rows: &[Option<Bytes>], _: Timestamp) -> Verdict<Session> {
        let row = row(rows, 0).ok_or_else(|| ObjectError::no_such_upload(self.upload))?;
        let mut session = Session::decode(row)?;
        if session.progress.bytes != self.from {
            let message = format!(
                "Another request has changed upload {:?}: it has {} bytes now. Ask for its state and go on there.",
                self.upload, session.progress.bytes
            );
            return Err(ObjectError::new(ErrorKind::Unavailable, message).into());
        }
        session.progress.clone_from(self.progress);
        let key = self.of.key(&ObjectRow::Upload(self.upload.into()));
        let mut out = Outcome::unchanged(session);
        out.changes.push((key, Some(out.answer.encode())));
        Ok(out)
    }
}

/// Cancels an upload. Requests that come later are told so.
#[derive(Debug, Clone, Copy)]
pub struct CancelUpload<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The upload id.
    pub upload: &'a str,
}

impl Judge for CancelUpload<'_> {
    type Answer = ();

    fn name(&self) -> Name<'_> {
        self.of
    }

    fn only_removes(&self) -> bool {
        true
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        let upload = || self.upload.into();
        [ObjectRow::Upload(upload()), ObjectRow::Answer(upload())]
            .iter()
            .map(|row| self.of.key(row))
            .collect()
    }

    /// Decides the cancellation. An upload that was cancelled before is cancelled again; one that was finished is gone.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<()> {
        if let Some(answer) = row(rows, 1) {
            return match Answer::decode(answer)? {
                Answer::Cancelled => Ok(Outcome::unchanged(())),
                Answer::Finished(_) => Err(ObjectError::no_such_upload(self.upload).into()),
            };
        }
        let row = row(rows, 0).ok_or_else(|| ObjectError::no_such_upload(self.upload))?;
        let session = Session::decode(row)?;
        let keys = self.keys();
        let mut out = Outcome::unchanged(());
        out.releases = session.progress.releases(self.of.bucket.id, self.of.name, self.upload);
        out.changes.push((keys[0].clone(), None));
        out.changes.push((keys[1].clone(), Some(Answer::Cancelled.encode(micros(stamp)))));
        Ok(out)
    }
}
