//! Frames: how messages follow each other in the body of a request and of its reply.
//!
//! ```text
//!   1 byte     0, or 1 if the message is compressed, which this server refuses
//!   4 bytes    the length of the message, the highest byte first
//!   n bytes    the message
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;

use super::limits::MESSAGE_BYTES_MAX;
use crate::object::error::{ErrorKind, ObjectError};

/// The bytes in front of each message.
const HEAD_BYTES: usize = 5;

/// The messages of a body, found in its bytes as they come.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: BytesMut,
}

impl Frames {
    /// Takes more of the body.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message that is here whole. Fails if it is compressed, has more than [`MESSAGE_BYTES_MAX`], or is not a
    /// message of this type; then the rest of the body means nothing.
    pub fn take<M: Message + Default>(&mut self) -> Result<Option<M>, ObjectError> {
        let Some(head) = self.bytes.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [compressed, length @ ..] = *head;
        let length = u32::from_be_bytes(length) as usize;
        if compressed != 0 {
            return Err(ObjectError::not_implemented("The compression of messages"));
        }
        if length > MESSAGE_BYTES_MAX {
            let message = format!("A message has {length} bytes, and at most {MESSAGE_BYTES_MAX} are read.");
            return Err(ObjectError::new(ErrorKind::TooLarge, message));
        }
        if self.bytes.len() < HEAD_BYTES + length {
            return Ok(None);
        }
        self.bytes.advance(HEAD_BYTES);
        let message = self.bytes.split_to(length).freeze();
        let malformed =
            |error| ObjectError::new(ErrorKind::ParseError, format!("A message cannot be read: {error}."));
        M::decode(message).map(Some).map_err(malformed)
    }

    /// Whether nothing is here of a message that has not been taken.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Checks that the body did not end in the middle of a message.
    pub fn finish(&self) -> Result<(), ObjectError> {
        match self.bytes.is_empty() {
            true => Ok(()),
            false => {
                Err(ObjectError::new(ErrorKind::ParseError, "The body ends in the middle of a message."))
            }
        }
    }
}

/// A message in its frame.
pub fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(HEAD_BYTES + length);
    out.put_u8(0);
    out.put_u32(u32::try_from(length).expect("replies have far less than 4 GiB"));
    message.encode(&mut out).expect("the room is made for it");
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::super::messages::{DeleteObjectRequest, QueryWriteStatusRequest};
    use super::*;

    #[test]
    fn messages_are_found_however_the_body_is_cut() {
        let sent = ["", "a", "an id that is somewhat longer"]
            .map(|id| QueryWriteStatusRequest { upload_id: id.to_owned(), ..Default::default() });
        let body: Vec<u8> = sent.iter().flat_map(framed).collect();
        for step in 1..body.len() {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for piece in body.chunks(step) {
                frames.push(piece);
                while let Some(message) = frames.take::<QueryWriteStatusRequest>().expect("good messages") {
                    found.push(message);
                }
            }
            assert_eq!((found.as_slice(), frames.finish()), (&sent[..], Ok(())), "{step}");
        }
    }

    #[test]
    fn bad_frames_are_refused() {
        for (body, kind) in [
            (&[1, 0, 0, 0, 0][..], ErrorKind::NotImplemented),
            (&[0, 255, 0, 0, 0], ErrorKind::TooLarge),
            (&[0, 0, 0, 0, 2, 0xff, 0xff], ErrorKind::ParseError),
        ] {
            let mut frames = Frames::default();
            frames.push(body);
            let error = frames.take::<DeleteObjectRequest>().expect_err("a bad frame");
            assert_eq!(error.kind, kind, "{}", error.message);
        }
        let mut frames = Frames::default();
        frames.push(&[0, 0, 0, 0, 2, 8]);
        assert_eq!(frames.take::<DeleteObjectRequest>(), Ok(None));
        assert!(frames.finish().is_err());
    }
}
