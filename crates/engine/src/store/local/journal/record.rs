//! One record: a small object with its name, or the note that it was deleted.
//!
//! ```text
//!   | header | path | payload | seal | path | header |      each part filled up with zeros to 8 bytes
//!
//!   header = "RJNL" | kind u8 | 0 u8 | length of the path u16 | length of payload and seal u32 | check u32
//!          | life of the segment u64 | offset of the record u64 | offset up to which the segment was synced u64
//! ```
//!
//! The check is the CRC-32 of the header, with zeros in its place, and of the path. A header is good only at the place that it
//! tells of itself, and in the life of the segment that it names, which is a random number. So what a segment held in an earlier
//! life is never taken for a record of this one, nor the copy of the header at the end of a record for the beginning of one, nor
//! what a client stores for a record of ours. The copy is there for a record whose beginning is
//! damaged: it tells which object that was, and where it lies.

use super::super::super::seal::Seal;

pub(super) const HEADER_LEN: u64 = 40;
const MAGIC: [u8; 4] = *b"RJNL";
const CHECK: std::ops::Range<usize> = 12..16;

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// There is such an object.
    Put = 1,
    /// There is no longer one.
    Delete = 2,
    /// The segment ends here.
    End = 3,
}

/// The header of a record, with its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// The path of the object in the store.
    pub(super) path: String,
    /// The length of the payload and its seal; 0 if the kind has none.
    pub(super) payload_len: u32,
    /// The life of its segment.
    pub(super) life: u64,
    /// Where the record begins in the segment.
    pub(super) offset: u64,
    /// Everything in the segment before this offset was durable when the record was written.
    pub(super) synced: u64,
}

/// What the fixed part of a header says about the parts that follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) path: u64,
    pub(super) payload: u64,
}

impl Lengths {
    /// Reads them from the fixed part of a header; `None` if it is none.
    pub(super) fn read(fixed: &[u8]) -> Option<Self> {
        if fixed.len() < HEADER_LEN as usize || fixed[..4] != MAGIC {
            return None;
        }
        let path = u64::from(u16::from_be_bytes([fixed[6], fixed[7]]));
        let payload = u64::from(u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]));
        Some(Self { path, payload })
    }

    /// Whether the fixed part of a header says that its record begins at `offset` in this life of the segment.
    pub(super) fn at_place(fixed: &[u8], life: u64, offset: u64) -> bool {
        fixed.starts_with(&MAGIC)
            && fixed[16..24] == life.to_be_bytes()
            && fixed[24..32] == offset.to_be_bytes()
    }

    /// The length of the path with its filling.
    pub(super) fn padded_path(self) -> u64 {
        padded(self.path)
    }

    /// Where the payload begins, from the beginning of the record.
    pub(super) fn payload_start(self) -> u64 {
        HEADER_LEN + padded(self.path)
    }

    /// The length of the whole record.
    pub(super) fn record(self) -> u64 {
        2 * self.payload_start() + padded(self.payload)
    }
}

impl Header {
    /// Reads a header from its fixed part and its path. `None` if one of them is not what was written.
    pub(super) fn read(fixed: &[u8], path: &[u8]) -> Option<Self> {
        let Lengths { payload, .. } = Lengths::read(fixed)?;
        let fixed: &[u8; HEADER_LEN as usize] = fixed.first_chunk()?;
        let check = u32::from_be_bytes(fixed[CHECK].try_into().ok()?);
        let number_at = |at: usize| Some(u64::from_be_bytes(fixed[at..at + 8].try_into().ok()?));
        let kind = match fixed[4] {
            1 => Kind::Put,
            2 => Kind::Delete,
            3 => Kind::End,
            _ => return None,
        };
        (check_of(fixed, path) == check).then_some(Self {
            kind,
            path: String::from_utf8(path.to_vec()).ok()?,
            payload_len: u32::try_from(payload).ok()?,
            life: number_at(16)?,
            offset: number_at(24)?,
            synced: number_at(32)?,
        })
    }

