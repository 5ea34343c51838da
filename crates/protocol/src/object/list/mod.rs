//! Listings: which names of a bucket a page shows, and where the next page begins.
//!
//! A [`Listing`] is fed with the rows of a bucket in their order and answers after each what it wants next: the next row,
//! no more rows, or a row further on. It seeks past the generations and uploads of a name that it does not show, and past
//! all names that are rolled up to one prefix. So a page costs what it shows, whatever lies in between.
//!
//! ```text
//!   a.txt    head, content                        an item
//!   dir/1    head, content                        the prefix dir/, then a seek past all names that begin with dir/
//!   dir/2    ...                                  (never read)
//!   e.txt    head, content, 10,000 generations    an item, then a seek past the name
//! ```
//!
//! Of one name the generations are shown in their order, the oldest first. The live one is the youngest, though its row comes
//! first: a listing of versions keeps it back until the others are done.
//!
//! Folders come with the names. Each comes before the first object whose name is equal to it or greater. Those of a bucket
//! with a hierarchical namespace come as its tree is walked ([`Listing::visit_folder`]). Managed folders are known from the
//! beginning ([`Listing::with_folders`]).
//!
//! A head may have an intent: a change of several names takes its generation away, or has done so. The rows of one page do
//! not tell which. The listing shows the generation and notes the intent ([`Listing::take_met`]). If the caller finds that the
//! change is committed, it makes the page again, without the names that are gone ([`Listing::without`]).
//!
//! A page ends when it is full and there is one thing more to show. Its last item or prefix is the [`Position`] from which
//! the next page goes on. A page that has read many rows, or whose caller has no more time, ends between two names, with what
//! it has.

mod filter;
mod json;
mod request;
mod token;

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::vec::IntoIter;

use bytes::Bytes;
use rangehold_map::key::{
    BucketId, ObjectGeneration, ObjectKey, ObjectRow, PartitionPrefix, after_prefix, names_beginning_with,
    names_from, partition_length,
};

use super::error::ObjectError;
use super::generation::{Generation, Head, Heads, Intent, State};
use super::limits::{PAGE_ROWS_MAX, STEPS_BEFORE_SEEK};
use super::micros::Micros;

pub use self::filter::Filter;
pub use self::json::JsonPage;
pub use self::request::{ListRequest, Shown};
pub use self::token::Position;

/// What a listing wants next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// The next row.
    Next,
    /// Nothing more.
    Stop,
    /// The first row at or after this key.
    Seek(Vec<u8>),
}

/// What a page ends with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageEnd {
    /// The prefixes, in order.
    pub prefixes: Vec<String>,
    /// Where the next page goes on, if there is more.
    pub next: Option<Position>,
}

/// One page of a listing, while it is made.
#[derive(Debug)]
pub struct Listing<'a> {
    request: &'a ListRequest,
    bucket: BucketId,
    now: Micros,
    /// The ids of changes that have taken their sources away.
    gone: Option<&'a BTreeSet<String>>,
    /// The names with an intent of another change, each with the intent.
    met: Vec<(String, Intent)>,
    /// The managed folders that were not visited yet, in order.
    folders: Peekable<IntoIter<&'a str>>,
    /// The name whose rows are coming, and how many of them were stepped over.
    name: String,
    /// What the keys of these rows begin with; empty for a folder.
    partition: Vec<u8>,
    steps: usize,
    /// The live generation of the name, kept back until its older ones are done.
    kept_back: Option<Generation>,
    prefixes: Vec<String>,
    /// The prefix that was listed last, perhaps on the page before.
    last_prefix: Option<String>,
    items: usize,
    rows: usize,
    last: Option<Position>,
    is_full: bool,
    is_late: bool,
    fault: Option<ObjectError>,
    heads: Heads,
}

impl<'a> Listing<'a> {
    /// A page without anything yet. `now` decides which soft-deleted generations can be restored.
    pub fn new(request: &'a ListRequest, bucket: BucketId, now: Micros) -> Self {
        let position = request.position.as_ref().filter(|position| position.prefix_done);
        let last_prefix = position.and_then(|position| {
            request.rolled_up(&position.name).map(|length| position.name[..length].to_owned())
        });
        Self {
            request,
            bucket,
            now,
            gone: None,
            met: Vec::new(),
            folders: Vec::new().into_iter().peekable(),
            name: String::new(),
            partition: Vec::new(),
            steps: 0,
            kept_back: None,
            prefixes: Vec::new(),
            last_prefix,
            items: 0,
            rows: 0,
            last: request.position.clone(),
            is_full: false,
            is_late: false,
            fault: None,
            heads: Heads::default(),
        }
    }

