//! What `export`, `import` and `copy` have in common: flags, summaries, and the comparison afterwards.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use futures::TryStreamExt;
use parking_lot::Mutex;
use rangehold_client::bulk::{TableGate, upsert_entities};
use rangehold_client::moving::{Fingerprint, Source, Span, read_parts};
use rangehold_client::{Account, Entity, Query, Table};
use serde_json::json;

use super::limits::{BATCHES_AT_ONCE, PART_MIB, PART_MIB_MAX, PARTS_AT_ONCE, PARTS_AT_ONCE_MAX};
use crate::account::Output;
use crate::progress::Progress;
use crate::rates::Rates;

/// How much at a time.
#[derive(Debug, Clone, Args)]
pub(super) struct Pace {
    /// Parts that are moved at a time.
    #[arg(long, value_name = "N", default_value_t = PARTS_AT_ONCE as u32,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(PARTS_AT_ONCE_MAX)))]
    parallel: u32,
    /// Size of a part in MiB, as the service counts it. A killed command does the parts again that it had begun.
    #[arg(long, value_name = "MIB", default_value_t = PART_MIB as u32,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(PART_MIB_MAX)))]
    part_mib: u32,
}

impl Pace {
    pub(super) fn parallel(&self) -> usize {
        self.parallel as usize
    }

    pub(super) fn part_bytes(&self) -> usize {
        (self.part_mib as usize) << 20
    }
}

/// Which entities, and which of their properties.
#[derive(Debug, Clone, Args)]
pub(super) struct Wanted {
    /// Only entities that meet this condition, in the words of the service: "Age gt 18".
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Option<String>,
    /// Only these properties, and the keys.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) select: Vec<String>,
}

impl Wanted {
    pub(super) fn of(&self, table: Table) -> Source {
        Source::new(table).filtered(self.filter.clone()).selected(&self.select)
    }
}

/// What a command has done.
pub(super) struct Summary {
    /// Such as `exported people to backup`.
    pub(super) what: String,
    /// All that is moved now, by this run and by earlier ones.
    pub(super) whole: Fingerprint,
    /// What this run moved.
    pub(super) moved: Fingerprint,
    pub(super) took: Duration,
    /// What the comparison said.
    pub(super) compared: Option<&'static str>,
}

impl Summary {
    pub(super) fn print(&self, output: Output) {
        let Self { what, whole, moved, took, compared } = self;
        let seconds = took.as_secs_f64();
        let rate = moved.count as f64 / seconds.max(1e-3);
        if output == Output::Json {
            let answer = json!({
                "count": whole.count, "hash": whole.hash(), "moved": moved.count, "seconds": seconds,
                "entities_per_s": rate.round(), "compared": compared,
            });
            println!("{answer:#}");
            return;
        }
        println!("{what}: {whole}");
        let earlier = whole.count - moved.count;
        if earlier > 0 {
            println!("earlier runs had moved {earlier} of them");
        }
        println!("{seconds:.1} s, {rate:.0} entities/s");
        if let Some(compared) = compared {
            println!("{compared}");
        }
    }
}

/// A table that gets entities.
pub(super) struct Target {
    pub(super) table: Table,
    pub(super) endpoint: String,
    gate: TableGate,
    seed: u64,
}

impl Target {
    /// A table of an account, to be written at these rates.
    pub(super) fn open(account: Account, name: &str, rates: &Rates) -> Result<Self> {
        let endpoint = account.endpoint().to_string();
        let (service, gate) = rates.open(account)?;
        Ok(Self { table: service.table(name)?, endpoint, gate, seed: crate::chance::seed()? })
    }

    /// Writes entities; `done` is told the size of each batch that is written.
    pub(super) async fn upsert(&self, entities: Vec<Entity>, done: impl Fn(u64)) -> Result<()> {
        let Self { table, gate, seed, .. } = self;
        Ok(upsert_entities(table, entities, BATCHES_AT_ONCE, gate, *seed, done).await?)
    }

    /// Whether the table has no entity. A table that does not exist is made.
    pub(super) async fn is_empty(&self) -> Result<bool> {
        let query = Query::default().select(["PartitionKey"]).page_items(1);
        let first: Result<Option<Entity>, _> = std::pin::pin!(self.table.query(query)).try_next().await;
        match first {
            Err(error) if error.has_status(404) => {
                self.table.create_if_absent().await?;
                Ok(true)
            }
            first => Ok(first?.is_none()),
        }
    }

    /// Reads the table and compares it with what was written. Fails if they differ.
    pub(super) async fn compare(
        &self,
        wanted: Fingerprint,
        pace: &Pace,
        is_hidden: bool,
    ) -> Result<&'static str> {
        let found = fingerprint(&Source::new(self.table.clone()), pace, wanted.count, is_hidden).await?;
        if found != wanted {
            bail!(
                "the table {} is not equal to what was written: it has {found}, and written were {wanted}. Another client \
                 may have written to it meanwhile, or a key may come twice in the files",
                self.table.name()
            );
        }
        Ok("compared: the table has the same count and hash")
    }
}

/// The fingerprint of all entities that a source has.
pub(super) async fn fingerprint(
    source: &Source,
    pace: &Pace,
    about: u64,
    is_hidden: bool,
) -> Result<Fingerprint> {
    let sum = Arc::new(Mutex::new(Fingerprint::default()));
    let progress = Progress::begin(is_hidden, "comparing", "entities", Some(about));
    let take = {
        let (sum, progress) = (sum.clone(), progress.clone());
        move |part: rangehold_client::moving::Part| {
            *sum.lock() += part.fingerprint;
            progress.add(part.fingerprint.count);
            std::future::ready(anyhow::Ok(()))
        }
    };
    read_parts(source, vec![Span::default()], pace.parallel(), pace.part_bytes(), take).await?;
    progress.end();
    let sum = *sum.lock();
    Ok(sum)
}
