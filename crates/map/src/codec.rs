//! The order-preserving codec: bytes that compare, byte by byte, as the values they encode.
//!
//! | value | bytes | order |
//! |---|---|---|
//! | text | CESU-8, U+0000 as `01 01` and U+0001 as `01 02`, closed by `00` | ordinal by UTF-16 code unit |
//! | u64 | eight bytes, big end first | numeric |
//! | u8 | itself | numeric |
//!
//! **Why CESU-8.** Azure compares keys as .NET does, by UTF-16 code unit. There U+10000 is the pair
//! D800 DC00 and sorts *before* U+FFFF; UTF-8, which orders by code point, has it after. CESU-8 writes each
//! UTF-16 code unit on its own in the UTF-8 scheme (a supplementary character as two surrogates of three
//! bytes each). So its byte order is the order of the code units, and ASCII still costs one byte a character.
//!
//! **Why `00` closes a text.** In a key of several texts, a text must sort before every longer text that begins
//! with it, whatever follows. So the closing byte must be less than every byte of a text. U+0000 is that byte
//! itself and is therefore escaped. The escapes begin with `01`, so U+0001 is escaped too; `01 01` and
//! `01 02` still sort before U+0002. As no encoded text holds a `00`, the end of a text is found without
//! looking at what follows.

use thiserror::Error;

/// Bytes that are not an encoding made by this module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("malformed key at byte {at}: {what}")]
pub struct MalformedKey {
    /// Offset of the first byte that does not fit.
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

/// Appends `value` as eight bytes, big end first.
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
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
        let Some(bytes) = self.bytes.get(self.at..self.at + 8) else {
            return self.malformed("eight bytes of a number");
        };
        self.at += 8;
        Ok(u64::from_be_bytes(bytes.try_into().expect("eight bytes were taken")))
    }

    /// Reads one text and its closing byte.
    pub fn text(&mut self) -> Result<String, MalformedKey> {
        let raw = self.raw_text()?;
        decode_text(raw).ok_or(MalformedKey { at: self.at, what: "CESU-8 text" })
    }

    /// Reads one text and its closing byte; returns its bytes still encoded, without the closing byte.
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
fn decode_text(raw: &[u8]) -> Option<String> {
    if raw.iter().copied().all(is_itself) {
        return String::from_utf8(raw.to_vec()).ok();
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
    String::from_utf16(&units).ok()
}
