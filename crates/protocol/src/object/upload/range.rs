//! What a request of an upload brings: its `Content-Range`, and what follows from it.

use crate::object::error::{ErrorKind, ObjectError};
use crate::object::limits::{OBJECT_BYTES_MAX, UPLOAD_CHUNK_BYTES};

/// The `Content-Range` of a request to an upload session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentRange {
    /// No header: the body is the whole object.
    Whole,
    /// `bytes */total` or `bytes */*`: no bytes; a question, or the end.
    Nothing {
        /// The size of the object.
        total: Option<u64>,
    },
    /// `bytes first-last/total`; the last two may be `*`.
    Bytes {
        /// Where the first byte of the body belongs.
        first: u64,
        /// Where the last byte belongs. If it is not said, the object ends with the body.
        last: Option<u64>,
        /// The size of the object.
        total: Option<u64>,
    },
}

/// What a request to an upload session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The reply tells how far the upload is (308). Nothing changes; a body is ignored.
    Tell,
    /// The body's bytes are stored.
    Receive {
        /// Bytes at the beginning of the body that are there already.
        skip: u64,
        /// Bytes of the body that count, from its beginning; `None` if its end says. The real service keeps multiples of
        /// 262,144 bytes of an upload that goes on, and its clients send the rest of a chunk again.
        length: Option<u64>,
        /// Whether the upload ends with the body.
        is_last: bool,
        /// The size of the object, if it is known.
        total: Option<u64>,
    },
}

impl ContentRange {
    /// Reads the header.
    pub fn parse(header: Option<&str>) -> Result<Self, ObjectError> {
        let Some(header) = header else { return Ok(Self::Whole) };
        let hint = "Write 'bytes FIRST-LAST/TOTAL', where LAST and TOTAL may be '*', or 'bytes */TOTAL'.";
        let fault = || ObjectError::invalid("Content-Range", header, hint);
        let number = |text: &str| match text {
            "*" => Ok(None),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map(Some).map_err(|_| fault())
            }
            _ => Err(fault()),
        };
        let range = header.trim().strip_prefix("bytes").ok_or_else(fault)?.trim_start_matches([' ', '=']);
        let (bytes, total) = range.split_once('/').ok_or_else(fault)?;
        let total = number(total)?;
        if total.is_some_and(|total| total > OBJECT_BYTES_MAX) {
            return Err(ObjectError::new(ErrorKind::TooLarge, "An object has at most 5 TiB."));
        }
        if bytes == "*" {
            return Ok(Self::Nothing { total });
        }
        let (first, last) = bytes.split_once('-').ok_or_else(fault)?;
        let (first, last) = (number(first)?.ok_or_else(fault)?, number(last)?);
        let end = last.and_then(|last| last.checked_add(1));
        let ends_early = end.is_some_and(|end| end <= first);
        let ends_late = total.is_some_and(|total| end.unwrap_or(first) > total);
        match ends_early || ends_late || (last.is_some() && end.is_none()) {
            true => Err(fault()),
            false => Ok(Self::Bytes { first, last, total }),
        }
    }

    /// What a request with this header does to an upload that has `have` durable bytes. `known` is the size of the object
    /// if an earlier request said it, and `length` the length of the body if it is known.
    pub fn step(self, have: u64, known: Option<u64>, length: Option<u64>) -> Result<Step, ObjectError> {
        let said = match self {
            Self::Whole => length,
            Self::Nothing { total } | Self::Bytes { total, .. } => total,
        };
        if let (Some(known), Some(said)) = (known, said)
            && known != said
        {
            let hint = format!("An earlier request has said {known} bytes.");
            return Err(ObjectError::invalid("Content-Range", format_args!("{said} bytes"), &hint));
        }
        let total = said.or(known);
        if total.is_some_and(|total| have > total) {
            let hint = format!("{have} bytes have been stored.");
            return Err(ObjectError::invalid("Content-Range", format_args!("{said:?} bytes"), &hint));
        }
        match self {
            Self::Whole => Ok(Step::Receive { skip: have, length, is_last: true, total }),
            Self::Nothing { total: Some(total) } if total == have => {
                Ok(Step::Receive { skip: 0, length: Some(0), is_last: true, total: Some(total) })
            }
            Self::Nothing { .. } => Ok(Step::Tell),
            // The client believes that more was stored. It learns what was and goes on there.
            Self::Bytes { first, .. } if first > have => Ok(Step::Tell),
            Self::Bytes { first, last: None, .. } => {
                Ok(Step::Receive { skip: have - first, length, is_last: true, total })
            }
            Self::Bytes { first, last: Some(last), .. } => {
                chunk(first, last, total, length).map(|(bytes, is_last)| Step::Receive {
                    skip: have - first,
                    length: Some(bytes),
                    is_last,
                    total,
                })
            }
        }
    }
}

