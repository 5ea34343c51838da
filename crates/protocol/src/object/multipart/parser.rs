//! The parser itself.

use bytes::{Bytes, BytesMut};
use memchr::memmem::Finder;

use super::{Boundary, MultipartError, PART_HEAD_BYTES_MAX, PartHead};

/// What the parser found next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A part begins.
    Part(PartHead),
    /// Data of the part that began last; never empty. A part has any number of these.
    Data(Bytes),
    /// The closing delimiter: no event follows.
    End,
}

/// Reads a body that is given to it in pieces.
#[derive(Debug)]
pub struct Parser {
    boundary: Boundary,
    /// Finds a newline, two dashes and the boundary.
    delimiter: Finder<'static>,
    /// What was given and not yet used. While data are read, the first `lead` bytes of it are a newline that is not
    /// part of them, so that a delimiter may follow at once.
    buffer: Bytes,
    lead: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first delimiter.
    Preamble,
    /// In the head of a part.
    Head,
    /// In the data of a part.
    Data,
    /// Behind the closing delimiter.
    Ended,
}

/// What the bytes behind a newline, two dashes and the boundary make of them.
enum Line {
    /// A delimiter of so many bytes; another part follows.
    Delimiter(usize),
    Closing,
    /// More bytes are needed to know it.
    Unknown,
    /// Data that look like a delimiter.
    Data,
}

impl Parser {
    /// A parser for a body with this boundary.
    pub fn new(boundary: Boundary) -> Self {
        let delimiter = Finder::new(&format!("\n--{}", boundary.as_str())).into_owned();
        Self { boundary, delimiter, buffer: Bytes::from_static(b"\n"), lead: 1, state: State::Preamble }
    }

    /// Gives the parser the next piece of the body. Call [`event`](Self::event) until it has no more, then give the
    /// next piece, so that the parser holds little.
    pub fn push(&mut self, piece: Bytes) {
        if self.state == State::Ended {
            return;
        }
        if self.buffer.is_empty() {
            self.buffer = piece;
        } else {
            let mut joined = BytesMut::with_capacity(self.buffer.len() + piece.len());
            joined.extend_from_slice(&self.buffer);
            joined.extend_from_slice(&piece);
            self.buffer = joined.freeze();
        }
    }

    /// The next event; `None` if more of the body is needed, or after [`Event::End`].
    ///
    /// # Errors
    /// [`MultipartError::NotAHeader`] and [`MultipartError::HeadTooLong`]. The parser cannot be used afterwards.
    pub fn event(&mut self) -> Result<Option<Event>, MultipartError> {
        match self.state {
            State::Preamble => match self.data() {
                Some(Event::Data(_)) => self.event(),
                Some(event) => Ok(Some(event)),
                None if self.state == State::Head => self.head(),
                None => Ok(None),
            },
            State::Data => match self.data() {
                Some(event) => Ok(Some(event)),
                None if self.state == State::Head => self.head(),
                None => Ok(None),
            },
            State::Head => self.head(),
            State::Ended => Ok(None),
        }
    }

    /// Checks at the end of the body that the closing delimiter was there.
    ///
    /// # Errors
    /// [`MultipartError::Truncated`].
    pub fn finish(self) -> Result<(), MultipartError> {
        match self.state {
            State::Ended => Ok(()),
            _ => Err(MultipartError::Truncated(self.boundary.as_str().to_owned())),
        }
    }

    /// Data up to the next delimiter, or the end. `None` if more is needed, or if a delimiter was read and a head
    /// follows.
    fn data(&mut self) -> Option<Event> {
        let mut from = 0;
        while let Some(at) = self.delimiter.find(&self.buffer[from..]).map(|at| from + at) {
            let behind = at + self.delimiter.needle().len();
            match line(&self.buffer[behind..]) {
                Line::Data => from = at + 1,
                Line::Unknown => return self.take(at),
                Line::Delimiter(bytes) => {
                    let data = self.take(at);
                    if data.is_none() {
                        self.skip_to(behind + bytes);
                        self.state = State::Head;
                    }
                    return data;
                }
                Line::Closing => {
                    return self.take(at).or_else(|| {
                        self.buffer.clear();
                        self.state = State::Ended;
                        Some(Event::End)
                    });
                }
            }
        }
        // The last bytes may be a carriage return and the beginning of a delimiter.
        self.take(self.buffer.len().saturating_sub(self.delimiter.needle().len() - 1))
    }

