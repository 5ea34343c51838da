//! Bytes of objects on their way in: in one stream, or to an upload that was begun before.

use bytes::Bytes;
use rangehold_map::blob::BlobUser;
use rangehold_map::capacity::Usage;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::checksum::Announced;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::generation::Generation;
use rangehold_protocol::object::grpc::messages::{
    BidiWriteObjectRequest, BidiWriteObjectResponse, ChecksummedData, CommonObjectRequestParams, Object,
    ObjectChecksums, WriteObjectRequest, WriteObjectResponse, WriteObjectSpec, bidi_write_object_request,
    bidi_write_object_response, write_object_request, write_object_response,
};
use rangehold_protocol::object::grpc::{JsonCall, announced, check_data, on_upload, write_call};
use rangehold_protocol::object::upload::Session;
use rangehold_protocol::object::write::Name;

use super::answering::Answers;
use super::caller::Caller;
use super::incoming::Messages;
use super::{Ended, GrpcApi, misused};
use crate::limits;
use crate::object::exchange::Exchange;
use crate::object::failure::Failure;
use crate::object::faults::{FaultMet, ordered_failure};
use crate::object::insert::{Described, described};
use crate::object::payload::Receiver;
use crate::object::upload::Upload;

/// The name of writes in the metrics and in retry tests.
const OPERATION: &str = "storage.objects.insert";

/// One message of a write, of either method.
#[derive(Default)]
struct Step {
    first: Option<First>,
    offset: i64,
    data: Option<ChecksummedData>,
    sums: Option<ObjectChecksums>,
    key: Option<CommonObjectRequestParams>,
    saves: bool,
    asks: bool,
    is_last: bool,
}

/// What the first message says.
enum First {
    /// The object that is written in this stream.
    Spec(Box<WriteObjectSpec>),
    /// The upload that goes on.
    Upload(String),
    /// An object that grows; not served.
    Append,
}

/// What is written.
enum Target {
    /// A new object, in this stream alone, and when it may be written.
    Object(Box<Described>, Box<Conditions>),
    /// An upload: the id of its rows, its name, and its session.
    Upload { id: String, name: String, session: Box<Session> },
}

/// A write that goes on.
struct Writing {
    bucket: Bucket,
    target: Target,
    receiver: Receiver,
    /// Bytes that are durable.
    saved: u64,
    /// The size that the object must have.
    total: Option<u64>,
    announced: Announced,
    fault_met: FaultMet,
}

/// What a write has come to.
enum Told {
    Saved(u64),
    Made(Box<Object>),
}

impl From<WriteObjectRequest> for Step {
    fn from(message: WriteObjectRequest) -> Self {
        use write_object_request::{Data, FirstMessage};
        let first = message.first_message.map(|first| match first {
            FirstMessage::UploadId(id) => First::Upload(id),
            FirstMessage::WriteObjectSpec(spec) => First::Spec(Box::new(spec)),
        });
        let data = message.data.map(|Data::ChecksummedData(data)| data);
        let (sums, key) = (message.object_checksums, message.common_object_request_params);
        let is_last = message.finish_write;
        Self { first, offset: message.write_offset, data, sums, key, is_last, ..Self::default() }
    }
}

impl From<BidiWriteObjectRequest> for Step {
    fn from(message: BidiWriteObjectRequest) -> Self {
        use bidi_write_object_request::{Data, FirstMessage};
        let first = message.first_message.map(|first| match first {
            FirstMessage::UploadId(id) => First::Upload(id),
            FirstMessage::WriteObjectSpec(spec) => First::Spec(Box::new(spec)),
            FirstMessage::AppendObjectSpec(_) => First::Append,
        });
        let data = message.data.map(|Data::ChecksummedData(data)| data);
        let (sums, key) = (message.object_checksums, message.common_object_request_params);
        let (saves, asks, is_last) = (message.flush, message.state_lookup, message.finish_write);
        Self { first, offset: message.write_offset, data, sums, key, saves, asks, is_last }
    }
}

