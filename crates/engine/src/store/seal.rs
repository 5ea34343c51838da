//! Seals: how a damaged file is recognised.
//!
//! Every file of the store ends in a seal of 32 bytes, which SlateDB never sees:
//!
//! ```text
//!   | payload ............................ | seal                                        |
//!                                   | tail |
//!   seal = payload length u64 | check of the payload u32 | check of the tail u32
//!        | kind of seal u32 = 1 | check of the 20 bytes before u32 | "RNGHSEAL"      (big endian)
//! ```
//!
//! SlateDB puts a checksum behind each block, index and filter of its sorted files, and names the file when
//! one does not fit. Four kinds of damage still pass, and all of them were seen. Its manifests have no
//! checksum, so a flipped bit is served as if it were right. The last ten bytes of a sorted file have none,
//! so damage there makes SlateDB read nonsense and panic, or try again forever. If a file is cut short,
//! SlateDB reads a wrong footer. If a log file is cut to nothing, SlateDB takes it for a fence, and the
//! writes that it held are lost without a word. The seal finds all four:
//!
//! - the length in the seal and its last bytes tell whether the file is whole,
//! - the check of the tail (the last [`TAIL_LEN`] bytes, where the footer is) is read together with the
//!   seal whenever a file is opened,
//! - the check of the payload is compared whenever a whole file is read, as with manifests always.
//!
//! Inside sorted files, the checksums of SlateDB are enough; a second check would cost reads. A check here
//! is a CRC-32, which finds every single flipped bit. It protects against faults of disks, not against
//! people.

use super::damage::Damage;

/// The length of a seal in bytes.
pub(super) const SEAL_LEN: u64 = 32;
/// The last bytes of the payload, which have a check of their own. If the payload is shorter, all of it is
/// the tail.
pub(super) const TAIL_LEN: u64 = 64;

const MAGIC: &[u8; 8] = b"RNGHSEAL";
const KIND: u32 = 1;

/// What the seal of a file says about its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seal {
    /// The length of the payload in bytes.
    pub(super) payload_len: u64,
    /// The CRC-32 of the payload.
    pub(super) payload_check: u32,
    tail_check: u32,
}

impl Seal {
    /// Reads the seal from the end of a file of `file_len` bytes. `end` is the last `TAIL_LEN + SEAL_LEN`
    /// bytes of the file, or the whole file if it is shorter. Fails if the file is not whole or its tail is not
    /// what was written.
    pub(super) fn open(file_len: u64, end: &[u8]) -> Result<Self, Damage> {
        let Some((before, seal)) = end.split_last_chunk::<{ SEAL_LEN as usize }>() else {
            return Err(Damage::Short(file_len));
        };
        if &seal[24..] != MAGIC {
            return Err(Damage::Unsealed(file_len));
        }
        if u32_at(seal, 20) != crc32fast::hash(&seal[..20]) {
            return Err(Damage::Seal);
        }
        if u32_at(seal, 16) != KIND {
            return Err(Damage::SealKind(u32_at(seal, 16)));
        }
        let payload_len = (u64::from(u32_at(seal, 0)) << 32) | u64::from(u32_at(seal, 4));
        if payload_len != file_len - SEAL_LEN {
            return Err(Damage::Length(payload_len, file_len - SEAL_LEN));
        }
        let tail = &before[before.len() - tail_len(payload_len).min(before.len())..];
        let tail_check = u32_at(seal, 12);
        if crc32fast::hash(tail) != tail_check {
            return Err(Damage::Tail);
        }
        Ok(Self { payload_len, payload_check: u32_at(seal, 8), tail_check })
    }

    /// Checks a payload that was read as a whole.
    pub(super) fn check_payload(&self, payload: &[u8]) -> Result<(), Damage> {
        if payload.len() as u64 == self.payload_len && crc32fast::hash(payload) == self.payload_check {
            return Ok(());
        }
        Err(Damage::Payload)
    }

    /// The stored form.
    pub(super) fn encode(&self) -> [u8; SEAL_LEN as usize] {
        let mut out = [0; SEAL_LEN as usize];
        out[..8].copy_from_slice(&self.payload_len.to_be_bytes());
        out[8..12].copy_from_slice(&self.payload_check.to_be_bytes());
        out[12..16].copy_from_slice(&self.tail_check.to_be_bytes());
        out[16..20].copy_from_slice(&KIND.to_be_bytes());
        let check = crc32fast::hash(&out[..20]);
        out[20..24].copy_from_slice(&check.to_be_bytes());
        out[24..].copy_from_slice(MAGIC);
        out
    }
}

/// Makes the seal of a payload that comes in pieces, in order.
#[derive(Debug, Default)]
pub(super) struct Sealer {
    payload: crc32fast::Hasher,
    payload_len: u64,
    tail: Vec<u8>,
}

impl Sealer {
    /// Takes the next piece.
    pub(super) fn update(&mut self, piece: &[u8]) {
        self.payload.update(piece);
        self.payload_len += piece.len() as u64;
        let keep = TAIL_LEN as usize;
        if piece.len() >= keep {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - keep..]);
        } else {
            self.tail.extend_from_slice(piece);
            let surplus = self.tail.len().saturating_sub(keep);
            self.tail.drain(..surplus);
        }
    }

    /// The seal of all pieces so far.
    pub(super) fn finish(&self) -> Seal {
        Seal {
            payload_len: self.payload_len,
            payload_check: self.payload.clone().finalize(),
            tail_check: crc32fast::hash(&self.tail),
        }
    }
}

fn tail_len(payload_len: u64) -> usize {
    payload_len.min(TAIL_LEN) as usize
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sealed(pieces: &[Vec<u8>]) -> Vec<u8> {
        let mut sealer = Sealer::default();
        pieces.iter().for_each(|piece| sealer.update(piece));
        let mut file = pieces.concat();
        file.extend(sealer.finish().encode());
        file
    }

    fn verify(file: &[u8]) -> Result<(), Damage> {
        let end = &file[file.len().saturating_sub((TAIL_LEN + SEAL_LEN) as usize)..];
        let seal = Seal::open(file.len() as u64, end)?;
        seal.check_payload(&file[..file.len() - SEAL_LEN as usize])
    }

    proptest! {
        #[test]
        fn any_flipped_bit_and_any_cut_is_found(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..5),
            at in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let mut file = sealed(&pieces);
            prop_assert_eq!(verify(&file), Ok(()));
            let at = at.index(file.len());
            prop_assert!(verify(&file[..at]).is_err());
            file[at] ^= 1_u8 << bit;
            prop_assert!(verify(&file).is_err());
        }
    }
}
