//! Reading a segment: which records does it hold, and where does it end?
//!
//! A crash may leave the last records torn: they were written, and not synced, so nobody was told that they are durable. They
//! are left out. A record that was synced is never left out in silence, even if its bytes are no longer what was written.
//! So a place without a good record is the end only if nothing shows that the segment was synced beyond it. Each
//! record tells how far that was when it was written, the last record of a full segment too, and the `synced` file tells of the last
//! sync.
//!
//! Payloads that were synced are not read here: like a sealed file, each is checked when it is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::super::super::seal::{SEAL_LEN, Seal, TAIL_LEN};
use super::record::{HEADER_LEN, Header, Kind, Lengths};

/// How much is read at once in the search for the next record.
const WINDOW: u64 = 64 * 1024;

/// The error of the system for a place of the disk that cannot be read.
const EIO: i32 = 5;

/// The records of a segment.
#[derive(Debug)]
pub(super) struct Scanned {
    /// In the order in which they were written, without that of the end.
    pub(super) records: Vec<Header>,
    /// Where the last one ends.
    pub(super) end: u64,
    /// Whether the record of the end was found.
    pub(super) is_finished: bool,
}

impl Scanned {
    fn of(mut records: Vec<Header>, from: u64) -> Self {
        let is_finished = records.pop_if(|last| last.kind == Kind::End).is_some();
        Self { end: records.last().map_or(from, Header::end), records, is_finished }
    }
}

/// Why a segment cannot be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::store) enum ScanError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A record that was synced is damaged at both of its ends, so nothing tells what it was.
    #[error(
        "the record at byte {0} is damaged, and what is left of it does not say which file of a log it held"
    )]
    Damaged(u64),
}

/// Reads a segment in this life. It was synced up to `synced` at least.
pub(super) fn scan(file: &File, life: u64, synced: u64) -> Result<Scanned, ScanError> {
    let segment = Reader { file, life, len: file.metadata()?.len() };
    let (mut at, mut synced, mut records) = (0, synced, Vec::<Header>::new());
    while records.last().is_none_or(|last| last.kind != Kind::End) {
        let found = match segment.header_at(at)? {
            Some(header) => vec![header],
            None => {
                synced = synced.max(segment.synced_after(at)?);
                if at >= synced {
                    break;
                }
                segment.recover(at, synced)?
            }
        };
        synced = found.iter().map(|header| header.synced).fold(synced, u64::max);
        at = found.last().map_or(at, Header::end);
        records.extend(found);
    }
    segment.leave_out_torn(&mut records, synced)?;
    Ok(Scanned::of(records, 0))
}

/// Reads what was added to a segment behind `from` by a process that is running. What is not whole yet is left for the next
/// time.
pub(super) fn scan_new(file: &File, life: u64, from: u64) -> io::Result<Scanned> {
    let segment = Reader { file, life, len: file.metadata()?.len() };
    let (mut at, mut records) = (from, Vec::new());
    while let Some(header) = segment.header_at(at)? {
        if header.kind == Kind::End || !segment.is_whole(&header)? {
            break;
        }
        at = header.end();
        records.push(header);
    }
    Ok(Scanned::of(records, from))
}

struct Reader<'f> {
    file: &'f File,
    life: u64,
    len: u64,
}

