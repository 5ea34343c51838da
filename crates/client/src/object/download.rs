//! Bytes down.
//!
//! A [`Download`] reads one generation in pieces, each by a request of its own. So its memory does not grow with the object,
//! a lost connection costs one piece, and a download can go on where another one ended. The first request finds out the
//! generation; all others name it, so that an object that is replaced meanwhile does not come out half old and half new.
//!
//! Bytes come as they are stored. What was stored in gzip is not unpacked: its checksum and its ranges are those of the packed bytes.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use rangehold_protocol::object::checksum::{Announced, Crc32c};

use super::bucket::{Bucket, checked};
use super::call::Call;
use super::error::Error;
use super::resource::Generation;
use crate::limits::DOWNLOAD_PIECE_BYTES;

/// The next bytes of a download.
pub type Piece = Bytes;

/// A generation of an object on its way down.
pub struct Download {
    bucket: Bucket,
    name: String,
    generation: Option<Generation>,
    /// The bytes that are still to come; its end is not known before the first answer.
    at: u64,
    end: Option<u64>,
    /// The sum of the bytes so far; `None` if the download is of a part, which has no checksum to compare with.
    sum: Option<Crc32c>,
    expected: Option<Crc32c>,
    is_done: bool,
}

impl Bucket {
    /// A download of an object: of `generation`, or of the live one. Nothing is sent yet.
    pub fn download(&self, name: &str, generation: Option<Generation>) -> Result<Download, Error> {
        checked(name)?;
        Ok(Download {
            bucket: self.clone(),
            name: name.to_owned(),
            generation,
            at: 0,
            end: None,
            sum: Some(Crc32c::default()),
            expected: None,
            is_done: false,
        })
    }

    /// The whole bytes of an object, checked. For objects that fit into memory.
    pub async fn read(&self, name: &str, generation: Option<Generation>) -> Result<Bytes, Error> {
        let mut download = self.download(name, generation)?;
        let first = download.next().await?.unwrap_or_default();
        let Some(second) = download.next().await? else { return Ok(first) };
        let mut whole = Vec::from(first);
        whole.extend_from_slice(&second);
        while let Some(piece) = download.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.into())
    }
}

impl Download {
    /// Only these bytes. They are not compared with a checksum, because the service has none of a part.
    #[must_use]
    pub fn part(mut self, range: Range<u64>) -> Self {
        (self.at, self.end, self.sum) = (range.start, Some(range.end), None);
        self.is_done = range.is_empty();
        self
    }

    /// Goes on after the first `bytes` bytes, whose checksum is `sum`.
    #[must_use]
    pub fn after(mut self, bytes: u64, sum: Crc32c) -> Self {
        (self.at, self.sum) = (bytes, Some(sum));
        self
    }

    /// The generation that is read; `None` before the first piece, if it was not named.
    pub fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// The next bytes; `None` at the end. Fails with status 404 if there is no such object, and with
    /// [`Error::Damaged`] in place of the end if the bytes do not have the checksum of the generation.
    pub async fn next(&mut self) -> Result<Option<Piece>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let last = self.end.unwrap_or(u64::MAX).min(self.at.saturating_add(DOWNLOAD_PIECE_BYTES)) - 1;
        let call = Call::object(Method::GET, self.bucket.name(), &self.name, "")
            .parameter("alt", "media")
            .generation(self.generation)
            .header("Accept-Encoding", "gzip")
            .header("Range", format!("bytes={}-{last}", self.at));
        let answer = match self.bucket.line.send(&call).await {
            Ok(answer) => answer,
            // There is no byte at this place: the object is empty, or ends exactly here.
            Err(failure) if failure.error.has_status(416) => return self.ended(None).map(|()| None),
            Err(failure) => return Err(failure.error),
        };
        self.took(answer).map(Some)
    }

    fn took(&mut self, answer: Response<Bytes>) -> Result<Piece, Error> {
        let (head, body) = answer.into_parts();
        let missing =
            |what: &str| Error::Unreadable { what: format!("a download without {what}"), cause: None };
        let found = header(&head.headers, "x-goog-generation").and_then(|text| text.parse().ok());
        if let Some(found) = found.map(Generation) {
            self.generation = Some(found);
        }
        let size = match head.status.as_u16() {
            206 => total(&head.headers).ok_or_else(|| missing("the size in Content-Range"))?,
            // The service ignored the range, which it may only do at the beginning.
            _ if self.at == 0 => body.len() as u64,
            _ => return Err(missing("a range")),
        };
        if self.generation.is_none() && (body.len() as u64) < size {
            return Err(missing("x-goog-generation"));
        }
        self.expected = checksum(&head.headers).or(self.expected);
        self.sum = self.sum.map(|sum| sum.append(&body));
        self.at += body.len() as u64;
        if self.at >= self.end.unwrap_or(size).min(size) {
            self.ended(Some(size))?;
        } else if body.is_empty() {
            return Err(missing("a single byte"));
        }
        Ok(body)
    }

    /// Compares the checksums of a whole object.
    fn ended(&mut self, size: Option<u64>) -> Result<(), Error> {
        self.is_done = true;
        let whole = size.is_none_or(|size| self.at == size);
        match (self.sum, self.expected) {
            (Some(found), Some(expected)) if whole && found != expected => {
                Err(Error::Damaged { name: format!("{}/{}", self.bucket.name(), self.name), expected, found })
            }
            _ => Ok(()),
        }
    }

    /// Names the checksum that the bytes should have, for a service that does not send it with them.
    #[must_use]
    pub fn expecting(mut self, sum: Option<Crc32c>) -> Self {
        self.expected = sum;
        self
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The size in `Content-Range: bytes 0-99/1234`.
fn total(headers: &HeaderMap) -> Option<u64> {
    header(headers, "content-range")?.rsplit_once('/')?.1.parse().ok()
}

fn checksum(headers: &HeaderMap) -> Option<Crc32c> {
    let mut announced = Announced::default();
    for value in headers.get_all("x-goog-hash") {
        // A form that is not known says nothing.
        let _ = announced.add_goog_hash(value.to_str().ok()?);
    }
    announced.crc32c
}
