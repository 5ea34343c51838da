//! Multipart uploads of the XML API: an object that is sent in parts, in any order.
//!
//! An upload is a [`Session`] row, as a resumable upload is, and a [`Part`] row for each part. A part that is sent again
//! replaces the one before. The end names the parts that the object consists of; their chunks become the content of the
//! object without being copied.
//!
//! | write | rows that it reads | what it does |
//! |---|---|---|
//! | [`PutPart`] | the upload, the part | the part's row |
//! | [`CompleteUpload`] | those of [`Create`], the parts | a new live generation; the rows of the upload are removed |
//! | [`AbortUpload`] | those of [`CancelUpload`] | the rows of the upload are removed |
//!
//! The caller of the last two has scanned the parts before. A part that comes in between belongs to no upload afterwards;
//! the caller scans again and removes such rows, and after a crash the background walk does.

use bytes::Bytes;
use rangehold_map::Timestamp;
use rangehold_map::blob::{BlobUser, Extent};
use rangehold_map::key::ObjectRow;
use serde::{Deserialize, Serialize};

use super::checksum::{Crc32c, Md5};
use super::error::{ErrorKind, ObjectError};
use super::generation::{Content, Generation, Release};
use super::micros::Micros;
use super::row::{decode_row, encode_row};
use super::upload::Session;
use super::write::{CancelUpload, Create, Judge, Name, Outcome, Payload, RowChanges, Verdict};

/// Bytes that every part but the last must have.
pub const PART_BYTES_MIN: u64 = 5 * 1024 * 1024;

/// The stored row of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// When it was stored.
    pub modified: Micros,
    /// MD5 of its bytes; in hexadecimal digits it is the part's entity tag.
    pub md5: Md5,
    /// CRC32C of its bytes.
    pub crc32c: Crc32c,
    /// Where its bytes are; nowhere if it has none.
    pub extents: Vec<Extent>,
}

impl Part {
    /// The stored row.
    pub fn encode(&self) -> Vec<u8> {
        encode_row(self)
    }

    /// Reads the row of a part.
    pub fn decode(row: &[u8]) -> Result<Self, ObjectError> {
        decode_row("a part", row)
    }

    /// Bytes of the part.
    pub fn size(&self) -> u64 {
        self.extents.iter().map(|extent| extent.bytes).sum()
    }

    /// The entity tag, without quotes.
    pub fn etag(&self) -> String {
        const_hex::encode(self.md5.0)
    }

    /// The blobs that lose a user when the row is gone.
    pub fn releases(&self, of: &Name<'_>, upload: &str) -> Vec<Release> {
        let user = BlobUser { bucket: of.bucket.id, name: of.name.to_owned(), upload: upload.to_owned() };
        let blobs = Content::Extents(self.extents.clone()).blobs();
        blobs.into_iter().map(|blob| (blob, user.clone())).collect()
    }
}

/// Stores a part, whose chunks are durable.
#[derive(Debug, Clone, Copy)]
pub struct PutPart<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The upload id.
    pub upload: &'a str,
    /// The number of the part.
    pub number: u32,
    /// The part.
    pub part: &'a Part,
}

impl Judge for PutPart<'_> {
    type Answer = ();

    fn name(&self) -> Name<'_> {
        self.of
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        let upload = ObjectRow::Upload(self.upload.into());
        vec![self.of.key(&upload), self.of.key(&part_row(self.upload, self.number))]
    }

    /// Decides the change.
    fn judge(&self, rows: &[Option<Bytes>], _: Timestamp) -> Verdict<()> {
        let session = rows[0].as_ref().ok_or_else(|| ObjectError::no_such_upload(self.upload))?;
        Session::decode(session)?;
        let key = self.of.key(&part_row(self.upload, self.number));
        let releases = match &rows[1] {
            Some(old) => Part::decode(old)?.releases(&self.of, self.upload),
            None => Vec::new(),
        };
        Ok(Outcome { changes: vec![(key, Some(self.part.encode()))], releases, answer: () })
    }
}

/// The parts of an upload, as a scan found them: numbers in order, and rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stored(Vec<(u32, Bytes, Part)>);

impl Stored {
    /// Takes the next row of the scan.
    ///
    /// # Errors
    /// `Internal` for a row that cannot be read.
    pub fn push(&mut self, number: u32, row: Bytes) -> Result<(), ObjectError> {
        let part = Part::decode(&row)?;
        self.0.push((number, row, part));
        Ok(())
    }

