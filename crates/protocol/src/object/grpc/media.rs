//! Bytes of objects: reads, and uploads in one stream or in several.

use std::ops::Range;

use prost::Message;

use super::call::{Ask, JsonCall, JsonReply};
use super::limits::CHUNK_BYTES_MAX;
use super::messages::{
    Any, BidiReadObjectError, BidiReadObjectSpec, CancelResumableWriteRequest, CancelResumableWriteResponse,
    ChecksummedData, CommonObjectRequestParams, ObjectChecksums, QueryWriteStatusRequest,
    QueryWriteStatusResponse, ReadObjectRequest, ReadRangeError, StartResumableWriteRequest,
    StartResumableWriteResponse, Status, WriteObjectSpec, query_write_status_response,
};
use super::name::{bucket_in, upload_in, upload_name};
use super::object::{object_of, settings};
use super::status::code_of;
use crate::object::checksum::{Announced, Crc32c, Md5};
use crate::object::error::{ErrorKind, ObjectError};
use crate::object::limits::OBJECT_BYTES_MAX;
use crate::object::request::Operation;

/// The call that writes the object. `upload_type` says how its bytes come.
pub fn write_call(
    spec: &WriteObjectSpec,
    upload_type: &str,
    key: Option<&CommonObjectRequestParams>,
    sums: Option<&ObjectChecksums>,
) -> Result<JsonCall, ObjectError> {
    if spec.appendable == Some(true) {
        return Err(ObjectError::not_implemented("An appendable upload"));
    }
    let object = spec.resource.as_ref().ok_or_else(|| ObjectError::required("resource"))?;
    let bucket = bucket_in("resource.bucket", &object.bucket)?;
    let mut object = object.clone();
    if let Some(sums) = sums {
        object.checksums = Some(sums.clone());
    }
    let mut body = settings(&object);
    body.insert("name".to_owned(), object.name.as_str().into());
    let mut call = JsonCall::on_bucket(Operation::ObjectsInsert, bucket)
        .text("uploadType", upload_type)
        .conditions([
            spec.if_generation_match,
            spec.if_generation_not_match,
            spec.if_metageneration_match,
            spec.if_metageneration_not_match,
        ])
        .text("predefinedAcl", &spec.predefined_acl)
        .text("projection", "noAcl")
        .key(key)
        .with_body(body);
    if let Some(size) = spec.object_size {
        if !u64::try_from(size).is_ok_and(|size| size <= OBJECT_BYTES_MAX) {
            return Err(ObjectError::invalid("object_size", size, "An object has at most 5 TiB."));
        }
        call = call.header("x-upload-content-length", &size.to_string());
    }
    Ok(call)
}

impl Ask for StartResumableWriteRequest {
    type Reply = StartResumableWriteResponse;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let spec =
            self.write_object_spec.as_ref().ok_or_else(|| ObjectError::required("write_object_spec"))?;
        let key = self.common_object_request_params.as_ref();
        write_call(spec, "resumable", key, self.object_checksums.as_ref())
    }

    fn reply(&self, reply: JsonReply) -> Result<StartResumableWriteResponse, ObjectError> {
        let bucket = self.call()?.call.bucket;
        let id = reply.upload.ok_or_else(|| ObjectError::damaged("an upload without an id"))?;
        Ok(StartResumableWriteResponse { upload_id: upload_name(&bucket, &id) })
    }
}

/// A call about an upload that was begun.
pub fn on_upload(upload: &str, method: &'static str) -> Result<JsonCall, ObjectError> {
    let (bucket, id) = upload_in(upload)?;
    let call = JsonCall::on_bucket(Operation::ObjectsInsert, bucket).text("upload_id", id);
    Ok(JsonCall { method, ..call })
}

impl Ask for QueryWriteStatusRequest {
    type Reply = QueryWriteStatusResponse;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        Ok(on_upload(&self.upload_id, "PUT")?
            .header("content-range", "bytes */*")
            .header("content-length", "0")
            .text("projection", "noAcl")
            .key(self.common_object_request_params.as_ref()))
    }

    fn reply(&self, reply: JsonReply) -> Result<QueryWriteStatusResponse, ObjectError> {
        use query_write_status_response::WriteStatus;
        let status = match reply.status {
            308 => {
                let last =
                    reply.range.as_ref().and_then(|range| range.rsplit_once('-')?.1.parse::<i64>().ok());
                WriteStatus::PersistedSize(last.map_or(0, |last| last + 1))
            }
            _ => WriteStatus::Resource(object_of(reply.body)?),
        };
        Ok(QueryWriteStatusResponse { persisted_data_checksums: None, write_status: Some(status) })
    }
}

