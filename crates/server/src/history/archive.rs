//! The segments of one or more tiers, in a directory or in memory, within one budget.
//!
//! Files are named `10s-<first column>-<number>.segment`. A process never appends to a file of an earlier process.
//! Only the newest files of a process can have a torn end, which is cut off when they are opened.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rangehold_map::history::{
    Boundaries, Column, Record, SEGMENT_BYTES_MAX, Segment, SegmentId, Shelf, Tier,
};
use tracing::warn;

use super::segment::{Body, HEAD_BYTES, cut_tail, frame};

const EXTENSION: &str = ".segment";
/// A segment takes at most the budget divided by this number, so that deleting one to make room loses only a small
/// part.
const SEGMENT_PART: u64 = 32;

/// Segments within a budget; see the module.
#[derive(Debug)]
pub(super) struct Archive {
    shelf: Shelf,
    bodies: BTreeMap<SegmentId, Body>,
    open: BTreeMap<Tier, Open>,
    /// `None` in memory.
    directory: Option<PathBuf>,
    with_keys: bool,
}

/// The segment of a tier to which columns are appended.
#[derive(Debug)]
struct Open {
    id: SegmentId,
    /// The axis that was written last.
    axis: Arc<Boundaries>,
}

/// What earlier processes left in the directory.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// The last axis.
    pub(super) axis: Option<Arc<Boundaries>>,
    /// The end of the last whole minute, in seconds since 1970.
    pub(super) minutes_until: i64,
}

impl Archive {
    /// An empty archive in memory.
    pub(super) fn in_memory(budget_bytes: u64) -> Self {
        Self {
            shelf: Shelf::new(budget_bytes),
            bodies: BTreeMap::new(),
            open: BTreeMap::new(),
            directory: None,
            with_keys: true,
        }
    }

    /// The archive in `directory`, which must exist. With `with_keys`, columns are written with their keys.
    pub(super) fn open(directory: &Path, budget_bytes: u64, with_keys: bool) -> io::Result<(Self, Left)> {
        let mut archive = Self::in_memory(budget_bytes);
        let mut found: BTreeMap<Tier, Vec<(i64, SegmentId, PathBuf)>> = BTreeMap::new();
        for file in fs::read_dir(directory)? {
            let file = file?;
            if let Some((tier, from, id)) = file.file_name().to_str().and_then(parse_name) {
                found.entry(tier).or_default().push((from, id, file.path()));
            }
        }
        let mut left = Left::default();
        let mut newest = SegmentId(0);
        for (tier, mut files) in found {
            files.sort_unstable();
            for at in 0..files.len() {
                let (from, id, path) = &files[at];
                let to = match files.get(at + 1) {
                    // Two processes may have written columns of the same time.
                    Some((next, ..)) => (next + tier.step()).min(from + tier.segment_span() + tier.step()),
                    None => {
                        let (axis, to) = inspect(path, tier)?;
                        if tier == Tier::Minute {
                            left.minutes_until = to;
                        }
                        if *id > newest && axis.is_some() {
                            (newest, left.axis) = (*id, axis);
                        }
                        to
                    }
                };
                let bytes = fs::metadata(path)?.len();
                archive.shelf.put(*id, Segment { tier, from: *from, to, bytes });
                archive.bodies.insert(*id, Body::File(path.clone()));
            }
        }
        (archive.directory, archive.with_keys) = (Some(directory.to_owned()), with_keys);
        Ok((archive, left))
    }

    /// Appends a column. On an error the column is lost, and the next one begins a new segment.
    pub(super) fn append(&mut self, tier: Tier, column: &Column) -> io::Result<()> {
        let appended = self.try_append(tier, column);
        if appended.is_err() {
            self.open.remove(&tier);
        }
        appended
    }

    fn try_append(&mut self, tier: Tier, column: &Column) -> io::Result<()> {
        self.close_if_full(tier, column.at);
        let written = self.open.get(&tier).map(|open| &open.axis);
        let known = written.is_some_and(|axis| Arc::ptr_eq(axis, &column.axis) || **axis == *column.axis);
        let mut framed = Vec::new();
        if !known {
            frame(&mut framed, &Record::encode_axis(&column.axis, self.with_keys));
        }
        frame(&mut framed, &Record::encode_column(column));
        let Some(gone) = self.shelf.make_room(framed.len() as u64 + HEAD_BYTES, column.at) else {
            return Err(io::Error::other(format!(
                "the budget of {} bytes is smaller than one column of {} bytes: give a larger --history-budget",
                self.shelf.budget_bytes(),
                framed.len()
            )));
        };
        self.delete(gone);
        if !self.open.contains_key(&tier) {
            if known {
                // The open segment was deleted to make room, so the next one must begin with the axis.
                return self.try_append(tier, column);
            }
            let id = self.create(tier, column.at)?;
            self.open.insert(tier, Open { id, axis: Arc::clone(&column.axis) });
        }
        let Some(open) = self.open.get_mut(&tier) else { return Ok(()) };
        open.axis = Arc::clone(&column.axis);
        let id = open.id;
        if let (Some(body), Some(segment)) = (self.bodies.get_mut(&id), self.shelf.get(id).copied()) {
            body.append(&framed)?;
            let (from, to) = (segment.from.min(column.at), segment.to.max(column.at + tier.step()));
            let bytes = segment.bytes + framed.len() as u64;
            self.shelf.put(id, Segment { tier, from, to, bytes });
        }
        Ok(())
    }

