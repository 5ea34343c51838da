//! A file becomes an object.
//!
//! A small file goes in one request; a large one in chunks of a session, whose URL is written down, so that a later
//! process goes on with it.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use rangehold_client::object::{Bucket, Condition, Content, Error, Object, Session};

use super::engine::{Engine, Existing, look};
use super::entry::{Body, sum_of};
use super::sessions::Remembered;
use crate::object::limits::{CHUNK_BYTES, SMALL_BYTES};
use crate::object::moving::Moving;
use crate::object::report::Ended;

/// A file that becomes an object.
pub(super) struct Up<'a> {
    pub(super) engine: &'a Engine,
    pub(super) path: &'a Path,
    pub(super) size: u64,
    pub(super) bucket: &'a Bucket,
    pub(super) name: &'a str,
    pub(super) moving: &'a Moving,
}

impl Up<'_> {
    /// Uploads the file, unless the object has its bytes already.
    pub(super) async fn upload(&self, existing: Existing) -> Result<Ended> {
        let Self { engine, size, bucket, name, .. } = *self;
        let file = Body::File { path: self.path.to_owned(), size };
        // A small file whose target nobody has looked at is sent at once: mostly there is nothing.
        let existing = match existing {
            Existing::Unknown if size <= SMALL_BYTES => None,
            other => look(bucket, name, other).await?,
        };
        let condition = match existing {
            None => Condition::Absent,
            Some(_) if engine.no_clobber => return Ok(Ended::Skipped),
            Some(there) => {
                let condition = Condition::Is(there.generation);
                if file.has_bytes_of(&Body::Object(Box::new(there))).await? {
                    return Ok(Ended::Skipped);
                }
                condition
            }
        };
        let refused = match self.send(condition).await {
            Ok(()) => return Ok(Ended::Done(size)),
            Err(Failed::Other(error)) => return Err(error),
            Err(Failed::Client(error)) => error,
        };
        let is_taken = refused.has_status(412) || matches!(refused, Error::OutcomeUnknown(_));
        // The name is taken: by an earlier run, by an attempt of this one whose answer was lost, or by another client.
        let Some(there) = (if is_taken { bucket.stat(name, None).await? } else { None }) else {
            return Err(refused.into());
        };
        let generation = there.generation;
        if file.has_bytes_of(&Body::Object(Box::new(there))).await? || engine.no_clobber {
            return Ok(Ended::Skipped);
        }
        if condition != Condition::Absent {
            let changed = format!("gs://{}/{name} changed meanwhile", bucket.name());
            return Err(anyhow::Error::from(refused).context(changed));
        }
        self.send(Condition::Is(generation)).await?;
        Ok(Ended::Done(size))
    }

    async fn send(&self, condition: Condition) -> Result<(), Failed> {
        match self.size <= SMALL_BYTES {
            true => self.small(condition).await,
            false => self.large(condition).await,
        }
    }

    async fn small(&self, condition: Condition) -> Result<(), Failed> {
        let read = {
            let path = self.path.to_owned();
            tokio::task::spawn_blocking(move || std::fs::read(path)).await.context("a file was not read")?
        };
        let bytes = read.with_context(|| format!("cannot read {}", self.path.display()))?;
        let content = Content::from(bytes).of_type(media_type(self.engine, self.name));
        self.bucket.upload(self.name, content, condition).await?;
        Ok(())
    }

    async fn large(&self, condition: Condition) -> Result<(), Failed> {
        let Self { engine, path, bucket, name, .. } = *self;
        let _place = engine.large.acquire().await.context("the command is ending")?;
        let remembered = Remembered::of(engine.sessions.as_deref(), path, self.size, bucket, name)?;
        let cannot = || format!("cannot read {}", path.display());
        let mut file = std::fs::File::open(path).with_context(cannot)?;
        let resumed = match remembered.url() {
            Some(url) => self.resume(&url).await?,
            None => None,
        };
        let session = match resumed {
            Some(session) => session,
            None => {
                let content = Content::from("").of_type(media_type(engine, name));
                let session = bucket.begin(name, &content, condition).await?;
                remembered.keep(session.url())?;
                session
            }
        };
        let saved = session.saved();
        file.seek(SeekFrom::Start(saved)).with_context(cannot)?;
        let sent = pump(session, file, self.moving).await;
        match &sent {
            Ok(_) => remembered.forget(),
            // After these the session makes no object any more.
            Err(Failed::Client(Error::Refused(refusal))) if refusal.status < 500 => remembered.forget(),
            Err(Failed::Client(Error::SessionGone(_))) => remembered.forget(),
            Err(_) => {}
        }
        sent.map(drop)
    }

    /// The session of an earlier run; `None` if it is complete or has ended: then a new one finds out what is there.
    async fn resume(&self, url: &str) -> Result<Option<Session>, Failed> {
        let mut session = match self.bucket.resume(self.name, url).await {
            Ok(Ok(session)) => session,
            Ok(Err(_)) | Err(Error::SessionGone(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (sum, bytes) = sum_of(self.path, Some(session.saved())).await?;
        session.set_sum(sum);
        Ok((bytes == session.saved()).then_some(session))
    }
}

/// Why an upload failed.
enum Failed {
    Client(Error),
    Other(anyhow::Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl From<Failed> for anyhow::Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Client(error) => error.into(),
            Failed::Other(error) => error,
        }
    }
}

/// Sends what `input` has, chunk by chunk, to its end.
async fn pump(
    mut session: Session,
    mut input: impl Read + Send + 'static,
    moving: &Moving,
) -> Result<Object, Failed> {
    loop {
        let read = move || {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            let read = input.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
            read.map(|_| (input, chunk))
        };
        let read = tokio::task::spawn_blocking(read).await.context("the source was not read")?;
        let (rest, chunk) = read.context("cannot read the source")?;
        input = rest;
        if chunk.len() < CHUNK_BYTES {
            return Ok(session.finish(Bytes::from(chunk)).await?);
        }
        session.send(Bytes::from(chunk)).await?;
        moving.add(CHUNK_BYTES as u64);
    }
}

/// Uploads standard input, which has no size before its end.
pub(super) async fn upload_input(engine: &Engine, bucket: &Bucket, name: &str) -> Result<Object> {
    let condition = match bucket.stat(name, None).await? {
        Some(_) if engine.no_clobber => bail!("gs://{}/{name} exists", bucket.name()),
        Some(there) => Condition::Is(there.generation),
        None => Condition::Absent,
    };
    let content = Content::from("").of_type(media_type(engine, name));
    let session = bucket.begin(name, &content, condition).await?;
    let moving = engine.flow.begin();
    pump(session, std::io::stdin(), &moving).await.map_err(anyhow::Error::from)
}

/// The media type: the one that was asked for, or by the ending of the name.
fn media_type<'a>(engine: &'a Engine, name: &str) -> &'a str {
    const KNOWN: [(&str, &str); 19] = [
        ("txt", "text/plain"),
        ("md", "text/markdown"),
        ("csv", "text/csv"),
        ("htm", "text/html"),
        ("html", "text/html"),
        ("css", "text/css"),
        ("js", "text/javascript"),
        ("json", "application/json"),
        ("xml", "application/xml"),
        ("pdf", "application/pdf"),
        ("gz", "application/gzip"),
        ("zip", "application/zip"),
        ("png", "image/png"),
        ("jpg", "image/jpeg"),
        ("jpeg", "image/jpeg"),
        ("gif", "image/gif"),
        ("svg", "image/svg+xml"),
        ("webp", "image/webp"),
        ("mp4", "video/mp4"),
    ];
    if let Some(asked) = &engine.content_type {
        return asked;
    }
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let known = KNOWN.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known));
    known.map_or("application/octet-stream", |(_, media_type)| media_type)
}
