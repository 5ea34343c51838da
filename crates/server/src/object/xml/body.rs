//! Bodies of requests: bytes of objects, and documents.
//!
//! A signer can demand that the body has a certain SHA-256. Clients of Amazon S3 can also send it in chunks with signatures of
//! their own (see [`chunked`](rangehold_protocol::object::chunked)), and announce checksums in headers or behind the body. What
//! is announced is checked here; `x-goog-hash` and `Content-MD5` of an object are checked by its [`Receiver`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use rangehold_protocol::object::checksum::{AmazonChecksum, Checksum, Crc32c, Running, mismatch};
use rangehold_protocol::object::chunked::{Chunks, Signatures};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::limits::XML_BYTES_MAX;
use rangehold_protocol::object::xml::headers;
use sha2::{Digest, Sha256};

use super::XmlApi;
use crate::object::exchange::{Exchange, RequestBody, check_length};
use crate::object::failure::Failure;
use crate::object::faults::FaultMet;
use crate::object::payload::Receiver;

const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
/// How the value begins that announces a body in chunks.
const STREAMING: &str = "STREAMING-";

/// A body while its form is taken off and its sums are made.
struct Reading {
    chunks: Option<Chunks>,
    sums: Sums,
}

/// The sums of a body that somebody asks for.
struct Sums {
    /// The SHA-256 that the signer demands, in hexadecimal digits.
    payload: Option<String>,
    /// What the client announced: the checksum, and its value if it was in a header.
    announced: Vec<(AmazonChecksum, Option<String>)>,
    sha256: Option<Sha256>,
    crc32: Option<crc32fast::Hasher>,
    crc32c: Crc32c,
}

impl XmlApi<'_> {
    /// Receives the bytes of an object.
    pub(super) async fn receive(
        &self,
        exchange: &Exchange<'_>,
        body: &mut RequestBody,
        receiver: &mut Receiver,
    ) -> Result<(), Failure> {
        check_length(exchange)?;
        let mut reading = Reading::new(exchange, self.options.access.is_open())?;
        let mut met = FaultMet::default();
        while let Some(piece) = self.piece(exchange, body).await? {
            reading.push(&piece.bytes);
            match reading.chunks {
                None => {
                    let bytes = piece.hold(piece.bytes.clone());
                    self.take_bytes(exchange, &mut met, receiver, bytes).await?;
                }
                Some(_) => {
                    while let Some(bytes) = reading.next()? {
                        self.take_bytes(exchange, &mut met, receiver, piece.hold(bytes)).await?;
                    }
                }
            }
        }
        Ok(reading.finish(exchange)?)
    }

    /// All of a document.
    pub(super) async fn document(
        &self,
        exchange: &Exchange<'_>,
        body: &mut RequestBody,
    ) -> Result<Bytes, Failure> {
        let reading = Reading::new(exchange, self.options.access.is_open())?;
        let sent = self.whole_body(exchange, body, XML_BYTES_MAX).await?;
        unwrapped(exchange, reading, sent)
    }

    /// The same, if the headers of the request describe an object. Then `Content-Encoding` is of that object, and the document
    /// comes as it is.
    pub(super) async fn document_about_object(
        &self,
        exchange: &Exchange<'_>,
        body: &mut RequestBody,
    ) -> Result<Bytes, Failure> {
        let reading = Reading::new(exchange, self.options.access.is_open())?;
        let sent = self.sent_body(exchange, body, XML_BYTES_MAX).await?;
        unwrapped(exchange, reading, sent)
    }
}

/// A document without the form in which it was sent, after its checksums were compared.
fn unwrapped(exchange: &Exchange<'_>, mut reading: Reading, sent: Bytes) -> Result<Bytes, Failure> {
    reading.push(&sent);
    let document = match reading.chunks {
        None => sent,
        Some(_) => {
            let mut whole = Vec::with_capacity(sent.len());
            while let Some(bytes) = reading.next()? {
                whole.extend_from_slice(&bytes);
            }
            whole.into()
        }
    };
    reading.finish(exchange)?;
    let texts: Vec<_> = exchange.texts().collect();
    let announced = headers::announced(texts.iter().map(|(name, value)| (name.as_ref(), *value)))?;
    let mut sums = Running::default();
    sums.update(&document);
    announced.check(sums.crc32c(), Some(sums.md5()))?;
    Ok(document)
}

