//! Bodies of Amazon's clients that are sent in chunks of their own form, `aws-chunked`, inside of whatever HTTP does.
//!
//! ```text
//! 400;chunk-signature=ad80c730...    the bytes of the chunk in hexadecimal digits, and its signature if it has one
//! <1024 bytes>
//! 0;chunk-signature=b6c6ea8a...      the last chunk has no bytes
//! x-amz-checksum-crc32c:sOO8/Q==     the trailer, if there is one
//! x-amz-trailer-signature:d81f82fc...
//!                                    an empty line
//! ```
//!
//! Lines end with CR and LF. [`Chunks`] takes the body in pieces of any size and gives the bytes without the form. If the
//! chunks are signed and the secret of the signer is known, each signature is checked at the end of its chunk. So bytes come out
//! before they are proven; the caller must not store an object before [`Chunks::finish`] says that all is well.

use bytes::{Buf as _, Bytes, BytesMut};
use sha2::{Digest, Sha256};

use super::error::{ErrorKind, ObjectError};
use super::limits::{CHUNK_LINE_BYTES_MAX, OBJECT_BYTES_MAX, TRAILER_LINES_MAX};
use super::signed::ChunkSigner;

/// The line of a trailer that has its signature.
const TRAILER_SIGNATURE: &str = "x-amz-trailer-signature";

/// Whether the chunks of a body are signed.
#[derive(Debug, Clone)]
pub enum Signatures {
    /// They are not, or the signer is not known and is believed.
    Unchecked,
    /// Each must have a signature that fits.
    Checked(Box<ChunkSigner>),
}

/// A body in chunks while it arrives.
pub struct Chunks {
    signatures: Signatures,
    /// What has come and was not read.
    pending: BytesMut,
    state: State,
    /// The signature of the chunk that arrives, and the sum of its bytes.
    signature: String,
    sum: Sha256,
    trailer: Vec<(String, String)>,
    bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The line with the length comes next.
    Length,
    /// So many bytes of the chunk.
    Data(u64),
    /// The line's end behind the bytes.
    DataEnd,
    /// A line of the trailer, or the empty line.
    Trailer,
    /// Nothing.
    End,
}

impl Chunks {
    /// A body of which nothing has come yet.
    pub fn new(signatures: Signatures) -> Self {
        Self {
            signatures,
            pending: BytesMut::new(),
            state: State::Length,
            signature: String::new(),
            sum: Sha256::new(),
            trailer: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes a piece of the body.
    pub fn push(&mut self, piece: &[u8]) {
        self.pending.extend_from_slice(piece);
    }

    /// Bytes of the object; `None` if more of the body is needed, or at its end.
    ///
    /// # Errors
    /// `Invalid` for a body of another form, `TooLarge`, and `WrongSignature`.
    pub fn read(&mut self) -> Result<Option<Bytes>, ObjectError> {
        loop {
            match self.state {
                State::Length => {
                    let Some(line) = self.line()? else { return Ok(None) };
                    self.begin_chunk(&line)?;
                }
                State::Data(left) => {
                    if self.pending.is_empty() {
                        return Ok(None);
                    }
                    let length = self.pending.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    let bytes = self.pending.split_to(length).freeze();
                    if matches!(self.signatures, Signatures::Checked(_)) {
                        self.sum.update(&bytes);
                    }
                    self.state = State::Data(left - length as u64);
                    if self.state == State::Data(0) {
                        self.end_chunk()?;
                        self.state = State::DataEnd;
                    }
                    return Ok(Some(bytes));
                }
                State::DataEnd => match self.line()?.as_deref() {
                    None => return Ok(None),
                    Some("") => self.state = State::Length,
                    Some(other) => return Err(malformed(format!("{other:?} behind the bytes of a chunk"))),
                },
                State::Trailer => match self.line()?.as_deref() {
                    None => return Ok(None),
                    Some("") => self.end_trailer()?,
                    Some(line) => self.trailer_line(line)?,
                },
                State::End if self.pending.is_empty() => return Ok(None),
                State::End => return Err(malformed("bytes behind the end")),
            }
        }
    }

    /// The trailer, when the body has ended: names in lower case, and values. `length` is how many bytes the object was
    /// announced with, if it was.
    ///
    /// # Errors
    /// `Invalid` if the body is not complete, or has another length.
    pub fn finish(self, length: Option<u64>) -> Result<Vec<(String, String)>, ObjectError> {
        if self.state != State::End {
            return Err(malformed("the end of the body before its last chunk"));
        }
        match length.filter(|length| *length != self.bytes) {
            None => Ok(self.trailer),
            Some(length) => Err(malformed(format!("{} bytes, and {length} were announced", self.bytes))),
        }
    }

    /// The next line without its end, if all of it has come.
    fn line(&mut self) -> Result<Option<String>, ObjectError> {
        let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') else {
            return match self.pending.len() > CHUNK_LINE_BYTES_MAX {
                true => Err(malformed(format!("a line of more than {CHUNK_LINE_BYTES_MAX} bytes"))),
                false => Ok(None),
            };
        };
        let line = self.pending.split_to(end);
        self.pending.advance(1);
        let text = line.strip_suffix(b"\r").and_then(|line| std::str::from_utf8(line).ok());
        match text.filter(|text| text.len() <= CHUNK_LINE_BYTES_MAX) {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(malformed("a line that is too long, not text, or has no CR at its end")),
        }
    }

    fn begin_chunk(&mut self, line: &str) -> Result<(), ObjectError> {
        let (length, extension) = line.split_once(';').unwrap_or((line, ""));
        let is_hex = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_hexdigit());
        let length = u64::from_str_radix(length, 16).ok().filter(|_| is_hex);
        let length = length.ok_or_else(|| malformed(format!("{line:?} in the place of a length")))?;
        self.bytes = self.bytes.saturating_add(length);
        if self.bytes > OBJECT_BYTES_MAX {
            let message = format!("An object has at most {OBJECT_BYTES_MAX} bytes.");
            return Err(ObjectError::new(ErrorKind::TooLarge, message));
        }
        self.signature = extension.trim().strip_prefix("chunk-signature=").unwrap_or_default().to_owned();
        self.sum = Sha256::new();
        if length > 0 {
            self.state = State::Data(length);
            return Ok(());
        }
        self.state = State::Trailer;
        self.end_chunk()
    }