    /// Numbers and parts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Part)> {
        self.0.iter().map(|(number, _, part)| (*number, part))
    }

    /// The payload that the client's list makes: numbers and entity tags, in ascending order.
    ///
    /// # Errors
    /// `InvalidPartOrder`, `InvalidPart` for a part that was not sent or has another tag, `PartTooSmall`.
    pub fn payload(&self, list: &[(u32, String)], upload: &str) -> Result<Payload, ObjectError> {
        if let Some(pair) = list.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            let message = format!("Part {} comes after part {}.", pair[1].0, pair[0].0);
            return Err(ObjectError::new(ErrorKind::InvalidPartOrder, message));
        }
        let mut extents = Vec::new();
        let mut crc32c = Crc32c::default();
        for (at, (number, tag)) in list.iter().enumerate() {
            let part = self.iter().find(|(stored, _)| stored == number).map(|(_, part)| part);
            let part = part.filter(|part| tag.is_empty() || part.etag() == *tag).ok_or_else(|| {
                let message =
                    format!("Part {number} with the entity tag \"{tag}\" was not sent. Send it again.");
                ObjectError::new(ErrorKind::InvalidPart, message)
            })?;
            if at + 1 < list.len() && part.size() < PART_BYTES_MIN {
                let message = format!(
                    "Part {number} has {} bytes. Every part but the last needs {PART_BYTES_MIN}.",
                    part.size()
                );
                return Err(ObjectError::new(ErrorKind::PartTooSmall, message));
            }
            crc32c = crc32c.followed_by(part.crc32c, part.size());
            extents.extend_from_slice(&part.extents);
        }
        let content =
            if extents.is_empty() { Content::Inline(Bytes::new()) } else { Content::Extents(extents) };
        Ok(Payload::new(&content, crc32c, None, upload))
    }

    /// The changes that remove the rows.
    pub fn removal(&self, of: &Name<'_>, upload: &str) -> RowChanges {
        self.0.iter().map(|(number, ..)| (of.key(&part_row(upload, *number)), None)).collect()
    }

    /// Whether there are no parts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys of the rows.
    pub fn keys(&self, of: &Name<'_>, upload: &str) -> Vec<Vec<u8>> {
        self.0.iter().map(|(number, ..)| of.key(&part_row(upload, *number))).collect()
    }

    /// Checks that the rows are still as they were scanned.
    fn check(&self, rows: &[Option<Bytes>]) -> Result<(), ObjectError> {
        let changed = self.0.iter().zip(rows).find(|((_, scanned, _), row)| row.as_ref() != Some(scanned));
        match changed {
            None => Ok(()),
            Some(((number, ..), _)) => {
                let message = format!("Part {number} was sent again at the same time. Try again.");
                Err(ObjectError::new(ErrorKind::Unavailable, message))
            }
        }
    }
}

/// Makes the object of an upload.
#[derive(Debug, Clone, Copy)]
pub struct CompleteUpload<'a> {
    /// The write of the object. It ends the upload, and its `also` is the removal of the parts.
    pub create: Create<'a>,
    /// All parts of the upload.
    pub parts: &'a Stored,
    /// The numbers of the parts that are not in the object.
    pub unused: &'a [u32],
}

impl Judge for CompleteUpload<'_> {
    type Answer = Generation;

    fn name(&self) -> Name<'_> {
        self.create.to
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys = self.create.keys();
        keys.extend(self.parts.keys(&self.create.to, self.upload()));
        keys
    }

    /// Decides the write. The answer is the new generation; that of a repeated request is the first one.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<Generation> {
        let own = self.create.keys().len();
        let mut out = self.create.judge(&rows[..own], stamp)?;
        if out.changes.is_empty() {
            return Ok(out);
        }
        self.parts.check(&rows[own..])?;
        // No two parts share a blob, so the object names none of these.
        for (_, part) in self.parts.iter().filter(|(number, _)| self.unused.contains(number)) {
            out.releases.extend(part.releases(&self.create.to, self.upload()));
        }
        Ok(out)
    }
}

impl CompleteUpload<'_> {
    fn upload(&self) -> &str {
        self.create.ends_upload.expect("a completion ends an upload")
    }
}

/// Gives an upload up.
#[derive(Debug, Clone, Copy)]
pub struct AbortUpload<'a> {
    /// The removal of the upload.
    pub cancel: CancelUpload<'a>,
    /// All parts of the upload.
    pub parts: &'a Stored,
}