impl Reader<'_> {
    /// The header of the record that begins at `at`; `None` if no good one is there.
    fn header_at(&self, at: u64) -> io::Result<Option<Header>> {
        let Some(header) =
            self.read_header(at, |lengths| at.checked_add(HEADER_LEN).map(|path| (path, lengths.path)))?
        else {
            return Ok(None);
        };
        Ok((header.offset == at && header.end() <= self.len).then_some(header))
    }

    /// The header of the record that ends at `end`, from its copy.
    fn header_before(&self, end: u64) -> io::Result<Option<Header>> {
        let Some(at) = end.checked_sub(HEADER_LEN) else { return Ok(None) };
        let path_at = |lengths: Lengths| Some((at.checked_sub(lengths.padded_path())?, lengths.path));
        let header = self.read_header(at, path_at)?;
        Ok(header.filter(|header| header.offset < end && header.end() == end))
    }

    fn read_header(
        &self,
        at: u64,
        path: impl Fn(Lengths) -> Option<(u64, u64)>,
    ) -> io::Result<Option<Header>> {
        let mut fixed = [0; HEADER_LEN as usize];
        if !self.read(&mut fixed, at)? {
            return Ok(None);
        }
        let Some((path_at, path_len)) = Lengths::read(&fixed).and_then(path) else { return Ok(None) };
        let mut path = vec![0; path_len as usize];
        if !self.read(&mut path, path_at)? {
            return Ok(None);
        }
        Ok(Header::read(&fixed, &path).filter(|header| header.life == self.life))
    }

    /// Leaves out the first record that is torn and was not synced, and those behind it.
    fn leave_out_torn(&self, records: &mut Vec<Header>, synced: u64) -> io::Result<()> {
        let unsynced = records.partition_point(|header| header.end() <= synced);
        for index in unsynced..records.len() {
            if !self.is_whole(&records[index])? {
                records.truncate(index);
                break;
            }
        }
        Ok(())
    }

    /// Whether all bytes of the payload are what was written.
    fn is_whole(&self, header: &Header) -> io::Result<bool> {
        if header.kind != Kind::Put {
            return Ok(true);
        }
        let mut payload = vec![0; header.payload_len as usize];
        match self.file.read_exact_at(&mut payload, header.payload_start()) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            // What cannot be read may have been acknowledged, so it is not taken for torn.
            read => read?,
        }
        let end = &payload[payload.len().saturating_sub((TAIL_LEN + SEAL_LEN) as usize)..];
        let Ok(seal) = Seal::open(payload.len() as u64, end) else { return Ok(false) };
        Ok(seal.check_payload(&payload[..payload.len() - SEAL_LEN as usize]).is_ok())
    }

    /// How far the segment was synced, as the good records behind `at` tell.
    fn synced_after(&self, at: u64) -> io::Result<u64> {
        let mut synced = 0;
        let mut from = at + 8;
        while let Some(header) = self.next_header(from)? {
            synced = synced.max(header.synced);
            from = header.offset + 8;
        }
        Ok(synced)
    }

    /// The first good record that begins at `from` or behind it. Parts that the disk cannot read are passed.
    fn next_header(&self, from: u64) -> io::Result<Option<Header>> {
        let mut window = vec![0; (WINDOW + HEADER_LEN) as usize];
        for at in (from..self.len).step_by(WINDOW as usize) {
            let len = (WINDOW + HEADER_LEN).min(self.len - at) as usize;
            if !self.read(&mut window[..len], at)? {
                continue;
            }
            for (place, fixed) in (at..).zip(window[..len].windows(HEADER_LEN as usize)).step_by(8) {
                if place < at + WINDOW
                    && Lengths::at_place(fixed, self.life, place)
                    && let Some(header) = self.header_at(place)?
                {
                    return Ok(Some(header));
                }
            }
        }
        Ok(None)
    }

    /// The records from `at` to the next good one, or to `synced`, where records end. Their beginnings are damaged, so the
    /// copies of their headers are read, from the last one back to the first.
    fn recover(&self, at: u64, synced: u64) -> Result<Vec<Header>, ScanError> {
        let next = self.next_header(at + 8)?.map(|header| header.offset);
        let mut end = next.map_or(synced, |next| next.min(synced));
        let mut found = Vec::new();
        while end > at {
            let header = self.header_before(end)?.filter(|header| header.offset >= at);
            let header = header.ok_or(ScanError::Damaged(at))?;
            end = header.offset;
            found.push(header);
        }
        found.reverse();
        Ok(found)
    }

    /// Fills `bytes` from the offset `at`. False if the file ends before that, or the disk cannot read it.
    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<bool> {
        match self.file.read_exact_at(bytes, at) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) if error.raw_os_error() == Some(EIO) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