impl GrpcApi<'_> {
    /// `WriteObject`: the answer comes when all is written.
    pub(super) async fn write_object(&self, caller: &Caller, mut from: Messages<'_>, to: &Answers) -> Ended {
        use write_object_response::WriteStatus;
        let write = async {
            let told = self.written::<WriteObjectRequest>(caller, &mut from, None).await?;
            let status = match told {
                Told::Saved(bytes) => WriteStatus::PersistedSize(bytes as i64),
                Told::Made(object) => WriteStatus::Resource(*object),
            };
            to.send(&WriteObjectResponse { write_status: Some(status), ..Default::default() }).await
        };
        Ended { operation: OPERATION, result: write.await }
    }

    /// `BidiWriteObject`: the client may ask in between how much is durable.
    pub(super) async fn write_and_tell(
        &self,
        caller: &Caller,
        mut from: Messages<'_>,
        to: &Answers,
    ) -> Ended {
        let write = async {
            let told = self.written::<BidiWriteObjectRequest>(caller, &mut from, Some(to)).await?;
            tell(told, to).await
        };
        Ended { operation: OPERATION, result: write.await }
    }

    /// Takes the messages of a write to its end. With `tell_to`, questions in between are answered there.
    async fn written<M: prost::Message + Default + Into<Step>>(
        &self,
        caller: &Caller,
        from: &mut Messages<'_>,
        tell_to: Option<&Answers>,
    ) -> Result<Told, Failure> {
        let mut step: Step = from.only::<M>().await?.into();
        let call = first_call(&step)?;
        let head = caller.head_of(&call)?;
        let exchange = caller.exchange(&head, &call);
        self.fail_if_ordered(&exchange, OPERATION)?;
        self.authorise(&exchange, &call.call).await?;
        self.admit_call(&exchange, &call.call).await?;
        let mut writing = match self.begin_writing(&exchange, &call).await? {
            Ok(writing) => writing,
            Err(made) => return Ok(Told::Made(made)),
        };
        loop {
            if let Err(refused) = self.take(&exchange, &mut writing, &step).await {
                self.break_off(&exchange, writing).await?;
                return Err(refused);
            }
            // A client of a stream in both directions closes it when it has the answer, so its end is not waited for.
            if step.is_last {
                return Ok(Told::Made(self.finish_writing(&exchange, writing).await?));
            }
            if let Some(to) = tell_to.filter(|_| step.asks) {
                tell(Told::Saved(writing.saved), to).await?;
            }
            match from.next::<M>(limits::PIECE_QUIET_MAX).await {
                Ok(Some(next)) => {
                    step = next.into();
                    if step.first.is_some() && !is_same(&step, &writing) {
                        self.break_off(&exchange, writing).await?;
                        return Err(misused("Only the first message says what is written."));
                    }
                }
                Ok(None) => return self.stop_writing(&exchange, writing).await,
                Err(broken_off) => {
                    self.break_off(&exchange, writing).await?;
                    return Err(broken_off);
                }
            }
        }
    }

    /// Opens what is written; the object itself, if its upload has ended before.
    async fn begin_writing(
        &self,
        exchange: &Exchange<'_>,
        call: &JsonCall,
    ) -> Result<Result<Writing, Box<Object>>, Failure> {
        let Some(whole_id) = exchange.parameter("upload_id") else {
            let mut bucket = self.bucket_for(exchange, &call.call.bucket).await?;
            // Wrong conditions are refused before folders are made and bytes come.
            let conditions = exchange.conditions()?;
            let mut described = described(exchange, &call.body, None)?;
            self.permit_write(exchange, &bucket, &described.name).await?;
            self.admit_name(exchange, &bucket.name, &described.name, Usage::Write).await?;
            self.locate(&mut bucket, &mut described, exchange.deadline()).await?;
            let receiver = self.receiver(exchange, &bucket, &described.name);
            let total = exchange.header("x-upload-content-length").and_then(|length| length.parse().ok());
            let announced = described.announced;
            let target = Target::Object(Box::new(described), Box::new(conditions));
            let fault_met = FaultMet::default();
            return Ok(Ok(Writing { bucket, target, receiver, saved: 0, total, announced, fault_met }));
        };
        let (bucket, id, name) = self.place_of(exchange, &call.call.bucket, whole_id).await?;
        let upload = Upload { of: Name { bucket: &bucket, name: &name }, id };
        let session = match self.session(exchange, &upload).await? {
            Ok(session) => session,
            Err(made) => return Ok(Err(Box::new(self.object_message(exchange, &bucket, &name, &made)?))),
        };
        let user = BlobUser { bucket: bucket.id, name: name.clone(), upload: id.to_owned() };
        self.admit_bytes(exchange, &bucket, bucket.shown(&name), Usage::Write)?;
        let (blobs, meter) = (self.blobs.clone(), self.meter(&bucket));
        let receiver = Receiver::resume(blobs, user, meter, &session.progress).await?;
        let (saved, total) = (session.progress.bytes, session.progress.total);
        let target = Target::Upload { id: id.to_owned(), name, session: Box::new(session) };
        let (announced, fault_met) = (Announced::default(), FaultMet::default());
        Ok(Ok(Writing { bucket, target, receiver, saved, total, announced, fault_met }))
    }

    /// Stores what one message brings.
    async fn take(&self, exchange: &Exchange<'_>, writing: &mut Writing, step: &Step) -> Result<(), Failure> {
        if let (Target::Upload { name, .. }, true) = (&writing.target, step.is_last) {
            // This is the one write of the upload. An object that is written in one stream was counted when it began.
            self.admit_end(exchange, &writing.bucket, writing.bucket.shown(name)).await?;
        }
        if let Some(sums) = &step.sums {
            writing.announced = announced(sums)?.or(writing.announced);
        }
        let have = writing.receiver.bytes();
        let offset = u64::try_from(step.offset)
            .map_err(|_| ObjectError::invalid("write_offset", step.offset, "Give a number from 0."))?;
        if offset > have {
            // Java's client looks for the code of this: the upload lacks bytes, so it cannot go on there.
            let message =
                format!("The write offset {offset} is beyond the {have} bytes that have come so far.");
            return Err(ObjectError::new(ErrorKind::RangeNotSatisfiable, message).at("write_offset").into());
        }
        if let Some(data) = &step.data {
            check_data(data)?;
            // Bytes that are there already are sent again after an interruption.
            let known = usize::try_from(have - offset).unwrap_or(usize::MAX).min(data.content.len());
            writing.receiver.pass_over(known);
            self.take_data(exchange, writing, data.content.slice(known..)).await?;
        }
        let many = matches!(writing.target, Target::Upload { .. })
            && writing.receiver.bytes() >= writing.saved + limits::UPLOAD_SAVED_EACH_BYTES;
        if !step.is_last && (step.saves || many) {
            self.save_writing(exchange, writing).await?;
        }
        Ok(())
    }

    /// Takes the next bytes. If a retry test orders an error among them, those before it are taken, and the stream ends.
    async fn take_data(
        &self,
        exchange: &Exchange<'_>,
        writing: &mut Writing,
        bytes: Bytes,
    ) -> Result<(), Failure> {
        let have = writing.receiver.bytes();
        let end = have + bytes.len() as u64;
        match self.fault_at(exchange, &mut writing.fault_met, have..end).await {
            None => writing.receiver.take(bytes).await,
            Some((status, after)) => {
                let before = after.saturating_sub(have).min(bytes.len() as u64);
                writing.receiver.take(bytes.slice(..before as usize)).await?;
                Err(ordered_failure(status))
            }
        }
    }

    /// Makes durable what has come. An object that is written in one stream has no session in which this would be noted, so
    /// after an interruption it begins again.
    async fn save_writing(&self, exchange: &Exchange<'_>, writing: &mut Writing) -> Result<(), Failure> {
        let Writing { bucket, target, receiver, saved, total, .. } = writing;
        match target {
            Target::Object(..) => {
                receiver.persist(*total).await?;
                *saved = receiver.bytes();
            }
            Target::Upload { id, name, .. } => {
                let upload = Upload { of: Name { bucket, name }, id };
                *saved = self.save(exchange, &upload, *saved, receiver, *total).await?;
            }
        }
        Ok(())
    }

    /// Writes the object, when all of its bytes have come.
    async fn finish_writing(
        &self,
        exchange: &Exchange<'_>,
        writing: Writing,
    ) -> Result<Box<Object>, Failure> {
        let Writing { bucket, target, receiver, total, announced, .. } = writing;
        let short = total.filter(|total| *total != receiver.bytes());
        let (name, made): (String, Generation) = match target {
            Target::Object(described, conditions) => {
                if let Some(total) = short {
                    let bytes = receiver.bytes();
                    receiver.give_up().await;
                    return Err(misused(format!(
                        "The object was announced with {total} bytes and has {bytes}."
                    )));
                }
                let Described { name, draft, .. } = *described;
                let received = receiver.finish(&[announced]).await?;
                let to = Name { bucket: &bucket, name: &name };
                let made = self.create(exchange, to, &draft, &conditions, received).await?;
                (name, made)
            }
            Target::Upload { id, name, session } => {
                let upload = Upload { of: Name { bucket: &bucket, name: &name }, id: &id };
                if let Some(total) = short.filter(|total| *total > receiver.bytes()) {
                    let bytes = receiver.bytes();
                    return Err(misused(format!(
                        "The object was announced with {total} bytes and has {bytes}."
                    )));
                }
                let made = self.end_upload(exchange, &upload, &session, receiver, announced, total).await?;
                (name, made)
            }
        };
        Ok(Box::new(self.object_message(exchange, &bucket, &name, &made)?))
    }

    /// The client has sent all it has, and did not say that the object is complete.
    async fn stop_writing(&self, exchange: &Exchange<'_>, mut writing: Writing) -> Result<Told, Failure> {
        if matches!(writing.target, Target::Object(..)) {
            writing.receiver.give_up().await;
            return Err(misused(
                "The last message of an object that is written in one stream has finish_write.",
            ));
        }
        self.save_writing(exchange, &mut writing).await?;
        Ok(Told::Saved(writing.saved))
    }

    /// The stream ends with an error. An upload keeps what has come, so that the client can go on there.
    async fn break_off(&self, exchange: &Exchange<'_>, mut writing: Writing) -> Result<(), Failure> {
        match writing.target {
            Target::Object(..) => writing.receiver.give_up().await,
            Target::Upload { .. } if writing.receiver.bytes() > writing.saved => {
                self.save_writing(exchange, &mut writing).await?;
            }
            Target::Upload { .. } => {}
        }
        Ok(())
    }
}

