//! Bytes of objects on their way out.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use futures::StreamExt;
use rangehold_map::capacity::Usage;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::Purpose;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::generation::{Content as Stored, Generation, Projection};
use rangehold_protocol::object::grpc::limits::{CHUNK_BYTES_MAX, READ_RANGES_MAX};
use rangehold_protocol::object::grpc::messages::{
    BidiReadHandle, BidiReadObjectRequest, BidiReadObjectResponse, ContentRange, Object, ObjectChecksums,
    ObjectRangeData, ReadObjectRequest, ReadObjectResponse, ReadRange,
};
use rangehold_protocol::object::grpc::{
    JsonCall, checksummed, object_of, open_call, range_refused, read_call, read_range,
};
use rangehold_protocol::object::write::Name;

use super::answering::Answers;
use super::caller::Caller;
use super::incoming::Messages;
use super::{Ended, GrpcApi, misused};
use crate::limits;
use crate::object::encryption::customer_key;
use crate::object::exchange::Exchange;
use crate::object::failure::Failure;
use crate::object::located::Wants;
use crate::object::media::{MediaError, TRIES_MAX, replaced_again};
use crate::object::meter::Meter;
use crate::object::reply::{Content, Pieces};

/// The name of reads in the metrics and in retry tests.
const OPERATION: &str = "storage.objects.get";

/// What a client may send to open the object again. The real service finds the object faster with it. This server ignores it,
/// so it is the same for all.
const HANDLE: &[u8] = b"an object of this server";

/// A generation that is read.
struct Opened {
    generation: Generation,
    content: Stored,
    /// Its resource.
    object: Object,
    /// Charges its bytes.
    meter: Meter,
}

/// Bytes as they are read, in pieces that fit a message.
struct Chunks {
    pieces: Pieces,
    rest: Bytes,
}

impl GrpcApi<'_> {
    /// `ReadObject`: the bytes of an object, or a part of them.
    pub(super) async fn read_object(&self, caller: &Caller, mut from: Messages<'_>, to: &Answers) -> Ended {
        let read = async {
            let asked: ReadObjectRequest = from.only().await?;
            let call = read_call(&asked)?;
            let head = caller.head_of(&call)?;
            let exchange = caller.exchange(&head, &call);
            let (bucket, name) = self.readable(&exchange, &call).await?;
            // The range is of the generation that was opened, so both are read again if it is gone.
            for _ in 0..TRIES_MAX {
                let Some(opened) = self.open_object(&exchange, &bucket, &name).await? else {
                    continue;
                };
                let range = read_range(asked.read_offset, asked.read_limit, opened.generation.size)?;
                match self.chunks(&exchange, &opened, range.clone()).await {
                    Ok(chunks) => return send_object(chunks, opened, range, to).await,
                    Err(MediaError::Gone) => {
                        self.check_removed(Name { bucket: &bucket, name: &name }, &opened.generation).await?;
                    }
                    Err(MediaError::Failed(failure)) => return Err(failure),
                }
            }
            Err(replaced_again())
        };
        Ended { operation: OPERATION, result: read.await }
    }

    /// `BidiReadObject`: ranges of one generation, which the client asks for one after the other.
    pub(super) async fn read_ranges(&self, caller: &Caller, mut from: Messages<'_>, to: &Answers) -> Ended {
        let read = async {
            let first: BidiReadObjectRequest = from.only().await?;
            let spec = first.read_object_spec.as_ref();
            let spec = spec.ok_or_else(|| ObjectError::required("read_object_spec"))?;
            let call = open_call(spec)?;
            let head = caller.head_of(&call)?;
            let exchange = caller.exchange(&head, &call);
            let (bucket, name) = self.readable(&exchange, &call).await?;
            let mut opened = None;
            for _ in 0..TRIES_MAX {
                opened = self.open_object(&exchange, &bucket, &name).await?;
                if opened.is_some() {
                    break;
                }
            }
            let opened = opened.ok_or_else(replaced_again)?;
            let metadata = Some(opened.object.clone());
            let read_handle = Some(BidiReadHandle { handle: Bytes::from_static(HANDLE) });
            to.send(&BidiReadObjectResponse { metadata, read_handle, ..Default::default() }).await?;
            let mut asked = first.read_ranges;
            loop {
                if asked.len() > READ_RANGES_MAX {
                    return Err(misused(format!("A message asks for at most {READ_RANGES_MAX} ranges.")));
                }
                for range in &asked {
                    let sent = self.send_range(&exchange, (&bucket, &name), &opened, range, to).await;
                    sent.inspect_err(|failure| {
                        if failure.0.kind == ErrorKind::RangeNotSatisfiable {
                            to.explain(range_refused(range.read_id, &failure.0));
                        }
                    })?;
                }
                // A client may keep an object open and ask now and then. It opens it again if the stream ends.
                let next = from.next::<BidiReadObjectRequest>(limits::PIECE_QUIET_MAX).await;
                match next.map_err(quiet)? {
                    None => return Ok(()),
                    Some(next) if next.read_object_spec.is_some() => {
                        return Err(misused("Only the first message has a read_object_spec."));
                    }
                    Some(next) => {
                        self.admit_bytes(&exchange, &bucket, &call.call.object, Usage::Read)?;
                        asked = next.read_ranges;
                    }
                }
            }
        };
        Ended { operation: OPERATION, result: read.await }
    }

    /// The bucket of an object that the caller may read, and its stored name.
    async fn readable<'c>(
        &self,
        exchange: &Exchange<'_>,
        call: &'c JsonCall,
    ) -> Result<(Bucket, Cow<'c, str>), Failure> {
        self.fail_if_ordered(exchange, OPERATION)?;
        self.authorise(exchange, &call.call).await?;
        self.admit_call(exchange, &call.call).await?;
        self.place(exchange, &call.call.bucket, &call.call.object, Wants::There).await
    }

    /// The generation that is asked for; `None` if it was removed at the same time.
    async fn open_object(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        name: &str,
    ) -> Result<Option<Opened>, Failure> {
        let (conditions, key) = (exchange.conditions()?, customer_key(exchange, "x-goog-encryption")?);
        let check = |generation: &Generation| conditions.check(Some(generation), Purpose::Read);
        let Some((generation, content)) = self.opened(exchange, bucket, name, key, check).await? else {
            return Ok(None);
        };
        let object = self.object_message(exchange, bucket, name, &generation)?;
        let meter = self.meter_of_reply(exchange, bucket);
        Ok(Some(Opened { generation, content, object, meter }))
    }

    /// The message of a generation's resource.
    pub(super) fn object_message(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        name: &str,
        generation: &Generation,
    ) -> Result<Object, Failure> {
        let json = self.object_json(exchange, bucket, name, generation, Projection::NoAcl)?;
        Ok(object_of(serde_json::from_slice(&json).map_err(ObjectError::damaged)?)?)
    }

    async fn chunks(
        &self,
        exchange: &Exchange<'_>,
        opened: &Opened,
        range: Range<u64>,
    ) -> Result<Chunks, MediaError> {
        if range.is_empty() {
            return Ok(Chunks { pieces: futures::stream::empty().boxed(), rest: Bytes::new() });
        }
        let content = self.pieces(exchange.tenant, opened.content.clone(), range, false).await?;
        let pieces = match opened.meter.clone().over(content) {
            Content::Whole(bytes) => futures::stream::iter([Ok(bytes)]).boxed(),
            Content::Stream(_, pieces) | Content::Unmeasured(pieces) => pieces,
            Content::Frames(_) => unreachable!("bytes of objects are not messages"),
        };
        Ok(Chunks { pieces, rest: Bytes::new() })
    }

    /// Sends the bytes of one range. The last message says that there are no more.
    async fn send_range(
        &self,
        exchange: &Exchange<'_>,
        (bucket, name): (&Bucket, &str),
        opened: &Opened,
        asked: &ReadRange,
        to: &Answers,
    ) -> Result<(), Failure> {
        let range = read_range(asked.read_offset, asked.read_length, opened.generation.size)?;
        let mut chunks = match self.chunks(exchange, opened, range.clone()).await {
            Ok(chunks) => chunks,
            Err(MediaError::Gone) => {
                self.check_removed(Name { bucket, name }, &opened.generation).await?;
                return Err(ObjectError::no_such_object(&bucket.name, &opened.object.name).into());
            }
            Err(MediaError::Failed(failure)) => return Err(failure),
        };
        let mut at = range.start;
        loop {
            let chunk = if at < range.end { chunks.next().await? } else { None }.unwrap_or_default();
            let sent = ReadRange {
                read_id: asked.read_id,
                read_offset: signed(at),
                read_length: signed(chunk.len() as u64),
            };
            at += chunk.len() as u64;
            let data = ObjectRangeData {
                checksummed_data: (!chunk.is_empty()).then(|| checksummed(chunk)),
                read_range: Some(sent),
                range_end: at >= range.end,
            };
            let is_last = data.range_end;
            to.send(&BidiReadObjectResponse { object_data_ranges: vec![data], ..Default::default() }).await?;
            if is_last {
                return Ok(());
            }
        }
    }
}

