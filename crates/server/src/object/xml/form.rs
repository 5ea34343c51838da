//! Uploads by a form, with a policy that the owner of the bucket signed.
//!
//! The fields come before the file, so the policy is checked before the first byte of the file is stored. Fields after the
//! file are ignored.

use bytes::{Bytes, BytesMut};
use rangehold_map::capacity::Usage;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::generation::{Draft, Generation};
use rangehold_protocol::object::link::segment;
use rangehold_protocol::object::multipart::{Boundary, Event, MultipartError, Parser};
use rangehold_protocol::object::name::check_object;
use rangehold_protocol::object::policy::Policy;
use rangehold_protocol::object::signed::Claim;
use rangehold_protocol::object::write::Name;
use rangehold_protocol::object::xml::{headers, parts};

use super::{XmlApi, written, xml_reply};
use crate::object::encryption::key_among;
use crate::object::exchange::{Exchange, RequestBody};
use crate::object::failure::Failure;
use crate::object::faults::FaultMet;
use crate::object::located::Wants;
use crate::object::payload::Receiver;
use crate::object::reply::Reply;

/// Bytes of all fields of a form together, without the file.
const FIELDS_BYTES_MAX: usize = 128 * 1024;
/// What stands in `key` for the name of the file.
const FILE_NAME: &str = "${filename}";

/// The fields `x-goog-...` that are known, besides the metadata. A form with another one is refused, also if its policy
/// names it.
const GOOG_FIELDS: [&str; 11] = [
    "x-goog-acl",
    "x-goog-algorithm",
    "x-goog-credential",
    "x-goog-custom-time",
    "x-goog-date",
    "x-goog-encryption-algorithm",
    "x-goog-encryption-key",
    "x-goog-encryption-key-sha256",
    "x-goog-hash",
    "x-goog-signature",
    "x-goog-storage-class",
];

/// A form while it arrives.
struct Form {
    parser: Parser,
    /// Names and values of the fields that are complete.
    fields: Vec<(String, String)>,
    /// The field that arrives.
    open: Option<(String, BytesMut)>,
    bytes: usize,
    /// Whether the file has begun, and whether it has ended.
    file: (bool, bool),
}

/// What comes next in a form.
enum Found {
    /// The file begins, with the name that it had on the visitor's machine, and its content type.
    File(Option<String>, Option<String>),
    /// Some of its bytes.
    Data(Bytes),
}

/// A file that is received.
struct Receiving {
    bucket: Bucket,
    name: String,
    fields: Vec<(String, String)>,
    policy: Option<Policy>,
    /// The SHA-256 of the key with which the object is encrypted.
    customer_key: Option<[u8; 32]>,
    receiver: Receiver,
}

impl XmlApi<'_> {
    pub(super) async fn form(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let content_type = exchange.header("content-type").unwrap_or_default();
        let boundary = Boundary::from_content_type(content_type, "form-data").map_err(malformed)?;
        let mut form = Form {
            parser: Parser::new(boundary),
            fields: Vec::new(),
            open: None,
            bytes: 0,
            file: (false, false),
        };
        let mut receiving: Option<Receiving> = None;
        let mut met = FaultMet::default();
        while let Some(piece) = self.piece(exchange, body).await? {
            form.parser.push(piece.bytes.clone());
            while let Some(found) = form.next()? {
                match (found, receiving.as_mut()) {
                    (Found::File(file_name, content_type), _) => {
                        let fields = std::mem::take(&mut form.fields);
                        let file = (file_name, content_type);
                        receiving = Some(self.begin_file(exchange, bucket, fields, file).await?);
                    }
                    (Found::Data(bytes), Some(receiving)) => {
                        receiving.check_length(bytes.len())?;
                        let bytes = piece.hold(bytes);
                        self.take_bytes(exchange, &mut met, &mut receiving.receiver, bytes).await?;
                    }
                    (Found::Data(_), None) => {}
                }
            }
        }
        form.parser.finish().map_err(malformed)?;
        let receiving = receiving.ok_or_else(|| invalid("The form has no field 'file'."))?;
        self.end_file(exchange, receiving).await
    }

    /// Checks the fields of a form whose file begins. The bucket is empty if a field has to name it.
    async fn begin_file(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        mut fields: Vec<(String, String)>,
        (file_name, content_type): (Option<String>, Option<String>),
    ) -> Result<Receiving, Failure> {
        check_names(&fields)?;
        let named = if bucket.is_empty() { value(&fields, "bucket") } else { Some(bucket) };
        let named = named.ok_or_else(|| ObjectError::required("bucket"))?;
        let mut bucket = self.bucket_for(exchange, named).await?;
        let mut named_signer = None;
        let policy = match value(&fields, "policy") {
            Some(encoded) => {
                let claim = Claim::of_form(|name| value(&fields, name).map(str::to_owned), encoded)
                    .map_err(ObjectError::from)?;
                let (signer, _) = self.signer(&claim, exchange.now).await?;
                named_signer = Some(signer);
                let policy = Policy::parse(encoded).map_err(ObjectError::from)?;
                policy.check(&bucket.name, &fields, exchange.now).map_err(ObjectError::from)?;
                Some(policy)
            }
            None if self.options.access.is_open() => None,
            None => {
                let message = "A form without a policy may not upload to this server.";
                return Err(ObjectError::new(ErrorKind::Forbidden, message).into());
            }
        };
        let key = value(&fields, "key").ok_or_else(|| ObjectError::required("key"))?;
        let name = key.replace(FILE_NAME, file_name.as_deref().unwrap_or_default());
        check_object(&name)?;
        if let Some(signer) = named_signer {
            self.permit_signer(exchange, &signer, &bucket, &name)?;
        }
        let customer_key = key_among("x-goog-encryption", |name| value(&fields, name))?;
        if let (None, Some(content_type)) = (value(&fields, "content-type"), content_type) {
            fields.push(("content-type".to_owned(), content_type));
        }
        self.admit_name(exchange, &bucket.name, &name, Usage::Write).await?;
        let name = self.located(&mut bucket, &name, Wants::New, exchange.deadline()).await?.into_owned();
        let receiver = self.receiver(exchange, &bucket, &name);
        Ok(Receiving { bucket, name, fields, policy, customer_key, receiver })
    }

    /// Writes the object.
    async fn end_file(&self, exchange: &Exchange<'_>, receiving: Receiving) -> Result<Reply, Failure> {
        let Receiving { bucket, name, fields, policy, customer_key, receiver } = receiving;
        let bytes = receiver.bytes();
        if let Some(policy) = policy.filter(|policy| !policy.length().contains(&bytes)) {
            receiver.give_up().await;
            return Err(ObjectError::from(policy.wrong_length(bytes)).into());
        }
        let pairs = || fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let draft = Draft { customer_key, ..headers::draft(pairs(), exchange.now.into())? };
        let received = receiver.finish(&[headers::announced(pairs())?]).await?;
        let to = Name { bucket: &bucket, name: &name };
        let made = self.create(exchange, to, &draft, &Conditions::default(), received).await?;
        Ok(answer(exchange, &bucket, bucket.shown(&name), &fields, &made))
    }
}

