//! The sweeper: finishes the removal of dropped tables, in the background.
//!
//! It finds its work in the ranges' notes and in the catalogue, does it in steps that may be repeated, and only
//! then deletes the note. So it keeps nothing that a crash could lose. It only remembers which tables it has seen
//! to be empty, so that it need not look at them in each round. Before it deletes a note it looks once more,
//! whatever it remembers.
//!
//! A table is forgotten a minute after the sweeper met it. Its row in the catalogue was changed before that, so no request
//! that began later has found it, and those that began earlier are over. The time is counted by the sweeper and not by
//! a range, since ranges change hands: while they did so all the time, no table was ever forgotten. It is not the time
//! in the note, since a wall clock may be stepped.
//!
//! The steps of dropping a table are described in [`crate::range`]'s `dropped`.

use std::collections::{BTreeMap, BTreeSet};
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
    /// The tables that are not removed yet.
    met: BTreeMap<Name, Met>,
}

/// A table that is not seen any more is remembered for so many times the time for which a dropped table is.
const MET_KEPT: u32 = 10;

/// The account and the id of a dropped table.
type Name = (String, TableId);

/// What the sweeper remembers of a dropped table.
struct Met {
    /// When it met it first.
    at: Instant,
    /// Whether it found no rows when it last looked.
    is_empty: bool,
}

impl DroppedTableSweeper {
    /// A sweeper that looks for work when a table is dropped, and now and then.
    pub(crate) fn new(host: &Host, executor: &Executor) -> Self {
        let remembered = host.options().dropped_remembered;
        Self { executor: executor.clone(), remembered, met: BTreeMap::new() }
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
        for (name, dropped) in self.pending() {
            match self.step(&dropped, &name, &mut large).await {
                Ok(true) => {
                    self.met.remove(&name);
                    continue;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "a dropped table could not be swept; trying again"),
            }
            remaining.insert(name);
        }
        // While a range changes hands, its tables are not seen.
        let is_kept = |met: &Met| met.at.elapsed() < self.remembered * MET_KEPT;
        self.met.retain(|name, met| remaining.contains(name) || is_kept(met));
        large
    }

    /// The dropped tables of all ranges, each once.
    fn pending(&self) -> BTreeMap<Name, DroppedTable> {
        let servers = self.executor.servers();
        let tables = servers.iter().flat_map(|server| server.dropped_tables());
        tables.map(|dropped| ((dropped.account.clone(), dropped.table), dropped)).collect()
    }

    /// Does for one table all that can be done now. True when nothing of the table is left.
    async fn step(
        &mut self,
        dropped: &DroppedTable,
        name: &Name,
        large: &mut Vec<Arc<Range>>,
    ) -> Result<bool, ReadError> {
        let first = Met { at: Instant::now(), is_empty: false };
        let met = self.met.entry(name.clone()).or_insert(first);
        let (is_due, was_empty) = (met.at.elapsed() >= self.remembered, met.is_empty);
        if is_due || !was_empty {
            let is_empty = self.erase(dropped, large).await? == Remains::Nothing;
            self.met.entry(name.clone()).and_modify(|met| met.is_empty = is_empty);
            if !is_empty {
                return Ok(false);
            }
        }
        if !is_due {
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
