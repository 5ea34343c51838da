//! Downloads.

use std::ops::Range;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use rangehold_engine::blob::BlobError;
use rangehold_map::PartitionPrefix;
use rangehold_map::key::ObjectRow;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::checksum::{Crc32c, Md5, goog_hashes};
use rangehold_protocol::object::condition::Purpose;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::generation::{Content as Stored, Generation};
use rangehold_protocol::object::request::Api;
use rangehold_protocol::object::write::Name;
use rangehold_protocol::time;
use tokio::time::Instant;

use super::ObjectService;
use super::byte_range::{Wanted, wanted};
use super::encryption::{check_key, customer_key, put_key_headers};
use super::exchange::Exchange;
use super::failure::Failure;
use super::gunzip::gunzip;
use super::located::Wants;
use super::reply::{Content, Reply};
use crate::fair::Tenant;
use crate::limits;

/// How a file in gzip begins.
const GZIP: [u8; 2] = [0x1F, 0x8B];
/// How often an object is read again because it was replaced at the same time.
pub(super) const TRIES_MAX: usize = 5;

/// The bytes of a stored object that a reply has.
struct Selected {
    range: Range<u64>,
    is_part: bool,
    /// Whether they are decompressed on their way.
    unpacked: bool,
}

/// Why a generation that was just read cannot be sent.
pub(super) enum MediaError {
    /// Its blob is dead, so it was removed meanwhile ([`ObjectService::check_removed`]).
    Gone,
    Failed(Failure),
}

impl From<Failure> for MediaError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ObjectError> for MediaError {
    fn from(error: ObjectError) -> Self {
        Self::Failed(error.into())
    }
}

impl ObjectService {
    /// The bytes of an object.
    pub(super) async fn download(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let conditions = exchange.conditions()?;
        self.download_if(exchange, bucket, name, |generation| {
            conditions.check(Some(generation), Purpose::Read)
        })
        .await
    }

    /// The bytes of an object, if `check` lets its generation pass.
    pub(super) async fn download_if(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        check: impl Fn(&Generation) -> Result<(), ObjectError>,
    ) -> Result<Reply, Failure> {
        let (bucket, name) = self.place(exchange, bucket, name, Wants::There).await?;
        let key = customer_key(exchange, "x-goog-encryption")?;
        for _ in 0..TRIES_MAX {
            let Some((generation, content)) = self.opened(exchange, &bucket, &name, key, &check).await?
            else {
                continue;
            };
            match self.media(exchange, &bucket, &generation, content).await {
                Err(MediaError::Gone) => {
                    self.check_removed(Name { bucket: &bucket, name: &name }, &generation).await?
                }
                Err(MediaError::Failed(failure)) => return Err(failure),
                Ok(reply) => return Ok(reply),
            }
        }
        Err(replaced_again())
    }

    /// The generation that a request reads, with its content, if `check` lets it pass. `None` if it was removed at the
    /// same time.
    pub(super) async fn opened(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        name: &str,
        key: Option<[u8; 32]>,
        check: impl Fn(&Generation) -> Result<(), ObjectError>,
    ) -> Result<Option<(Generation, Stored)>, Failure> {
        let generation = self.generation(bucket, name, exchange.generation()?).await?;
        check(&generation)?;
        check_key(&generation, key)?;
        let content = self.content(bucket, name, &generation).await?;
        if content.is_none() {
            self.check_removed(Name { bucket, name }, &generation).await?;
        }
        Ok(content.map(|content| (generation, content)))
    }

    /// Called when a generation was read, and then its content row or its blob was not there. Fails if the generation is still
    /// there: its content row and its blob are never removed before it, so they are lost. Otherwise it was removed meanwhile, and
    /// the caller can read again.
    pub(super) async fn check_removed(&self, of: Name<'_>, generation: &Generation) -> Result<(), Failure> {
        if !self.is_kept(of, generation).await? {
            return Ok(());
        }
        let (id, bucket, name) = (generation.id.0, &of.bucket.name, of.bucket.shown(of.name));
        let what = format_args!("the bytes of generation {id} of {bucket}/{name} are not there");
        Err(ObjectError::damaged(what).into())
    }

    /// Whether a generation that was read is still there: live, older, or soft-deleted.
    pub(super) async fn is_kept(&self, of: Name<'_>, generation: &Generation) -> Result<bool, Failure> {
        if self.live(of).await?.is_some_and(|live| live.id == generation.id) {
            return Ok(true);
        }
        Ok(self.row(of, &ObjectRow::NotLive(generation.id)).await?.is_some())
    }

    /// The content of a generation; `None` if it was removed.
    pub(super) async fn content(
        &self,
        bucket: &Bucket,
        name: &str,
        generation: &Generation,
    ) -> Result<Option<Stored>, Failure> {
        if let Some(bytes) = &generation.bytes {
            return Ok(Some(Stored::Inline(bytes.clone())));
        }
        let key = PartitionPrefix::object(bucket.id, name).object_row(&ObjectRow::Content(generation.id));
        let row = self.router.get(&key).await?;
        Ok(row.map(|row| Stored::decode(&row)).transpose()?)
    }