/// Sends the bytes of a `ReadObject`. The first message says what they are of.
async fn send_object(
    mut chunks: Chunks,
    opened: Opened,
    range: Range<u64>,
    to: &Answers,
) -> Result<(), Failure> {
    let mut message = ReadObjectResponse {
        object_checksums: opened.object.checksums.clone().filter(|sums| *sums != ObjectChecksums::default()),
        content_range: Some(ContentRange {
            start: signed(range.start),
            end: signed(range.end),
            complete_length: signed(opened.generation.size),
        }),
        metadata: Some(opened.object),
        checksummed_data: None,
    };
    let mut is_first = true;
    while let Some(chunk) = chunks.next().await? {
        message.checksummed_data = Some(checksummed(chunk));
        to.send(&message).await?;
        (message, is_first) = (ReadObjectResponse::default(), false);
    }
    if is_first { to.send(&message).await } else { Ok(()) }
}

impl Chunks {
    /// The next bytes, which are not empty; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while self.rest.is_empty() {
            let Some(piece) = self.pieces.next().await else { return Ok(None) };
            // HTTP breaks the connection off here. A client of gRPC can be told, and reads on from what it has.
            self.rest = piece.map_err(|error| {
                tracing::error!(%error, "the bytes of an object cannot be read");
                Failure::unavailable("The bytes of the object cannot be read now. Try again.")
            })?;
        }
        Ok(Some(self.rest.split_to(self.rest.len().min(CHUNK_BYTES_MAX))))
    }
}

/// A number of bytes as messages have it.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("an object has at most 5 TiB")
}

/// A stream on which nothing was asked for some time ends so that its client opens another one.
fn quiet(failure: Failure) -> Failure {
    match failure.0.kind {
        ErrorKind::Timeout => Failure::unavailable("Nothing was asked for some time. Open the object again."),
        _ => failure,
    }
}
