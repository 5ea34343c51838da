//! Uploads in chunks.
//!
//! ```text
//!   POST ?uploadType=resumable          200, Location: the URL of the session, good for a week
//!   PUT  URL, bytes 0-262143/*          308, Range: bytes=0-262143
//!   PUT  URL, bytes */*                 308: how many bytes the service has; or the object, if it is complete
//!   PUT  URL, bytes 262144-300000/300001  200, the object
//! ```
//!
//! After a failure the session asks how many bytes the service has, and goes on from there. The service remembers the object
//! of a finished session, so the last request may be repeated too.

use bytes::Bytes;
use http::{Method, Response};
use parking_lot::Mutex;
use rangehold_protocol::object::checksum::Crc32c;
use rangehold_protocol::object::limits::UPLOAD_CHUNK_BYTES;

use super::bucket::{Bucket, checked};
use super::call::Call;
use super::error::Error;
use super::line::{MORE, parsed};
use super::resource::{Condition, Object};
use super::upload::Content;
use crate::request::Invalid;

/// A session of an upload.
pub struct Session {
    bucket: Bucket,
    name: String,
    url: String,
    /// Bytes that the service has.
    saved: u64,
    /// The checksum of these bytes.
    sum: Crc32c,
}

/// What the service said after a request to a session.
enum Told {
    /// It has this many bytes, and waits for more.
    Saved(u64),
    /// The object is complete.
    Done(Box<Object>),
}

impl Bucket {
    /// Begins a session. `content` says everything but the bytes. The condition is checked when the last bytes come.
    pub async fn begin(&self, name: &str, content: &Content, condition: Condition) -> Result<Session, Error> {
        checked(name)?;
        // A session that nobody uses does no harm, so beginning may be repeated with any condition.
        let call = Call::upload(self.name(), "resumable")
            .condition(condition)
            .idempotent(true)
            .json(&content.resource(name, None));
        let answer = match self.line.send(&call).await {
            Ok(answer) => answer,
            Err(failure) => return Err(failure.error),
        };
        let url = answer.headers().get("location").and_then(|url| url.to_str().ok());
        let what = || "an upload session without a Location".to_owned();
        let url = url.ok_or_else(|| Error::Unreadable { what: what(), cause: None })?.to_owned();
        Ok(Session { bucket: self.clone(), name: name.to_owned(), url, saved: 0, sum: Crc32c::default() })
    }

    /// Takes a session up again by its URL. Returns the object instead if it is complete.
    ///
    /// The session does not know the checksum of the bytes that the service has: read the first [`Session::saved`] bytes
    /// again and give their checksum to [`Session::set_sum`].
    pub async fn resume(&self, name: &str, url: &str) -> Result<Result<Session, Object>, Error> {
        checked(name)?;
        let (url, sum) = (url.to_owned(), Crc32c::default());
        let mut session = Session { bucket: self.clone(), name: name.to_owned(), url, saved: 0, sum };
        let status = session.status();
        let answer = self.line.send(&status).await.map_err(|failure| session.gone(failure.error))?;
        match session.told(&answer)? {
            Told::Saved(bytes) => session.saved = bytes,
            Told::Done(object) => return Ok(Err(*object)),
        }
        Ok(Ok(session))
    }
}

impl Session {
    /// The URL, by which the session can be taken up again for a week. It is a secret: it lets everyone upload.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Bytes that the service has.
    pub fn saved(&self) -> u64 {
        self.saved
    }

    /// The checksum of the first [`Self::saved`] bytes, for a session that was taken up again.
    pub fn set_sum(&mut self, sum: Crc32c) {
        self.sum = sum;
    }

    /// Sends the next chunk, which is not the last one: a multiple of 256 KiB.
    pub async fn send(&mut self, chunk: Bytes) -> Result<(), Error> {
        let bytes = chunk.len() as u64;
        if bytes == 0 || !bytes.is_multiple_of(UPLOAD_CHUNK_BYTES) {
            let text =
                format!("a chunk of {bytes} bytes: all but the last are multiples of {UPLOAD_CHUNK_BYTES}");
            return Err(Invalid(text).into());
        }
        match self.deliver(&chunk, None).await? {
            None => Ok(()),
            Some(_) => {
                Err(Error::Unreadable { what: "an object before the last chunk".to_owned(), cause: None })
            }
        }
    }

    /// Sends the last chunk, which may be empty. Fails with status 412 if the condition of the upload does not hold.
    pub async fn finish(mut self, chunk: Bytes) -> Result<Object, Error> {
        let sum = self.sum.append(&chunk);
        let total = self.saved + chunk.len() as u64;
        match self.deliver(&chunk, Some((total, sum))).await? {
            Some(object) => self.bucket.compared(object, sum),
            None => Err(Error::Unreadable { what: "no object after the last chunk".to_owned(), cause: None }),
        }
    }