    /// The reply with the bytes of a generation, or those of them that `Range` asks for.
    pub(super) async fn media(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        generation: &Generation,
        content: Stored,
    ) -> Result<Reply, MediaError> {
        let unpacked = wants_unpacked(exchange, generation) && self.is_gzip(&content).await?;
        let selected = select(exchange, generation, unpacked)?;
        let mut reply = Reply::empty(if selected.is_part { 206 } else { 200 });
        put_headers(&mut reply, generation, selected.unpacked, exchange.api);
        if selected.is_part {
            let Range { start, end } = selected.range;
            reply.set("Content-Range", format!("bytes {start}-{}/{}", end - 1, generation.size));
        }
        if selected.range.is_empty() {
            // The connection leaves a length of nothing out of the answer to a HEAD, and clients want it.
            reply.set("Content-Length", "0");
        }
        let content = self.pieces(exchange.tenant, content, selected.range, selected.unpacked).await?;
        let content = match (selected.unpacked, content) {
            (false, content) => content,
            (true, Content::Whole(bytes)) => Content::Unmeasured(gunzip(stream::iter([Ok(bytes)]).boxed())),
            (true, Content::Stream(_, pieces) | Content::Unmeasured(pieces)) => {
                Content::Unmeasured(gunzip(pieces))
            }
            (true, frames @ Content::Frames(_)) => frames,
        };
        reply.content = self.meter_of_reply(exchange, bucket).over(content);
        Ok(reply)
    }

    /// The bytes of a content in a range, whole or as they are read. A small content that will be decompressed needs as much room as
    /// a large one.
    pub(super) async fn pieces(
        &self,
        tenant: Tenant,
        content: Stored,
        range: Range<u64>,
        unpacked: bool,
    ) -> Result<Content, MediaError> {
        let extents = match content {
            Stored::Inline(bytes) => return Ok(Content::Whole(slice(&bytes, &range)?)),
            Stored::Extents(extents) => extents,
        };
        let length = range.end - range.start;
        let pieces = match self.blobs.read(&extents, range).await {
            Err(BlobError::Gone(_)) => return Err(MediaError::Gone),
            other => other.map_err(Failure::from)?,
        };
        let until = Instant::now() + limits::ROOM_WITHIN;
        let read = usize::try_from(length.saturating_add(limits::DOWNLOAD_ENDS_BYTES)).unwrap_or(usize::MAX);
        let room = if unpacked { limits::DOWNLOAD_BYTES } else { read.min(limits::DOWNLOAD_BYTES) };
        let place = self.replies.place(tenant, room, until).await.map_err(Failure::from)?;
        let pieces = pieces.map(move |piece| {
            let _held = &place;
            piece.map_err(std::io::Error::other)
        });
        Ok(Content::Stream(length, pieces.boxed()))
    }

    /// Whether a content begins as gzip does. What a client calls gzip and is something else cannot be decompressed; it
    /// is sent as it is.
    async fn is_gzip(&self, content: &Stored) -> Result<bool, MediaError> {
        let extents = match content {
            Stored::Inline(bytes) => return Ok(bytes.starts_with(&GZIP)),
            Stored::Extents(extents) => extents,
        };
        let mut pieces = match self.blobs.read(extents, 0..GZIP.len() as u64).await {
            Err(BlobError::Gone(_)) => return Err(MediaError::Gone),
            other => other.map_err(Failure::from)?,
        };
        let mut first = Vec::new();
        while let Some(piece) = pieces.next().await {
            first.extend_from_slice(&piece.map_err(Failure::from)?);
        }
        Ok(first == GZIP)
    }
}

/// The object changed at each try to read it.
pub(super) fn replaced_again() -> Failure {
    Failure::unavailable("The object is replaced again and again while it is read. Try again.")
}

/// Whether the sender wants an object that is stored in gzip to be decompressed on its way.
fn wants_unpacked(exchange: &Exchange<'_>, generation: &Generation) -> bool {
    let settings = &generation.settings;
    let is_packed = settings.content_encoding.as_deref() == Some("gzip");
    let stays_packed =
        settings.cache_control.as_ref().is_some_and(|control| control.contains("no-transform"));
    let accepts = exchange.header("accept-encoding").is_some_and(accepts_gzip);
    is_packed && !stays_packed && !accepts && generation.size >= GZIP.len() as u64
}

/// Whether an `Accept-Encoding` has gzip. A weight of 0 says that the client does not take it (RFC 9110, section 12.5.3).
fn accepts_gzip(codings: &str) -> bool {
    codings.split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().to_ascii_lowercase();
        let weight = weight.strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok());
        matches!(name.trim().to_ascii_lowercase().as_str(), "gzip" | "x-gzip") && weight != Some(0.0)
    })
}