    /// The data before the newline at `end`, without a carriage return; `None` if there are none.
    fn take(&mut self, end: usize) -> Option<Event> {
        let end = match end.checked_sub(1) {
            Some(last) if self.buffer[last] == b'\r' => last,
            _ => end,
        };
        if end <= self.lead {
            return None;
        }
        let data = self.buffer.split_to(end).split_off(self.lead);
        self.lead = 0;
        Some(Event::Data(data))
    }

    fn skip_to(&mut self, at: usize) {
        self.buffer = self.buffer.slice(at..);
        self.lead = 0;
    }

    /// The head of a part, once its last, empty line is there.
    fn head(&mut self) -> Result<Option<Event>, MultipartError> {
        let mut lines = Vec::new();
        let mut from = 0;
        while let Some(length) = memchr::memchr(b'\n', &self.buffer[from..]) {
            let line = &self.buffer[from..from + length];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if from + length > PART_HEAD_BYTES_MAX {
                return Err(MultipartError::HeadTooLong);
            }
            if line.is_empty() {
                let head = PartHead::read(lines.into_iter())?;
                // The newline stays, since a delimiter may follow at once.
                self.skip_to(from + length);
                self.lead = 1;
                self.state = State::Data;
                return Ok(Some(Event::Part(head)));
            }
            let text = std::str::from_utf8(line)
                .map_err(|_| MultipartError::NotAHeader(String::from_utf8_lossy(line).into_owned()))?;
            lines.push(text);
            from += length + 1;
        }
        if self.buffer.len() > PART_HEAD_BYTES_MAX {
            return Err(MultipartError::HeadTooLong);
        }
        Ok(None)
    }
}

/// Judges what follows a newline, two dashes and the boundary: two dashes more, or white space and a newline.
fn line(behind: &[u8]) -> Line {
    if behind.starts_with(b"--") {
        return Line::Closing;
    }
    if behind == b"-" {
        return Line::Unknown;
    }
    let blank = behind.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    match &behind[blank..] {
        [b'\n', ..] => Line::Delimiter(blank + 1),
        [b'\r', b'\n', ..] => Line::Delimiter(blank + 2),
        [] | [b'\r'] if blank <= BLANKS_MAX => Line::Unknown,
        _ => Line::Data,
    }
}