impl Judge for AbortUpload<'_> {
    type Answer = ();

    fn name(&self) -> Name<'_> {
        self.cancel.of
    }

    fn only_removes(&self) -> bool {
        true
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys = self.cancel.keys();
        keys.extend(self.parts.keys(&self.cancel.of, self.cancel.upload));
        keys
    }

    /// Decides the change.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<()> {
        let own = self.cancel.keys().len();
        let mut out = self.cancel.judge(&rows[..own], stamp)?;
        let CancelUpload { of, upload } = self.cancel;
        let parts = RemoveParts { of, upload, parts: self.parts }.judge(&rows[own..], stamp)?;
        out.changes.extend(parts.changes);
        out.releases.extend(parts.releases);
        Ok(out)
    }
}

/// Removes the rows of parts that belong to no upload any more.
#[derive(Debug, Clone, Copy)]
pub struct RemoveParts<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The upload id.
    pub upload: &'a str,
    /// The parts.
    pub parts: &'a Stored,
}

impl Judge for RemoveParts<'_> {
    type Answer = ();

    fn name(&self) -> Name<'_> {
        self.of
    }

    fn only_removes(&self) -> bool {
        true
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        self.parts.keys(&self.of, self.upload)
    }

    /// Decides that the rows are removed, if they are still as they were scanned.
    fn judge(&self, rows: &[Option<Bytes>], _: Timestamp) -> Verdict<()> {
        self.parts.check(rows)?;
        let releases = self.parts.iter().flat_map(|(_, part)| part.releases(&self.of, self.upload)).collect();
        Ok(Outcome { changes: self.parts.removal(&self.of, self.upload), releases, answer: () })
    }
}

fn part_row(upload: &str, part: u32) -> ObjectRow<'_> {
    ObjectRow::Part { upload: upload.into(), part }
}

#[cfg(test)]
mod tests {
    use rangehold_map::blob::BlobId;

    use super::*;

    fn part(blob: u128, bytes: u64) -> Part {
        let extent =
            Extent { blob: BlobId(blob), first: 0, chunk_bytes: 1 << 24, bytes, crc32c: blob as u32 };
        let extents = if bytes == 0 { Vec::new() } else { vec![extent] };
        Part { modified: Micros::new(1), md5: Md5([blob as u8; 16]), crc32c: Crc32c(blob as u32), extents }
    }

    fn stored(parts: &[(u32, Part)]) -> Stored {
        let mut stored = Stored::default();
        for (number, part) in parts {
            stored.push(*number, Bytes::from(part.encode())).expect("a part");
        }
        stored
    }

    fn refusal(list: &[(u32, String)]) -> ErrorKind {
        let parts = stored(&[(1, part(1, PART_BYTES_MIN)), (2, part(2, 9)), (7, part(3, 1))]);
        parts.payload(list, "u").expect_err("a list that is refused").kind
    }

    #[test]
    fn a_list_makes_the_payload_of_its_parts_in_order() {
        let parts = stored(&[(1, part(1, PART_BYTES_MIN)), (2, part(2, 9)), (7, part(3, 1))]);
        let list = [(1, part(1, 0).etag()), (7, String::new())];
        let payload = parts.payload(&list, "u").expect("a payload");
        assert_eq!(payload.size(), PART_BYTES_MIN + 1);
        let empty = stored(&[(1, part(1, 0))]).payload(&[(1, String::new())], "u").expect("a payload");
        assert_eq!(empty.size(), 0);
    }

    #[test]
    fn a_list_that_does_not_fit_the_parts_is_refused() {
        let tag = |blob| part(blob, 0).etag();
        assert_eq!(refusal(&[(2, tag(2)), (1, tag(1))]), ErrorKind::InvalidPartOrder);
        assert_eq!(refusal(&[(1, tag(1)), (1, tag(1))]), ErrorKind::InvalidPartOrder);
        assert_eq!(refusal(&[(1, tag(1)), (3, String::new())]), ErrorKind::InvalidPart);
        assert_eq!(refusal(&[(1, tag(2))]), ErrorKind::InvalidPart);
        assert_eq!(refusal(&[(2, tag(2)), (7, tag(3))]), ErrorKind::PartTooSmall);
    }

    #[test]
    fn a_part_that_changed_since_the_scan_stops_the_end_of_the_upload() {
        let parts = stored(&[(1, part(1, 5)), (2, part(2, 5))]);
        let rows = |first: Part| [Some(Bytes::from(first.encode())), Some(Bytes::from(part(2, 5).encode()))];
        assert_eq!(parts.check(&rows(part(1, 5))), Ok(()));
        assert_eq!(parts.check(&rows(part(9, 5))).expect_err("a change").kind, ErrorKind::Unavailable);
        assert!(parts.check(&[None, rows(part(1, 5))[1].clone()]).is_err());
    }
}
