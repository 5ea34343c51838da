//! The body of a reply: messages while the work goes on, and the status at its end.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use hyper::body::Frame;
use prost::Message;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::grpc::frame::framed;
use rangehold_protocol::object::grpc::messages::Status;
use rangehold_protocol::object::grpc::status::{Code, code_of, message_of};
use tokio::sync::mpsc;

use super::number;
use crate::object::failure::Failure;

/// Messages that wait for a client to read them, beside the one that is being sent.
const WAITING_MAX: usize = 1;

/// Where a call puts its messages, and what it says beside its status.
pub(super) struct Answers {
    messages: mpsc::Sender<Bytes>,
    details: OnceLock<Status>,
}

impl Answers {
    /// Sends a message, when the client has read those before it.
    pub(super) async fn send(&self, message: &impl Message) -> Result<(), Failure> {
        // The receiver lives as long as the work does, so this fails only while both are dropped.
        let sent = self.messages.send(framed(message)).await;
        sent.map_err(|_| Failure::unavailable("The client has gone."))
    }

    /// Says more of the error with which the call is about to end.
    pub(super) fn explain(&self, status: Status) {
        // A call ends with its first error, so nothing is said twice.
        self.details.get_or_init(|| status);
    }

    /// The trailers of the call, which succeeded or ended with an error.
    pub(super) fn trailers(self, error: Option<ObjectError>) -> HeaderMap {
        let code = error.as_ref().map_or(Code::Ok, |error| code_of(error.kind));
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from(u16::from(number(code))));
        if let Some(error) = error {
            let message =
                HeaderValue::try_from(message_of(&error)).expect("it is encoded in printable ASCII");
            trailers.insert("grpc-message", message);
        }
        if let Some(details) = self.details.into_inner() {
            let details = STANDARD_NO_PAD.encode(details.encode_to_vec());
            let details = HeaderValue::try_from(details).expect("base64 is printable ASCII");
            trailers.insert("grpc-status-details-bin", details);
        }
        trailers
    }
}

/// The work of a call, and what it has answered so far.
struct Answering {
    work: Option<BoxFuture<'static, HeaderMap>>,
    messages: mpsc::Receiver<Bytes>,
    trailers: Option<HeaderMap>,
}

/// The frames of the reply to a call. `work` gets a place for its messages, and returns the trailers. It goes on while the
/// frames are taken, and ends when they are dropped.
pub(super) fn answering<W: Future<Output = HeaderMap> + Send + 'static>(
    work: impl FnOnce(Answers) -> W,
) -> impl Stream<Item = std::io::Result<Frame<Bytes>>> + Send {
    let (sender, messages) = mpsc::channel(WAITING_MAX);
    let answers = Answers { messages: sender, details: OnceLock::new() };
    Answering { work: Some(Box::pin(work(answers))), messages, trailers: None }
}

impl Stream for Answering {
    type Item = std::io::Result<Frame<Bytes>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(work) = &mut this.work
            && let Poll::Ready(trailers) = work.as_mut().poll(context)
        {
            this.work = None;
            this.trailers = Some(trailers);
        }
        match this.messages.poll_recv(context) {
            Poll::Ready(Some(message)) => Poll::Ready(Some(Ok(Frame::data(message)))),
            Poll::Ready(None) => {
                Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