/// White space behind a boundary while the newline is awaited.
const BLANKS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The parts of `body`, given in pieces of `piece` bytes.
    fn parts(boundary: &str, body: &[u8], piece: usize) -> Result<Vec<(PartHead, Vec<u8>)>, MultipartError> {
        let mut parser = Parser::new(Boundary::new(boundary).expect("a boundary"));
        let mut parts: Vec<(PartHead, Vec<u8>)> = Vec::new();
        for piece in body.chunks(piece) {
            parser.push(Bytes::copy_from_slice(piece));
            while let Some(event) = parser.event()? {
                match event {
                    Event::Part(head) => parts.push((head, Vec::new())),
                    Event::Data(data) => {
                        assert!(!data.is_empty(), "an event without data");
                        parts.last_mut().expect("a part began").1.extend_from_slice(&data);
                    }
                    Event::End => assert_eq!(parser.event(), Ok(None), "an event behind the end"),
                }
            }
        }
        parser.finish().map(|()| parts)
    }

    fn data(body: &str) -> Vec<String> {
        let whole = parts("B", body.as_bytes(), usize::MAX).expect("a whole body");
        for piece in 1..8 {
            assert_eq!(parts("B", body.as_bytes(), piece).as_ref(), Ok(&whole), "in pieces of {piece} bytes");
        }
        whole.into_iter().map(|(_, data)| String::from_utf8(data).expect("text")).collect()
    }

    #[test]
    fn bodies_of_all_clients_are_read() {
        for (body, expected) in [
            ("--B\r\nA: b\r\n\r\none\r\n--B\r\n\r\ntwo\r\n--B--\r\n", vec!["one", "two"]),
            ("--B\nA: b\n\none\n\n--B\n\ntwo\n--B--", vec!["one\n", "two"]),
            ("preamble\r\n--B \t\r\n\r\none\r\n--B--epilogue\r\n--B\r\n\r\n", vec!["one"]),
            ("\r\n--B\r\nA: b\r\n\r\n--B\r\n\r\n\r\n--B--", vec!["", ""]),
            ("--B\r\n\r\n--Bx\r\n--B x\r\n\r--B\r\n-\r\n--B--", vec!["--Bx\r\n--B x\r\n\r--B\r\n-"]),
            ("--B--", vec![]),
        ] {
            assert_eq!(data(body), expected, "{body:?}");
        }
    }

    #[test]
    fn a_body_without_its_end_is_truncated() {
        for body in
            ["", "--B", "--B-", "x--B--", "--B\r\n\r\ndata", "--B\r\nA: b\r\n", "--B\r\n\r\ndata\r\n--C--"]
        {
            assert_eq!(
                parts("B", body.as_bytes(), 3),
                Err(MultipartError::Truncated("B".to_owned())),
                "{body:?}"
            );
        }
    }

    #[test]
    fn a_head_has_a_limit() {
        let head = |bytes: usize| format!("--B\r\nA: {}\r\n\r\n\r\n--B--", "b".repeat(bytes));
        assert!(parts("B", head(PART_HEAD_BYTES_MAX - 10).as_bytes(), 1000).is_ok());
        for piece in [1000, usize::MAX] {
            let refused = parts("B", head(PART_HEAD_BYTES_MAX).as_bytes(), piece);
            assert_eq!(refused, Err(MultipartError::HeadTooLong));
        }
        let line = parts("B", b"--B\nwrong\n\n\n--B--", 100);
        assert_eq!(line, Err(MultipartError::NotAHeader("wrong".to_owned())));
    }

    #[test]
    fn data_are_passed_on_while_the_part_is_open() {
        let mut parser = Parser::new(Boundary::new("B").expect("a boundary"));
        parser.push(Bytes::from_static(b"--B\r\n\r\n"));
        assert!(matches!(parser.event(), Ok(Some(Event::Part(_)))));
        parser.push(Bytes::from(vec![b'x'; 100_000]));
        let Ok(Some(Event::Data(data))) = parser.event() else { panic!("no data") };
        assert!(data.len() > 99_900, "{} bytes of 100,000 were passed on", data.len());
        assert_eq!(parser.event(), Ok(None));
    }

    /// Data in which newlines, dashes and the boundary are frequent.
    fn tricky() -> impl Strategy<Value = Vec<u8>> {
        let token = prop::sample::select(vec!["\r", "\n", "\r\n", "-", "--", "B", "--B", "\n--B", "x", " "]);
        prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat().into_bytes())
    }

    /// Whether a reader would take a line of `data` for a delimiter.
    fn has_delimiter(data: &[u8]) -> bool {
        [b"\n".as_slice(), data, b"\r\n--"].concat().windows(4).any(|window| window == b"\n--B")
    }

    proptest! {
        #[test]
        fn parts_are_read_back_in_pieces_of_any_size(
            wanted in prop::collection::vec(tricky(), 0..4), lf: bool, piece in 1_usize..20
        ) {
            prop_assume!(!wanted.iter().any(|data| has_delimiter(data)));
            // Before a lone LF, a carriage return would be taken for a part of the newline.
            prop_assume!(!lf || !wanted.iter().any(|data| data.ends_with(b"\r")));
            let newline = if lf { "\n" } else { "\r\n" };
            let mut body = Vec::new();
            for data in &wanted {
                body.extend_from_slice(format!("--B{newline}A: b{newline}{newline}").as_bytes());
                body.extend_from_slice(data);
                body.extend_from_slice(newline.as_bytes());
            }
            body.extend_from_slice(b"--B--");
            let read: Vec<Vec<u8>> =
                parts("B", &body, piece).expect("a whole body").into_iter().map(|(_, data)| data).collect();
            prop_assert_eq!(read, wanted);
        }

        #[test]
        fn the_size_of_the_pieces_makes_no_difference(
            start in prop::sample::select(vec!["", "--B\n\n", "--B\r\nA: b\r\n\r\n", "x\r\n"]),
            rest in tricky(),
            piece in 1_usize..20
        ) {
            let body = [start.as_bytes(), &rest].concat();
            prop_assert_eq!(parts("B", &body, piece), parts("B", &body, usize::MAX));
        }
    }
}