impl Receiving {
    /// Refuses so many more bytes, if the policy does not allow a file of that length.
    fn check_length(&self, more: usize) -> Result<(), ObjectError> {
        let total = self.receiver.bytes() + more as u64;
        match self.policy.as_ref().filter(|policy| total > *policy.length().end()) {
            Some(policy) => Err(policy.wrong_length(total).into()),
            None => Ok(()),
        }
    }
}

impl Form {
    fn next(&mut self) -> Result<Option<Found>, Failure> {
        while let Some(event) = self.parser.event().map_err(malformed)? {
            match event {
                Event::Part(head) => {
                    self.end_field()?;
                    if self.file.0 {
                        self.file.1 = true;
                        continue;
                    }
                    let name =
                        head.field_name().ok_or_else(|| invalid("A field of the form has no name."))?;
                    if name.eq_ignore_ascii_case("file") {
                        self.file.0 = true;
                        let content_type = head.content_type().map(str::to_owned);
                        return Ok(Some(Found::File(head.file_name(), content_type)));
                    }
                    self.open = Some((name, BytesMut::new()));
                }
                Event::Data(_) if self.file.1 => {}
                Event::Data(bytes) if self.file.0 => return Ok(Some(Found::Data(bytes))),
                Event::Data(bytes) => {
                    self.bytes += bytes.len();
                    if self.bytes > FIELDS_BYTES_MAX {
                        return Err(invalid(&format!(
                            "The fields of the form have more than {FIELDS_BYTES_MAX} bytes."
                        ))
                        .into());
                    }
                    if let Some((_, value)) = &mut self.open {
                        value.extend_from_slice(&bytes);
                    }
                }
                Event::End => self.end_field()?,
            }
        }
        Ok(None)
    }

    fn end_field(&mut self) -> Result<(), Failure> {
        if let Some((name, value)) = self.open.take() {
            let value = String::from_utf8(value.to_vec());
            let value = value.map_err(|_| invalid(&format!("The field '{name}' is not UTF-8.")))?;
            self.fields.push((name, value));
        }
        Ok(())
    }
}

/// The reply that the form asks for: a redirection, a status, or 204.
fn answer(
    exchange: &Exchange<'_>,
    bucket: &Bucket,
    name: &str,
    fields: &[(String, String)],
    made: &Generation,
) -> Reply {
    let location = format!("{}/{}/{}", exchange.base, segment(&bucket.name), segment(name));
    if let Some(target) = value(fields, "success_action_redirect") {
        let separator = if target.contains('?') { '&' } else { '?' };
        let (bucket, key, etag) = (segment(&bucket.name), segment(name), segment(&made.xml_etag()));
        let target = format!("{target}{separator}bucket={bucket}&key={key}&etag=%22{etag}%22");
        return written(303, made).header("Location", target);
    }
    match value(fields, "success_action_status") {
        Some("200") => written(200, made).header("Location", location),
        Some("201") => {
            let body = parts::posted(&location, &bucket.name, name, &made.xml_etag());
            xml_reply(201, body).header("Location", location)
        }
        _ => written(204, made).header("Location", location),
    }
}

/// Checks that the form has no field `x-goog-...` that is not known.
fn check_names(fields: &[(String, String)]) -> Result<(), ObjectError> {
    let is_known = |name: &str| {
        let name = name.to_ascii_lowercase();
        !name.starts_with("x-goog-")
            || name.starts_with("x-goog-meta-")
            || GOOG_FIELDS.contains(&name.as_str())
    };
    match fields.iter().find(|(name, _)| !is_known(name)) {
        None => Ok(()),
        Some((name, value)) => Err(ObjectError::invalid(name, value, "A form cannot have this field.")),
    }
}

fn value<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

fn invalid(message: &str) -> ObjectError {
    ObjectError::new(ErrorKind::Invalid, message)
}

fn malformed(error: MultipartError) -> ObjectError {
    invalid(&error.to_string())
}
