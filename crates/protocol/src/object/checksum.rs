//! CRC32C and MD5 in the forms in which clients send and read them.
//!
//! Both are base64 of the bytes; a CRC32C is four bytes, the highest first. `x-goog-hash` has one or both,
//! `crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ==`, and may come several times. `Content-MD5` has the MD5 alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::Digest as _;
use md5::digest::common::hazmat::SerializableState as _;
use serde::{Deserialize, Serialize};

use super::error::{ErrorKind, ObjectError, Particular};

/// The CRC32C (Castagnoli) of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Crc32c(pub u32);

impl Crc32c {
    /// The checksum of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(crc32c::crc32c(bytes))
    }

    /// The checksum of the bytes of `self` and then `bytes`.
    #[must_use]
    pub fn append(self, bytes: &[u8]) -> Self {
        Self(crc32c::crc32c_append(self.0, bytes))
    }

    /// The checksum of the bytes of `self` and then the `length` bytes of `next`, without reading any of them.
    #[must_use]
    pub fn followed_by(self, next: Self, length: u64) -> Self {
        let length = usize::try_from(length).expect("a size fits 64 bits");
        Self(crc32c::crc32c_combine(self.0, next.0, length))
    }

    /// Base64 of the four bytes, the highest first.
    pub fn text(self) -> String {
        STANDARD.encode(self.0.to_be_bytes())
    }

    /// Appends the same text.
    pub fn put(self, out: &mut Vec<u8>) {
        put_base64(out, &self.0.to_be_bytes());
    }

    /// Reads the form that [`text`](Self::text) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 4] = STANDARD.decode(text).ok()?.try_into().ok()?;
        Some(Self(u32::from_be_bytes(bytes)))
    }
}

/// The MD5 of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Md5(pub [u8; 16]);

impl Md5 {
    /// Base64 of the 16 bytes.
    pub fn text(self) -> String {
        STANDARD.encode(self.0)
    }

    /// Appends the same text.
    pub fn put(self, out: &mut Vec<u8>) {
        put_base64(out, &self.0);
    }

    /// Reads the form that [`text`](Self::text) writes.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self(STANDARD.decode(text).ok()?.try_into().ok()?))
    }
}

/// Appends the base64 of some bytes, without a text in between: a page of a listing has three thousand of them.
pub(super) fn put_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let begin = out.len();
    out.resize(begin + bytes.len().div_ceil(3) * 4, 0);
    STANDARD.encode_slice(bytes, &mut out[begin..]).expect("four letters for each three bytes");
}

/// Both checksums of bytes that arrive in pieces. It can be saved between requests, and taken up again by another process.
#[derive(Debug, Clone, Default)]
pub struct Running {
    crc32c: Crc32c,
    md5: md5::Md5,
    bytes: u64,
}

impl Running {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.crc32c = self.crc32c.append(bytes);
        self.md5.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// How many bytes it has taken.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The CRC32C of the bytes so far.
    pub fn crc32c(&self) -> Crc32c {
        self.crc32c
    }

    /// The MD5 of the bytes so far.
    pub fn md5(&self) -> Md5 {
        Md5(self.md5.clone().finalize().into())
    }

    /// The state of the MD5, to be stored.
    pub fn save(&self) -> Vec<u8> {
        self.md5.serialize().to_vec()
    }

    /// Goes on where [`save`](Self::save) was called. `None` if the bytes are not such a state.
    pub fn resume(bytes: u64, crc32c: Crc32c, md5_state: &[u8]) -> Option<Self> {
        let md5 = md5::Md5::deserialize(&md5_state.try_into().ok()?).ok()?;
        Some(Self { crc32c, md5, bytes })
    }
}

/// The checksums that a client announced for the bytes that it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Announced {
    /// Of `x-goog-hash` or of the field `crc32c`.
    pub crc32c: Option<Crc32c>,
    /// Of `x-goog-hash`, of `Content-MD5` or of the field `md5Hash`.
    pub md5: Option<Md5>,
}

