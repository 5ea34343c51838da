//! gRPC, as tonic's client speaks it.

use std::task::{Context, Poll};

use http::uri::PathAndQuery;
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use rangehold_protocol::object::grpc::messages::bidi_write_object_response::WriteStatus;
use rangehold_protocol::object::grpc::messages::compose_object_request::SourceObject;
use rangehold_protocol::object::grpc::messages::write_object_response;
use rangehold_protocol::object::grpc::messages::*;
use rangehold_protocol::object::grpc::messages::{bidi_write_object_request, write_object_request};
use tokio::net::TcpStream;
use tonic::client::Grpc;
use tonic::codegen::{BoxFuture, Service as Layer, tokio_stream};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::support::Service;

pub(super) const BUCKET: &str = "projects/_/buckets/a-bucket";

/// One connection with HTTP/2, begun with prior knowledge as gRPC does.
#[derive(Clone)]
struct Wire(SendRequest<tonic::body::Body>);

impl Layer<http::Request<tonic::body::Body>> for Wire {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// A client of both services.
pub(super) struct Client {
    grpc: Grpc<Wire>,
    /// The retry test whose faults its calls meet.
    test: Option<String>,
}

fn path(method: &str) -> PathAndQuery {
    let service = match method {
        "GetStorageLayout"
        | "CreateManagedFolder"
        | "ListManagedFolders"
        | "GetManagedFolder"
        | "DeleteManagedFolder"
        | "CreateFolder"
        | "GetFolder"
        | "ListFolders"
        | "RenameFolder"
        | "DeleteFolder"
        | "DeleteFolderRecursive"
        | "CreateAnywhereCache" => "google.storage.control.v2.StorageControl",
        _ => "google.storage.v2.Storage",
    };
    format!("/{service}/{method}").parse().expect("a path")
}

impl Client {
    pub(super) async fn of(service: &Service) -> Self {
        let address = service.running.object_address.expect("objects are served");
        let stream = TcpStream::connect(address).await.expect("a connection");
        let (sender, connection) =
            handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2 without TLS");
        tokio::spawn(connection);
        let origin = format!("http://{address}").parse().expect("an address");
        Self { grpc: Grpc::with_origin(Wire(sender), origin), test: None }
    }

    /// The same. Its calls meet the faults of a retry test.
    pub(super) async fn under_test(service: &Service, test: &str) -> Self {
        Self { test: Some(test.to_owned()), ..Self::of(service).await }
    }

    fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(test) = &self.test {
            request.metadata_mut().insert("x-retry-test-id", test.parse().expect("a header"));
        }
        request
    }

    pub(super) async fn ask<Q, A>(&mut self, method: &str, message: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.grpc.ready().await.expect("the connection is open");
        let (codec, request) = (ProstCodec::<Q, A>::new(), self.request(message));
        Ok(self.grpc.unary(request, path(method), codec).await?.into_inner())
    }

    /// Sends all messages, and returns all answers.
    pub(super) async fn stream<Q, A>(&mut self, method: &str, messages: Vec<Q>) -> Result<Vec<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.grpc.ready().await.expect("the connection is open");
        let (codec, request) = (ProstCodec::<Q, A>::new(), self.request(tokio_stream::iter(messages)));
        let mut answers = self.grpc.streaming(request, path(method), codec).await?.into_inner();
        let mut found = Vec::new();
        while let Some(answer) = answers.message().await? {
            found.push(answer);
        }
        Ok(found)
    }

    pub(super) async fn make_bucket(&mut self) -> Bucket {
        let bucket = Bucket { project: "projects/test-project".to_owned(), ..Default::default() };
        let parent = "projects/_".to_owned();
        let message = CreateBucketRequest {
            parent,
            bucket: Some(bucket),
            bucket_id: "a-bucket".to_owned(),
            ..Default::default()
        };
        self.ask("CreateBucket", message).await.expect("a bucket")
    }

    /// Writes an object in one stream, in two messages.
    pub(super) async fn write(&mut self, name: &str, text: &'static str) -> Result<Object, Status> {
        let (one, two) = text.split_at(text.len() / 2);
        let first = WriteObjectRequest {
            first_message: Some(write_object_request::FirstMessage::WriteObjectSpec(spec(name))),
            data: Some(write_object_request::Data::ChecksummedData(data(one))),
            ..Default::default()
        };
        let last = WriteObjectRequest {
            write_offset: one.len() as i64,
            data: Some(write_object_request::Data::ChecksummedData(data(two))),
            finish_write: true,
            ..Default::default()
        };
        let mut answers: Vec<WriteObjectResponse> = self.stream("WriteObject", vec![first, last]).await?;
        match answers.pop().and_then(|answer| answer.write_status) {
            Some(write_object_response::WriteStatus::Resource(object)) => Ok(object),
            other => panic!("{other:?}"),
        }
    }

    /// The bytes of an object from an offset.
    pub(super) async fn read(
        &mut self,
        name: &str,
        read_offset: i64,
        read_limit: i64,
    ) -> Result<String, Status> {
        let (bucket, object) = (BUCKET.to_owned(), name.to_owned());
        let asked = ReadObjectRequest { bucket, object, read_offset, read_limit, ..Default::default() };
        let answers: Vec<ReadObjectResponse> = self.stream("ReadObject", vec![asked]).await?;
        assert!(answers[0].metadata.is_some());
        let pieces = answers.into_iter().filter_map(|answer| answer.checksummed_data);
        Ok(pieces.map(|data| String::from_utf8_lossy(&data.content).into_owned()).collect())
    }
}

