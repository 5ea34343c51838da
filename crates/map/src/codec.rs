//! The order-preserving codec: bytes that compare, byte by byte, as the values they encode.
//!
//! | value | bytes | order |
//! |---|---|---|
//! | text | CESU-8, U+0000 as `01 01` and U+0001 as `01 02`, closed by `00` | ordinal by UTF-16 code unit |
//! | name | UTF-8, with the same escapes, closed by `00` | by the bytes of its UTF-8 |
//! | u64, u128 | eight or sixteen bytes, big end first | numeric |
//! | u8 | itself | numeric |
//!
//! **Why CESU-8.** Azure compares keys as .NET does, by UTF-16 code unit. There U+10000 is the pair
//! D800 DC00 and sorts *before* U+FFFF; UTF-8, which orders by code point, has it after. CESU-8 writes each
//! UTF-16 code unit on its own in the UTF-8 scheme (a supplementary character as two surrogates of three
//! bytes each). So its byte order is the order of the code units, and ASCII still costs one byte a character.
//!
//! **Why UTF-8 beside it.** Google orders the names of objects by the bytes of their UTF-8. So a *name* is written
//! in UTF-8, and a *text* in CESU-8. They differ only above U+FFFF.
//!
//! **Why `00` closes a text.** In a key of several texts, a text must sort before every longer text that begins
//! with it, whatever follows. So the closing byte must be less than every byte of a text. U+0000 is that byte
//! itself and is therefore escaped. The escapes begin with `01`, so U+0001 is escaped too; `01 01` and
//! `01 02` still sort before U+0002. As no encoded text holds a `00`, the end of a text is found without
//! looking at what follows.

use std::borrow::Cow;

use thiserror::Error;

/// Bytes that are not an encoding made by this module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("malformed key: expected {what} at byte {at}")]
pub struct MalformedKey {
    /// Where bytes are missing or wrong. A text, name or number that was read whole and cannot be right ends here.
    pub at: usize,
    /// What was expected there.
    pub what: &'static str,
}

/// Begins the two-byte escapes of U+0000 (`01 01`) and U+0001 (`01 02`).
const ESCAPE: u8 = 0x01;

/// Whether this byte of UTF-8 is a whole character that is written unescaped.
fn is_itself(byte: u8) -> bool {
    byte.is_ascii() && byte > ESCAPE
}

/// Appends `text` and its closing byte.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_text_open(out, text);
    out.push(0);
}

/// Appends `text` without its closing byte: a bound for "texts that begin with `text`".
pub fn put_text_open(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(is_itself) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let mut units = [0u16; 2];
    for c in text.chars() {
        if c <= '\u{1}' {
            out.extend_from_slice(&[ESCAPE, c as u8 + 1]);
        } else if (c as u32) < 0x1_0000 {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            for &unit in c.encode_utf16(&mut units).iter() {
                out.extend_from_slice(&three_bytes(unit));
            }
        }
    }
}

/// A code unit of at least 0x0800 in the three-byte form of UTF-8. Surrogates are allowed.
fn three_bytes(unit: u16) -> [u8; 3] {
    [0xE0 | (unit >> 12) as u8, 0x80 | ((unit >> 6) & 0x3F) as u8, 0x80 | (unit & 0x3F) as u8]
}

/// Appends `name` and its closing byte.
pub fn put_name(out: &mut Vec<u8>, name: &str) {
    put_name_open(out, name);
    out.push(0);
}

/// Appends `name` without its closing byte: a bound for "names that begin with `name`".
pub fn put_name_open(out: &mut Vec<u8>, name: &str) {
    for byte in name.bytes() {
        match byte {
            0 | 1 => out.extend_from_slice(&[ESCAPE, byte + 1]),
            _ => out.push(byte),
        }
    }
}

