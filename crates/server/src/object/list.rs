//! Listings of objects. A page is written while its rows are read, each range as of one moment.
//!
//! A move changes two names in two writes. A page shows it whole or not at all:
//!
//! * It meets the source with an intent. The row at the target says whether the move is committed. If it is, the page is made
//!   again, so that it reads the target after the commit; this time it knows that the source is gone.
//! * It reads two ranges, and between these moments a move of this process is begun and committed, or committed and ended. Then
//!   it meets nothing; but the move had its window open (`changes`), and the page is made again.

use std::collections::BTreeSet;

use rangehold_engine::Visit;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::generation::{Generation, Intent, Projection};
use rangehold_protocol::object::intent::Standing;
use rangehold_protocol::object::list::{JsonPage, ListRequest, Listing, PageEnd, Want};
use rangehold_protocol::object::write::Name;
use tokio::time::{Instant, timeout_at};

use super::ObjectService;
use super::exchange::Exchange;
use super::failure::Failure;
use super::located::Wants;
use super::objects::address;
use super::reply::Reply;
use crate::limits::{PAGE_ANSWER_WITHIN, PAGE_TRIES_FREE, PAGE_TRIES_MAX, REQUEST_WITHIN, ROWS_BY_CLOCK};

/// The time of a page.
#[derive(Clone, Copy)]
pub(super) struct PageTime {
    /// Until when it looks for names. Then it ends with what it has.
    until: Instant,
    /// When its request ends.
    pub(super) deadline: Instant,
    rows: usize,
    /// Whether the next row was found by a seek.
    sought: bool,
}

impl ObjectService {
    pub(super) async fn list_objects(&self, exchange: &Exchange<'_>, bucket: &str) -> Result<Reply, Failure> {
        let request = ListRequest::parse(|name| exchange.query.get(name))?;
        let (projection, fields) = (exchange.query.projection(Projection::NoAcl)?, exchange.fields()?);
        let bucket = self.bucket(bucket).await?;
        let address = address(exchange, &bucket, "");
        let begin = || JsonPage::new(address, projection, &fields);
        let put = |page: &mut JsonPage<'_>, name: &str, generation: &Generation| page.put(name, generation);
        let (page, end) = self.page(exchange, &bucket, &request, begin, put).await?;
        Ok(Reply::json(200, page.finish(&end)))
    }

    /// Makes a page of a listing, in turns at the processor: `begin` makes an empty one, and `put` adds an item.
    pub(super) async fn page<P: Send>(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        request: &ListRequest,
        begin: impl Fn() -> P + Send + Sync,
        put: impl Fn(&mut P, &str, &Generation) + Send + Sync,
    ) -> Result<(P, PageEnd), Failure> {
        let deadline = exchange.deadline();
        let making = self.whole_page(exchange, bucket, request, deadline, begin, put);
        page_by(deadline, self.turns.run(exchange.tenant, making)).await
    }

    /// Makes a page that shows a move whole or not at all: if the rows leave that open, it is made again.
    async fn whole_page<P: Send>(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        request: &ListRequest,
        deadline: Instant,
        begin: impl Fn() -> P + Send + Sync,
        put: impl Fn(&mut P, &str, &Generation) + Send + Sync,
    ) -> Result<(P, PageEnd), Failure> {
        let time = self.page_time(deadline);
        if bucket.has_folders() {
            return self.page_of_tree(exchange, bucket, request, time, begin, put).await;
        }
        let keys = request.keys(bucket.id);
        let (mut gone, mut held) = (BTreeSet::new(), None);
        for tries in 0..PAGE_TRIES_MAX {
            if tries == PAGE_TRIES_FREE {
                let hold = timeout_at(time.deadline, self.changes.hold(bucket.id)).await;
                held = Some(hold.map_err(|_| moved_meanwhile())?);
            }
            let mark = self.changes.mark(bucket.id);
            let begin = || (listing_of(bucket, request, exchange, &gone), begin(), time);
            let scanned = self.router.scan_and_count(&keys, begin, |(listing, page, time), key, row| {
                if time.is_over_at_row() {
                    listing.end_soon();
                }
                let want = listing.visit(key, row, |name, generation| put(page, name, generation));
                visit_of(time.seen(want))
            });
            let ((mut listing, mut page, _), moments) = scanned.await?;
            let met = listing.take_met();
            let end = listing.finish(|name, generation| put(&mut page, name, generation))?;
            let was_quiet = held.is_some() || mark.is_some_and(|mark| self.changes.was_quiet_since(mark));
            if (was_quiet || moments <= 1) && self.stands(bucket, met, held.is_some(), &mut gone).await? {
                return Ok((page, end));
            }
        }
        Err(moved_meanwhile())
    }

