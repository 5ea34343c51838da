//! Decompressive transcoding: an object that is stored in gzip, and is read by a client that does not accept gzip, is
//! decompressed on its way.

use std::io::Write;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures::stream::{StreamExt, try_unfold};

use super::reply::Pieces;

/// The bytes that are decompressed at once. They become 1,032 times as many at most, so an object that was made to
/// grow takes no more memory than this: 256 KiB.
const STEP_BYTES: usize = 256;
/// A piece is sent when it has so many bytes.
const PIECE_BYTES: usize = 64 * 1024;

struct Decoding {
    pieces: Pieces,
    /// What was read and is not decompressed yet.
    input: Bytes,
    /// It writes into the bytes that are sent next. `None` at the end.
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
}

impl Decoding {
    /// The next bytes; `None` at the end. Fails if the object is not gzip, which breaks the download off.
    async fn next(&mut self) -> std::io::Result<Option<Bytes>> {
        while let Some(decoder) = &mut self.decoder {
            if decoder.get_ref().len() >= PIECE_BYTES {
                return Ok(Some(std::mem::take(decoder.get_mut()).into()));
            }
            if self.input.is_empty() {
                match self.pieces.next().await {
                    Some(piece) => self.input = piece?,
                    None => {
                        let rest = self.decoder.take().map(MultiGzDecoder::finish).transpose()?;
                        return Ok(rest.filter(|rest| !rest.is_empty()).map(Bytes::from));
                    }
                }
            }
            let step = self.input.split_to(self.input.len().min(STEP_BYTES));
            decoder.write_all(&step)?;
        }
        Ok(None)
    }
}

/// The decompressed bytes of an object.
pub(super) fn gunzip(pieces: Pieces) -> Pieces {
    let decoder = Some(MultiGzDecoder::new(Vec::new()));
    let decoding = Decoding { pieces, input: Bytes::new(), decoder };
    try_unfold(decoding, |mut decoding| async move {
        let next = decoding.next().await?;
        Ok(next.map(|piece| (piece, decoding)))
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;
    use rangehold_testkit::gzip;

    use super::*;

    async fn decoded(stored: &[u8], cut: usize) -> std::io::Result<Vec<Bytes>> {
        let pieces: Vec<_> = stored.chunks(cut).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        gunzip(futures::stream::iter(pieces).boxed()).try_collect().await
    }

    #[tokio::test]
    async fn what_was_compressed_comes_out_however_it_is_cut() {
        let text: Vec<u8> = (0..300_000u32).flat_map(|number| number.to_le_bytes()).collect();
        for cut in [1, 255, 70_000, usize::MAX] {
            assert_eq!(decoded(&gzip(&text), cut).await.unwrap().concat(), text, "{cut}");
        }
        assert!(decoded(&gzip(b""), 5).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn an_object_that_grows_a_thousandfold_comes_in_small_pieces() {
        let pieces = decoded(&gzip(&vec![0; 16 << 20]), usize::MAX).await.unwrap();
        assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), 16 << 20);
        assert!(pieces.iter().all(|piece| piece.len() < PIECE_BYTES + STEP_BYTES * 1_032));
    }

    #[tokio::test]
    async fn what_is_not_gzip_breaks_off() {
        assert!(decoded(b"plain text", 4).await.is_err());
        let mut cut = gzip(&[7; 1000]);
        cut.truncate(cut.len() - 4);
        assert!(decoded(&cut, 5).await.is_err());
    }
}