    /// The same page, in which sources of these changes show nothing.
    #[must_use]
    pub fn without(self, gone: &'a BTreeSet<String>) -> Self {
        Self { gone: Some(gone), ..self }
    }

    /// The same page, with these managed folders among its prefixes, if the request wants folders. They come in the order of
    /// their names, which end with a slash.
    #[must_use]
    pub fn with_folders(self, folders: impl IntoIterator<Item = &'a str>) -> Self {
        let is_wanted = |folder: &&str| self.request.include_folders && self.request.reaches(folder);
        let folders: Vec<&str> = folders.into_iter().filter(is_wanted).collect();
        Self { folders: folders.into_iter().peekable(), ..self }
    }

    /// Ends the page before the next name, once the page has passed the position at which it began.
    pub fn end_soon(&mut self) {
        self.is_late = true;
    }

    /// The names that were shown although an intent may have taken them away.
    pub fn take_met(&mut self) -> Vec<(String, Intent)> {
        std::mem::take(&mut self.met)
    }

    /// Takes the next row. `put` is called for each item, in the order of the page.
    pub fn visit(&mut self, key: &[u8], value: &Bytes, mut put: impl FnMut(&str, &Generation)) -> Want {
        match self.take(key, value, &mut put) {
            Ok(want) => want,
            Err(fault) => {
                self.fault = Some(fault);
                Want::Stop
            }
        }
    }

    /// Takes a folder of a bucket with a hierarchical namespace, before the rows of what lies in it.
    pub fn visit_folder(&mut self, whole: &str, mut put: impl FnMut(&str, &Generation)) -> Want {
        match self.take_folders(whole, &mut put) {
            Some(want) => want,
            None => self.take_folder(whole, &mut put),
        }
    }

    /// Takes the managed folders up to this name. Returns what the listing wants next if the page ends at one of them, or if
    /// the name lies in a prefix that is listed.
    fn take_folders(&mut self, name: &str, put: &mut impl FnMut(&str, &Generation)) -> Option<Want> {
        while let Some(folder) = self.folders.next_if(|folder| *folder <= name) {
            match self.take_folder(folder, put) {
                Want::Seek(past) if past <= names_from(self.bucket, name) => {}
                Want::Next => {}
                want => return Some(want),
            }
        }
        None
    }

    fn take_folder(&mut self, whole: &str, put: &mut impl FnMut(&str, &Generation)) -> Want {
        self.rows += 1;
        if self.end_name(put) || self.is_long(whole) {
            return Want::Stop;
        }
        // So that a page can end here, also if it has met nothing but folders.
        self.name.clear();
        self.name.push_str(whole);
        self.partition.clear();
        self.steps = 0;
        if let Some(past) = self.rolled_up_already() {
            return Want::Seek(past);
        }
        if !self.request.include_folders || self.request.shown == Shown::SoftDeleted {
            return Want::Next;
        }
        let Some(length) = self.request.rolled_up(whole) else { return Want::Next };
        let prefix = &whole[..length];
        if self.last_prefix.as_deref() != Some(prefix) {
            if self.fits_glob(prefix) && !self.show_prefix(prefix) {
                return Want::Stop;
            }
            self.last_prefix = Some(prefix.to_owned());
        }
        match self.request.include_trailing_delimiter {
            true => Want::Next,
            false => Want::Seek(end_of(names_beginning_with(self.bucket, prefix))),
        }
    }