    pub(super) fn lengths(&self) -> Lengths {
        Lengths { path: self.path.len() as u64, payload: u64::from(self.payload_len) }
    }

    /// Where the payload begins in the segment.
    pub(super) fn payload_start(&self) -> u64 {
        self.offset + self.lengths().payload_start()
    }

    /// Where the record ends in the segment.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.lengths().record()
    }

    fn encode(&self) -> [u8; HEADER_LEN as usize] {
        let mut out = [0; HEADER_LEN as usize];
        out[..4].copy_from_slice(&MAGIC);
        out[4] = self.kind as u8;
        out[6..8].copy_from_slice(&(self.path.len() as u16).to_be_bytes());
        out[8..12].copy_from_slice(&self.payload_len.to_be_bytes());
        out[16..24].copy_from_slice(&self.life.to_be_bytes());
        out[24..32].copy_from_slice(&self.offset.to_be_bytes());
        out[32..40].copy_from_slice(&self.synced.to_be_bytes());
        let check = check_of(&out, self.path.as_bytes());
        out[CHECK].copy_from_slice(&check.to_be_bytes());
        out
    }
}

/// A record that has no place yet.
#[derive(Debug)]
pub(super) struct Draft {
    header: Header,
    bytes: Vec<u8>,
}

impl Draft {
    /// An object of `pieces`, whose seal is `seal`.
    pub(super) fn put(path: &str, pieces: &[&[u8]], seal: &Seal) -> Self {
        let encoded = seal.encode();
        let pieces = || pieces.iter().copied().chain([encoded.as_slice()]);
        Self::new(Kind::Put, path, pieces)
    }

    /// The note that the object at `path` was deleted.
    pub(super) fn delete(path: &str) -> Self {
        Self::new(Kind::Delete, path, std::iter::empty)
    }

    /// The end of a segment.
    pub(super) fn end() -> Self {
        Self::new(Kind::End, "", std::iter::empty)
    }

    fn new<'p, I: Iterator<Item = &'p [u8]>>(kind: Kind, path: &str, pieces: impl Fn() -> I) -> Self {
        let payload: usize = pieces().map(<[u8]>::len).sum();
        let payload_len = u32::try_from(payload).expect("small objects only");
        let header = Header { kind, path: path.to_owned(), payload_len, life: 0, offset: 0, synced: 0 };
        let lengths = header.lengths();
        let mut bytes = vec![0; lengths.record() as usize];
        let mut at = lengths.payload_start() as usize;
        for piece in pieces() {
            bytes[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        Self { header, bytes }
    }

    /// The length of the record.
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The bytes of the record at its place.
    pub(super) fn at(&mut self, life: u64, offset: u64, synced: u64) -> (&Header, &[u8]) {
        self.header =
            Header { life, offset, synced, path: std::mem::take(&mut self.header.path), ..self.header };
        let (fixed, path) = (self.header.encode(), self.header.path.as_bytes());
        let (header_len, path_len) = (HEADER_LEN as usize, path.len());
        self.bytes[..header_len].copy_from_slice(&fixed);
        self.bytes[header_len..header_len + path_len].copy_from_slice(path);
        let copy = self.bytes.len() - header_len;
        self.bytes[copy..].copy_from_slice(&fixed);
        let copied_path = copy - self.header.lengths().padded_path() as usize;
        self.bytes[copied_path..copied_path + path_len].copy_from_slice(path);
        (&self.header, &self.bytes)
    }
}

fn check_of(fixed: &[u8; HEADER_LEN as usize], path: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&fixed[..CHECK.start]);
    hasher.update(&[0; 4]);
    hasher.update(&fixed[CHECK.end..]);
    hasher.update(path);
    hasher.finalize()
}

fn padded(len: u64) -> u64 {
    len.next_multiple_of(8)
}