impl Announced {
    /// Adds the checksums of one `x-goog-hash` header. A CRC32C that cannot be read is refused as one that differs, as the
    /// service does.
    pub fn add_goog_hash(&mut self, header: &str) -> Result<(), ObjectError> {
        for item in header.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            match item.split_once('=') {
                Some(("crc32c", text)) => {
                    self.crc32c = Some(Crc32c::parse(text).ok_or_else(|| no_crc32c(text))?);
                }
                Some(("md5", text)) => self.add_md5(text, "x-goog-hash")?,
                _ => {
                    let hint = "Write crc32c=... or md5=..., each with base64.";
                    return Err(ObjectError::invalid("x-goog-hash", item, hint));
                }
            }
        }
        Ok(())
    }

    /// Adds a CRC32C; `field` is the name under which it came.
    pub fn add_crc32c(&mut self, text: &str, field: &str) -> Result<(), ObjectError> {
        let hint = "A CRC32C is base64 of four bytes.";
        self.crc32c = Some(Crc32c::parse(text).ok_or_else(|| ObjectError::invalid(field, text, hint))?);
        Ok(())
    }

    /// Adds an MD5; `field` is the name under which it came.
    pub fn add_md5(&mut self, text: &str, field: &str) -> Result<(), ObjectError> {
        let hint = "An MD5 is base64 of 16 bytes.";
        self.md5 = Some(Md5::parse(text).ok_or_else(|| ObjectError::invalid(field, text, hint))?);
        Ok(())
    }

    /// The checksums of `self`, and those of `other` where `self` has none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { crc32c: self.crc32c.or(other.crc32c), md5: self.md5.or(other.md5) }
    }

    /// Compares what was announced with what arrived. `md5` may be absent for bytes whose MD5 is not known.
    /// The message has the name of the checksum and the client's value; official tests look for both.
    pub fn check(&self, crc32c: Crc32c, md5: Option<Md5>) -> Result<(), ObjectError> {
        if let Some(announced) = self.crc32c.filter(|announced| *announced != crc32c) {
            return Err(mismatch(Checksum::Crc32c, &announced.text(), &crc32c.text()));
        }
        match (self.md5, md5) {
            (Some(announced), Some(md5)) if announced != md5 => {
                Err(mismatch(Checksum::Md5, &announced.text(), &md5.text()))
            }
            _ => Ok(()),
        }
    }
}

/// A checksum that a client can announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// The CRC32C of [`Announced`].
    Crc32c,
    /// The MD5 of [`Announced`].
    Md5,
    /// The SHA-256 of a body that its signer demands.
    Signed,
    /// One of Amazon's clients.
    Amazon(AmazonChecksum),
}

impl Checksum {
    /// How a refusal calls it.
    fn text(self) -> &'static str {
        match self {
            Self::Crc32c => "CRC32C",
            Self::Md5 => "MD5 hash",
            Self::Signed => "SHA-256",
            Self::Amazon(sum) => sum.name(),
        }
    }
}

/// The checksums of Amazon's clients that are checked. Others are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmazonChecksum {
    /// `x-amz-checksum-crc32`.
    Crc32,
    /// `x-amz-checksum-crc32c`.
    Crc32c,
    /// `x-amz-checksum-sha256`.
    Sha256,
}

impl AmazonChecksum {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Crc32, Self::Crc32c, Self::Sha256];

    /// How the name of its header ends.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "crc32",
            Self::Crc32c => "crc32c",
            Self::Sha256 => "sha256",
        }
    }
}

/// The refusal of bytes whose checksum is not the one that the client announced.
pub fn mismatch(sum: Checksum, announced: &str, found: &str) -> ObjectError {
    let what = sum.text();
    let message = format!("Provided {what} \"{announced}\" doesn't match calculated {what} \"{found}\".");
    let refused = ObjectError::new(ErrorKind::WrongChecksum, message);
    match sum {
        Checksum::Crc32c | Checksum::Amazon(AmazonChecksum::Crc32c) => refused.with(Particular::Crc32c),
        Checksum::Md5 | Checksum::Signed | Checksum::Amazon(_) => refused,
    }
}

/// No bytes have this CRC32C of `x-goog-hash`.
fn no_crc32c(text: &str) -> ObjectError {
    let invalid = ObjectError::invalid("x-goog-hash", text, "A CRC32C is base64 of four bytes.");
    ObjectError { kind: ErrorKind::WrongChecksum, ..invalid }.with(Particular::Crc32c)
}

