// Generated from messages.proto, which has the licence: Apache-2.0, Copyright Google LLC.
//! The messages, as `prost-build` writes them. `messages.proto` says where they come from, `README.md` how they are made again.

#![allow(missing_docs, reason = "the fields are those of Google's API, which documents them")]
#![allow(clippy::all, reason = "the file is generated")]

#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteBucketRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "2")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetBucketRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "2")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(message, optional, tag = "5")]
    pub read_mask: ::core::option::Option<FieldMask>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateBucketRequest {
    #[prost(string, tag = "1")]
    pub parent: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub bucket: ::core::option::Option<Bucket>,
    #[prost(string, tag = "3")]
    pub bucket_id: ::prost::alloc::string::String,
    #[prost(string, tag = "6")]
    pub predefined_acl: ::prost::alloc::string::String,
    #[prost(string, tag = "7")]
    pub predefined_default_object_acl: ::prost::alloc::string::String,
    #[prost(bool, tag = "9")]
    pub enable_object_retention: bool,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListBucketsRequest {
    #[prost(string, tag = "1")]
    pub parent: ::prost::alloc::string::String,
    #[prost(int32, tag = "2")]
    pub page_size: i32,
    #[prost(string, tag = "3")]
    pub page_token: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub prefix: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "5")]
    pub read_mask: ::core::option::Option<FieldMask>,
    #[prost(bool, tag = "9")]
    pub return_partial_success: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListBucketsResponse {
    #[prost(message, repeated, tag = "1")]
    pub buckets: ::prost::alloc::vec::Vec<Bucket>,
    #[prost(string, tag = "2")]
    pub next_page_token: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "3")]
    pub unreachable: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct LockBucketRetentionPolicyRequest {
    #[prost(string, tag = "1")]
    pub bucket: ::prost::alloc::string::String,
    #[prost(int64, tag = "2")]
    pub if_metageneration_match: i64,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateBucketRequest {
    #[prost(message, optional, tag = "1")]
    pub bucket: ::core::option::Option<Bucket>,
    #[prost(int64, optional, tag = "2")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(string, tag = "8")]
    pub predefined_acl: ::prost::alloc::string::String,
    #[prost(string, tag = "9")]
    pub predefined_default_object_acl: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "6")]
    pub update_mask: ::core::option::Option<FieldMask>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ComposeObjectRequest {
    #[prost(message, optional, tag = "1")]
    pub destination: ::core::option::Option<Object>,
    #[prost(message, repeated, tag = "2")]
    pub source_objects: ::prost::alloc::vec::Vec<compose_object_request::SourceObject>,
    #[prost(string, tag = "9")]
    pub destination_predefined_acl: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "4")]
    pub if_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(string, tag = "6")]
    pub kms_key: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "7")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
    #[prost(message, optional, tag = "10")]
    pub object_checksums: ::core::option::Option<ObjectChecksums>,
    #[prost(bool, optional, tag = "11")]
    pub delete_source_objects: ::core::option::Option<bool>,
}
/// Nested message and enum types in `ComposeObjectRequest`.
pub mod compose_object_request {
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct SourceObject {
        #[prost(string, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub name: ::prost::alloc::string::String,
        #[prost(int64, tag = "2")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        #[serde(with = "crate::object::grpc::json::int64")]
        pub generation: i64,
        #[prost(message, optional, tag = "3")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub object_preconditions: ::core::option::Option<
            source_object::ObjectPreconditions,
        >,
    }
    /// Nested message and enum types in `SourceObject`.
    pub mod source_object {
        #[derive(::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
        pub struct ObjectPreconditions {
            #[prost(int64, optional, tag = "1")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub if_generation_match: ::core::option::Option<i64>,
        }
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteObjectRequest {
    #[prost(string, tag = "1")]
    pub bucket: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub object: ::prost::alloc::string::String,
    #[prost(int64, tag = "4")]
    pub generation: i64,
    #[prost(int64, optional, tag = "5")]
    pub if_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "6")]
    pub if_generation_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "7")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "8")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(message, optional, tag = "10")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RestoreObjectRequest {
    #[prost(string, tag = "1")]
    pub bucket: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub object: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    pub generation: i64,
    #[prost(string, tag = "11")]
    pub restore_token: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "4")]
    pub if_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub if_generation_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "6")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "7")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(bool, optional, tag = "9")]
    pub copy_source_acl: ::core::option::Option<bool>,
    #[prost(message, optional, tag = "8")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CancelResumableWriteRequest {
    #[prost(string, tag = "1")]
    pub upload_id: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CancelResumableWriteResponse {}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ReadObjectRequest {
    #[prost(string, tag = "1")]
    pub bucket: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub object: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    pub generation: i64,
    #[prost(int64, tag = "4")]
    pub read_offset: i64,
    #[prost(int64, tag = "5")]
    pub read_limit: i64,
    #[prost(int64, optional, tag = "6")]
    pub if_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "7")]
    pub if_generation_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "8")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "9")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(message, optional, tag = "10")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
    #[prost(message, optional, tag = "12")]
    pub read_mask: ::core::option::Option<FieldMask>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetObjectRequest {
    #[prost(string, tag = "1")]
    pub bucket: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub object: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    pub generation: i64,
    #[prost(bool, optional, tag = "11")]
    pub soft_deleted: ::core::option::Option<bool>,
    #[prost(int64, optional, tag = "4")]
    pub if_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub if_generation_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "6")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "7")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(message, optional, tag = "8")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
    #[prost(message, optional, tag = "10")]
    pub read_mask: ::core::option::Option<FieldMask>,
    #[prost(string, tag = "12")]
    pub restore_token: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReadObjectResponse {
    #[prost(message, optional, tag = "1")]
    pub checksummed_data: ::core::option::Option<ChecksummedData>,
    #[prost(message, optional, tag = "2")]
    pub object_checksums: ::core::option::Option<ObjectChecksums>,
    #[prost(message, optional, tag = "3")]
    pub content_range: ::core::option::Option<ContentRange>,
    #[prost(message, optional, tag = "4")]
    pub metadata: ::core::option::Option<Object>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct BidiReadObjectSpec {
    #[prost(string, tag = "1")]
    pub bucket: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub object: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    pub generation: i64,
    #[prost(int64, optional, tag = "4")]
    pub if_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub if_generation_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "6")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "7")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(message, optional, tag = "8")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
    #[prost(message, optional, tag = "12")]
    pub read_mask: ::core::option::Option<FieldMask>,
    #[prost(message, optional, tag = "13")]
    pub read_handle: ::core::option::Option<BidiReadHandle>,
    #[prost(string, optional, tag = "14")]
    pub routing_token: ::core::option::Option<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BidiReadObjectRequest {
    #[prost(message, optional, tag = "1")]
    pub read_object_spec: ::core::option::Option<BidiReadObjectSpec>,
    #[prost(message, repeated, tag = "8")]
    pub read_ranges: ::prost::alloc::vec::Vec<ReadRange>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BidiReadObjectResponse {
    #[prost(message, repeated, tag = "6")]
    pub object_data_ranges: ::prost::alloc::vec::Vec<ObjectRangeData>,
    #[prost(message, optional, tag = "4")]
    pub metadata: ::core::option::Option<Object>,
    #[prost(message, optional, tag = "7")]
    pub read_handle: ::core::option::Option<BidiReadHandle>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BidiReadObjectError {
    #[prost(message, repeated, tag = "1")]
    pub read_range_errors: ::prost::alloc::vec::Vec<ReadRangeError>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReadRangeError {
    #[prost(int64, tag = "1")]
    pub read_id: i64,
    #[prost(message, optional, tag = "2")]
    pub status: ::core::option::Option<Status>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ReadRange {
    #[prost(int64, tag = "1")]
    pub read_offset: i64,
    #[prost(int64, tag = "2")]
    pub read_length: i64,
    #[prost(int64, tag = "3")]
    pub read_id: i64,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ObjectRangeData {
    #[prost(message, optional, tag = "1")]
    pub checksummed_data: ::core::option::Option<ChecksummedData>,
    #[prost(message, optional, tag = "2")]
    pub read_range: ::core::option::Option<ReadRange>,
    #[prost(bool, tag = "3")]
    pub range_end: bool,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct BidiReadHandle {
    #[prost(bytes = "bytes", tag = "1")]
    pub handle: ::prost::bytes::Bytes,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct BidiWriteHandle {
    #[prost(bytes = "bytes", tag = "1")]
    pub handle: ::prost::bytes::Bytes,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct WriteObjectSpec {
    #[prost(message, optional, tag = "1")]
    pub resource: ::core::option::Option<Object>,
    #[prost(string, tag = "7")]
    pub predefined_acl: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "3")]
    pub if_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "4")]
    pub if_generation_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "6")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "8")]
    pub object_size: ::core::option::Option<i64>,
    #[prost(bool, optional, tag = "9")]
    pub appendable: ::core::option::Option<bool>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct WriteObjectRequest {
    #[prost(int64, tag = "3")]
    pub write_offset: i64,
    #[prost(message, optional, tag = "6")]
    pub object_checksums: ::core::option::Option<ObjectChecksums>,
    #[prost(bool, tag = "7")]
    pub finish_write: bool,
    #[prost(message, optional, tag = "8")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
    #[prost(oneof = "write_object_request::FirstMessage", tags = "1, 2")]
    pub first_message: ::core::option::Option<write_object_request::FirstMessage>,
    #[prost(oneof = "write_object_request::Data", tags = "4")]
    pub data: ::core::option::Option<write_object_request::Data>,
}
/// Nested message and enum types in `WriteObjectRequest`.
pub mod write_object_request {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum FirstMessage {
        #[prost(string, tag = "1")]
        UploadId(::prost::alloc::string::String),
        #[prost(message, tag = "2")]
        WriteObjectSpec(super::WriteObjectSpec),
    }
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Oneof)]
    pub enum Data {
        #[prost(message, tag = "4")]
        ChecksummedData(super::ChecksummedData),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct WriteObjectResponse {
    #[prost(message, optional, tag = "3")]
    pub persisted_data_checksums: ::core::option::Option<ObjectChecksums>,
    #[prost(oneof = "write_object_response::WriteStatus", tags = "1, 2")]
    pub write_status: ::core::option::Option<write_object_response::WriteStatus>,
}
/// Nested message and enum types in `WriteObjectResponse`.
pub mod write_object_response {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum WriteStatus {
        #[prost(int64, tag = "1")]
        PersistedSize(i64),
        #[prost(message, tag = "2")]
        Resource(super::Object),
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AppendObjectSpec {
    #[prost(string, tag = "1")]
    pub bucket: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub object: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    pub generation: i64,
    #[prost(int64, optional, tag = "4")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(string, optional, tag = "6")]
    pub routing_token: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(message, optional, tag = "7")]
    pub write_handle: ::core::option::Option<BidiWriteHandle>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BidiWriteObjectRequest {
    #[prost(int64, tag = "3")]
    pub write_offset: i64,
    #[prost(message, optional, tag = "6")]
    pub object_checksums: ::core::option::Option<ObjectChecksums>,
    #[prost(bool, tag = "7")]
    pub state_lookup: bool,
    #[prost(bool, tag = "8")]
    pub flush: bool,
    #[prost(bool, tag = "9")]
    pub finish_write: bool,
    #[prost(message, optional, tag = "10")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
    #[prost(oneof = "bidi_write_object_request::FirstMessage", tags = "1, 2, 11")]
    pub first_message: ::core::option::Option<bidi_write_object_request::FirstMessage>,
    #[prost(oneof = "bidi_write_object_request::Data", tags = "4")]
    pub data: ::core::option::Option<bidi_write_object_request::Data>,
}
/// Nested message and enum types in `BidiWriteObjectRequest`.
pub mod bidi_write_object_request {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum FirstMessage {
        #[prost(string, tag = "1")]
        UploadId(::prost::alloc::string::String),
        #[prost(message, tag = "2")]
        WriteObjectSpec(super::WriteObjectSpec),
        #[prost(message, tag = "11")]
        AppendObjectSpec(super::AppendObjectSpec),
    }
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Oneof)]
    pub enum Data {
        #[prost(message, tag = "4")]
        ChecksummedData(super::ChecksummedData),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BidiWriteObjectResponse {
    #[prost(message, optional, tag = "4")]
    pub persisted_data_checksums: ::core::option::Option<ObjectChecksums>,
    #[prost(message, optional, tag = "3")]
    pub write_handle: ::core::option::Option<BidiWriteHandle>,
    #[prost(oneof = "bidi_write_object_response::WriteStatus", tags = "1, 2")]
    pub write_status: ::core::option::Option<bidi_write_object_response::WriteStatus>,
}
/// Nested message and enum types in `BidiWriteObjectResponse`.
pub mod bidi_write_object_response {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum WriteStatus {
        #[prost(int64, tag = "1")]
        PersistedSize(i64),
        #[prost(message, tag = "2")]
        Resource(super::Object),
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListObjectsRequest {
    #[prost(string, tag = "1")]
    pub parent: ::prost::alloc::string::String,
    #[prost(int32, tag = "2")]
    pub page_size: i32,
    #[prost(string, tag = "3")]
    pub page_token: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub delimiter: ::prost::alloc::string::String,
    #[prost(bool, tag = "5")]
    pub include_trailing_delimiter: bool,
    #[prost(string, tag = "6")]
    pub prefix: ::prost::alloc::string::String,
    #[prost(bool, tag = "7")]
    pub versions: bool,
    #[prost(message, optional, tag = "8")]
    pub read_mask: ::core::option::Option<FieldMask>,
    #[prost(string, tag = "10")]
    pub lexicographic_start: ::prost::alloc::string::String,
    #[prost(string, tag = "11")]
    pub lexicographic_end: ::prost::alloc::string::String,
    #[prost(bool, tag = "12")]
    pub soft_deleted: bool,
    #[prost(bool, tag = "13")]
    pub include_folders_as_prefixes: bool,
    #[prost(string, tag = "14")]
    pub match_glob: ::prost::alloc::string::String,
    #[prost(string, tag = "15")]
    pub filter: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct QueryWriteStatusRequest {
    #[prost(string, tag = "1")]
    pub upload_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct QueryWriteStatusResponse {
    #[prost(message, optional, tag = "3")]
    pub persisted_data_checksums: ::core::option::Option<ObjectChecksums>,
    #[prost(oneof = "query_write_status_response::WriteStatus", tags = "1, 2")]
    pub write_status: ::core::option::Option<query_write_status_response::WriteStatus>,
}
/// Nested message and enum types in `QueryWriteStatusResponse`.
pub mod query_write_status_response {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum WriteStatus {
        #[prost(int64, tag = "1")]
        PersistedSize(i64),
        #[prost(message, tag = "2")]
        Resource(super::Object),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RewriteObjectRequest {
    #[prost(string, tag = "24")]
    pub destination_name: ::prost::alloc::string::String,
    #[prost(string, tag = "25")]
    pub destination_bucket: ::prost::alloc::string::String,
    #[prost(string, tag = "27")]
    pub destination_kms_key: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "1")]
    pub destination: ::core::option::Option<Object>,
    #[prost(string, tag = "2")]
    pub source_bucket: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub source_object: ::prost::alloc::string::String,
    #[prost(int64, tag = "4")]
    pub source_generation: i64,
    #[prost(string, tag = "5")]
    pub rewrite_token: ::prost::alloc::string::String,
    #[prost(string, tag = "28")]
    pub destination_predefined_acl: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "7")]
    pub if_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "8")]
    pub if_generation_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "9")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "10")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "11")]
    pub if_source_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "12")]
    pub if_source_generation_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "13")]
    pub if_source_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "14")]
    pub if_source_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(int64, tag = "15")]
    pub max_bytes_rewritten_per_call: i64,
    #[prost(string, tag = "16")]
    pub copy_source_encryption_algorithm: ::prost::alloc::string::String,
    #[prost(bytes = "bytes", tag = "21")]
    pub copy_source_encryption_key_bytes: ::prost::bytes::Bytes,
    #[prost(bytes = "bytes", tag = "22")]
    pub copy_source_encryption_key_sha256_bytes: ::prost::bytes::Bytes,
    #[prost(message, optional, tag = "19")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
    #[prost(message, optional, tag = "29")]
    pub object_checksums: ::core::option::Option<ObjectChecksums>,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RewriteResponse {
    #[prost(int64, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(with = "crate::object::grpc::json::int64")]
    pub total_bytes_rewritten: i64,
    #[prost(int64, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(with = "crate::object::grpc::json::int64")]
    pub object_size: i64,
    #[prost(bool, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub done: bool,
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub rewrite_token: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub resource: ::core::option::Option<Object>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct MoveObjectRequest {
    #[prost(string, tag = "1")]
    pub bucket: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub source_object: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub destination_object: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "4")]
    pub if_source_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub if_source_generation_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "6")]
    pub if_source_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "7")]
    pub if_source_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "8")]
    pub if_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "9")]
    pub if_generation_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "10")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "11")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StartResumableWriteRequest {
    #[prost(message, optional, tag = "1")]
    pub write_object_spec: ::core::option::Option<WriteObjectSpec>,
    #[prost(message, optional, tag = "3")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
    #[prost(message, optional, tag = "5")]
    pub object_checksums: ::core::option::Option<ObjectChecksums>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StartResumableWriteResponse {
    #[prost(string, tag = "1")]
    pub upload_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateObjectRequest {
    #[prost(message, optional, tag = "1")]
    pub object: ::core::option::Option<Object>,
    #[prost(int64, optional, tag = "2")]
    pub if_generation_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub if_generation_not_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "4")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(string, tag = "10")]
    pub predefined_acl: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "7")]
    pub update_mask: ::core::option::Option<FieldMask>,
    #[prost(message, optional, tag = "8")]
    pub common_object_request_params: ::core::option::Option<CommonObjectRequestParams>,
    #[prost(bool, tag = "11")]
    pub override_unlocked_retention: bool,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CommonObjectRequestParams {
    #[prost(string, tag = "1")]
    pub encryption_algorithm: ::prost::alloc::string::String,
    #[prost(bytes = "bytes", tag = "4")]
    pub encryption_key_bytes: ::prost::bytes::Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub encryption_key_sha256_bytes: ::prost::bytes::Bytes,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Bucket {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub bucket_id: ::prost::alloc::string::String,
    #[prost(string, tag = "29")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub etag: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub project: ::prost::alloc::string::String,
    #[prost(int64, tag = "4")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(with = "crate::object::grpc::json::int64")]
    pub metageneration: i64,
    #[prost(string, tag = "5")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub location: ::prost::alloc::string::String,
    #[prost(string, tag = "6")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub location_type: ::prost::alloc::string::String,
    #[prost(string, tag = "7")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub storage_class: ::prost::alloc::string::String,
    #[prost(string, tag = "27")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub rpo: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "8")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub acl: ::prost::alloc::vec::Vec<BucketAccessControl>,
    #[prost(message, repeated, tag = "9")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub default_object_acl: ::prost::alloc::vec::Vec<ObjectAccessControl>,
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub lifecycle: ::core::option::Option<bucket::Lifecycle>,
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(rename = "timeCreated")]
    pub create_time: ::core::option::Option<Timestamp>,
    #[prost(message, repeated, tag = "12")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub cors: ::prost::alloc::vec::Vec<bucket::Cors>,
    #[prost(message, optional, tag = "13")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(rename = "updated")]
    pub update_time: ::core::option::Option<Timestamp>,
    #[prost(bool, tag = "14")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub default_event_based_hold: bool,
    #[prost(map = "string, string", tag = "15")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub labels: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
    #[prost(message, optional, tag = "16")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub website: ::core::option::Option<bucket::Website>,
    #[prost(message, optional, tag = "17")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub versioning: ::core::option::Option<bucket::Versioning>,
    #[prost(message, optional, tag = "18")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub logging: ::core::option::Option<bucket::Logging>,
    #[prost(message, optional, tag = "19")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub owner: ::core::option::Option<Owner>,
    #[prost(message, optional, tag = "20")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub encryption: ::core::option::Option<bucket::Encryption>,
    #[prost(message, optional, tag = "21")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub billing: ::core::option::Option<bucket::Billing>,
    #[prost(message, optional, tag = "22")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub retention_policy: ::core::option::Option<bucket::RetentionPolicy>,
    #[prost(message, optional, tag = "23")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(rename = "iamConfiguration")]
    pub iam_config: ::core::option::Option<bucket::IamConfig>,
    #[prost(bool, tag = "25")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub satisfies_pzs: bool,
    #[prost(message, optional, tag = "26")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub custom_placement_config: ::core::option::Option<bucket::CustomPlacementConfig>,
    #[prost(message, optional, tag = "28")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub autoclass: ::core::option::Option<bucket::Autoclass>,
    #[prost(message, optional, tag = "32")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub hierarchical_namespace: ::core::option::Option<bucket::HierarchicalNamespace>,
    #[prost(message, optional, tag = "31")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub soft_delete_policy: ::core::option::Option<bucket::SoftDeletePolicy>,
    #[prost(message, optional, tag = "33")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub object_retention: ::core::option::Option<bucket::ObjectRetention>,
    #[prost(message, optional, tag = "38")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub ip_filter: ::core::option::Option<bucket::IpFilter>,
}
/// Nested message and enum types in `Bucket`.
pub mod bucket {
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct Billing {
        #[prost(bool, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub requester_pays: bool,
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct Cors {
        #[prost(string, repeated, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub origin: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
        #[prost(string, repeated, tag = "2")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub method: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
        #[prost(string, repeated, tag = "3")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub response_header: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
        #[prost(int32, tag = "4")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub max_age_seconds: i32,
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct Encryption {
        #[prost(string, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        #[serde(rename = "defaultKmsKeyName")]
        pub default_kms_key: ::prost::alloc::string::String,
        #[prost(message, optional, tag = "2")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub google_managed_encryption_enforcement_config: ::core::option::Option<
            encryption::GoogleManagedEncryptionEnforcementConfig,
        >,
        #[prost(message, optional, tag = "3")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub customer_managed_encryption_enforcement_config: ::core::option::Option<
            encryption::CustomerManagedEncryptionEnforcementConfig,
        >,
        #[prost(message, optional, tag = "4")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub customer_supplied_encryption_enforcement_config: ::core::option::Option<
            encryption::CustomerSuppliedEncryptionEnforcementConfig,
        >,
    }
    /// Nested message and enum types in `Encryption`.
    pub mod encryption {
        #[derive(::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
        pub struct GoogleManagedEncryptionEnforcementConfig {
            #[prost(string, optional, tag = "3")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub restriction_mode: ::core::option::Option<::prost::alloc::string::String>,
            #[prost(message, optional, tag = "2")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub effective_time: ::core::option::Option<super::super::Timestamp>,
        }
        #[derive(::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
        pub struct CustomerManagedEncryptionEnforcementConfig {
            #[prost(string, optional, tag = "3")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub restriction_mode: ::core::option::Option<::prost::alloc::string::String>,
            #[prost(message, optional, tag = "2")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub effective_time: ::core::option::Option<super::super::Timestamp>,
        }
        #[derive(::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
        pub struct CustomerSuppliedEncryptionEnforcementConfig {
            #[prost(string, optional, tag = "3")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub restriction_mode: ::core::option::Option<::prost::alloc::string::String>,
            #[prost(message, optional, tag = "2")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub effective_time: ::core::option::Option<super::super::Timestamp>,
        }
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct IamConfig {
        #[prost(message, optional, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub uniform_bucket_level_access: ::core::option::Option<
            iam_config::UniformBucketLevelAccess,
        >,
        #[prost(string, tag = "3")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub public_access_prevention: ::prost::alloc::string::String,
    }
    /// Nested message and enum types in `IamConfig`.
    pub mod iam_config {
        #[derive(::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
        pub struct UniformBucketLevelAccess {
            #[prost(bool, tag = "1")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub enabled: bool,
            #[prost(message, optional, tag = "2")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            #[serde(rename = "lockedTime")]
            pub lock_time: ::core::option::Option<super::super::Timestamp>,
        }
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, PartialEq, ::prost::Message)]
    pub struct Lifecycle {
        #[prost(message, repeated, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub rule: ::prost::alloc::vec::Vec<lifecycle::Rule>,
    }
    /// Nested message and enum types in `Lifecycle`.
    pub mod lifecycle {
        #[derive(::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
        pub struct Rule {
            #[prost(message, optional, tag = "1")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub action: ::core::option::Option<rule::Action>,
            #[prost(message, optional, tag = "2")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub condition: ::core::option::Option<rule::Condition>,
        }
        /// Nested message and enum types in `Rule`.
        pub mod rule {
            #[derive(::serde::Serialize, ::serde::Deserialize)]
            #[serde(default, rename_all = "camelCase")]
            #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
            pub struct Action {
                #[prost(string, tag = "1")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub r#type: ::prost::alloc::string::String,
                #[prost(string, tag = "2")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub storage_class: ::prost::alloc::string::String,
            }
            #[derive(::serde::Serialize, ::serde::Deserialize)]
            #[serde(default, rename_all = "camelCase")]
            #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
            pub struct Condition {
                #[prost(int32, optional, tag = "1")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                #[serde(rename = "age")]
                pub age_days: ::core::option::Option<i32>,
                #[prost(message, optional, tag = "2")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub created_before: ::core::option::Option<super::super::super::Date>,
                #[prost(bool, optional, tag = "3")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub is_live: ::core::option::Option<bool>,
                #[prost(int32, optional, tag = "4")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub num_newer_versions: ::core::option::Option<i32>,
                #[prost(string, repeated, tag = "5")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub matches_storage_class: ::prost::alloc::vec::Vec<
                    ::prost::alloc::string::String,
                >,
                #[prost(int32, optional, tag = "7")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub days_since_custom_time: ::core::option::Option<i32>,
                #[prost(message, optional, tag = "8")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub custom_time_before: ::core::option::Option<
                    super::super::super::Date,
                >,
                #[prost(int32, optional, tag = "9")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub days_since_noncurrent_time: ::core::option::Option<i32>,
                #[prost(message, optional, tag = "10")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub noncurrent_time_before: ::core::option::Option<
                    super::super::super::Date,
                >,
                #[prost(string, repeated, tag = "11")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub matches_prefix: ::prost::alloc::vec::Vec<
                    ::prost::alloc::string::String,
                >,
                #[prost(string, repeated, tag = "12")]
                #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
                pub matches_suffix: ::prost::alloc::vec::Vec<
                    ::prost::alloc::string::String,
                >,
            }
        }
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct Logging {
        #[prost(string, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub log_bucket: ::prost::alloc::string::String,
        #[prost(string, tag = "2")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub log_object_prefix: ::prost::alloc::string::String,
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct ObjectRetention {
        #[prost(bool, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        #[serde(rename = "mode", with = "crate::object::grpc::json::enabled")]
        pub enabled: bool,
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct RetentionPolicy {
        #[prost(message, optional, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub effective_time: ::core::option::Option<super::Timestamp>,
        #[prost(bool, tag = "2")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub is_locked: bool,
        #[prost(message, optional, tag = "4")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        #[serde(rename = "retentionPeriod")]
        pub retention_duration: ::core::option::Option<super::Duration>,
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct SoftDeletePolicy {
        #[prost(message, optional, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        #[serde(rename = "retentionDurationSeconds")]
        pub retention_duration: ::core::option::Option<super::Duration>,
        #[prost(message, optional, tag = "2")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub effective_time: ::core::option::Option<super::Timestamp>,
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct Versioning {
        #[prost(bool, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub enabled: bool,
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct Website {
        #[prost(string, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub main_page_suffix: ::prost::alloc::string::String,
        #[prost(string, tag = "2")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub not_found_page: ::prost::alloc::string::String,
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct CustomPlacementConfig {
        #[prost(string, repeated, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub data_locations: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct Autoclass {
        #[prost(bool, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub enabled: bool,
        #[prost(message, optional, tag = "2")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub toggle_time: ::core::option::Option<super::Timestamp>,
        #[prost(string, optional, tag = "3")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub terminal_storage_class: ::core::option::Option<
            ::prost::alloc::string::String,
        >,
        #[prost(message, optional, tag = "4")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub terminal_storage_class_update_time: ::core::option::Option<super::Timestamp>,
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, PartialEq, ::prost::Message)]
    pub struct IpFilter {
        #[prost(string, optional, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub mode: ::core::option::Option<::prost::alloc::string::String>,
        #[prost(message, optional, tag = "2")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub public_network_source: ::core::option::Option<
            ip_filter::PublicNetworkSource,
        >,
        #[prost(message, repeated, tag = "3")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub vpc_network_sources: ::prost::alloc::vec::Vec<ip_filter::VpcNetworkSource>,
        #[prost(bool, tag = "4")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub allow_cross_org_vpcs: bool,
        #[prost(bool, optional, tag = "5")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub allow_all_service_agent_access: ::core::option::Option<bool>,
    }
    /// Nested message and enum types in `IpFilter`.
    pub mod ip_filter {
        #[derive(::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
        pub struct PublicNetworkSource {
            #[prost(string, repeated, tag = "1")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub allowed_ip_cidr_ranges: ::prost::alloc::vec::Vec<
                ::prost::alloc::string::String,
            >,
        }
        #[derive(::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
        pub struct VpcNetworkSource {
            #[prost(string, optional, tag = "1")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub network: ::core::option::Option<::prost::alloc::string::String>,
            #[prost(string, repeated, tag = "2")]
            #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
            pub allowed_ip_cidr_ranges: ::prost::alloc::vec::Vec<
                ::prost::alloc::string::String,
            >,
        }
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct HierarchicalNamespace {
        #[prost(bool, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub enabled: bool,
    }
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct BucketAccessControl {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub role: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub entity: ::prost::alloc::string::String,
    #[prost(string, tag = "9")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub entity_alt: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub entity_id: ::prost::alloc::string::String,
    #[prost(string, tag = "8")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub etag: ::prost::alloc::string::String,
    #[prost(string, tag = "5")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub email: ::prost::alloc::string::String,
    #[prost(string, tag = "6")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub domain: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub project_team: ::core::option::Option<ProjectTeam>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ChecksummedData {
    #[prost(bytes = "bytes", tag = "1")]
    pub content: ::prost::bytes::Bytes,
    #[prost(fixed32, optional, tag = "2")]
    pub crc32c: ::core::option::Option<u32>,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ObjectChecksums {
    #[prost(fixed32, optional, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(with = "crate::object::grpc::json::crc32c")]
    pub crc32c: ::core::option::Option<u32>,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(with = "crate::object::grpc::json::base64")]
    pub md5_hash: ::prost::bytes::Bytes,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ObjectCustomContextPayload {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub value: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub create_time: ::core::option::Option<Timestamp>,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub update_time: ::core::option::Option<Timestamp>,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ObjectContexts {
    #[prost(map = "string, message", tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub custom: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ObjectCustomContextPayload,
    >,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CustomerEncryption {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub encryption_algorithm: ::prost::alloc::string::String,
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(rename = "keySha256", with = "crate::object::grpc::json::base64")]
    pub key_sha256_bytes: ::prost::bytes::Bytes,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Object {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub bucket: ::prost::alloc::string::String,
    #[prost(string, tag = "27")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub etag: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(with = "crate::object::grpc::json::int64")]
    pub generation: i64,
    #[prost(string, optional, tag = "35")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub restore_token: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(int64, tag = "4")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(with = "crate::object::grpc::json::int64")]
    pub metageneration: i64,
    #[prost(string, tag = "5")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub storage_class: ::prost::alloc::string::String,
    #[prost(int64, tag = "6")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(with = "crate::object::grpc::json::int64")]
    pub size: i64,
    #[prost(string, tag = "7")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub content_encoding: ::prost::alloc::string::String,
    #[prost(string, tag = "8")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub content_disposition: ::prost::alloc::string::String,
    #[prost(string, tag = "9")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub cache_control: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "10")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub acl: ::prost::alloc::vec::Vec<ObjectAccessControl>,
    #[prost(string, tag = "11")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub content_language: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "12")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(rename = "timeDeleted")]
    pub delete_time: ::core::option::Option<Timestamp>,
    #[prost(message, optional, tag = "36")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(rename = "timeFinalized")]
    pub finalize_time: ::core::option::Option<Timestamp>,
    #[prost(string, tag = "13")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub content_type: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "14")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(rename = "timeCreated")]
    pub create_time: ::core::option::Option<Timestamp>,
    #[prost(int32, tag = "15")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub component_count: i32,
    #[prost(message, optional, tag = "16")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(flatten)]
    pub checksums: ::core::option::Option<ObjectChecksums>,
    #[prost(message, optional, tag = "17")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(rename = "updated")]
    pub update_time: ::core::option::Option<Timestamp>,
    #[prost(string, tag = "18")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(rename = "kmsKeyName")]
    pub kms_key: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "19")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(rename = "timeStorageClassUpdated")]
    pub update_storage_class_time: ::core::option::Option<Timestamp>,
    #[prost(bool, tag = "20")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub temporary_hold: bool,
    #[prost(message, optional, tag = "21")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(rename = "retentionExpirationTime")]
    pub retention_expire_time: ::core::option::Option<Timestamp>,
    #[prost(map = "string, string", tag = "22")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub metadata: ::std::collections::HashMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
    #[prost(message, optional, tag = "38")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub contexts: ::core::option::Option<ObjectContexts>,
    #[prost(bool, optional, tag = "23")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub event_based_hold: ::core::option::Option<bool>,
    #[prost(message, optional, tag = "24")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub owner: ::core::option::Option<Owner>,
    #[prost(message, optional, tag = "25")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub customer_encryption: ::core::option::Option<CustomerEncryption>,
    #[prost(message, optional, tag = "26")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub custom_time: ::core::option::Option<Timestamp>,
    #[prost(message, optional, tag = "28")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub soft_delete_time: ::core::option::Option<Timestamp>,
    #[prost(message, optional, tag = "29")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub hard_delete_time: ::core::option::Option<Timestamp>,
    #[prost(message, optional, tag = "30")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub retention: ::core::option::Option<object::Retention>,
}
/// Nested message and enum types in `Object`.
pub mod object {
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct Retention {
        #[prost(enumeration = "retention::Mode", tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        #[serde(with = "crate::object::grpc::json::retention_mode")]
        pub mode: i32,
        #[prost(message, optional, tag = "2")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub retain_until_time: ::core::option::Option<super::Timestamp>,
    }
    /// Nested message and enum types in `Retention`.
    pub mod retention {
        #[derive(
            Clone,
            Copy,
            Debug,
            PartialEq,
            Eq,
            Hash,
            PartialOrd,
            Ord,
            ::prost::Enumeration
        )]
        #[repr(i32)]
        pub enum Mode {
            Unspecified = 0,
            Unlocked = 1,
            Locked = 2,
        }
        impl Mode {
            /// String value of the enum field names used in the ProtoBuf definition.
            ///
            /// The values are not transformed in any way and thus are considered stable
            /// (if the ProtoBuf definition does not change) and safe for programmatic use.
            pub fn as_str_name(&self) -> &'static str {
                match self {
                    Self::Unspecified => "MODE_UNSPECIFIED",
                    Self::Unlocked => "UNLOCKED",
                    Self::Locked => "LOCKED",
                }
            }
            /// Creates an enum from field names used in the ProtoBuf definition.
            pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
                match value {
                    "MODE_UNSPECIFIED" => Some(Self::Unspecified),
                    "UNLOCKED" => Some(Self::Unlocked),
                    "LOCKED" => Some(Self::Locked),
                    _ => None,
                }
            }
        }
    }
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ObjectAccessControl {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub role: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub entity: ::prost::alloc::string::String,
    #[prost(string, tag = "9")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub entity_alt: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub entity_id: ::prost::alloc::string::String,
    #[prost(string, tag = "8")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub etag: ::prost::alloc::string::String,
    #[prost(string, tag = "5")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub email: ::prost::alloc::string::String,
    #[prost(string, tag = "6")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub domain: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub project_team: ::core::option::Option<ProjectTeam>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListObjectsResponse {
    #[prost(message, repeated, tag = "1")]
    pub objects: ::prost::alloc::vec::Vec<Object>,
    #[prost(string, repeated, tag = "2")]
    pub prefixes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, tag = "3")]
    pub next_page_token: ::prost::alloc::string::String,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ProjectTeam {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub project_number: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub team: ::prost::alloc::string::String,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Owner {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub entity: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub entity_id: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ContentRange {
    #[prost(int64, tag = "1")]
    pub start: i64,
    #[prost(int64, tag = "2")]
    pub end: i64,
    #[prost(int64, tag = "3")]
    pub complete_length: i64,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StorageLayout {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub location: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub location_type: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub custom_placement_config: ::core::option::Option<
        storage_layout::CustomPlacementConfig,
    >,
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub hierarchical_namespace: ::core::option::Option<
        storage_layout::HierarchicalNamespace,
    >,
}
/// Nested message and enum types in `StorageLayout`.
pub mod storage_layout {
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct CustomPlacementConfig {
        #[prost(string, repeated, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub data_locations: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    }
    #[derive(::serde::Serialize, ::serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
    pub struct HierarchicalNamespace {
        #[prost(bool, tag = "1")]
        #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
        pub enabled: bool,
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetStorageLayoutRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub prefix: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub request_id: ::prost::alloc::string::String,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ManagedFolder {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub name: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(with = "crate::object::grpc::json::int64")]
    pub metageneration: i64,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub create_time: ::core::option::Option<Timestamp>,
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub update_time: ::core::option::Option<Timestamp>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CreateManagedFolderRequest {
    #[prost(string, tag = "1")]
    pub parent: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub managed_folder: ::core::option::Option<ManagedFolder>,
    #[prost(string, tag = "3")]
    pub managed_folder_id: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub request_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteManagedFolderRequest {
    #[prost(string, tag = "7")]
    pub name: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "3")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "4")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(bool, tag = "5")]
    pub allow_non_empty: bool,
    #[prost(string, tag = "6")]
    pub request_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetManagedFolderRequest {
    #[prost(string, tag = "6")]
    pub name: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "3")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "4")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(string, tag = "5")]
    pub request_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListManagedFoldersRequest {
    #[prost(string, tag = "1")]
    pub parent: ::prost::alloc::string::String,
    #[prost(int32, tag = "2")]
    pub page_size: i32,
    #[prost(string, tag = "3")]
    pub page_token: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub prefix: ::prost::alloc::string::String,
    #[prost(string, tag = "5")]
    pub request_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListManagedFoldersResponse {
    #[prost(message, repeated, tag = "1")]
    pub managed_folders: ::prost::alloc::vec::Vec<ManagedFolder>,
    #[prost(string, tag = "2")]
    pub next_page_token: ::prost::alloc::string::String,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Folder {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub name: ::prost::alloc::string::String,
    #[prost(int64, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(with = "crate::object::grpc::json::int64")]
    pub metageneration: i64,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub create_time: ::core::option::Option<Timestamp>,
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub update_time: ::core::option::Option<Timestamp>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetFolderRequest {
    #[prost(string, tag = "6")]
    pub name: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "3")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "4")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(string, tag = "5")]
    pub request_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CreateFolderRequest {
    #[prost(string, tag = "1")]
    pub parent: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub folder: ::core::option::Option<Folder>,
    #[prost(string, tag = "3")]
    pub folder_id: ::prost::alloc::string::String,
    #[prost(bool, tag = "4")]
    pub recursive: bool,
    #[prost(string, tag = "5")]
    pub request_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteFolderRequest {
    #[prost(string, tag = "6")]
    pub name: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "3")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "4")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(string, tag = "5")]
    pub request_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListFoldersRequest {
    #[prost(string, tag = "1")]
    pub parent: ::prost::alloc::string::String,
    #[prost(int32, tag = "2")]
    pub page_size: i32,
    #[prost(string, tag = "3")]
    pub page_token: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub prefix: ::prost::alloc::string::String,
    #[prost(string, tag = "8")]
    pub delimiter: ::prost::alloc::string::String,
    #[prost(string, tag = "6")]
    pub lexicographic_start: ::prost::alloc::string::String,
    #[prost(string, tag = "7")]
    pub lexicographic_end: ::prost::alloc::string::String,
    #[prost(string, tag = "9")]
    pub request_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListFoldersResponse {
    #[prost(message, repeated, tag = "1")]
    pub folders: ::prost::alloc::vec::Vec<Folder>,
    #[prost(string, tag = "2")]
    pub next_page_token: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RenameFolderRequest {
    #[prost(string, tag = "7")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "8")]
    pub destination_folder_id: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "4")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(string, tag = "6")]
    pub request_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteFolderRecursiveRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(int64, optional, tag = "2")]
    pub if_metageneration_match: ::core::option::Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub if_metageneration_not_match: ::core::option::Option<i64>,
    #[prost(string, tag = "4")]
    pub request_id: ::prost::alloc::string::String,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CommonLongRunningOperationMetadata {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub create_time: ::core::option::Option<Timestamp>,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub end_time: ::core::option::Option<Timestamp>,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub update_time: ::core::option::Option<Timestamp>,
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub r#type: ::prost::alloc::string::String,
    #[prost(bool, tag = "5")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub requested_cancellation: bool,
    #[prost(int32, tag = "6")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub progress_percent: i32,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RenameFolderMetadata {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub common_metadata: ::core::option::Option<CommonLongRunningOperationMetadata>,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub source_folder_id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub destination_folder_id: ::prost::alloc::string::String,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteFolderRecursiveMetadata {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub common_metadata: ::core::option::Option<CommonLongRunningOperationMetadata>,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub folder_id: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Operation {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub metadata: ::core::option::Option<Any>,
    #[prost(bool, tag = "3")]
    pub done: bool,
    #[prost(oneof = "operation::Result", tags = "4, 5")]
    pub result: ::core::option::Option<operation::Result>,
}
/// Nested message and enum types in `Operation`.
pub mod operation {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Result {
        #[prost(message, tag = "4")]
        Error(super::Status),
        #[prost(message, tag = "5")]
        Response(super::Any),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Status {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "3")]
    pub details: ::prost::alloc::vec::Vec<Any>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetIamPolicyRequest {
    #[prost(string, tag = "1")]
    pub resource: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub options: ::core::option::Option<GetPolicyOptions>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetIamPolicyRequest {
    #[prost(string, tag = "1")]
    pub resource: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub policy: ::core::option::Option<Policy>,
    #[prost(message, optional, tag = "3")]
    pub update_mask: ::core::option::Option<FieldMask>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TestIamPermissionsRequest {
    #[prost(string, tag = "1")]
    pub resource: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "2")]
    pub permissions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TestIamPermissionsResponse {
    #[prost(string, repeated, tag = "1")]
    pub permissions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Policy {
    #[prost(int32, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub version: i32,
    #[prost(message, repeated, tag = "4")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub bindings: ::prost::alloc::vec::Vec<Binding>,
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    #[serde(with = "crate::object::grpc::json::base64")]
    pub etag: ::prost::bytes::Bytes,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Binding {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub role: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub members: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub condition: ::core::option::Option<Expr>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetPolicyOptions {
    #[prost(int32, tag = "1")]
    pub requested_policy_version: i32,
}
#[derive(::serde::Serialize, ::serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Expr {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub expression: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub title: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "crate::object::grpc::json::is_default")]
    pub location: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Date {
    #[prost(int32, tag = "1")]
    pub year: i32,
    #[prost(int32, tag = "2")]
    pub month: i32,
    #[prost(int32, tag = "3")]
    pub day: i32,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Duration {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct FieldMask {
    #[prost(string, repeated, tag = "1")]
    pub paths: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Empty {}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: ::prost::alloc::string::String,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: ::prost::bytes::Bytes,
}
