//! A body that is stored while it comes: one piece after the other.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Incoming};
use rangehold_protocol::error::{ErrorCode, TableError};
use tokio::time::Instant;

use super::{Bodies, Place};
use crate::fair::Tenant;
use crate::limits;

/// A piece of a body, and the room that it takes.
pub(crate) struct Piece {
    /// The bytes of the piece.
    pub(crate) bytes: Bytes,
    place: Arc<Place>,
}

/// Bytes that are still to be stored, and the room of their piece.
struct Held {
    bytes: Bytes,
    _place: Arc<Place>,
}

/// What comes next of a body while a piece of it is filled.
pub(super) enum Next {
    /// The bytes of a frame.
    Bytes(Bytes),
    /// The body has ended.
    End,
    /// The client is slow, and the piece has something: it is taken as it is.
    Slow,
}

impl Piece {
    /// A piece of which all bytes are here.
    pub(super) fn whole(bytes: Bytes, place: Place) -> Self {
        place.bodies.change(|growth, _| growth.complete(place.ticket));
        Self { bytes, place: Arc::new(place) }
    }

    /// Bytes that came out of this piece, for somebody who stores them later. The room of the piece is given back when the
    /// piece and these bytes are dropped.
    pub(crate) fn hold(&self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Held { bytes, _place: Arc::clone(&self.place) })
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Bodies {
    /// Reads the next piece of a body that is not kept whole; `None` at its end. A piece has [`limits::PIECE_BYTES`], or less
    /// at the end and if the client is slow. So there is no limit to the time of the whole, as long as something comes every
    /// [`limits::PIECE_QUIET_MAX`]. What came beyond the piece stays in `rest` for the next one.
    ///
    /// Fails as [`Bodies::read`] does.
    pub(crate) async fn piece(
        &self,
        body: &mut Incoming,
        rest: &mut Bytes,
        tenant: Tenant,
    ) -> Result<Option<Piece>, TableError> {
        let place = self.begin(tenant);
        let begun = Instant::now();
        let mut bytes = BytesMut::new();
        while bytes.len() < limits::PIECE_BYTES {
            if rest.is_empty() {
                *rest = match place.next_of_piece(body, begun, bytes.is_empty()).await? {
                    Next::Bytes(frame) => frame,
                    Next::End | Next::Slow => break,
                };
            }
            let fits = rest.split_to(rest.len().min(limits::PIECE_BYTES - bytes.len()));
            place.wait_for_room(fits.len(), Instant::now() + limits::REQUEST_WITHIN).await?;
            if bytes.is_empty() {
                // A buffer that grows step by step is twice as large as its bytes in the end.
                let here = (fits.len() + rest.len()) as u64;
                let to_come = body.size_hint().upper().unwrap_or(u64::MAX);
                bytes.reserve(here.saturating_add(to_come).min(limits::PIECE_BYTES as u64) as usize);
            }
            bytes.extend_from_slice(&fits);
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        Ok(Some(Piece::whole(bytes.freeze(), place)))
    }
}

impl Place {
    /// What comes next of a body for a piece that was begun then. Fails if nothing of the piece comes in time.
    pub(super) async fn next_of_piece(
        &self,
        body: &mut Incoming,
        begun: Instant,
        is_empty: bool,
    ) -> Result<Next, TableError> {
        let within = if is_empty { limits::PIECE_QUIET_MAX } else { limits::PIECE_WITHIN };
        match self.next_frame(body, begun + within).await {
            Ok(Some(frame)) => Ok(Next::Bytes(frame.into_data().unwrap_or_default())),
            Ok(None) => Ok(Next::End),
            Err(slow) if slow.code == ErrorCode::RequestTimedOut && !is_empty => Ok(Next::Slow),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RESERVE_BYTES;
    use super::*;

    #[test]
    fn the_room_of_a_piece_is_given_back_when_nothing_of_it_is_to_be_stored() {
        let bodies = Bodies::new(2 * RESERVE_BYTES);
        let places = || bodies.0.state.lock().1.len();
        let place = Arc::new(bodies.begin(Tenant { group: 1, member: 1 }));
        let piece = Piece { bytes: Bytes::from_static(b"abc"), place };
        let later = piece.hold(piece.bytes.slice(1..));
        drop(piece);
        let (first, second) = (later.slice(..1), later.slice(1..));
        drop(later);
        assert_eq!((&first[..], &second[..], places()), (&b"b"[..], &b"c"[..], 1));
        drop(first);
        assert_eq!(places(), 1);
        drop(second);
        assert_eq!(places(), 0);
    }
}
