//! The messages in a stream of bytes. A message has a tag, a length and a body. A stream comes in pieces of any size,
//! so a message is reported in pieces too: its beginning when tag and length are complete, and then its body as it
//! comes.

use super::Broken;

/// Tag and length.
const HEADER_BYTES: usize = 5;
/// The length of a message counts its own bytes.
const LENGTH_BYTES: usize = 4;
/// The longest message that is accepted. PostgreSQL's own limit is a gigabyte.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// The position in a stream of messages.
#[derive(Debug)]
pub(super) struct Frames {
    header: [u8; HEADER_BYTES],
    /// How many bytes of the header have come.
    filled: usize,
    /// How many bytes of the body are still to come.
    body_left: usize,
    /// Whether this is the very first message, which has no tag.
    untagged: bool,
}

/// A part of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A message begins.
    Begin(Header),
    /// More bytes of the body; at least one.
    Body(&'a [u8]),
}

/// The beginning of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    bytes: [u8; HEADER_BYTES],
    tagged: bool,
}

impl Header {
    /// The kind of the message. It is 0 for a client's first message, which has no tag.
    pub(super) fn tag(&self) -> u8 {
        self.bytes[0]
    }

    /// How many bytes the body has.
    pub(super) fn body_bytes(&self) -> usize {
        let [_, length @ ..] = self.bytes;
        u32::from_be_bytes(length) as usize - LENGTH_BYTES
    }

    /// The bytes as they were read.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[usize::from(!self.tagged)..]
    }
}

impl Frames {
    /// A stream of messages with tags.
    pub(super) fn new() -> Self {
        Self { header: [0; HEADER_BYTES], filled: 0, body_left: 0, untagged: false }
    }

    /// A stream whose first message has no tag, as a client sends it.
    pub(super) fn after_startup_message() -> Self {
        // This is as if a tag of zero had come already.
        Self { filled: 1, untagged: true, ..Self::new() }
    }

    /// Takes a piece off the front of `bytes`; `None` when they are used up.
    pub(super) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Piece<'a>>, Broken> {
        if self.body_left > 0 {
            let (body, rest) = bytes.split_at(self.body_left.min(bytes.len()));
            *bytes = rest;
            self.body_left -= body.len();
            return Ok((!body.is_empty()).then_some(Piece::Body(body)));
        }
        let (more, rest) = bytes.split_at((HEADER_BYTES - self.filled).min(bytes.len()));
        self.header[self.filled..self.filled + more.len()].copy_from_slice(more);
        self.filled += more.len();
        *bytes = rest;
        if self.filled < HEADER_BYTES {
            return Ok(None);
        }
        let [_, length @ ..] = self.header;
        let length = u32::from_be_bytes(length) as usize;
        if !(LENGTH_BYTES..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(Broken("a message has an impossible length"));
        }
        self.body_left = length - LENGTH_BYTES;
        let header = Header { bytes: self.header, tagged: !std::mem::take(&mut self.untagged) };
        self.filled = 0;
        Ok(Some(Piece::Begin(header)))
    }
}