    /// Ends the session without an object.
    pub async fn cancel(self) -> Result<(), Error> {
        let call = Call::session(Method::DELETE, &self.url).header("Content-Length", "0");
        match self.bucket.line.send(&call).await {
            Err(failure) if !failure.error.has_status(499) => Err(failure.error),
            _ => Ok(()),
        }
    }

    /// Brings the bytes of `chunk` to the service, all of them. `end` has the size and the checksum of the object, with the last chunk.
    async fn deliver(&mut self, chunk: &Bytes, end: Option<(u64, Crc32c)>) -> Result<Option<Object>, Error> {
        let first = self.saved;
        let target = first + chunk.len() as u64;
        // What the service has, as far as is known; `None` after a failure.
        let known = Mutex::new(Some(first));
        loop {
            let attempt = || self.attempt(chunk, first, end, &known);
            let sender = &self.bucket.line.sender;
            let told = sender.repeat("PUT", "(upload session)", attempt).await;
            let told = match told {
                Ok(told) => told,
                Err(failure) => {
                    let failure = crate::wire::Failed { error: self.gone(failure.error), ..failure };
                    return self.bucket.settle(&self.name, failure, |_| false).await.map(Some);
                }
            };
            match told {
                Told::Done(object) => return Ok(Some(*object)),
                Told::Saved(bytes) if bytes == target && end.is_none() => break,
                Told::Saved(bytes) if (first..target).contains(&bytes) => *known.lock() = Some(bytes),
                Told::Saved(bytes) => {
                    let what = format!("{bytes} bytes saved, where {first} to {target} are possible");
                    return Err(Error::Unreadable { what, cause: None });
                }
            }
        }
        (self.saved, self.sum) = (target, self.sum.append(chunk));
        Ok(None)
    }

    /// One attempt to bring the rest of a chunk. After a failure it first asks where the service is.
    async fn attempt(
        &self,
        chunk: &Bytes,
        first: u64,
        end: Option<(u64, Crc32c)>,
        known: &Mutex<Option<u64>>,
    ) -> Result<Told, Error> {
        let line = &self.bucket.line;
        let place = known.lock().take();
        let from = match place {
            Some(from) => from,
            None => match self.told(&line.attempt(&self.status()).await?)? {
                Told::Saved(bytes) if bytes > first + chunk.len() as u64 || bytes < first => {
                    return Ok(Told::Saved(bytes));
                }
                Told::Saved(bytes) if end.is_none() && bytes == first + chunk.len() as u64 => {
                    return Ok(Told::Saved(bytes));
                }
                Told::Saved(bytes) => bytes,
                done @ Told::Done(_) => return Ok(done),
            },
        };
        let rest = chunk.slice((from - first) as usize..);
        let total = end.map_or_else(|| "*".to_owned(), |(total, _)| total.to_string());
        let range = match rest.is_empty() {
            true => format!("bytes */{total}"),
            false => format!("bytes {from}-{}/{total}", from + rest.len() as u64 - 1),
        };
        let mut call = Call::session(Method::PUT, &self.url).header("Content-Range", range).bytes(rest);
        if let Some((_, sum)) = end {
            call = call.header("x-goog-hash", format!("crc32c={}", sum.text()));
        }
        self.told(&line.attempt(&call).await?)
    }

    fn status(&self) -> Call {
        Call::session(Method::PUT, &self.url)
            .header("Content-Range", "bytes */*")
            .header("Content-Length", "0")
    }

    fn told(&self, answer: &Response<Bytes>) -> Result<Told, Error> {
        if answer.status().as_u16() != MORE {
            return Ok(Told::Done(Box::new(parsed(answer)?)));
        }
        let Some(range) = answer.headers().get("range") else { return Ok(Told::Saved(0)) };
        let last = range.to_str().ok().and_then(|range| range.strip_prefix("bytes=0-")?.parse::<u64>().ok());
        let what = || format!("the range {range:?} of an upload session");
        last.map(|last| Told::Saved(last + 1)).ok_or_else(|| Error::Unreadable { what: what(), cause: None })
    }

    /// The service says 404, 410 or 499 of a session that has ended.
    fn gone(&self, error: Error) -> Error {
        match &error {
            Error::Refused(refusal) if matches!(refusal.status, 404 | 410 | 499) => {
                Error::SessionGone(format!("{}/{}", self.bucket.name(), self.name))
            }
            _ => error,
        }
    }
}