/// Checks a chunk from `first` to `last`. Returns how many of its bytes count, and whether it is the last one.
fn chunk(first: u64, last: u64, total: Option<u64>, length: Option<u64>) -> Result<(u64, bool), ObjectError> {
    let bytes = last - first + 1;
    if let Some(length) = length
        && length != bytes
    {
        let hint = format!("The body has {length} bytes.");
        return Err(ObjectError::invalid("Content-Range", format_args!("{first}-{last}"), &hint));
    }
    if total.is_some_and(|total| last >= total) {
        return Err(ObjectError::invalid(
            "Content-Range",
            format_args!("{first}-{last}"),
            "The object is shorter.",
        ));
    }
    let is_last = total == Some(last + 1);
    if is_last {
        return Ok((bytes, true));
    }
    let end = whole_chunks(last + 1);
    if bytes < UPLOAD_CHUNK_BYTES || end <= first {
        // The words of the real service.
        let message = format!(
            "Invalid request.  The number of bytes uploaded is required to be equal or greater than {UPLOAD_CHUNK_BYTES}, \
             except for the final request (it's recommended to be the exact multiple of {UPLOAD_CHUNK_BYTES}).  The \
             received request contained {bytes} bytes, which does not meet this requirement."
        );
        return Err(ObjectError::new(ErrorKind::Invalid, message).at("Content-Range"));
    }
    Ok((end - first, false))
}

/// The `Range` header of a 308 that tells of `bytes` durable bytes; `None` if it tells of none.
pub fn told_range(bytes: u64) -> Option<String> {
    bytes.checked_sub(1).map(|last| format!("bytes=0-{last}"))
}