/// The call that the first message of a write makes.
fn first_call(step: &Step) -> Result<JsonCall, ObjectError> {
    match &step.first {
        Some(First::Spec(spec)) => write_call(spec, "media", step.key.as_ref(), None),
        Some(First::Upload(id)) => on_upload(id, "PUT"),
        Some(First::Append) => Err(ObjectError::not_implemented("An appendable upload")),
        None => {
            let message = "The first message names the object or the upload.";
            Err(ObjectError::new(ErrorKind::Required, message).at("first_message"))
        }
    }
}

/// Whether a later message names the upload that goes on, as some clients do in each.
fn is_same(step: &Step, writing: &Writing) -> bool {
    match (&step.first, &writing.target) {
        (Some(First::Upload(sent)), Target::Upload { id, .. }) => {
            sent.rsplit('/').next().is_some_and(|sent| sent.split('-').next() == Some(id))
        }
        _ => false,
    }
}

/// Answers what a write has come to.
async fn tell(told: Told, to: &Answers) -> Result<(), Failure> {
    use bidi_write_object_response::WriteStatus;
    let status = match told {
        Told::Saved(bytes) => WriteStatus::PersistedSize(bytes as i64),
        Told::Made(object) => WriteStatus::Resource(*object),
    };
    to.send(&BidiWriteObjectResponse { write_status: Some(status), ..Default::default() }).await
}
