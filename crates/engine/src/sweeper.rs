//! The sweeper: brings dropped tables to their end, in the background.
//!
//! What is to be done is found in the ranges' notes and in the catalogue, done by steps that may be repeated, and only
//! then is the note deleted; so the sweeper keeps nothing that a crash could lose. What it does
//! remember, which tables it has seen to be empty, saves it from looking in each round; before the
//! note goes it looks once more, whatever it remembers.
//!
//! See [`crate::range`]'s `dropped` for the life of a dropped table.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rangehold_map::{Key, PartitionPrefix, TableId};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::clock::Clock;
use crate::error::{ReadError, WriteError};
use crate::limits::{CATALOGUE_POLL, CATALOGUE_WRITE_MAX, COMPACTION_DEBOUNCE, SWEEP_POLL};
use crate::range::{Admission, DroppedTable, Range, Remains};
use crate::routes::Routes;

/// See the module.
pub(crate) struct Sweeper {
    pub(crate) routes: Arc<Routes>,
    pub(crate) clock: Clock,
    /// How long a table stays refused at least.
    pub(crate) remembered: Duration,
    /// Notified when a table was dropped.
    pub(crate) dropped: Arc<Notify>,
    /// Tables in which it found nothing left when it looked last.
    pub(crate) empty: BTreeSet<(String, TableId)>,
}

impl Sweeper {
    /// Sweeps for ever. To be run as a task.
    pub(crate) async fn run(mut self) {
        let mut catalogue_read = Instant::now();
        loop {
            let _ = timeout(SWEEP_POLL, self.dropped.notified()).await;
            if catalogue_read.elapsed() >= CATALOGUE_POLL {
                catalogue_read = Instant::now();
                if let Err(error) = self.routes.inherit_dropped(self.clock.now()).await {
                    tracing::warn!(%error, "the dropped tables could not be read from the catalogue; trying again");
                }
            }
            let large = self.round().await;
            if large.is_empty() {
                continue;
            }
            // One compaction for all the drops that come together.
            sleep(COMPACTION_DEBOUNCE).await;
            for range in large {
                if let Err(why) = range.compact().await {
                    tracing::warn!(%why, "dropped tables still take up space; trying again");
                }
            }
            self.dropped.notify_one();
        }
    }

    /// Looks at each dropped table once. Returns the ranges that have to be compacted.
    async fn round(&mut self) -> Vec<Arc<Range>> {
        let mut large: Vec<Arc<Range>> = Vec::new();
        let mut remaining = BTreeSet::new();
        for dropped in self.pending() {
            let name = (dropped.account.clone(), dropped.table);
            match self.step(&dropped, &name, &mut large).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "a dropped table could not be swept; trying again"),
            }
            remaining.insert(name);
        }
        self.empty.retain(|name| remaining.contains(name));
        large
    }

    /// The dropped tables of all ranges, each once.
    fn pending(&self) -> Vec<DroppedTable> {
        let mut tables: Vec<DroppedTable> =
            self.routes.ranges.iter().flat_map(|range| range.dropped_tables()).collect();
        tables.sort_by(|a, b| (&a.account, a.table, a.heard).cmp(&(&b.account, b.table, b.heard)));
        tables.dedup_by(|b, a| {
            let same = (&a.account, a.table) == (&b.account, b.table);
            if same {
                // The last one who heard of it decides how long it is remembered.
                a.heard = b.heard;
            }
            same
        });
        tables
    }

    /// Takes one table as far as it goes now. True when it is gone altogether.
    async fn step(
        &mut self,
        dropped: &DroppedTable,
        name: &(String, TableId),
        large: &mut Vec<Arc<Range>>,
    ) -> Result<bool, ReadError> {
        let due = dropped.heard.elapsed() >= self.remembered;
        if due || !self.empty.contains(name) {
            if self.erase(dropped, large).await? != Remains::Nothing {
                self.empty.remove(name);
                return Ok(false);
            }
            self.empty.insert(name.clone());
        }
        if !due {
            return Ok(false);
        }
        self.finish(dropped).await.map(|()| true)
    }

    /// Erases the table's rows where they are few, and adds to `large` the ranges where they are
    /// many.
    async fn erase(&self, dropped: &DroppedTable, large: &mut Vec<Arc<Range>>) -> Result<Remains, ReadError> {
        let mut remains = Remains::Nothing;
        for range in &self.routes.ranges {
            let here = range.erase(dropped).await?;
            if here == Remains::Much && !large.iter().any(|other| Arc::ptr_eq(other, range)) {
                large.push(Arc::clone(range));
            }
            remains = remains.max(here);
        }
        Ok(remains)
    }

    /// Deletes the catalogue's row, then the notes: whoever opens a range in between finds a note
    /// and comes here again.
    async fn finish(&self, dropped: &DroppedTable) -> Result<(), ReadError> {
        let key = Key::DroppedTable { account: dropped.account.clone(), table: dropped.table }.encode();
        let partition = PartitionPrefix::catalogue(&dropped.account);
        let deadline = Instant::now() + CATALOGUE_WRITE_MAX;
        let keys = [key.clone()];
        let written = self
            .routes
            .write::<std::convert::Infallible>(
                &partition,
                &keys,
                deadline,
                Admission::GivesSpaceBack,
                |current, _| {
                    Ok(match current {
                        [Some(_)] => vec![(key, None)],
                        _ => Vec::new(),
                    })
                },
            )
            .await;
        match written {
            Ok(_) => {}
            Err(WriteError::Refused(never)) => match never {},
            Err(error) => return Err(ReadError::Unavailable(error.to_string())),
        }
        for range in &self.routes.ranges {
            range.forget_dropped(dropped).await?;
        }
        Ok(())
    }
}