/// How many of `have` durable bytes a client is told of that sends chunks: a multiple of 262,144, as the real service does.
///
/// A request that breaks off may leave more. The client sends those again, and they are skipped: so what is left of a chunk is
/// never too small to be taken.
pub fn whole_chunks(have: u64) -> u64 {
    have / UPLOAD_CHUNK_BYTES * UPLOAD_CHUNK_BYTES
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHUNK: u64 = UPLOAD_CHUNK_BYTES;

    fn step(header: &str, have: u64, known: Option<u64>, length: Option<u64>) -> Result<Step, u16> {
        ContentRange::parse((!header.is_empty()).then_some(header))
            .and_then(|range| range.step(have, known, length))
            .map_err(|error| error.kind.status())
    }

    fn receive(skip: u64, length: Option<u64>, is_last: bool, total: Option<u64>) -> Result<Step, u16> {
        Ok(Step::Receive { skip, length, is_last, total })
    }

    #[test]
    fn every_form_of_the_header_is_understood() {
        assert_eq!(step("", 0, None, Some(5)), receive(0, Some(5), true, Some(5)));
        assert_eq!(step("", 0, None, None), receive(0, None, true, None));
        assert_eq!(step("bytes 0-4/5", 0, None, Some(5)), receive(0, Some(5), true, Some(5)));
        assert_eq!(step("bytes 0-*/*", 0, None, None), receive(0, None, true, None));
        assert_eq!(step("bytes 0-*/5", 0, None, None), receive(0, None, true, Some(5)));
        assert_eq!(step("bytes */0", 0, None, Some(0)), receive(0, Some(0), true, Some(0)));
        assert_eq!(step("bytes */*", 7, None, Some(0)), Ok(Step::Tell));
        assert_eq!(step("bytes */9", 7, None, Some(0)), Ok(Step::Tell));
        assert_eq!(step("bytes */7", 7, None, Some(0)), receive(0, Some(0), true, Some(7)));
        let header = format!("bytes 0-{}/*", CHUNK - 1);
        assert_eq!(step(&header, 0, None, None), receive(0, Some(CHUNK), false, None));
    }

    #[test]
    fn bytes_that_are_there_are_skipped_and_gaps_are_told() {
        let header = format!("bytes 0-{}/*", 2 * CHUNK - 1);
        assert_eq!(step(&header, CHUNK, None, None), receive(CHUNK, Some(2 * CHUNK), false, None));
        assert_eq!(step(&header, 3 * CHUNK, None, None), receive(3 * CHUNK, Some(2 * CHUNK), false, None));
        assert_eq!(step("bytes 10-19/20", 5, None, None), Ok(Step::Tell));
    }

    #[test]
    fn an_uneven_chunk_is_kept_up_to_the_last_multiple() {
        let header = |first: u64, last: u64| format!("bytes {first}-{last}/{}", 9 * CHUNK);
        assert_eq!(
            step(&header(0, 2 * CHUNK + 9), 0, None, None),
            receive(0, Some(2 * CHUNK), false, Some(9 * CHUNK))
        );
        assert_eq!(step(&header(0, CHUNK - 2), 0, None, None), Err(400));
        assert_eq!(step(&header(CHUNK, CHUNK + 9), CHUNK, None, None), Err(400));
    }

    #[test]
    fn contradictions_are_refused() {
        for (header, have, known, length) in [
            ("bytes 0-99/*", 0, None, None),
            ("bytes 0-99/500", 0, None, None),
            ("bytes 0-4/5", 0, Some(6), None),
            ("bytes 0-4/5", 0, None, Some(4)),
            ("bytes */5", 6, None, None),
            ("bytes 5-4/*", 0, None, None),
            ("bytes 0-5/5", 0, None, None),
            ("bytes a-b/*", 0, None, None),
            ("bytes 1/2", 0, None, None),
            ("bytes *-5/6", 0, None, None),
            ("bytes +1-5/6", 0, None, None),
            ("lines 0-4/5", 0, None, None),
            ("bytes 0-18446744073709551615/*", 0, None, None),
        ] {
            assert_eq!(step(header, have, known, length), Err(400), "{header}");
        }
        assert_eq!(step("bytes 0-4/99999999999999", 0, None, None), Err(413));
    }

    #[test]
    fn a_reply_tells_the_last_durable_byte() {
        assert_eq!(told_range(0), None);
        assert_eq!(told_range(5).as_deref(), Some("bytes=0-4"));
    }

    #[test]
    fn bytes_after_the_last_whole_chunk_are_not_told() {
        for (have, told) in [(0, 0), (CHUNK - 1, 0), (CHUNK, CHUNK), (2 * CHUNK - 1, CHUNK)] {
            assert_eq!(whole_chunks(have), told, "{have}");
        }
    }

    proptest! {
        /// A client that sends chunks in order, some of them twice, ends with the whole object.
        #[test]
        fn chunks_in_order_make_the_object(
            size in 0..4 * CHUNK,
            chunk in 1u64..3,
            repeats in proptest::collection::vec(any::<bool>(), 8),
            says_total: bool,
        ) {
            let (mut have, mut at, mut done) = (0, 0, false);
            for twice in repeats.into_iter().chain([false; 8]) {
                let end = (at + chunk * CHUNK).min(size);
                let is_last = end == size;
                let total = if is_last || says_total { size.to_string() } else { "*".to_owned() };
                let header = match end == at {
                    true => format!("bytes */{total}"),
                    false => format!("bytes {at}-{}/{total}", end - 1),
                };
                let Ok(Step::Receive { skip, length, is_last: ends, .. }) = step(&header, have, None, None) else {
                    return Err(TestCaseError::fail(header));
                };
                have += length.expect("it was said") - skip;
                prop_assert_eq!(have, end);
                prop_assert_eq!(ends, is_last);
                if ends { done = true; break; }
                if !twice { at = end; }
            }
            prop_assert!(done && have == size);
        }

        /// Requests break off after any number of bytes, and the client goes on where the service says.
        #[test]
        fn an_upload_that_breaks_off_goes_on_where_it_is_told(
            size in 1..9 * CHUNK,
            chunks in 1u64..4,
            cuts in proptest::collection::vec(0..4 * CHUNK, 0..6),
        ) {
            let (mut have, mut cuts) = (0, cuts.into_iter());
            loop {
                let at = whole_chunks(have);
                let end = (at + chunks * CHUNK).min(size);
                let header = format!("bytes {at}-{}/{size}", end - 1);
                let Ok(Step::Receive { skip, length, is_last, .. }) = step(&header, have, None, None) else {
                    return Err(TestCaseError::fail(header));
                };
                prop_assert_eq!((at + skip, length), (have, Some(end - at)));
                have = have.max(cuts.next().map_or(end, |cut| end.min(at + cut)));
                if is_last && have == size { break; }
            }
        }

        #[test]
        fn no_header_is_a_panic(header in "\\PC{0,30}", have: u64, known: Option<u64>, length: Option<u64>) {
            let _ = step(&header, have, known, length);
        }
    }
}