impl Reading {
    fn new(exchange: &Exchange<'_>, is_open: bool) -> Result<Self, ObjectError> {
        let payload = exchange.header("x-goog-content-sha256");
        let coding = exchange.header("content-encoding").unwrap_or_default();
        let is_chunked = coding.split(',').any(|coding| coding.trim() == "aws-chunked");
        let streaming = payload.and_then(|payload| payload.strip_prefix(STREAMING));
        let chunks = match (streaming, &exchange.chunks) {
            (None, _) if !is_chunked => None,
            (None | Some("UNSIGNED-PAYLOAD-TRAILER"), _) => Some(Chunks::new(Signatures::Unchecked)),
            (Some("AWS4-HMAC-SHA256-PAYLOAD" | "AWS4-HMAC-SHA256-PAYLOAD-TRAILER"), signer) => match signer {
                Some(signer) => Some(Chunks::new(Signatures::Checked(Box::new(signer.clone())))),
                // A signer that is not known is believed there, and so are its chunks.
                None if is_open => Some(Chunks::new(Signatures::Unchecked)),
                None => {
                    let message =
                        "Signed chunks need a request that is signed with an HMAC key in its header.";
                    return Err(ObjectError::new(ErrorKind::Invalid, message));
                }
            },
            (Some(other), _) => {
                let what = format!("A body with 'x-amz-content-sha256: {STREAMING}{other}'");
                return Err(ObjectError::not_implemented(&what));
            }
        };
        Ok(Self { chunks, sums: Sums::new(exchange, payload) })
    }

    fn push(&mut self, piece: &[u8]) {
        match &mut self.chunks {
            None => self.sums.update(piece),
            Some(chunks) => chunks.push(piece),
        }
    }

    /// The next bytes of a body in chunks.
    fn next(&mut self) -> Result<Option<Bytes>, ObjectError> {
        let bytes = self.chunks.as_mut().map_or(Ok(None), Chunks::read)?;
        if let Some(bytes) = &bytes {
            self.sums.update(bytes);
        }
        Ok(bytes)
    }

    fn finish(self, exchange: &Exchange<'_>) -> Result<(), ObjectError> {
        let mut trailer = Vec::new();
        if let Some(chunks) = self.chunks {
            let length = exchange.header("x-goog-decoded-content-length");
            trailer = chunks.finish(length.and_then(|length| length.parse().ok()))?;
        }
        self.sums.check(&trailer)
    }
}

impl Sums {
    fn new(exchange: &Exchange<'_>, payload: Option<&str>) -> Self {
        let later = exchange.header("x-goog-trailer").unwrap_or_default().to_ascii_lowercase();
        let is_later =
            |name: &str| later.split(',').any(|one| one.trim() == format!("x-amz-checksum-{name}"));
        let announced = AmazonChecksum::ALL.into_iter().filter_map(|sum| {
            let name = sum.name();
            let value = exchange.header(&format!("x-goog-checksum-{name}")).map(str::to_owned);
            (value.is_some() || is_later(name)).then_some((sum, value))
        });
        let announced: Vec<_> = announced.collect();
        let wants = |sum: AmazonChecksum| announced.iter().any(|(wanted, _)| *wanted == sum);
        let payload = payload.filter(|text| *text != UNSIGNED && !text.starts_with(STREAMING));
        Self {
            sha256: (payload.is_some() || wants(AmazonChecksum::Sha256)).then(Sha256::new),
            crc32: wants(AmazonChecksum::Crc32).then(crc32fast::Hasher::new),
            crc32c: Crc32c::default(),
            payload: payload.map(str::to_owned),
            announced,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        if let Some(sum) = &mut self.sha256 {
            sum.update(bytes);
        }
        if let Some(sum) = &mut self.crc32 {
            sum.update(bytes);
        }
        if self.announced.iter().any(|(sum, _)| *sum == AmazonChecksum::Crc32c) {
            self.crc32c = self.crc32c.append(bytes);
        }
    }

    fn check(self, trailer: &[(String, String)]) -> Result<(), ObjectError> {
        let sha256 = self.sha256.map(|sum| sum.finalize().to_vec()).unwrap_or_default();
        if let Some(announced) = &self.payload {
            compare(Checksum::Signed, announced.to_ascii_lowercase(), const_hex::encode(&sha256))?;
        }
        let crc32 = self.crc32.map(|sum| sum.finalize().to_be_bytes()).unwrap_or_default();
        for (sum, value) in self.announced {
            let header = format!("x-amz-checksum-{}", sum.name());
            let in_trailer =
                trailer.iter().find(|(given, _)| *given == header).map(|(_, value)| value.clone());
            let value = value.or(in_trailer).ok_or_else(|| ObjectError::required(&header))?;
            let found = match sum {
                AmazonChecksum::Crc32 => STANDARD.encode(crc32),
                AmazonChecksum::Crc32c => self.crc32c.text(),
                AmazonChecksum::Sha256 => STANDARD.encode(&sha256),
            };
            compare(Checksum::Amazon(sum), value, found)?;
        }
        Ok(())
    }
}

fn compare(sum: Checksum, announced: String, found: String) -> Result<(), ObjectError> {
    if announced == found { Ok(()) } else { Err(mismatch(sum, &announced, &found)) }
}