    fn end_chunk(&mut self) -> Result<(), ObjectError> {
        if let Signatures::Checked(signer) = &mut self.signatures {
            signer.check_chunk(&std::mem::take(&mut self.sum).finalize(), &self.signature)?;
        }
        Ok(())
    }

    fn trailer_line(&mut self, line: &str) -> Result<(), ObjectError> {
        let (name, value) =
            line.split_once(':').ok_or_else(|| malformed(format!("{line:?} in the trailer")))?;
        if self.trailer.len() >= TRAILER_LINES_MAX {
            return Err(malformed(format!("more than {TRAILER_LINES_MAX} lines in the trailer")));
        }
        self.trailer.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        Ok(())
    }

    fn end_trailer(&mut self) -> Result<(), ObjectError> {
        let at = self.trailer.iter().position(|(name, _)| name == TRAILER_SIGNATURE);
        let signature = at.map(|at| self.trailer.remove(at).1);
        if let (Signatures::Checked(signer), false) = (&mut self.signatures, self.trailer.is_empty()) {
            let mut lines: Vec<String> =
                self.trailer.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
            lines.sort();
            signer.check_trailer(&lines.concat(), &signature.unwrap_or_default())?;
        }
        self.state = State::End;
        Ok(())
    }
}

fn malformed(found: impl std::fmt::Display) -> ObjectError {
    let message = format!("The body does not have the form aws-chunked. Found: {found}.");
    ObjectError::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::object::signed::{Claim, SignedRequest};

    type Read = (Vec<u8>, Vec<(String, String)>);

    fn read(
        signatures: &Signatures,
        body: &[u8],
        piece: usize,
        length: Option<u64>,
    ) -> Result<Read, ObjectError> {
        let (mut chunks, mut out) = (Chunks::new(signatures.clone()), Vec::new());
        for piece in body.chunks(piece) {
            chunks.push(piece);
            while let Some(bytes) = chunks.read()? {
                out.extend_from_slice(&bytes);
            }
        }
        chunks.finish(length).map(|trailer| (out, trailer))
    }

    #[test]
    fn the_bytes_come_out_without_their_form_whatever_the_pieces() {
        let body = b"5\r\nhello\r\nA;chunk-signature=00\r\n\r\n world\r\n\r\n0\r\nX-Amz-Checksum-Crc32: AAAA \r\n\r\n";
        let trailer = vec![("x-amz-checksum-crc32".to_owned(), "AAAA".to_owned())];
        for piece in 1..=body.len() {
            let read = read(&Signatures::Unchecked, body, piece, Some(15));
            assert_eq!(read, Ok((b"hello\r\n world\r\n".to_vec(), trailer.clone())), "{piece}");
        }
        assert_eq!(read(&Signatures::Unchecked, b"0\r\n\r\n", 2, Some(0)), Ok((Vec::new(), Vec::new())));
    }

    #[test]
    fn bodies_of_another_form_are_refused() {
        for (body, length) in [
            (&b"hello"[..], None),
            (b"5\r\nhell", None),
            (b"5\r\nhello\r\n", None),
            (b"5\r\nhello\r\n0\r\n", None),
            (b"5\nhello\r\n0\r\n\r\n", None),
            (b"5\r\nhello!\r\n0\r\n\r\n", None),
            (b"+5\r\nhello\r\n0\r\n\r\n", None),
            (b"\r\nhello\r\n0\r\n\r\n", None),
            (b"ffffffffffffffff\r\nhello", None),
            (b"0\r\n\r\nmore", None),
            (b"0\r\nno colon\r\n\r\n", None),
            (b"5\r\nhello\r\n0\r\n\r\n", Some(4)),
        ] {
            assert!(
                read(&Signatures::Unchecked, body, 3, length).is_err(),
                "{}",
                String::from_utf8_lossy(body)
            );
        }
        let long = "a".repeat(CHUNK_LINE_BYTES_MAX + 2);
        assert!(read(&Signatures::Unchecked, long.as_bytes(), 100, None).is_err());
    }

    /// The example in the documents of Amazon S3: "Signature Calculations for the Authorization Header: Transferring
    /// Payload in Multiple Chunks".
    fn documented() -> (Signatures, Vec<u8>) {
        let authorization = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
            SignedHeaders=content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;\
            x-amz-decoded-content-length;x-amz-storage-class,\
            Signature=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
        let headers = [
            ("x-amz-date", "20130524T000000Z"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ("authorization", authorization),
            ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
            ("content-encoding", "aws-chunked"),
            ("x-amz-decoded-content-length", "66560"),
            ("content-length", "66824"),
        ];
        let request = SignedRequest {
            method: "PUT",
            path: "/examplebucket/chunkObject.txt",
            query: "",
            host: "s3.amazonaws.com",
            host_bucket: None,
            headers: &headers,
        };
        let claim = Claim::read(&request).expect("a signature").expect("one");
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        claim.verify(&crate::object::signed::Key::Secret(secret)).expect("the signature of the example");
        let signer = claim.chunk_signer(secret).expect("a secret");
        let mut body = Vec::new();
        for (length, signature) in [
            (65_536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
            (1_024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
            (0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
        ] {
            body.extend_from_slice(format!("{length:x};chunk-signature={signature}\r\n").as_bytes());
            body.extend(std::iter::repeat_n(b'a', length));
            body.extend_from_slice(b"\r\n");
        }
        (Signatures::Checked(Box::new(signer)), body)
    }

    #[test]
    fn the_signatures_of_the_documented_example_fit_and_those_of_other_bytes_do_not() {
        let (signatures, mut body) = documented();
        let (bytes, trailer) = read(&signatures, &body, 1_000, Some(66_560)).expect("the example");
        assert_eq!((bytes.len(), trailer.len()), (66_560, 0));
        body[200] = b'b';
        let refused = read(&signatures, &body, 1_000, None).expect_err("another byte");
        assert_eq!(refused.kind, ErrorKind::WrongSignature);
        let unsigned = b"1\r\na\r\n0\r\n\r\n";
        assert_eq!(
            read(&signatures, unsigned, 9, None).expect_err("no signature").kind,
            ErrorKind::WrongSignature
        );
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in "([0-9a-f]{1,2}|;x|:|a|\r\n|\n){0,12}", piece in 1_usize..9) {
            let _ = read(&Signatures::Unchecked, body.as_bytes(), piece, None);
        }

        #[test]
        fn a_body_that_was_cut_into_chunks_is_whole_again(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..5),
            piece in 1_usize..30,
        ) {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                body.extend_from_slice(chunk);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"0\r\n\r\n");
            let whole = chunks.concat();
            prop_assert_eq!(read(&Signatures::Unchecked, &body, piece, Some(whole.len() as u64)), Ok((whole, Vec::new())));
        }
    }
}