/// Decodes the bytes of a name, without its closing byte. Copies only if there are escapes.
fn decode_name(raw: &[u8]) -> Option<Cow<'_, str>> {
    if !raw.contains(&ESCAPE) {
        return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let [first, tail @ ..] = rest {
        rest = match (*first, tail) {
            (ESCAPE, [escaped @ (0x01 | 0x02), tail @ ..]) => {
                bytes.push(escaped - 1);
                tail
            }
            (ESCAPE, _) => return None,
            (byte, tail) => {
                bytes.push(byte);
                tail
            }
        };
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Appends `value` as eight bytes, big end first.
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends `value` as sixteen bytes, big end first.
pub fn put_u128(out: &mut Vec<u8>, value: u128) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Reads components from the front of an encoded key.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the first byte of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes have been read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Whether everything has been read.
    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn malformed<T>(&self, what: &'static str) -> Result<T, MalformedKey> {
        Err(MalformedKey { at: self.at, what })
    }

    /// Fails unless everything has been read.
    pub fn end(&self) -> Result<(), MalformedKey> {
        if self.is_at_end() { Ok(()) } else { self.malformed("the end of the key") }
    }

    /// The error for the byte that was read last, if it names no sort of row.
    pub(crate) fn unknown_row(&self) -> MalformedKey {
        MalformedKey { at: self.at - 1, what: "a known sort of row" }
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Result<u8, MalformedKey> {
        let Some(&byte) = self.bytes.get(self.at) else {
            return self.malformed("one more byte");
        };
        self.at += 1;
        Ok(byte)
    }

    /// Reads eight bytes, big end first.
    pub fn u64(&mut self) -> Result<u64, MalformedKey> {
        self.number().map(u64::from_be_bytes)
    }

    /// Reads sixteen bytes, big end first.
    pub fn u128(&mut self) -> Result<u128, MalformedKey> {
        self.number().map(u128::from_be_bytes)
    }

    fn number<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], MalformedKey> {
        let Some(bytes) = self.bytes[self.at..].first_chunk() else {
            return self.malformed("all bytes of a number");
        };
        self.at += BYTES;
        Ok(*bytes)
    }

    /// Reads one text and its closing byte.
    pub fn text(&mut self) -> Result<String, MalformedKey> {
        self.text_in_place().map(Cow::into_owned)
    }

    /// Reads one text and its closing byte. The text is not copied if it is stored as it is read.
    pub fn text_in_place(&mut self) -> Result<Cow<'a, str>, MalformedKey> {
        let raw = self.raw_text()?;
        decode_text(raw).ok_or(MalformedKey { at: self.at, what: "CESU-8 text" })
    }

    /// Reads one name and its closing byte.
    pub fn name(&mut self) -> Result<Cow<'a, str>, MalformedKey> {
        let raw = self.raw_text()?;
        decode_name(raw).ok_or(MalformedKey { at: self.at, what: "UTF-8 text" })
    }

    /// Reads one text or name and its closing byte; returns its bytes still encoded, without the closing byte.
    pub fn raw_text(&mut self) -> Result<&'a [u8], MalformedKey> {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|&byte| byte == 0) else {
            self.at = self.bytes.len();
            return self.malformed("the closing byte of a text");
        };
        self.at += length + 1;
        Ok(&rest[..length])
    }
}

/// Decodes the bytes of a text, without its closing byte.
fn decode_text(raw: &[u8]) -> Option<Cow<'_, str>> {
    if raw.iter().copied().all(is_itself) {
        return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
    }
    let mut units = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let [first, tail @ ..] = rest {
        let (unit, used) = match (*first, tail) {
            (ESCAPE, [escaped @ (0x01 | 0x02), ..]) => (u16::from(escaped - 1), 2),
            (b @ 0x02..=0x7F, _) => (u16::from(b), 1),
            (b @ 0xC2..=0xDF, [c @ 0x80..=0xBF, ..]) => (u16::from(b & 0x1F) << 6 | u16::from(c & 0x3F), 2),
            (b @ 0xE0..=0xEF, [c @ 0x80..=0xBF, d @ 0x80..=0xBF, ..]) => {
                let unit = u16::from(b & 0x0F) << 12 | u16::from(c & 0x3F) << 6 | u16::from(d & 0x3F);
                if unit < 0x800 {
                    return None;
                }
                (unit, 3)
            }
            _ => return None,
        };
        units.push(unit);
        rest = &rest[used..];
    }
    String::from_utf16(&units).ok().map(Cow::Owned)
}