impl Ask for CancelResumableWriteRequest {
    type Reply = CancelResumableWriteResponse;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        on_upload(&self.upload_id, "DELETE")
    }

    fn reply(&self, _: JsonReply) -> Result<CancelResumableWriteResponse, ObjectError> {
        Ok(CancelResumableWriteResponse::default())
    }
}

/// The call that reads the resource of an object, on the same conditions as its bytes.
pub fn read_call(asked: &ReadObjectRequest) -> Result<JsonCall, ObjectError> {
    let bucket = bucket_in("bucket", &asked.bucket)?;
    Ok(JsonCall::on_object(Operation::ObjectsGet, bucket, &asked.object)?
        .number("generation", asked.generation)
        .conditions([
            asked.if_generation_match,
            asked.if_generation_not_match,
            asked.if_metageneration_match,
            asked.if_metageneration_not_match,
        ])
        .key(asked.common_object_request_params.as_ref()))
}

/// As [`read_call`], for a stream of ranges.
pub fn open_call(spec: &BidiReadObjectSpec) -> Result<JsonCall, ObjectError> {
    read_call(&ReadObjectRequest {
        bucket: spec.bucket.clone(),
        object: spec.object.clone(),
        generation: spec.generation,
        if_generation_match: spec.if_generation_match,
        if_generation_not_match: spec.if_generation_not_match,
        if_metageneration_match: spec.if_metageneration_match,
        if_metageneration_not_match: spec.if_metageneration_not_match,
        common_object_request_params: spec.common_object_request_params.clone(),
        ..Default::default()
    })
}

/// The bytes of an object of `size` bytes from `offset`, or from so many before its end if that is negative; at most
/// `limit`, or all if that is 0. Fails if the object ends before `offset`, or `limit` is negative.
pub fn read_range(offset: i64, limit: i64, size: u64) -> Result<Range<u64>, ObjectError> {
    let shown = || format!("{limit} bytes from {offset}");
    let begin = match u64::try_from(offset) {
        Ok(begin) => begin,
        Err(_) => size.saturating_sub(offset.unsigned_abs()),
    };
    match u64::try_from(limit) {
        Ok(_) if begin > size => Err(ObjectError::range_not_satisfiable(&shown(), size)),
        Ok(0) => Ok(begin..size),
        Ok(limit) => Ok(begin..begin.saturating_add(limit).min(size)),
        Err(_) => Err(ObjectError::range_not_satisfiable(&shown(), size)),
    }
}

/// The status of a stream of ranges that ends because the range `read_id` cannot be read. Its details name the range.
pub fn range_refused(read_id: i64, error: &ObjectError) -> Status {
    let (code, message) = (code_of(error.kind) as i32, error.message.clone());
    let status = Status { code, message, details: Vec::new() };
    let refused = ReadRangeError { read_id, status: Some(status.clone()) };
    let detail = Any {
        type_url: "type.googleapis.com/google.storage.v2.BidiReadObjectError".to_owned(),
        value: BidiReadObjectError { read_range_errors: vec![refused] }.encode_to_vec().into(),
    };
    Status { details: vec![detail], ..status }
}

/// Bytes with their checksum.
pub fn checksummed(content: bytes::Bytes) -> ChecksummedData {
    debug_assert!(content.len() <= CHUNK_BYTES_MAX, "a chunk is cut before it is sent");
    ChecksummedData { crc32c: Some(Crc32c::of(&content).0), content }
}

/// Checks that bytes are those that the client sent.
pub fn check_data(data: &ChecksummedData) -> Result<(), ObjectError> {
    let announced = Announced { crc32c: data.crc32c.map(Crc32c), md5: None };
    announced.check(Crc32c::of(&data.content), None)
}

/// The checksums that a client announces for a whole object.
pub fn announced(sums: &ObjectChecksums) -> Result<Announced, ObjectError> {
    let md5 = match sums.md5_hash.len() {
        0 => None,
        _ => Some(<[u8; 16]>::try_from(&*sums.md5_hash).map_err(|_| {
            let message = format!("An MD5 has 16 bytes, and not {}.", sums.md5_hash.len());
            ObjectError::new(ErrorKind::Invalid, message).at("object_checksums.md5_hash")
        })?),
    };
    Ok(Announced { crc32c: sums.crc32c.map(Crc32c), md5: md5.map(Md5) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_object() {
        for (offset, limit, expected) in [
            (0, 0, Some(0..10)),
            (2, 3, Some(2..5)),
            (2, 100, Some(2..10)),
            (-5, 3, Some(5..8)),
            (-50, 0, Some(0..10)),
            (10, 0, Some(10..10)),
            (10, 5, Some(10..10)),
            (i64::MAX, 0, None),
            (i64::MIN, i64::MAX, Some(0..10)),
            (11, 0, None),
            (0, -1, None),
        ] {
            assert_eq!(read_range(offset, limit, 10).ok(), expected, "{offset} {limit}");
        }
    }
}
