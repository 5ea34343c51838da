//! A body that its client compressed with gzip, and that is stored while it comes.
//!
//! It comes out in pieces, as every other body does (see [`piece`](super::piece)). A client can write a gigabyte of zeros
//! in a megabyte. So no more is decompressed at once than a piece has; the rest waits in the frame in which it came.

use std::io::{self, Write as _};

use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;
use hyper::body::Incoming;
use rangehold_protocol::error::TableError;
use tokio::time::Instant;

use super::piece::Next;
use super::{Bodies, Piece};
use crate::fair::Tenant;
use crate::limits::{PIECE_BYTES, REQUEST_WITHIN, UNPACKING_BYTES};

/// So many bytes come out of the decoder in one step at most, since its own buffer has as many.
const STEP_BYTES: usize = 32 * 1024;

/// A body in gzip while it is decompressed. It may have several members, one after the other.
#[derive(Default)]
pub(crate) struct Packed {
    state: State,
    is_damaged: bool,
}

#[derive(Default)]
enum State {
    /// Nothing has come. A body without bytes is taken as it is.
    #[default]
    Empty,
    /// The decoder writes into the next piece.
    Open(Box<MultiGzDecoder<Vec<u8>>>),
    /// All has come. The bytes of the last piece are here until they are taken.
    Ended(Vec<u8>),
}

impl Packed {
    /// Decompresses some of `input`, and leaves the rest there. Returns how many bytes came out.
    fn step(&mut self, input: &mut Bytes) -> io::Result<usize> {
        if input.is_empty() {
            return Ok(0);
        }
        if matches!(self.state, State::Empty) {
            self.state = State::Open(Box::new(MultiGzDecoder::new(Vec::new())));
        }
        let before = self.len();
        if let State::Open(decoder) = &mut self.state {
            let used = decoder.write(input)?;
            if used == 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "bytes follow that are not gzip"));
            }
            input.advance(used);
        }
        Ok(self.len() - before)
    }

    /// The body has ended. Returns how many bytes came out. Fails if the last member is not whole.
    fn end(&mut self) -> io::Result<usize> {
        let before = self.len();
        self.state = match std::mem::take(&mut self.state) {
            State::Empty => State::Ended(Vec::new()),
            State::Open(decoder) => State::Ended(decoder.finish()?),
            ended @ State::Ended(_) => ended,
        };
        Ok(self.len() - before)
    }

    /// What has come out since the last piece.
    fn take(&mut self) -> Bytes {
        match &mut self.state {
            State::Empty => Bytes::new(),
            State::Open(decoder) => std::mem::take(decoder.get_mut()).into(),
            State::Ended(last) => std::mem::take(last).into(),
        }
    }

    /// How many bytes have come out since the last piece.
    fn len(&self) -> usize {
        match &self.state {
            State::Empty => 0,
            State::Open(decoder) => decoder.get_ref().len(),
            State::Ended(last) => last.len(),
        }
    }

    /// Makes room for the next piece. A buffer that grows step by step is twice as large as its bytes in the end.
    fn reserve(&mut self) {
        if let State::Open(decoder) = &mut self.state {
            decoder.get_mut().reserve(PIECE_BYTES);
        }
    }

    /// Whether the body was found not to be gzip, or not what its client compressed. Then what came out before is not what the
    /// client sent either.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// The refusal of a damaged body.
    fn damaged(&mut self, error: &io::Error) -> TableError {
        self.is_damaged = true;
        TableError::invalid_input(format!(
            "The Content-Encoding is gzip, but the request body is not whole gzip: {error}."
        ))
    }

    fn is_full(&self) -> bool {
        self.len() + STEP_BYTES > PIECE_BYTES
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }
}

impl Bodies {
    /// As [`Bodies::piece`], for a body in gzip: the piece has what came out of the decoder.
    ///
    /// Fails as [`Bodies::read`] does, and with `InvalidInput` for a body that is not whole gzip.
    pub(crate) async fn unpacked_piece(
        &self,
        body: &mut Incoming,
        rest: &mut Bytes,
        packed: &mut Packed,
        tenant: Tenant,
    ) -> Result<Option<Piece>, TableError> {
        // Many pieces may come out of one frame, and none of them waits for the client.
        tokio::task::yield_now().await;
        let place = self.begin(tenant);
        if !packed.has_ended() {
            place.wait_for_room(UNPACKING_BYTES, Instant::now() + REQUEST_WITHIN).await?;
            packed.reserve();
        }
        let begun = Instant::now();
        while !packed.has_ended() && !packed.is_full() {
            if rest.is_empty() {
                match place.next_of_piece(body, begun, packed.len() == 0).await? {
                    Next::Bytes(frame) => *rest = frame,
                    Next::End => {
                        let more = packed.end().map_err(|error| packed.damaged(&error))?;
                        place.wait_for_room(more, Instant::now() + REQUEST_WITHIN).await?;
                        break;
                    }
                    Next::Slow => break,
                }
            }
            let more = packed.step(rest).map_err(|error| packed.damaged(&error))?;
            place.wait_for_room(more, Instant::now() + REQUEST_WITHIN).await?;
        }
        let bytes = packed.take();
        if bytes.is_empty() {
            return Ok(None);
        }
        Ok(Some(Piece::whole(bytes, place)))
    }
}

#[cfg(test)]
mod tests {
    use rangehold_testkit::gzip;

    use super::*;

    /// The pieces of a body that comes in frames of `cut` bytes.
    fn pieces(body: &[u8], cut: usize) -> io::Result<Vec<Bytes>> {
        let mut packed = Packed::default();
        let mut pieces = Vec::new();
        for frame in body.chunks(cut) {
            let mut rest = Bytes::copy_from_slice(frame);
            while !rest.is_empty() {
                packed.step(&mut rest)?;
                if packed.is_full() {
                    pieces.push(packed.take());
                }
            }
        }
        packed.end()?;
        pieces.push(packed.take());
        assert!(packed.has_ended() && packed.len() == 0);
        Ok(pieces)
    }

    #[test]
    fn what_was_compressed_comes_out_however_it_is_cut() {
        let text: Vec<u8> = (0..100_000u32).flat_map(|number| number.to_le_bytes()).collect();
        let (one, other) = text.split_at(123_456);
        let members = [gzip(one), gzip(b""), gzip(other)].concat();
        for cut in [1, 255, 70_000, usize::MAX] {
            assert_eq!(pieces(&members, cut).unwrap().concat(), text, "{cut}");
        }
        assert!(pieces(&gzip(b""), 3).unwrap().concat().is_empty());
        assert!(pieces(b"", 3).unwrap().concat().is_empty());
    }

    #[test]
    fn a_body_that_grows_a_thousandfold_comes_in_pieces_of_the_usual_size() {
        let body = gzip(&vec![0; 64 << 20]);
        assert!(body.len() < 100_000);
        let pieces = pieces(&body, usize::MAX).unwrap();
        assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), 64 << 20);
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES), "a piece is larger than the others");
    }

    #[test]
    fn what_is_not_whole_gzip_is_refused() {
        let whole = gzip(&[7; 1000]);
        let mut wrong_sum = whole.clone();
        let sum = wrong_sum.len() - 6;
        wrong_sum[sum] ^= 1;
        let cut = &whole[..whole.len() - 4];
        for body in [b"plain text".as_slice(), b"\x1f", cut, &wrong_sum, &[&*whole, b"more"].concat()] {
            for frame in [1, usize::MAX] {
                assert!(pieces(body, frame).is_err(), "{} bytes", body.len());
            }
        }
    }
}