    /// The time of a page that is begun now, and whose request ends at the deadline.
    pub(super) fn page_time(&self, deadline: Instant) -> PageTime {
        let until = (Instant::now() + self.options.page_within).min(deadline - PAGE_ANSWER_WITHIN);
        PageTime { until, deadline, rows: 0, sought: false }
    }

    /// Whether a page stands that has shown these names, which have intents. If one of them may be gone, it does not, and the
    /// changes that are committed are added to `gone`. They are finished too, unless the page holds such changes up.
    pub(super) async fn stands(
        &self,
        bucket: &Bucket,
        met: Vec<(String, Intent)>,
        holds: bool,
        gone: &mut BTreeSet<String>,
    ) -> Result<bool, Failure> {
        let mut stands = true;
        for (name, intent) in met {
            let deadline = Instant::now() + REQUEST_WITHIN;
            let located = self.located_in(bucket, &name, Wants::There, deadline).await;
            let Ok((bucket, name)) = located else { return Ok(false) };
            let of = Name { bucket: &bucket, name: &name };
            match self.standing(of, &intent).await? {
                Standing::Stays => continue,
                Standing::Changed => {}
                Standing::Gone(sources) => {
                    if !holds {
                        self.finishes(of, &intent, &sources).await;
                    }
                    gone.insert(intent.id);
                }
            }
            stands = false;
        }
        Ok(stands)
    }
}

impl PageTime {
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Whether nothing more may be read, although it was found in time.
    pub(super) fn is_up(&self) -> bool {
        Instant::now() >= self.deadline - PAGE_ANSWER_WITHIN
    }

    /// Counts a row, and says whether the time is over. The clock costs more than the next row, and less than a row that was
    /// sought; so it is read for those, and for a few of the others.
    pub(super) fn is_over_at_row(&mut self) -> bool {
        self.rows += 1;
        (self.sought || self.rows.is_multiple_of(ROWS_BY_CLOCK)) && self.is_over()
    }

    /// Notes what a listing wants after a row.
    pub(super) fn seen(&mut self, want: Want) -> Want {
        self.sought = matches!(want, Want::Seek(_));
        want
    }
}

/// A page of a listing without anything yet, in which the sources of changes that are `gone` show nothing.
pub(super) fn listing_of<'a>(
    bucket: &'a Bucket,
    request: &'a ListRequest,
    exchange: &Exchange<'_>,
    gone: &'a BTreeSet<String>,
) -> Listing<'a> {
    let folders = bucket.managed_folders.keys().map(String::as_str);
    Listing::new(request, bucket.id, exchange.now.into()).without(gone).with_folders(folders)
}

/// Makes a page, unless that takes longer than its request may.
pub(super) async fn page_by<P>(
    deadline: Instant,
    making: impl Future<Output = Result<P, Failure>>,
) -> Result<P, Failure> {
    let late =
        "The page was not ready in time, because the server reads slowly or names were moved. Try again.";
    found_by(deadline, making, late).await
}

/// Looks for something, unless that takes longer than its request may. In that case `late` is the message for the client.
pub(super) async fn found_by<T>(
    deadline: Instant,
    looking: impl Future<Output = Result<T, Failure>>,
    late: &str,
) -> Result<T, Failure> {
    timeout_at(deadline, looking).await.map_err(|_| Failure::unavailable(late))?
}

fn moved_meanwhile() -> Failure {
    Failure::unavailable("Names were moved again and again while they were listed. Try again.")
}

/// What a listing wants, as the engine's scans take it.
pub(super) fn visit_of(want: Want) -> Visit {
    match want {
        Want::Next => Visit::Next,
        Want::Stop => Visit::Stop,
        Want::Seek(key) => Visit::Seek(key),
    }
}
