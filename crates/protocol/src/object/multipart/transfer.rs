//! How the data of a part were encoded for their way: `Content-Transfer-Encoding`, which some clients still write.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::PartHead;
use crate::object::error::{ErrorKind, ObjectError};

/// Takes the encoding off the data of a part, which come in pieces of any size.
#[derive(Debug, Default)]
pub enum TransferDecoder {
    /// The data come as they are.
    #[default]
    Plain,
    /// The data come in base64, with or without line breaks.
    Base64 {
        /// At most three characters that came, and wait for those that complete a group of four.
        open: Vec<u8>,
        /// Whether a group with padding has come, which is the last one.
        is_complete: bool,
    },
}

impl TransferDecoder {
    /// The decoder for a part with this head.
    ///
    /// # Errors
    /// `NotImplemented` for an encoding that is neither base64 nor none.
    pub fn of(head: &PartHead) -> Result<Self, ObjectError> {
        let encoding = head.get("content-transfer-encoding").unwrap_or("binary").trim();
        match encoding.to_ascii_lowercase().as_str() {
            "" | "binary" | "7bit" | "8bit" => Ok(Self::Plain),
            "base64" => Ok(Self::Base64 { open: Vec::new(), is_complete: false }),
            other => Err(ObjectError::not_implemented(&format!(
                "A part with 'Content-Transfer-Encoding: {other}'"
            ))),
        }
    }

    /// Decodes the next data. What it returns may be empty.
    ///
    /// # Errors
    /// `ParseError` for data that are not base64.
    pub fn decode(&mut self, data: Bytes) -> Result<Bytes, ObjectError> {
        let Self::Base64 { open, is_complete } = self else { return Ok(data) };
        let mut groups = Vec::with_capacity(open.len() + data.len());
        groups.append(open);
        groups.extend(data.iter().filter(|byte| !byte.is_ascii_whitespace()));
        if *is_complete && !groups.is_empty() {
            return Err(not_base64("data follow the padding"));
        }
        *open = groups.split_off(groups.len() / 4 * 4);
        *is_complete |= groups.ends_with(b"=");
        STANDARD.decode(&groups).map(Bytes::from).map_err(not_base64)
    }

    /// Checks at the end of the part that all of it was decoded.
    ///
    /// # Errors
    /// `ParseError` if the last group is not complete.
    pub fn finish(self) -> Result<(), ObjectError> {
        match self {
            Self::Base64 { open, .. } if !open.is_empty() => Err(not_base64("the last group has no padding")),
            Self::Base64 { .. } | Self::Plain => Ok(()),
        }
    }
}

fn not_base64(why: impl std::fmt::Display) -> ObjectError {
    let message = format!("The part is not base64, as its Content-Transfer-Encoding says: {why}.");
    ObjectError::new(ErrorKind::ParseError, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoder(encoding: &str) -> Result<TransferDecoder, ObjectError> {
        let line = format!("content-transfer-encoding: {encoding}");
        TransferDecoder::of(&PartHead::read([line.as_str()].into_iter()).expect("a header"))
    }

    fn decoded(text: &[u8], piece: usize) -> Result<Vec<u8>, ObjectError> {
        let mut decoder = decoder("BASE64")?;
        let mut out = Vec::new();
        for piece in text.chunks(piece) {
            out.extend_from_slice(&decoder.decode(Bytes::copy_from_slice(piece))?);
        }
        decoder.finish().map(|()| out)
    }

    #[test]
    fn encodings_that_are_not_known_are_named() {
        for plain in ["", "binary", "8bit", "7BIT"] {
            let mut decoder = decoder(plain).expect(plain);
            assert_eq!(decoder.decode(Bytes::from_static(b"a=\n")), Ok(Bytes::from_static(b"a=\n")));
        }
        let refused = decoder("Quoted-Printable").expect_err("not known");
        assert_eq!(refused.kind, ErrorKind::NotImplemented);
        assert!(refused.message.contains("quoted-printable"), "{}", refused.message);
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for text in ["a", "aGVsbG8", "aGVs-G8=", "aGVsbG8=aGVs", "=aaa", "aGVsbG8=="] {
            for piece in [1, 3, usize::MAX] {
                let refused = decoded(text.as_bytes(), piece).expect_err(text);
                assert_eq!(refused.kind, ErrorKind::ParseError, "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn data_come_out_as_they_went_in(
            data in prop::collection::vec(any::<u8>(), 0..100), piece in 1_usize..80, line in 1_usize..80
        ) {
            let encoded = STANDARD.encode(&data);
            let lines: Vec<&[u8]> = encoded.as_bytes().chunks(line).collect();
            prop_assert_eq!(decoded(&lines.join(&b"\r\n"[..]), piece), Ok(data));
        }
    }
}