    /// Ends the page, after the last row or after [`Want::Stop`]. Fails if a row could not be read.
    pub fn finish(mut self, mut put: impl FnMut(&str, &Generation)) -> Result<PageEnd, ObjectError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        while !self.is_full
            && let Some(folder) = self.folders.next()
        {
            self.take_folder(folder, &mut put);
        }
        if !self.is_full {
            self.end_name(&mut put);
        }
        let next = self.last.filter(|_| self.is_full);
        Ok(PageEnd { prefixes: self.prefixes, next })
    }

    fn take(
        &mut self,
        key: &[u8],
        value: &Bytes,
        put: &mut impl FnMut(&str, &Generation),
    ) -> Result<Want, ObjectError> {
        self.rows += 1;
        // Of objects that are not small, half of the rows are contents: they are known by the bytes of their keys.
        let is_same_name = !self.partition.is_empty() && key.starts_with(&self.partition);
        if is_same_name && self.request.shown == Shown::Live {
            return Ok(self.pass_over(&ObjectRow::Head));
        }
        let ObjectKey { name, row, .. } = ObjectKey::decode(key).map_err(ObjectError::damaged)?;
        // Folders that come before it are taken first. One of them may have this very name: then the name has begun.
        if name != self.name
            && let Some(want) = self.take_folders(&name, put)
        {
            return Ok(want);
        }
        if name != self.name {
            if self.end_name(put) || self.is_long(&name) {
                return Ok(Want::Stop);
            }
            self.name.clear();
            self.name.push_str(&name);
            self.partition.clear();
            self.partition.extend_from_slice(&key[..partition_length(key).unwrap_or_default()]);
            self.steps = 0;
            if let Some(past) = self.rolled_up_already() {
                return Ok(Want::Seek(past));
            }
        }
        let generation = match (row, self.request.shown) {
            (ObjectRow::Head, Shown::Live) => return self.take_live(value, put),
            (ObjectRow::Head, shown) => {
                let head = Head::decode(value)?;
                if self.is_gone(head.intent.as_ref()) || shown == Shown::SoftDeleted {
                    return Ok(self.pass_over(&ObjectRow::Head));
                }
                self.kept_back = Some(head.live);
                return Ok(Want::Next);
            }
            (ObjectRow::NotLive(_), Shown::Versions | Shown::SoftDeleted) => Generation::decode(value)?,
            (row, _) => return Ok(self.pass_over(&row)),
        };
        let is_shown = match self.request.shown {
            Shown::SoftDeleted => generation.can_be_restored(self.now),
            Shown::Live | Shown::Versions => matches!(generation.state, State::Noncurrent(_)),
        };
        Ok(if is_shown { self.show(&generation, put) } else { Want::Next })
    }

    /// Takes a head for a page of live generations.
    fn take_live(
        &mut self,
        row: &Bytes,
        put: &mut impl FnMut(&str, &Generation),
    ) -> Result<Want, ObjectError> {
        let mut heads = std::mem::take(&mut self.heads);
        let head = heads.read(row)?;
        let want = match self.is_gone(head.intent.as_ref()) {
            false => self.show(&head.live, put),
            true => self.pass_over(&ObjectRow::Head),
        };
        self.heads = heads;
        Ok(want)
    }

    /// Whether a change has taken the live generation of the name away. A change that may have done so is noted.
    fn is_gone(&mut self, intent: Option<&Intent>) -> bool {
        let Some(intent) = intent else { return false };
        if self.gone.is_some_and(|gone| gone.contains(&intent.id)) {
            return true;
        }
        self.met.push((self.name.clone(), intent.clone()));
        false
    }

    /// Shows what the name has kept back. Whether the page is full and there is more.
    fn end_name(&mut self, put: &mut impl FnMut(&str, &Generation)) -> bool {
        if let Some(live) = self.kept_back.take() {
            self.show(&live, put);
        }
        self.is_full
    }

    /// Whether the page has read so much, or taken so long, that it ends before `next` although it is not full.
    fn is_long(&mut self, next: &str) -> bool {
        // A folder of a tree, a managed one and an object can have the same name: that is one name.
        if self.rows < PAGE_ROWS_MAX && !self.is_late || self.name.is_empty() || self.name == next {
            return false;
        }
        // A page that ends where it began would be asked for again and again.
        let is_behind = |begin: &Position| {
            self.name <= begin.name || begin.prefix_done && self.name.starts_with(&begin.name)
        };
        if self.request.position.as_ref().is_some_and(is_behind) {
            return false;
        }
        let Some(end) = self.end_before(next) else { return false };
        self.last = Some(end);
        self.is_full = true;
        true
    }

    /// The position between the name whose rows are done and the next name. `None` if no marker tells it; then the page goes
    /// on to the next name.
    fn end_before(&self, next: &str) -> Option<Position> {
        let rolled_up = self.last_prefix.as_ref().filter(|prefix| self.name.starts_with(*prefix));
        let prefix_done = rolled_up.is_some();
        let name = rolled_up.unwrap_or(&self.name);
        let ListRequest { prefix, delimiter, by_marker, .. } = self.request;
        let says_listed = |marker: &str| Position::of_marker(marker, prefix, delimiter).prefix_done;
        if !by_marker || prefix_done || !says_listed(name) {
            // All rows of the name are done, also those of an item that is called like its prefix.
            return Some(Position { name: name.clone(), generation: u64::MAX, prefix_done });
        }
        // As a marker, this name would say that it was listed as a prefix. Any text between the two names does as well.
        let mut between = next.to_owned();
        while between.pop().is_some() && between > self.name {
            if !says_listed(&between) {
                return Some(Position { name: between, generation: u64::MAX, prefix_done });
            }
        }
        None
    }

    /// The key past all names of the last prefix, if the name is one of those and is not an item.
    fn rolled_up_already(&self) -> Option<Vec<u8>> {
        let prefix = self.last_prefix.as_ref().filter(|prefix| self.name.starts_with(*prefix))?;
        let is_item = self.request.include_trailing_delimiter && self.name == *prefix;
        (!is_item).then(|| end_of(names_beginning_with(self.bucket, prefix)))
    }

    /// What comes after a row that is not shown: a few rows are stepped over, since a seek costs more than a step.
    fn pass_over(&mut self, row: &ObjectRow<'_>) -> Want {
        self.steps += 1;
        if self.steps < STEPS_BEFORE_SEEK {
            return Want::Next;
        }
        let partition = PartitionPrefix::object(self.bucket, &self.name);
        let older = ObjectRow::NotLive(ObjectGeneration(0));
        match self.request.shown {
            Shown::Versions | Shown::SoftDeleted if *row < older => Want::Seek(partition.object_row(&older)),
            _ => Want::Seek(end_of(partition.as_bytes().to_vec())),
        }
    }

    /// Shows a generation of the name: as an item, or as the prefix to which the name is rolled up.
    fn show(&mut self, generation: &Generation, put: &mut impl FnMut(&str, &Generation)) -> Want {
        let Some(length) = self.request.rolled_up(&self.name) else { return self.show_item(generation, put) };
        let is_item = self.request.include_trailing_delimiter && length == self.name.len();
        let prefix = &self.name[..length];
        if self.last_prefix.as_deref() != Some(prefix) {
            let prefix = prefix.to_owned();
            if self.fits_glob(&prefix) && !self.show_prefix(&prefix) {
                return Want::Stop;
            }
            self.last_prefix = Some(prefix);
        }
        match is_item {
            true => self.show_item(generation, put),
            false => Want::Seek(end_of(names_beginning_with(self.bucket, &self.name[..length]))),
        }
    }

    /// Lists a prefix. False if the page is full.
    fn show_prefix(&mut self, prefix: &str) -> bool {
        if !self.has_room() {
            return false;
        }
        self.prefixes.push(prefix.to_owned());
        self.last = Some(Position { name: prefix.to_owned(), generation: 0, prefix_done: true });
        true
    }

    fn show_item(&mut self, generation: &Generation, put: &mut impl FnMut(&str, &Generation)) -> Want {
        let position = self.request.position.as_ref().filter(|position| position.name == self.name);
        // A name that was replaced since the last page has a newer generation, and was shown all the same. The position
        // of a prefix has no generation: the name that is equal to the prefix comes after it.
        let is_shown = |position: &Position| self.request.shown == Shown::Live && position.generation > 0;
        let is_done =
            position.is_some_and(|position| generation.id.0 <= position.generation || is_shown(position));
        let passes = self.request.filter.passes(&generation.settings.contexts);
        if is_done || !passes || !self.fits_glob(&self.name) {
            return Want::Next;
        }
        if !self.has_room() {
            return Want::Stop;
        }
        put(&self.name, generation);
        self.items += 1;
        let prefix_done = self.last_prefix.as_deref() == Some(self.name.as_str());
        // The text is written into the old position, so that a page does not make a text for each of its names.
        let last = self.last.get_or_insert_with(|| Position {
            name: String::new(),
            generation: 0,
            prefix_done: false,
        });
        last.name.clone_from(&self.name);
        last.generation = generation.id.0;
        last.prefix_done = prefix_done;
        Want::Next
    }

    /// Whether the page has room for one thing more. If not, it is full.
    fn has_room(&mut self) -> bool {
        self.is_full = self.items + self.prefixes.len() >= self.request.max_results;
        !self.is_full
    }

    fn fits_glob(&self, name: &str) -> bool {
        self.request.glob.as_ref().is_none_or(|glob| glob.matches(name))
    }
}

/// The key past all keys that begin with this.
fn end_of(prefix: Vec<u8>) -> Vec<u8> {
    after_prefix(&prefix).expect("the kind of a key is not FF")
}

#[cfg(test)]
mod tests;
