//! The bytes of a body while it comes.
//!
//! They lie in pieces, so that a body takes memory for what is here and not for what its client declares: 64 clients with
//! batches of 3.2 MB, most of which waited for room, held three times the room of all bodies. A body that fits into one piece
//! is never copied again; a larger one once, when it is whole.

use bytes::{Bytes, BytesMut};

use crate::limits::{BODY_PIECE_BYTES, BODY_PIECE_BYTES_MIN};

/// The part of a body that is here.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    full: Vec<Bytes>,
    last: BytesMut,
    /// Bytes of all pieces.
    pub(super) length: usize,
}

impl Gathered {
    /// Adds what came next. `declared` is the length of the whole body, if its client has told it.
    pub(super) fn put(&mut self, mut data: &[u8], declared: Option<u64>) {
        while !data.is_empty() {
            if self.last.len() == self.last.capacity() {
                self.begin_piece(declared);
            }
            let (fits, rest) = data.split_at(data.len().min(self.last.capacity() - self.last.len()));
            self.last.extend_from_slice(fits);
            self.length += fits.len();
            data = rest;
        }
    }

    fn begin_piece(&mut self, declared: Option<u64>) {
        let to_come = declared.map(|bytes| (bytes as usize).saturating_sub(self.length));
        // Without a length, the pieces double: a client that sends single bytes must not make a piece of each.
        let bytes = to_come.filter(|bytes| *bytes > 0).unwrap_or(self.length.max(BODY_PIECE_BYTES_MIN));
        let piece = BytesMut::with_capacity(bytes.min(BODY_PIECE_BYTES));
        let full = std::mem::replace(&mut self.last, piece);
        if !full.is_empty() {
            self.full.push(full.freeze());
        }
    }

    /// All bytes, one after the other.
    pub(super) fn whole(self) -> Bytes {
        if self.full.is_empty() {
            return self.last.freeze();
        }
        let mut whole = BytesMut::with_capacity(self.length);
        for piece in self.full.iter().map(Bytes::as_ref).chain([self.last.as_ref()]) {
            whole.extend_from_slice(piece);
        }
        whole.freeze()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_body_is_what_came_in_pieces_that_take_no_more_than_they_must(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60_000), 0..6),
            is_declared in any::<bool>(),
        ) {
            let all = frames.concat();
            let declared = is_declared.then_some(all.len() as u64);
            let mut gathered = Gathered::default();
            for frame in &frames {
                gathered.put(frame, declared);
                let taken: usize = gathered.full.iter().map(Bytes::len).sum::<usize>() + gathered.last.capacity();
                prop_assert!(taken <= gathered.length + BODY_PIECE_BYTES);
            }
            prop_assert_eq!(gathered.length, all.len());
            prop_assert_eq!(gathered.whole(), all);
        }
    }

    #[test]
    fn single_bytes_make_few_pieces() {
        let mut gathered = Gathered::default();
        for _ in 0..1_000_000 {
            gathered.put(b"x", None);
        }
        assert!(gathered.full.len() < 30, "{} pieces", gathered.full.len());
        let mut small = Gathered::default();
        small.put(b"ab", Some(4));
        small.put(b"cd", Some(4));
        assert_eq!((small.full.len(), small.last.capacity()), (0, 4));
    }
}
