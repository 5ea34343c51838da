//! The sweeper: finishes the removal of dropped tables, in the background.
//!
//! It finds its work in the ranges' notes and in the catalogue, does it in steps that may be repeated, and only
//! then deletes the note. So it keeps nothing that a crash could lose. It only remembers which tables it has seen
//! to be empty, so that it need not look at them in each round. Before it deletes a note it looks once more,
//! whatever it remembers.
//!
//! The steps of dropping a table are described in [`crate::range`]'s `dropped`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rangehold_map::{Key, PartitionPrefix, TableId};
use tokio::time::{Instant, sleep, timeout};

use crate::database::DroppedTable;
use crate::error::{ReadError, Reason, WriteError, with_causes};
use crate::executor::Executor;
use crate::host::Host;
use crate::limits::{CATALOGUE_POLL, CATALOGUE_WRITE_MAX, COMPACTION_DEBOUNCE, SWEEP_POLL};
use crate::range::{Range, Remains, WriteRequest};
use crate::store::Space;

/// See the module.
pub(crate) struct DroppedTableSweeper {
    executor: Executor,
    /// The shortest time for which a dropped table stays refused.
    remembered: Duration,
    /// Tables in which it found no rows when it last looked.
    empty: BTreeSet<(String, TableId)>,
}

impl DroppedTableSweeper {
    /// A sweeper that looks for work when a table is dropped, and now and then.
    pub(crate) fn new(host: &Host, executor: &Executor) -> Self {
        let remembered = host.options().dropped_remembered;
        Self { executor: executor.clone(), remembered, empty: BTreeSet::new() }
    }

    /// Sweeps without end. Run it as a task.
    pub(crate) async fn run(mut self) {
        let mut catalogue_read = Instant::now();
        loop {
            let _ = timeout(SWEEP_POLL, self.executor.router().dropped().notified()).await;
            if catalogue_read.elapsed() >= CATALOGUE_POLL {
                catalogue_read = Instant::now();
                if let Err(error) = self.executor.inherit_dropped().await {
                    tracing::warn!(
                        error = with_causes(&error),
                        "dropped tables may not be found; trying again"
                    );
                }
            }
            let large = self.round().await;
            if large.is_empty() {
                continue;
            }
            // Wait, so that one compaction serves all drops that come shortly after one another.
            sleep(COMPACTION_DEBOUNCE).await;
            for range in large {
                if let Err(error) = range.compact().await {
                    tracing::warn!(
                        error = with_causes(&error),
                        "dropped tables still take up space; trying again"
                    );
                }
            }
            self.executor.router().dropped().notify_one();
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
            self.executor.servers().iter().flat_map(|server| server.dropped_tables()).collect();
        tables.sort_by(|a, b| (&a.account, a.table, a.heard).cmp(&(&b.account, b.table, b.heard)));
        tables.dedup_by(|b, a| {
            let same = (&a.account, a.table) == (&b.account, b.table);
            if same {
                // The range that heard of the drop last decides how long the drop is remembered.
                a.heard = b.heard;
            }
            same
        });
        tables
    }

    /// Does for one table all that can be done now. True when nothing of the table is left.
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

    /// Erases the table's rows in the ranges that have few of them, and adds the ranges that have many
    /// to `large`. Every range with keys of the table has to be asked. If one of them is offline or changes
    /// hands, it cannot tell what it holds, and the table has to wait.
    async fn erase(&self, dropped: &DroppedTable, large: &mut Vec<Arc<Range>>) -> Result<Remains, ReadError> {
        let keys = dropped.keys();
        let map = self.executor.maps().current();
        let mut remains = Remains::Nothing;
        for entry in map.overlapping(&keys) {
            if !entry.online {
                return Err(ReadError::Offline(entry.id));
            }
            let server = self.executor.server(entry.place.server).map_err(|_| ReadError::NotOwned)?;
            let part = entry.keys.intersect(&keys);
            remains = remains.max(server.erase(dropped, &part, large).await?);
        }
        Ok(remains)
    }

    /// Deletes the catalogue's row, then the notes. If a range is opened in between, its note is still there, and
    /// the sweeper comes here again.
    async fn finish(&self, dropped: &DroppedTable) -> Result<(), ReadError> {
        let key = Key::DroppedTable { account: dropped.account.clone(), table: dropped.table }.encode();
        let partition = PartitionPrefix::catalogue(&dropped.account);
        let keys = [key.clone()];
        let request = WriteRequest {
            space: Space::ReturnsMuch,
            ..WriteRequest::new(&partition, &keys, Instant::now() + CATALOGUE_WRITE_MAX)
        };
        let written = self
            .executor
            .router()
            .write::<std::convert::Infallible>(&request, |current, _| {
                Ok(match current {
                    [Some(_)] => vec![(key.clone(), None)],
                    _ => Vec::new(),
                })
            })
            .await;
        match written {
            Ok(_) => {}
            Err(WriteError::Refused(never)) => match never {},
            Err(error) => return Err(ReadError::Unavailable(Reason::failed(error))),
        }
        for server in self.executor.servers() {
            server.forget_dropped(dropped).await?;
        }
        Ok(())
    }
}