    fn close_if_full(&mut self, tier: Tier, at: i64) {
        let Some(open) = self.open.get(&tier) else { return };
        let bytes_max = SEGMENT_BYTES_MAX.min(self.shelf.budget_bytes() / SEGMENT_PART);
        let full = self
            .shelf
            .get(open.id)
            .is_none_or(|segment| segment.bytes >= bytes_max || at >= segment.from + tier.segment_span());
        if full {
            self.open.remove(&tier);
        }
    }

    fn create(&mut self, tier: Tier, from: i64) -> io::Result<SegmentId> {
        let id = self.shelf.next_id();
        let path = self
            .directory
            .as_ref()
            .map(|directory| directory.join(format!("{}s-{from:020}-{:010}{EXTENSION}", tier.step(), id.0)));
        self.bodies.insert(id, Body::create(path)?);
        self.shelf.put(id, Segment { tier, from, to: from, bytes: HEAD_BYTES });
        Ok(id)
    }

    fn delete(&mut self, gone: Vec<SegmentId>) {
        self.open.retain(|_, open| !gone.contains(&open.id));
        gone.iter().filter_map(|id| self.bodies.remove(id)).for_each(Body::delete);
    }

    /// Waits until all appended columns are on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        let mut open = self.open.values().filter_map(|open| self.bodies.get(&open.id));
        open.try_for_each(Body::sync)
    }

    /// Calls `visit` with the columns of a tier that begin between two times. Columns that cannot be read are left
    /// out, with a warning in the log.
    pub(super) fn read(&self, tier: Tier, from: i64, to: i64, mut visit: impl FnMut(&Column)) {
        for id in self.shelf.between(tier, from, to) {
            let Some(body) = self.bodies.get(&id) else { continue };
            match body.read() {
                Ok(found) => {
                    let expected = self.shelf.get(id).map_or(0, |segment| segment.bytes);
                    if (found.whole as u64) < expected {
                        warn!(segment = ?body_name(body), "a segment of the history is damaged; its rest is left out");
                    }
                    found
                        .columns
                        .iter()
                        .filter(|column| (from..to).contains(&column.at))
                        .for_each(&mut visit);
                }
                Err(error) => {
                    warn!(segment = ?body_name(body), %error, "a segment of the history cannot be read")
                }
            }
        }
    }

    /// The segments that are kept of each tier, and their size.
    pub(super) fn shelf(&self) -> &Shelf {
        &self.shelf
    }
}

fn body_name(body: &Body) -> Option<&Path> {
    match body {
        Body::File(path) => Some(path),
        Body::Memory(_) => None,
    }
}

/// Reads the last axis in the newest segment of a tier, and the end of its last column. A torn end is cut off.
fn inspect(path: &Path, tier: Tier) -> io::Result<(Option<Arc<Boundaries>>, i64)> {
    let found = Body::File(path.to_owned()).read()?;
    let torn_bytes = fs::metadata(path)?.len().saturating_sub(found.whole as u64);
    if torn_bytes > 0 {
        warn!(segment = %path.display(), torn_bytes, "the end of the history was torn; it was cut");
        cut_tail(path, found.whole)?;
    }
    let to = found.columns.iter().map(|column| column.at + tier.step()).max().unwrap_or(0);
    Ok((found.axis, to))
}

/// `10s-00000000001763726400-0000000007.segment`
fn parse_name(name: &str) -> Option<(Tier, i64, SegmentId)> {
    let mut parts = name.strip_suffix(EXTENSION)?.split('-');
    let step = parts.next()?.strip_suffix('s')?.parse().ok()?;
    let (from, id) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let tier = Tier::of_step(step).filter(|tier| *tier != Tier::Second && parts.next().is_none())?;
    Some((tier, from, SegmentId(id)))
}
