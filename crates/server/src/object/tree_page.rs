//! Pages of listings in a bucket with folders: of objects, and of folders.
//!
//! A page reads rows of several folders one after the other. It counts only if no folder was renamed or deleted meanwhile,
//! and no object was moved: a page shows such a change whole or not at all. Otherwise it is made again, and after some tries
//! changes of this process wait for it (`changes`).
//!
//! A page token is a whole name. The next page begins there in the folders as they are then: if folders were renamed between
//! two pages, what lies in them is shown twice or not at all, as it is for single objects that are moved.
//!
//! A page with many folders needs many scans. When its time is over, it ends with what it has.

use std::collections::BTreeSet;

use bytes::Bytes;
use rangehold_map::KeyRange;
use rangehold_map::key::{BucketId, after_prefix, names_beginning_with, names_from};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::generation::Generation;
use rangehold_protocol::object::list::{ListRequest, Listing, PageEnd, Want};
use tokio::time::timeout_at;

use super::ObjectService;
use super::exchange::Exchange;
use super::failure::Failure;
use super::list::{PageTime, listing_of};
use super::located::moved_meanwhile;
use super::tree_walk::Visitor;
use crate::limits::{PAGE_TRIES_FREE, PAGE_TRIES_MAX};

/// A page of objects while it is made.
struct ObjectPage<'a, P, F> {
    listing: Listing<'a>,
    page: P,
    put: F,
    time: PageTime,
}

/// A page of folders while it is made.
pub(super) struct FolderPage<'a> {
    pub(super) bucket: BucketId,
    /// Names begin with this.
    pub(super) prefix: &'a str,
    /// Only folders directly below the prefix, and the one of this name.
    pub(super) is_flat: bool,
    /// The last folder of the page before.
    pub(super) after: Option<String>,
    pub(super) most: usize,
    /// When the page ends although it is not full; `None` if all folders must be on it.
    pub(super) time: Option<PageTime>,
    /// Whole names and ids.
    pub(super) found: Vec<(String, u64)>,
    pub(super) has_more: bool,
}

impl<P: Send, F: Fn(&mut P, &str, &Generation) + Send> Visitor for ObjectPage<'_, P, F> {
    const WANTS_OBJECTS: bool = true;

    fn folder(&mut self, whole: &str, _: u64) -> Want {
        let Self { listing, page, put, time } = self;
        if time.is_over() {
            listing.end_soon();
        }
        listing.visit_folder(whole, |name, generation| put(page, name, generation))
    }

    fn row(&mut self, key: &[u8], row: &Bytes) -> Want {
        let Self { listing, page, put, time } = self;
        if time.is_over_at_row() {
            listing.end_soon();
        }
        time.seen(listing.visit(key, row, |name, generation| put(page, name, generation)))
    }
}

impl FolderPage<'_> {
    /// The keys of the whole names that the page can show.
    pub(super) fn keys(&self, from: &str, to: &str) -> KeyRange {
        let after = self.after.as_deref().unwrap_or_default();
        let low = names_from(self.bucket, self.prefix.max(from).max(after));
        let end = after_prefix(&names_beginning_with(self.bucket, self.prefix));
        let to = Some(to).filter(|to| !to.is_empty()).map(|to| names_from(self.bucket, to));
        let high = end.into_iter().chain(to).min();
        KeyRange::new(low.clone(), high.map(|high| high.max(low)))
    }
}

impl Visitor for FolderPage<'_> {
    const WANTS_OBJECTS: bool = false;

    fn folder(&mut self, whole: &str, id: u64) -> Want {
        let past = || Want::Seek(after_prefix(&names_beginning_with(self.bucket, whole)).expect("not FF"));
        let is_below = self.is_flat && whole.len() > self.prefix.len();
        if self.after.as_deref() == Some(whole) {
            return if is_below { past() } else { Want::Next };
        }
        let is_late = || self.time.is_some_and(|time| time.is_over()) && !self.found.is_empty();
        if self.found.len() >= self.most || is_late() {
            self.has_more = true;
            return Want::Stop;
        }
        let want = if is_below { past() } else { Want::Next };
        self.found.push((whole.to_owned(), id));
        want
    }

    fn row(&mut self, _: &[u8], _: &Bytes) -> Want {
        Want::Next
    }
}

impl ObjectService {
    /// Makes a page of a listing of objects, as `ObjectService::page` does for other buckets.
    pub(super) async fn page_of_tree<P: Send>(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        request: &ListRequest,
        time: PageTime,
        begin: impl Fn() -> P + Send + Sync,
        put: impl Fn(&mut P, &str, &Generation) + Send + Sync,
    ) -> Result<(P, PageEnd), Failure> {
        let keys = request.keys(bucket.id);
        let (mut gone, mut held) = (BTreeSet::new(), None);
        for tries in 0..PAGE_TRIES_MAX {
            if tries == PAGE_TRIES_FREE {
                let hold = timeout_at(time.deadline, self.changes.hold(bucket.id)).await;
                held = Some(hold.map_err(|_| moved_meanwhile())?);
            }
            let (mark, before) = (self.changes.mark(bucket.id), self.tree(bucket.id).await?.changes);
            let listing = listing_of(bucket, request, exchange, &gone);
            let mut visitor = ObjectPage { listing, page: begin(), put: &put, time };
            self.walk(bucket.id, &keys, &mut visitor).await?;
            let ObjectPage { mut listing, mut page, .. } = visitor;
            let met = listing.take_met();
            let end = listing.finish(|name, generation| put(&mut page, name, generation))?;
            let was_quiet = held.is_some() || mark.is_some_and(|mark| self.changes.was_quiet_since(mark));
            let is_one = was_quiet && self.tree(bucket.id).await?.changes == before;
            if is_one && self.stands(bucket, met, held.is_some(), &mut gone).await? {
                return Ok((page, end));
            }
        }
        Err(moved_meanwhile())
    }

    /// Makes a page of folders with names from `from` on and before `to`, which may be empty.
    pub(super) async fn page_of_folders<'a>(
        &self,
        begin: impl Fn() -> FolderPage<'a>,
        from: &str,
        to: &str,
    ) -> Result<FolderPage<'a>, Failure> {
        for _ in 0..PAGE_TRIES_MAX {
            let mut page = begin();
            let before = self.tree(page.bucket).await?.changes;
            let keys = page.keys(from, to);
            self.walk(page.bucket, &keys, &mut page).await?;
            if self.tree(page.bucket).await?.changes == before {
                return Ok(page);
            }
        }
        Err(moved_meanwhile())
    }
}
