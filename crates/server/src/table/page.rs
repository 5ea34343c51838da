//! A page of entities: which rows it takes, and when it ends.
//!
//! A page is built in one pass over the rows between the filter's bounds: each row is filtered and written as JSON
//! straight from its stored bytes. It ends at `$top` or 1,000 entities, at 4 MiB, when its time is over, when a
//! partition has returned more than its budget, or when there is no more room for replies. As in the real service, a token points at the next entity that
//! matches, so that the last page has no token. But to find that entity, a full page looks at a limited number of
//! rows ([`limits::LOOK_AHEAD_ROWS_MAX`]). If none of them matches, its token points at the first entity that it did
//! not look at.

use std::ops::ControlFlow;

use bytes::Bytes;
use rangehold_map::key::entity_keys;
use rangehold_protocol::table::continuation::Continuation;
use rangehold_protocol::table::filter::Subject;
use rangehold_protocol::table::limits::PAGE_BYTES_MAX;
use rangehold_protocol::table::query::EntityQuery;
use rangehold_protocol::table::render::PageWriter;
use rangehold_protocol::table::row::{DamagedRow, RowView};
use tokio::time::Instant;

use super::admit::PageCharge;
use super::failure::{Failure, damaged};
use crate::limits;
use crate::room::Place;

/// A page of entities while it is built.
pub(super) struct EntityPage<'a> {
    pub(super) query: &'a EntityQuery,
    /// Whether its filter looks at PartitionKey or RowKey.
    pub(super) reads_keys: bool,
    pub(super) writer: PageWriter<'a>,
    pub(super) most: usize,
    pub(super) until: Instant,
    pub(super) charge: Option<PageCharge<'a>>,
    pub(super) body: Vec<u8>,
    /// Where the body gets room, and the room that it has.
    pub(super) place: &'a Place,
    pub(super) room: usize,
    pub(super) items: usize,
    /// Rows that were looked at.
    pub(super) looked_at: usize,
    /// Rows that had been looked at when the page was full.
    pub(super) ahead: usize,
    /// The stored key of the entity before which it ended.
    pub(super) ended_before: Option<Vec<u8>>,
    /// The first entity that is not in the page.
    pub(super) next: Option<Continuation>,
    pub(super) failure: Option<Failure>,
}

impl EntityPage<'_> {
    /// Takes the next row. Breaks when the page is complete.
    pub(super) fn visit(&mut self, key: &[u8], value: &Bytes) -> ControlFlow<()> {
        match self.take(key, value) {
            Ok(flow) => flow,
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }

    fn take(&mut self, key: &[u8], value: &Bytes) -> Result<ControlFlow<()>, Failure> {
        let full = self.items >= self.most || self.body.len() >= PAGE_BYTES_MAX || !self.has_room();
        self.ahead += usize::from(full);
        if self.is_late() || self.ahead > limits::LOOK_AHEAD_ROWS_MAX {
            return self.end_before(key);
        }
        self.looked_at += 1;
        let row = RowView::new(value).map_err(damaged)?;
        // Most rows that a filter looks at are not returned, and most filters do not ask for the keys.
        if !self.reads_keys && !self.wanted("", "", &row).map_err(damaged)? {
            return Ok(ControlFlow::Continue(()));
        }
        let (partition_key, row_key) = entity_keys(key).map_err(damaged)?;
        if self.reads_keys && !self.wanted(&partition_key, &row_key, &row).map_err(damaged)? {
            return Ok(ControlFlow::Continue(()));
        }
        let may_return = |charge: &mut PageCharge<'_>| charge.may_return(&partition_key);
        if full || !self.charge.as_mut().is_none_or(may_return) {
            return self.end_before(key);
        }
        self.make_likely_room();
        self.writer.item(&mut self.body, &partition_key, &row_key, &row).map_err(damaged)?;
        self.items += 1;
        Ok(ControlFlow::Continue(()))
    }

    /// Whether the page's time is over. The first row is looked at even after the deadline, so that each page makes
    /// progress. The clock costs more than a row that is only looked at, so it is not read for each.
    fn is_late(&self) -> bool {
        let reads_clock = self.looked_at == 1 || self.looked_at.is_multiple_of(limits::ROWS_BY_CLOCK);
        self.looked_at > 0 && reads_clock && Instant::now() >= self.until
    }

    /// Whether the body may grow. If it has outgrown its room it takes more, unless its tenant has had its share.
    fn has_room(&mut self) -> bool {
        while self.body.len() >= self.room {
            if !self.place.grow(limits::PAGE_STEP_BYTES) {
                return false;
            }
            self.room += limits::PAGE_STEP_BYTES;
        }
        true
    }

    /// Lets the body grow at once to what the page is likely to need. If it grew by doubling, a page of a megabyte would be
    /// copied nearly as often as it is written.
    fn make_likely_room(&mut self) {
        let length = self.body.len();
        if length < limits::PAGE_STEP_BYTES / 2 || self.items == 0 {
            return;
        }
        let each = length / self.items;
        if self.body.capacity() - length < 2 * each {
            let likely = each.saturating_mul(self.most.saturating_sub(self.items) + 2);
            self.body.reserve(likely.min(PAGE_BYTES_MAX));
        }
    }

    fn end_before(&mut self, key: &[u8]) -> Result<ControlFlow<()>, Failure> {
        let (partition_key, row_key) = entity_keys(key).map_err(damaged)?;
        let (partition_key, row_key) = (partition_key.into_owned(), Some(row_key.into_owned()));
        self.ended_before = Some(key.to_vec());
        self.next = Some(Continuation::Entity { partition_key, row_key });
        Ok(ControlFlow::Break(()))
    }

    fn wanted(&self, partition_key: &str, row_key: &str, row: &RowView<'_>) -> Result<bool, DamagedRow> {
        match &self.query.filter {
            Some(filter) => filter.matches(&Subject { partition_key, row_key, row }),
            None => Ok(true),
        }
    }
}
