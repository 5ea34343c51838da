//! Reading a journal whose owner may be running.
//!
//! Segments are scanned from the newest to the oldest, and their records are taken from the oldest to the newest. The first record of a
//! segment is written when the one before it is finished, so a look at both in this order misses nothing between them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::super::super::limits::JOURNAL_TAKE_OVERS_MAX;
use super::record::Header;
use super::segment::{Name, Segment};
use super::{Access, JOURNAL, Journal, OpenError, Role, owner, scan, segments_in, synced};

/// The segments that were read, and how far, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Beside {
    root: PathBuf,
    may_be_missing: bool,
    segments: BTreeMap<u64, (Arc<Segment>, u64)>,
}

/// A segment and what is new in it.
struct News {
    segment: Arc<Segment>,
    records: Vec<Header>,
    end: u64,
}

impl Beside {
    pub(super) fn new(root: PathBuf, access: Access) -> Self {
        Self { root, may_be_missing: access == Access::Beside { may_be_missing: true }, ..Self::default() }
    }

    /// Reads what is new. `None` if the owner has changed a name meanwhile, so that it must be done again.
    fn read(&self) -> Result<Option<Vec<News>>, OpenError> {
        let directory = owner::find(&self.root)?;
        let names = match segments_in(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            names => names?,
        };
        let mut news = Vec::new();
        for name in names.iter().rev() {
            let path = directory.join(name.to_string());
            let known = self.segments.get(&name.number).filter(|(known, _)| known.name.life == name.life);
            match self.read_segment(*name, path, known)? {
                Some(found) => news.push(found),
                None => return Ok(None),
            }
        }
        news.reverse();
        Ok((segments_in(&directory).ok().as_ref() == Some(&names)).then_some(news))
    }

    fn read_segment(
        &self,
        name: Name,
        path: PathBuf,
        known: Option<&(Arc<Segment>, u64)>,
    ) -> Result<Option<News>, OpenError> {
        if let Some((segment, end)) = known.filter(|(segment, _)| segment.path == path) {
            let scanned = scan::scan_new(&segment.file, name.life, *end)?;
            return Ok(Some(News {
                segment: Arc::clone(segment),
                records: scanned.records,
                end: scanned.end,
            }));
        }
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let floor = path.parent().map_or(0, |directory| synced::read(directory, name.life));
        let scanned = scan::scan(&file, name.life, floor);
        let segment = Segment::found(name, path, file, 0)?;
        if !segment.has_name()? {
            return Ok(None);
        }
        let scanned = scanned.map_err(|source| OpenError::Segment { path: segment.path.clone(), source })?;
        Ok(Some(News { segment: Arc::new(segment), records: scanned.records, end: scanned.end }))
    }
}

impl Journal {
    /// Reads what the owner has written since the last call. Does nothing in the owner itself.
    pub(super) fn refresh_beside(&self) -> io::Result<()> {
        self.refresh().map_err(|error| match error {
            OpenError::Io(error) => error,
            error => io::Error::other(error),
        })
    }

    pub(super) fn refresh(&self) -> Result<(), OpenError> {
        let Role::Beside(beside) = &self.role else { return Ok(()) };
        let mut beside = beside.lock();
        if beside.may_be_missing && !beside.root.join(JOURNAL).is_dir() {
            return Ok(());
        }
        for _ in 0..JOURNAL_TAKE_OVERS_MAX {
            if let Some(news) = beside.read()? {
                return self.take_news(&mut beside, news);
            }
        }
        Err(io::Error::other("the journal changes faster than it can be read").into())
    }

    fn take_news(&self, beside: &mut Beside, news: Vec<News>) -> Result<(), OpenError> {
        let is_gone = |known: &Arc<Segment>| news.iter().all(|found| !Arc::ptr_eq(&found.segment, known));
        for (number, _) in beside.segments.extract_if(.., |_, (known, _)| is_gone(known)) {
            self.index.lock().remove_behind(number, 0);
        }
        for News { segment, records, end } in news {
            self.take_records(&segment, &records)?;
            beside.segments.insert(segment.name.number, (segment, end));
        }
        self.check_chain(beside.segments.values().map(|(segment, end)| (segment.name, *end > 0)))
    }
}
