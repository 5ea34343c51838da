//! The rates of requests and the bandwidth over gRPC.

use std::time::Duration;

use rangehold_protocol::object::grpc::messages::bidi_write_object_response::WriteStatus;
use rangehold_protocol::object::grpc::messages::query_write_status_response::WriteStatus as QueriedStatus;
use rangehold_protocol::object::grpc::messages::*;
use tonic::{Code, Status};

use super::bandwidth;
use super::grpc::{BUCKET, Client, code, data, spec};
use super::rates::{HOUR, SLOW, counted, service};
use crate::support::Service;

/// The text of an object whose bytes use up two bytes a second for half a day.
fn large() -> &'static str {
    String::leak("x".repeat(100_000))
}

/// One message of a write to an upload, from this offset.
fn message(id: &str, offset: usize, text: &'static str, finish_write: bool) -> BidiWriteObjectRequest {
    use bidi_write_object_request::{Data, FirstMessage};
    BidiWriteObjectRequest {
        first_message: (offset == 0 || finish_write).then(|| FirstMessage::UploadId(id.to_owned())),
        write_offset: offset as i64,
        data: Some(Data::ChecksummedData(data(text))),
        flush: !finish_write,
        state_lookup: !finish_write,
        finish_write,
        ..Default::default()
    }
}

impl Client {
    async fn begin_upload(&mut self, name: &str) -> String {
        let begin = StartResumableWriteRequest { write_object_spec: Some(spec(name)), ..Default::default() };
        let begun: StartResumableWriteResponse = self.ask("StartResumableWrite", begin).await.expect("an id");
        begun.upload_id
    }

    async fn sent(
        &mut self,
        messages: Vec<BidiWriteObjectRequest>,
    ) -> Result<Vec<BidiWriteObjectResponse>, Status> {
        self.stream("BidiWriteObject", messages).await
    }

    async fn persisted(&mut self, id: &str) -> Option<QueriedStatus> {
        let query = QueryWriteStatusRequest { upload_id: id.to_owned(), ..Default::default() };
        let told: QueryWriteStatusResponse = self.ask("QueryWriteStatus", query).await.expect("a status");
        told.write_status
    }

    /// Whether a read of an object that is not there is refused for its rate.
    async fn is_refused(&mut self) -> bool {
        let asked =
            GetObjectRequest { bucket: BUCKET.to_owned(), object: "none".to_owned(), ..Default::default() };
        match code(self.ask::<_, Object>("GetObject", asked).await) {
            Code::NotFound => false,
            Code::ResourceExhausted => true,
            other => panic!("{other:?}"),
        }
    }
}

fn is_made(answers: &Result<Vec<BidiWriteObjectResponse>, Status>) -> bool {
    let last = answers.as_ref().ok().and_then(|answers| answers.last()?.write_status.as_ref());
    matches!(last, Some(WriteStatus::Resource(_)))
}

#[tokio::test]
async fn an_upload_counts_as_one_write_when_it_ends() {
    let service = service(SLOW, Duration::ZERO).await;
    let mut client = Client::of(&service).await;
    client.make_bucket().await;
    // The bucket bears one write. Neither the beginning nor what comes before the end is one.
    let (one, other) = (client.begin_upload("one").await, client.begin_upload("other").await);
    client.sent(vec![message(&one, 0, "hello ", false)]).await.expect("it is saved");
    assert!(is_made(&client.sent(vec![message(&one, 6, "world", true)]).await));
    let refused = client.sent(vec![message(&other, 0, "hello ", false), message(&other, 6, "world", true)]);
    assert_eq!(code(refused.await), Code::ResourceExhausted);
    // What came before the end is kept, and the client can go on there.
    assert_eq!(client.persisted(&other).await, Some(QueriedStatus::PersistedSize(6)));
    // The first write is told again, which makes nothing.
    assert!(is_made(&client.sent(vec![message(&one, 6, "world", true)]).await));
    assert_eq!(counted(&service, "BucketRate").await, 1);
}

#[tokio::test]
async fn an_upload_counts_for_its_name() {
    let service = service(1.0, HOUR).await;
    let mut client = Client::of(&service).await;
    client.make_bucket().await;
    client.write("o", "hello").await.expect("an object");
    let upload = client.begin_upload("o").await;
    let refused = client.sent(vec![message(&upload, 0, "hello", true)]).await.expect_err("it is too soon");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let told = "The object a-bucket/o exceeded the rate limit for object mutation operations";
    assert!(refused.message().starts_with(told), "{}", refused.message());
    assert_eq!(counted(&service, "ObjectName").await, 1);
}

async fn with_bandwidth() -> (Service, Client) {
    let service = bandwidth::service().await;
    let mut client = Client::of(&service).await;
    client.make_bucket().await;
    (service, client)
}

#[tokio::test]
async fn bytes_that_come_in_a_stream_use_up_the_bandwidth() {
    let (service, mut client) = with_bandwidth().await;
    assert!(!client.is_refused().await);
    client.write("o", large()).await.expect("an object, which is not broken off");
    assert!(client.is_refused().await);
    assert_eq!(code(client.write("p", "hello").await), Code::ResourceExhausted);

    service.rest();
    let (upload, size) = (client.begin_upload("o").await, large().len());
    client.sent(vec![message(&upload, 0, large(), false)]).await.expect("it is saved");
    let refused = client.sent(vec![message(&upload, size, "world", true)]).await;
    assert_eq!(code(refused), Code::ResourceExhausted);
    assert_eq!(client.persisted(&upload).await, Some(QueriedStatus::PersistedSize(size as i64)));
    service.rest();
    // The end of a stream is not refused for the bytes of the stream itself.
    assert!(is_made(&client.sent(vec![message(&upload, size, large(), true)]).await));
    assert!(client.is_refused().await);
}

#[tokio::test]
async fn bytes_that_leave_in_a_stream_use_up_the_bandwidth() {
    let (service, mut client) = with_bandwidth().await;
    client.write("o", large()).await.expect("an object");
    service.rest();
    assert_eq!(client.read("o", 0, 0).await.expect("all bytes").len(), large().len());
    assert!(client.is_refused().await);

    service.rest();
    let range = |read_id| ReadRange { read_offset: 0, read_length: 0, read_id };
    let open = BidiReadObjectRequest {
        read_object_spec: Some(BidiReadObjectSpec {
            bucket: BUCKET.to_owned(),
            object: "o".to_owned(),
            ..Default::default()
        }),
        read_ranges: vec![range(1)],
    };
    let answers: Vec<BidiReadObjectResponse> =
        client.stream("BidiReadObject", vec![open.clone()]).await.expect("a range");
    assert!(answers.len() > 1);
    assert!(client.is_refused().await);

    service.rest();
    let more = BidiReadObjectRequest { read_ranges: vec![range(2)], ..Default::default() };
    let refused = client.stream::<_, BidiReadObjectResponse>("BidiReadObject", vec![open, more]).await;
    assert_eq!(code(refused), Code::ResourceExhausted);
}
