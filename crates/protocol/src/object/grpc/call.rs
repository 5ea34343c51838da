//! A call as the JSON API has it.
//!
//! Each message of gRPC that asks for something is an operation of the JSON API in another form. So a message becomes
//! a [`JsonCall`]: the operation, its names, parameters, headers and body. The server carries it out as it carries out a request
//! of the JSON API, with the same permissions and judges, and the resource that comes back becomes a message again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::messages::{CommonObjectRequestParams, FieldMask};
use crate::object::error::ObjectError;
use crate::object::merge::typed;
use crate::object::request::{Call, Operation, Query};

/// A call as the JSON API has it.
#[derive(Debug, PartialEq)]
pub struct JsonCall {
    /// The operation, and the names in its path.
    pub call: Call,
    /// The HTTP method, for operations that have several.
    pub method: &'static str,
    /// The parameters.
    pub query: Query,
    /// Headers that say more than parameters can: keys, and what is uploaded.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Map<String, Value>,
    /// Members of the body that replace older ones as wholes. Others are merged, as a patch is.
    pub whole: Vec<String>,
}

/// What the JSON API answered.
#[derive(Debug, Default)]
pub struct JsonReply {
    /// HTTP status.
    pub status: u16,
    /// The body, if there is one.
    pub body: Value,
    /// The header `X-GUploader-UploadID`.
    pub upload: Option<String>,
    /// The header `Range`: the bytes that an upload has stored.
    pub range: Option<String>,
}

/// A message that asks for something, and is answered by one message.
pub trait Ask: Message + Default {
    /// The message that answers it.
    type Reply: Message;

    /// The call of the JSON API that does the same. Fails if the message is malformed in itself.
    fn call(&self) -> Result<JsonCall, ObjectError>;

    /// The message for the reply of that call.
    fn reply(&self, reply: JsonReply) -> Result<Self::Reply, ObjectError>;
}

impl JsonCall {
    /// A call without names.
    pub(super) fn new(operation: Operation) -> Self {
        let call = Call {
            operation,
            bucket: String::new(),
            object: String::new(),
            to_bucket: String::new(),
            to_object: String::new(),
            id: String::new(),
        };
        let (query, headers) = (Query::default(), Vec::new());
        Self { call, method: "POST", query, headers, body: Map::new(), whole: Vec::new() }
    }

    /// A call about a bucket.
    pub(super) fn on_bucket(operation: Operation, bucket: &str) -> Self {
        let mut call = Self::new(operation);
        bucket.clone_into(&mut call.call.bucket);
        call
    }

    /// A call about an object. Fails without a name.
    pub(super) fn on_object(operation: Operation, bucket: &str, object: &str) -> Result<Self, ObjectError> {
        if object.is_empty() {
            return Err(ObjectError::required("object"));
        }
        let mut call = Self::on_bucket(operation, bucket);
        object.clone_into(&mut call.call.object);
        Ok(call)
    }

    /// Adds a parameter, unless it is empty.
    pub(super) fn text(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.query.push(name, value);
        }
        self
    }

    /// Adds a parameter that is a number, unless it is 0.
    pub(super) fn number(self, name: &str, value: i64) -> Self {
        self.maybe(name, Some(value).filter(|value| *value != 0))
    }

    /// Adds a parameter that is a number, if it is given.
    pub(super) fn maybe(mut self, name: &str, value: Option<i64>) -> Self {
        if let Some(value) = value {
            self.query.push(name, &value.to_string());
        }
        self
    }

    /// Adds a parameter that is a switch, if it is on.
    pub(super) fn flag(self, name: &str, value: bool) -> Self {
        self.text(name, if value { "true" } else { "" })
    }

    /// Adds the conditions on a generation: match, not match; and on its metageneration: match, not match.
    pub(super) fn conditions(self, values: [Option<i64>; 4]) -> Self {
        let names = [
            "ifGenerationMatch",
            "ifGenerationNotMatch",
            "ifMetagenerationMatch",
            "ifMetagenerationNotMatch",
        ];
        names.into_iter().zip(values).fold(self, |call, (name, value)| call.maybe(name, value))
    }

    /// The same conditions on the source of a copy or move.
    pub(super) fn source_conditions(self, values: [Option<i64>; 4]) -> Self {
        let names = [
            "ifSourceGenerationMatch",
            "ifSourceGenerationNotMatch",
            "ifSourceMetagenerationMatch",
            "ifSourceMetagenerationNotMatch",
        ];
        names.into_iter().zip(values).fold(self, |call, (name, value)| call.maybe(name, value))
    }

    /// Adds the client's key.
    pub(super) fn key(self, key: Option<&CommonObjectRequestParams>) -> Self {
        match key {
            None => self,
            Some(key) => self.header("x-goog-encryption-algorithm", &key.encryption_algorithm).secret(
                "x-goog-encryption-key",
                "x-goog-encryption-key-sha256",
                &key.encryption_key_bytes,
                &key.encryption_key_sha256_bytes,
            ),
        }
    }

    /// Adds a key and its checksum, unless they are empty.
    pub(super) fn secret(self, name: &'static str, sum_name: &'static str, key: &[u8], sum: &[u8]) -> Self {
        self.header(name, &STANDARD.encode(key)).header(sum_name, &STANDARD.encode(sum))
    }

    /// Adds a header, unless it is empty.
    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        if !value.is_empty() {
            self.headers.push((name, value.to_owned()));
        }
        self
    }

    /// Sets the body.
    pub(super) fn with_body(mut self, body: Map<String, Value>) -> Self {
        self.body = body;
        self
    }
}

/// A message as the members of its form in JSON.
pub(super) fn members(message: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(message) {
        Ok(Value::Object(members)) => members,
        other => unreachable!("a message is an object in JSON, and not {other:?}"),
    }
}

/// A message from its form in JSON, which this server wrote.
pub(super) fn message<M: DeserializeOwned>(value: Value) -> Result<M, ObjectError> {
    let read = match value {
        Value::Object(members) => typed(members),
        other => typed(Map::from_iter([("reply".to_owned(), other)])),
    };
    read.map_err(|error| ObjectError::damaged(error.message))
}

/// The elements of a list in a reply.
pub(super) fn items(body: &mut Value, name: &str) -> Vec<Value> {
    match body.get_mut(name).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// The text of a reply's member; empty if it is absent.
pub(super) fn text_of(body: &Value, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Reads which fields a reply has, and asks for them.
pub(super) fn seen(call: JsonCall, mask: Option<&FieldMask>) -> JsonCall {
    let projection = super::mask::Seen::of(mask).projection();
    call.text("projection", projection)
}