/// A part of bytes that are in a row. The row may be shorter than its generation says only if it is damaged.
fn slice(bytes: &Bytes, range: &Range<u64>) -> Result<Bytes, ObjectError> {
    let (start, end) = (range.start as usize, range.end as usize);
    match start <= end && end <= bytes.len() {
        true => Ok(bytes.slice(start..end)),
        false => Err(ObjectError::damaged(format_args!("a content has {} bytes and not {end}", bytes.len()))),
    }
}

fn select(exchange: &Exchange<'_>, generation: &Generation, unpacked: bool) -> Result<Selected, ObjectError> {
    let whole = 0..generation.size;
    if unpacked {
        // No range of the decompressed bytes can be found without all that comes before it.
        return Ok(Selected { range: whole, is_part: false, unpacked: true });
    }
    let header = exchange.header("range");
    match wanted(header, generation.size) {
        Wanted::Whole => Ok(Selected { range: whole, is_part: false, unpacked: false }),
        Wanted::Part(range) => Ok(Selected { range, is_part: true, unpacked: false }),
        Wanted::Nothing => {
            Err(ObjectError::range_not_satisfiable(header.unwrap_or_default(), generation.size))
        }
    }
}

/// The headers that every reply about the bytes of a generation has.
pub(super) fn put_headers(reply: &mut Reply, generation: &Generation, unpacked: bool, api: Api) {
    let settings = &generation.settings;
    let encoding = settings.content_encoding.as_deref();
    // A browser saves what it gets from the JSON API, and does not show it as a page of the service.
    let disposition = settings.content_disposition.as_deref().or((api != Api::Xml).then_some("attachment"));
    reply.set("Content-Type", settings.content_type.as_deref().unwrap_or("application/octet-stream"));
    for (name, value) in [
        ("Content-Encoding", encoding.filter(|_| !unpacked)),
        ("Content-Language", settings.content_language.as_deref()),
        ("Content-Disposition", disposition),
        ("Cache-Control", settings.cache_control.as_deref()),
        ("Warning", unpacked.then_some("214 UploadServer gunzipped")),
        // C++'s client looks at this alone.
        ("X-GUploader-Response-Body-Transformations", unpacked.then_some("gunzipped")),
    ] {
        if let Some(value) = value {
            reply.set(name, value);
        }
    }
    put_stored_headers(reply, generation, api);
    reply.set("Last-Modified", time::http_date(generation.updated.timestamp()));
    reply.set("Accept-Ranges", if unpacked { "none" } else { "bytes" });
    for (name, value) in &settings.metadata {
        reply.named.push((format!("x-goog-meta-{name}"), value.clone()));
    }
}

/// A reply of the XML API that tells of a generation which was just written, without its bytes.
pub(super) fn written(status: u16, made: &Generation) -> Reply {
    let mut reply = Reply::empty(status);
    put_stored_headers(&mut reply, made, Api::Xml);
    reply
}

/// The headers that say which generation is stored, and what is known of its bytes.
fn put_stored_headers(reply: &mut Reply, generation: &Generation, api: Api) {
    let encoding = generation.settings.content_encoding.as_deref();
    put_hashes(reply, generation.crc32c, generation.md5, api);
    reply.set("x-goog-generation", generation.id.0.to_string());
    reply.set("x-goog-metageneration", generation.metageneration.to_string());
    reply.set("x-goog-storage-class", generation.storage_class.name());
    reply.set("x-goog-stored-content-length", generation.size.to_string());
    reply.set("x-goog-stored-content-encoding", encoding.unwrap_or("identity"));
    put_key_headers(reply, generation);
    let etag = match api {
        Api::Xml => format!("\"{}\"", generation.xml_etag()),
        _ => generation.etag(),
    };
    reply.set("ETag", etag);
}

/// The checksums of some bytes: a header for each in the XML API, and one for all in the JSON API.
pub(super) fn put_hashes(reply: &mut Reply, crc32c: Crc32c, md5: Option<Md5>, api: Api) {
    let hashes = goog_hashes(crc32c, md5);
    match api {
        Api::Xml => hashes.for_each(|hash| reply.set("x-goog-hash", hash)),
        _ => reply.set("x-goog-hash", hashes.collect::<Vec<_>>().join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::accepts_gzip;

    #[test]
    fn gzip_is_accepted_where_it_is_named_with_a_weight_above_zero() {
        for yes in ["gzip", "GZIP", "x-gzip", "br, gzip;q=0.5", "gzip ; q=1"] {
            assert!(accepts_gzip(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip; Q=0.000, br", "agzip", "identity"] {
            assert!(!accepts_gzip(no), "{no}");
        }
    }
}