pub(super) fn data(text: &'static str) -> ChecksummedData {
    ChecksummedData { content: text.into(), crc32c: Some(crc32c::crc32c(text.as_bytes())) }
}

pub(super) fn spec(name: &str) -> WriteObjectSpec {
    let object = Object {
        name: name.to_owned(),
        bucket: BUCKET.to_owned(),
        content_type: "text/plain".to_owned(),
        metadata: [("k".to_owned(), "v".to_owned())].into(),
        ..Default::default()
    };
    WriteObjectSpec { resource: Some(object), ..Default::default() }
}

fn mask(path: &str) -> Option<FieldMask> {
    Some(FieldMask { paths: vec![path.to_owned()] })
}

pub(super) fn code<T: std::fmt::Debug>(result: Result<T, Status>) -> Code {
    result.expect_err("an error").code()
}

#[tokio::test]
async fn an_object_is_written_read_changed_and_removed_over_grpc() {
    let service = Service::start().await;
    let mut client = Client::of(&service).await;
    let bucket = client.make_bucket().await;
    assert_eq!((bucket.name.as_str(), bucket.location_type.as_str()), (BUCKET, "multi-region"));
    let one = client.write("one", "hello ").await.expect("an object");
    assert_eq!((one.bucket.as_str(), one.size, one.metageneration), (BUCKET, 6, 1));
    assert_eq!(one.checksums.and_then(|sums| sums.crc32c), Some(crc32c::crc32c(b"hello ")));
    client.write("two", "world").await.expect("an object");

    let source = |name: &str| SourceObject { name: name.to_owned(), ..Default::default() };
    let whole = ComposeObjectRequest {
        destination: spec("whole").resource,
        source_objects: vec![source("one"), source("two")],
        ..Default::default()
    };
    let whole: Object = client.ask("ComposeObject", whole).await.expect("a composed object");
    assert_eq!((whole.size, whole.component_count, whole.content_type.as_str()), (11, 2, "text/plain"));
    assert_eq!(client.read("whole", 0, 0).await.as_deref().ok(), Some("hello world"));
    assert_eq!(client.read("whole", -5, 3).await.as_deref().ok(), Some("wor"));
    assert_eq!(code(client.read("whole", 12, 0).await), Code::OutOfRange);
    // The same object over the JSON API, on the same port.
    let media = service.object("GET", "/storage/v1/b/a-bucket/o/whole?alt=media", "").await;
    assert_eq!((media.status, media.body.as_str()), (200, "hello world"));

    let mut changed = whole.clone();
    changed.metadata = [("other".to_owned(), "w".to_owned())].into();
    let update =
        UpdateObjectRequest { object: Some(changed), update_mask: mask("metadata"), ..Default::default() };
    let updated: Object = client.ask("UpdateObject", update).await.expect("a change");
    assert_eq!(updated.metadata.into_keys().collect::<Vec<_>>(), ["other"]);
    assert_eq!((updated.content_type.as_str(), updated.metageneration), ("text/plain", 2));

    let list = ListObjectsRequest { parent: BUCKET.to_owned(), page_size: 2, ..Default::default() };
    let page: ListObjectsResponse = client.ask("ListObjects", list.clone()).await.expect("a page");
    assert_eq!(page.objects.iter().map(|object| object.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    let rest = ListObjectsRequest { page_token: page.next_page_token, ..list };
    let rest: ListObjectsResponse = client.ask("ListObjects", rest).await.expect("a page");
    assert_eq!((rest.objects.len(), rest.next_page_token.as_str()), (1, ""));

    let moved = MoveObjectRequest {
        bucket: BUCKET.to_owned(),
        source_object: "two".to_owned(),
        destination_object: "three".to_owned(),
        ..Default::default()
    };
    let moved: Object = client.ask("MoveObject", moved).await.expect("a move");
    assert_eq!((moved.name.as_str(), moved.size), ("three", 5));
    let copy = RewriteObjectRequest {
        source_bucket: BUCKET.to_owned(),
        source_object: "three".to_owned(),
        destination_bucket: BUCKET.to_owned(),
        destination_name: "four".to_owned(),
        ..Default::default()
    };
    let copy: RewriteResponse = client.ask("RewriteObject", copy).await.expect("a copy");
    assert!(copy.done && copy.object_size == 5);
    assert_eq!(copy.resource.map(|object| object.name).as_deref(), Some("four"));
    for name in ["one", "three", "four", "whole"] {
        let delete =
            DeleteObjectRequest { bucket: BUCKET.to_owned(), object: name.to_owned(), ..Default::default() };
        let _: Empty = client.ask("DeleteObject", delete).await.expect("a deletion");
    }
    let delete = DeleteBucketRequest { name: BUCKET.to_owned(), ..Default::default() };
    let _: Empty = client.ask("DeleteBucket", delete.clone()).await.expect("the end of the bucket");
    assert_eq!(code(client.ask::<_, Empty>("DeleteBucket", delete).await), Code::NotFound);
}

#[tokio::test]
async fn a_reply_has_the_checksum_and_the_hold_that_its_mask_names() {
    let service = Service::start().await;
    let mut client = Client::of(&service).await;
    client.make_bucket().await;
    let written = client.write("o", "hello").await.expect("an object");
    assert_eq!(written.event_based_hold, Some(false));
    let get = |read_mask| GetObjectRequest {
        bucket: BUCKET.to_owned(),
        object: "o".to_owned(),
        read_mask,
        ..Default::default()
    };
    let whole: Object = client.ask("GetObject", get(None)).await.expect("the object");
    assert_eq!(whole.event_based_hold, Some(false));
    let sums = whole.checksums.expect("checksums");
    let seen: Object = client.ask("GetObject", get(mask("checksums.crc32c"))).await.expect("the object");
    let only = ObjectChecksums { crc32c: sums.crc32c, ..Default::default() };
    assert_eq!((seen.name.as_str(), seen.checksums, seen.event_based_hold), ("", Some(only), None));
    let seen: Object = client.ask("GetObject", get(mask("checksums.md5_hash"))).await.expect("the object");
    assert_eq!(seen.checksums, Some(ObjectChecksums { crc32c: None, ..sums }));
    let seen: Object = client.ask("GetObject", get(mask("event_based_hold"))).await.expect("the object");
    assert_eq!((seen.name.as_str(), seen.event_based_hold), ("", Some(false)));
}

#[tokio::test]
async fn the_bucket_of_logs_has_a_longer_name_over_grpc() {
    let service = Service::start().await;
    let mut client = Client::of(&service).await;
    client.make_bucket().await;
    let update = |log_bucket: &str| UpdateBucketRequest {
        bucket: Some(Bucket {
            name: BUCKET.to_owned(),
            logging: Some(bucket::Logging {
                log_bucket: log_bucket.to_owned(),
                log_object_prefix: "a-".to_owned(),
            }),
            ..Default::default()
        }),
        update_mask: mask("logging"),
        ..Default::default()
    };
    let updated: Bucket =
        client.ask("UpdateBucket", update("projects/_/buckets/logs")).await.expect("a change");
    assert_eq!(updated.logging.map(|logging| logging.log_bucket).as_deref(), Some("projects/_/buckets/logs"));
    let bucket = service.object_json("GET", "/storage/v1/b/a-bucket", "").await;
    assert_eq!(bucket["logging"], serde_json::json!({"logBucket": "logs", "logObjectPrefix": "a-"}));
    assert_eq!(code(client.ask::<_, Bucket>("UpdateBucket", update("logs")).await), Code::InvalidArgument);
}

#[tokio::test]
async fn ranges_are_read_on_one_stream() {
    let service = Service::start().await;
    let mut client = Client::of(&service).await;
    client.make_bucket().await;
    client.write("o", "0123456789").await.expect("an object");
    let range = |read_id, read_offset, read_length| ReadRange { read_offset, read_length, read_id };
    let open = |ranges: &[ReadRange]| BidiReadObjectRequest {
        read_object_spec: Some(BidiReadObjectSpec {
            bucket: BUCKET.to_owned(),
            object: "o".to_owned(),
            read_handle: Some(BidiReadHandle { handle: "of another stream".into() }),
            ..Default::default()
        }),
        read_ranges: ranges.to_vec(),
    };
    let later =
        BidiReadObjectRequest { read_ranges: vec![range(3, -2, 0), range(4, 10, 5)], ..Default::default() };
    let messages = vec![open(&[range(1, 0, 4), range(2, 8, 100)]), later];
    let answers: Vec<BidiReadObjectResponse> =
        client.stream("BidiReadObject", messages).await.expect("ranges");
    assert_eq!(answers[0].metadata.as_ref().map(|object| object.size), Some(10));
    assert!(answers[0].read_handle.as_ref().is_some_and(|handle| !handle.handle.is_empty()));
    let found: Vec<(i64, i64, String, bool)> = answers
        .into_iter()
        .flat_map(|answer| answer.object_data_ranges)
        .map(|data| {
            let range = data.read_range.expect("a range");
            let content = data.checksummed_data.unwrap_or_default().content;
            (range.read_id, range.read_offset, String::from_utf8_lossy(&content).into_owned(), data.range_end)
        })
        .collect();
    let expected = [(1, 0, "0123"), (2, 8, "89"), (3, 8, "89"), (4, 10, "")];
    assert_eq!(found, expected.map(|(id, offset, text)| (id, offset, text.to_owned(), true)));
    let beyond =
        client.stream::<_, BidiReadObjectResponse>("BidiReadObject", vec![open(&[range(7, 11, 0)])]).await;
    let beyond = beyond.expect_err("the object has 10 bytes");
    assert_eq!(beyond.code(), Code::OutOfRange);
    let status = rangehold_protocol::object::grpc::messages::Status::decode(beyond.details());
    let details = status.expect("a status").details;
    let refused = BidiReadObjectError::decode(details[0].value.clone()).expect("an error of ranges");
    assert_eq!(refused.read_range_errors[0].read_id, 7);
    let none =
        client.stream::<_, BidiReadObjectResponse>("BidiReadObject", vec![BidiReadObjectRequest::default()]);
    assert_eq!(code(none.await), Code::InvalidArgument);
}

#[tokio::test]
async fn an_upload_goes_on_in_another_stream() {
    use bidi_write_object_request::{Data, FirstMessage};
    let service = Service::start().await;
    let mut client = Client::of(&service).await;
    client.make_bucket().await;
    let begin = StartResumableWriteRequest { write_object_spec: Some(spec("o")), ..Default::default() };
    let begun: StartResumableWriteResponse =
        client.ask("StartResumableWrite", begin.clone()).await.expect("an id");
    let id = begun.upload_id;
    let first = BidiWriteObjectRequest {
        first_message: Some(FirstMessage::UploadId(id.clone())),
        data: Some(Data::ChecksummedData(data("hello "))),
        flush: true,
        state_lookup: true,
        ..Default::default()
    };
    let answers: Vec<BidiWriteObjectResponse> =
        client.stream("BidiWriteObject", vec![first.clone()]).await.expect("answers");
    assert_eq!(answers[0].write_status, Some(WriteStatus::PersistedSize(6)));
    let query = QueryWriteStatusRequest { upload_id: id.clone(), ..Default::default() };
    let status: QueryWriteStatusResponse =
        client.ask("QueryWriteStatus", query.clone()).await.expect("a status");
    assert_eq!(status.write_status, Some(query_write_status_response::WriteStatus::PersistedSize(6)));
    let last = BidiWriteObjectRequest {
        write_offset: 6,
        data: Some(Data::ChecksummedData(data("world"))),
        flush: false,
        state_lookup: false,
        finish_write: true,
        ..first.clone()
    };
    let answers: Vec<BidiWriteObjectResponse> =
        client.stream("BidiWriteObject", vec![last]).await.expect("the object");
    assert!(matches!(&answers[0].write_status, Some(WriteStatus::Resource(object)) if object.size == 11));
    let status: QueryWriteStatusResponse = client.ask("QueryWriteStatus", query).await.expect("a status");
    assert!(matches!(status.write_status, Some(query_write_status_response::WriteStatus::Resource(_))));
    assert_eq!(client.read("o", 0, 0).await.as_deref().ok(), Some("hello world"));

    let begun: StartResumableWriteResponse = client.ask("StartResumableWrite", begin).await.expect("an id");
    let cancel = CancelResumableWriteRequest { upload_id: begun.upload_id.clone() };
    let _: CancelResumableWriteResponse = client.ask("CancelResumableWrite", cancel).await.expect("the end");
    let gone =
        BidiWriteObjectRequest { first_message: Some(FirstMessage::UploadId(begun.upload_id)), ..first };
    assert_eq!(
        code(client.stream::<_, BidiWriteObjectResponse>("BidiWriteObject", vec![gone]).await),
        Code::Cancelled
    );
}

#[tokio::test]
async fn buckets_policies_layouts_and_folders_are_served() {
    let service = Service::start().await;
    let mut client = Client::of(&service).await;
    let bucket = client.make_bucket().await;
    let labels = [("team".to_owned(), "a".to_owned())].into();
    let changed = Bucket { labels, versioning: Some(bucket::Versioning { enabled: true }), ..bucket.clone() };
    for path in ["labels.team", "versioning"] {
        let update = UpdateBucketRequest {
            bucket: Some(changed.clone()),
            update_mask: mask(path),
            ..Default::default()
        };
        let _: Bucket = client.ask("UpdateBucket", update).await.expect("a change");
    }
    let get = GetBucketRequest { name: BUCKET.to_owned(), ..Default::default() };
    let seen: Bucket = client.ask("GetBucket", get.clone()).await.expect("the bucket");
    assert_eq!((seen.labels, seen.versioning, seen.metageneration), (changed.labels, changed.versioning, 3));
    let stale = GetBucketRequest { if_metageneration_match: Some(1), ..get };
    assert_eq!(code(client.ask::<_, Bucket>("GetBucket", stale).await), Code::FailedPrecondition);
    let list = ListBucketsRequest { parent: "projects/test-project".to_owned(), ..Default::default() };
    let list: ListBucketsResponse = client.ask("ListBuckets", list).await.expect("a list");
    assert_eq!(list.buckets.len(), 1);

    let get = GetIamPolicyRequest { resource: BUCKET.to_owned(), ..Default::default() };
    let policy: Policy = client.ask("GetIamPolicy", get).await.expect("a policy");
    let set = |policy: &Policy| SetIamPolicyRequest {
        resource: BUCKET.to_owned(),
        policy: Some(policy.clone()),
        ..Default::default()
    };
    let newer: Policy = client.ask("SetIamPolicy", set(&policy)).await.expect("a newer policy");
    assert_ne!(newer.etag, policy.etag);
    assert_eq!(code(client.ask::<_, Policy>("SetIamPolicy", set(&policy)).await), Code::FailedPrecondition);
    let permissions = vec!["storage.objects.get".to_owned()];
    let test = TestIamPermissionsRequest { resource: BUCKET.to_owned(), permissions: permissions.clone() };
    let held: TestIamPermissionsResponse = client.ask("TestIamPermissions", test).await.expect("permissions");
    assert_eq!(held.permissions, permissions);

    let name = format!("{BUCKET}/storageLayout");
    let layout = GetStorageLayoutRequest { name, ..Default::default() };
    let layout: StorageLayout = client.ask("GetStorageLayout", layout).await.expect("a layout");
    assert_eq!(layout.location, "US");
    let folder = CreateManagedFolderRequest {
        parent: BUCKET.to_owned(),
        managed_folder_id: "f".to_owned(),
        ..Default::default()
    };
    let folder: ManagedFolder = client.ask("CreateManagedFolder", folder).await.expect("a folder");
    assert_eq!(folder.name, format!("{BUCKET}/managedFolders/f/"));
    let lock = LockBucketRetentionPolicyRequest { bucket: BUCKET.to_owned(), if_metageneration_match: 9 };
    assert_eq!(
        code(client.ask::<_, Bucket>("LockBucketRetentionPolicy", lock).await),
        Code::FailedPrecondition
    );
}

#[tokio::test]
async fn folders_are_made_listed_renamed_and_deleted_over_grpc() {
    let service = Service::start().await;
    let mut client = Client::of(&service).await;
    let tree = Bucket {
        project: "projects/test-project".to_owned(),
        hierarchical_namespace: Some(bucket::HierarchicalNamespace { enabled: true }),
        iam_config: Some(bucket::IamConfig {
            uniform_bucket_level_access: Some(bucket::iam_config::UniformBucketLevelAccess {
                enabled: true,
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let create = CreateBucketRequest {
        parent: "projects/_".to_owned(),
        bucket: Some(tree),
        bucket_id: "a-bucket".to_owned(),
        ..Default::default()
    };
    let _: Bucket = client.ask("CreateBucket", create).await.expect("a bucket");
    client.write("a/b/o", "hello").await.expect("an object");
    let name = |folder: &str| format!("{BUCKET}/folders/{folder}");
    let create = |folder_id: &str, recursive| CreateFolderRequest {
        parent: BUCKET.to_owned(),
        folder_id: folder_id.to_owned(),
        recursive,
        ..Default::default()
    };
    let made: Folder = client.ask("CreateFolder", create("x/y/", true)).await.expect("a folder");
    assert_eq!((made.name, made.metageneration, made.create_time.is_some()), (name("x/y/"), 1, true));
    for (wrong, expected) in [
        (create("x/y/", true), Code::AlreadyExists),
        (create("n/z/", false), Code::FailedPrecondition),
        (create("", false), Code::InvalidArgument),
    ] {
        assert_eq!(code(client.ask::<_, Folder>("CreateFolder", wrong).await), expected);
    }
    let list = |page_size, page_token: &str, delimiter: &str| ListFoldersRequest {
        parent: BUCKET.to_owned(),
        page_size,
        page_token: page_token.to_owned(),
        delimiter: delimiter.to_owned(),
        ..Default::default()
    };
    let names = |page: &ListFoldersResponse| -> Vec<String> {
        page.folders.iter().map(|folder| folder.name.clone()).collect()
    };
    let first: ListFoldersResponse = client.ask("ListFolders", list(3, "", "")).await.expect("a page");
    assert_eq!(names(&first), ["a/", "a/b/", "x/"].map(name));
    let next = list(3, &first.next_page_token, "");
    let last: ListFoldersResponse = client.ask("ListFolders", next).await.expect("a page");
    assert_eq!((names(&last), last.next_page_token.as_str()), (vec![name("x/y/")], ""));
    let top: ListFoldersResponse = client.ask("ListFolders", list(0, "", "/")).await.expect("a page");
    assert_eq!(names(&top), ["a/", "x/"].map(name));

    let rename = |if_metageneration_match| RenameFolderRequest {
        name: name("a/"),
        destination_folder_id: "x/a/".to_owned(),
        if_metageneration_match,
        ..Default::default()
    };
    let stale = client.ask::<_, Operation>("RenameFolder", rename(Some(7))).await;
    assert_eq!(code(stale), Code::FailedPrecondition);
    let renamed: Operation = client.ask("RenameFolder", rename(Some(1))).await.expect("an operation");
    assert!(renamed.done && renamed.name.starts_with(&format!("{BUCKET}/operations/")), "{renamed:?}");
    let Some(operation::Result::Response(response)) = renamed.result else { panic!("no response") };
    assert_eq!(response.type_url, "type.googleapis.com/google.storage.control.v2.Folder");
    assert_eq!(Folder::decode(response.value).expect("a folder").name, name("x/a/"));
    let metadata = renamed.metadata.expect("metadata");
    assert_eq!(metadata.type_url, "type.googleapis.com/google.storage.control.v2.RenameFolderMetadata");
    let metadata = RenameFolderMetadata::decode(metadata.value).expect("metadata");
    let ends = metadata.common_metadata.expect("common metadata").end_time;
    assert_eq!((metadata.source_folder_id.as_str(), ends.is_some()), ("a/", true));
    assert_eq!(client.read("x/a/b/o", 0, 0).await.expect("bytes"), "hello");
    assert_eq!(code(client.ask::<_, Operation>("RenameFolder", rename(None)).await), Code::NotFound);

    let get = GetFolderRequest { name: name("x/a/"), ..Default::default() };
    let got: Folder = client.ask("GetFolder", get).await.expect("the folder");
    assert_eq!(got.metageneration, 2);
    let delete = |folder: &str| DeleteFolderRequest { name: name(folder), ..Default::default() };
    let full = client.ask::<_, Empty>("DeleteFolder", delete("x/a/b/")).await;
    assert_eq!(code(full), Code::FailedPrecondition);
    let _: Empty = client.ask("DeleteFolder", delete("x/y/")).await.expect("it is empty");
    let all = DeleteFolderRecursiveRequest { name: name("x/"), ..Default::default() };
    let gone: Operation = client.ask("DeleteFolderRecursive", all).await.expect("an operation");
    assert!(gone.done, "{gone:?}");
    let none: ListFoldersResponse = client.ask("ListFolders", list(0, "", "")).await.expect("a page");
    assert_eq!(names(&none), [""; 0]);
}

#[tokio::test]
async fn bad_calls_end_with_the_code_of_their_error() {
    let service = Service::start().await;
    let mut client = Client::of(&service).await;
    client.make_bucket().await;
    let object = |bucket: &str, object: &str| GetObjectRequest {
        bucket: bucket.to_owned(),
        object: object.to_owned(),
        ..Default::default()
    };
    for (asked, expected) in [
        (object(BUCKET, "o"), Code::NotFound),
        (object("projects/_/buckets/other", "o"), Code::NotFound),
        (object("a-bucket", "o"), Code::InvalidArgument),
        (object(BUCKET, ""), Code::InvalidArgument),
        (GetObjectRequest { generation: -1, ..object(BUCKET, "o") }, Code::InvalidArgument),
    ] {
        assert_eq!(code(client.ask::<_, Object>("GetObject", asked.clone()).await), expected, "{asked:?}");
    }
    assert_eq!(code(client.ask::<_, Empty>("CreateAnywhereCache", Empty {}).await), Code::Unimplemented);
    assert_eq!(code(client.ask::<_, Empty>("NoSuchMethod", Empty {}).await), Code::Unimplemented);
    let again = CreateBucketRequest {
        parent: "projects/test-project".to_owned(),
        bucket_id: "a-bucket".to_owned(),
        ..Default::default()
    };
    assert_eq!(code(client.ask::<_, Bucket>("CreateBucket", again).await), Code::AlreadyExists);

    let write = |spec, data: ChecksummedData, write_offset, finish_write| WriteObjectRequest {
        first_message: Some(write_object_request::FirstMessage::WriteObjectSpec(spec)),
        data: Some(write_object_request::Data::ChecksummedData(data)),
        write_offset,
        finish_write,
        ..Default::default()
    };
    let wrong = ChecksummedData { crc32c: Some(1), ..data("hello") };
    let new = WriteObjectSpec { if_generation_match: Some(5), ..spec("o") };
    let appendable = WriteObjectSpec { appendable: Some(true), ..spec("o") };
    for (asked, expected) in [
        (write(spec("o"), wrong, 0, true), Code::InvalidArgument),
        (write(spec("o"), data("hello"), 3, true), Code::OutOfRange),
        (write(spec("o"), data("hello"), -1, true), Code::InvalidArgument),
        (write(spec("o"), data("hello"), 0, false), Code::InvalidArgument),
        (write(new, data("hello"), 0, true), Code::FailedPrecondition),
        (write(appendable, data("hello"), 0, true), Code::Unimplemented),
    ] {
        let answer = client.stream::<_, WriteObjectResponse>("WriteObject", vec![asked.clone()]).await;
        assert_eq!(code(answer), expected, "{asked:?}");
    }
    assert_eq!(code(client.read("o", 0, 0).await), Code::NotFound);
}