/// The values of `x-goog-hash` in a reply: one for each checksum that is known.
pub fn goog_hashes(crc32c: Crc32c, md5: Option<Md5>) -> impl Iterator<Item = String> {
    let md5 = md5.map(|md5| format!("md5={}", md5.text()));
    std::iter::once(format!("crc32c={}", crc32c.text())).chain(md5)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn checksums_have_the_forms_of_the_service() {
        // "The quick brown fox jumps over the lazy dog", as Google's documentation of validation has it.
        let crc32c = Crc32c::of(b"The quick brown fox jumps over the lazy dog");
        assert_eq!(crc32c.text(), "ImIEBA==");
        assert_eq!(Crc32c::parse("ImIEBA=="), Some(crc32c));
        assert_eq!(Crc32c::parse("ImIEBA"), None);
        assert_eq!(Md5::parse("ImIEBA=="), None);
    }

    #[test]
    fn a_wrong_checksum_is_named_with_the_clients_value() {
        let mut announced = Announced::default();
        announced.add_goog_hash("crc32c=ImIEBA==, md5=CY9rzUYh03PK3k6DJie09g==").expect("two checksums");
        let error = announced.check(Crc32c::of(b"other"), None).expect_err("another CRC32C");
        assert_eq!(error.kind.status(), 400);
        assert!(error.message.contains("CRC32C") && error.message.contains("ImIEBA=="));
        let crc32c = Crc32c::parse("ImIEBA==").expect("a CRC32C");
        let error = announced.check(crc32c, Some(Md5([0; 16]))).expect_err("another MD5");
        assert!(error.message.contains("MD5") && error.message.contains("CY9rzUYh03PK3k6DJie09g=="));
        assert_eq!(announced.check(crc32c, None), Ok(()));
        for header in ["crc32c", "sha1=AAAA", "crc32c=!", "md5=AAAA"] {
            assert!(Announced::default().add_goog_hash(header).is_err(), "{header}");
        }
    }

    #[test]
    fn a_crc32c_that_cannot_be_read_counts_as_one_that_differs() {
        let refused = Announced::default().add_goog_hash("crc32c=1234").expect_err("three bytes");
        assert_eq!(refused.kind, ErrorKind::WrongChecksum);
        assert_eq!(refused.particular, Some(Particular::Crc32c));
        assert!(refused.message.contains("1234"), "{refused}");
        let refused = Announced::default().add_goog_hash("md5=1234").expect_err("three bytes");
        assert_eq!((refused.kind, refused.particular), (ErrorKind::Invalid, None));
    }

    #[test]
    fn checksums_of_a_reply_are_told_one_by_one() {
        let crc32c = Crc32c::parse("ImIEBA==").expect("a CRC32C");
        let md5 = Md5::parse("CY9rzUYh03PK3k6DJie09g==").expect("an MD5");
        let told: Vec<String> = goog_hashes(crc32c, Some(md5)).collect();
        assert_eq!(told, ["crc32c=ImIEBA==", "md5=CY9rzUYh03PK3k6DJie09g=="]);
        assert_eq!(goog_hashes(crc32c, None).count(), 1);
    }

    proptest! {
        #[test]
        fn a_sum_that_was_saved_goes_on(a: Vec<u8>, b: Vec<u8>) {
            let mut first = Running::default();
            first.update(&a);
            let mut second =
                Running::resume(first.bytes(), first.crc32c(), &first.save()).expect("it was saved");
            second.update(&b);
            let whole = [a, b].concat();
            prop_assert_eq!(second.crc32c(), Crc32c::of(&whole));
            prop_assert_eq!(second.md5(), Md5(md5::Md5::digest(&whole).into()));
            prop_assert_eq!(second.bytes(), whole.len() as u64);
        }

        #[test]
        fn checksums_of_parts_combine_to_that_of_the_whole(a: Vec<u8>, b: Vec<u8>) {
            let whole = Crc32c::of(&[a.clone(), b.clone()].concat());
            prop_assert_eq!(Crc32c::of(&a).append(&b), whole);
            prop_assert_eq!(Crc32c::of(&a).followed_by(Crc32c::of(&b), b.len() as u64), whole);
        }
    }
}
