//! `rangehold entity delete-batch`: deletes many entities, in an order that spreads over the table.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, bail};
use clap::{ArgGroup, Args};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use rangehold_client::bulk::{Deletion, delete_keys, delete_matching};
use rangehold_client::{Keys, Query, Table};
use serde_json::json;
use tokio::time::Instant;

use super::In;
use crate::account::Output;
use crate::progress::Progress;
use crate::rates::Rates;
use crate::table::limits::KEYS_PIECE_BYTES;
use crate::table::pieces::pieces;

/// `rangehold entity delete-batch`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true)))]
pub(crate) struct DeleteBatch {
    #[command(flatten)]
    place: In,
    /// The entities that meet this condition: "PartitionKey eq 'maths' and Born lt 1900". Those that are written while the command
    /// runs are left alone.
    #[arg(long, value_name = "TEXT", group = "which")]
    filter: Option<String>,
    /// The entities whose PartitionKey and RowKey this file has: .parquet, .csv or .jsonl. Its other columns do not count.
    #[arg(long, value_name = "FILE", group = "which")]
    from: Option<PathBuf>,
    /// All entities of the table.
    #[arg(long, group = "which")]
    all: bool,
    /// Only count the entities, and delete none.
    #[arg(long, alias = "dry-run")]
    dryrun: bool,
    #[command(flatten)]
    rates: Rates,
}

impl DeleteBatch {
    pub(super) async fn run(&self) -> Result<()> {
        let begin = Instant::now();
        let account = &self.place.account;
        let (service, gate) = self.rates.open(account.account()?)?;
        let table = service.table(&self.place.table_name)?;
        let is_hidden = account.output == Output::Json;
        if self.dryrun {
            return self.count(&table, Progress::begin(is_hidden, "counting", "entities", None)).await;
        }
        let seed = crate::chance::seed()?;
        let mut deletions: BoxStream<'_, Result<Deletion>> = match &self.from {
            Some(file) => delete_keys(&table, keys(file), &gate, seed).boxed(),
            None => delete_matching(&table, self.filter.clone(), &gate, seed).map_err(Error::from).boxed(),
        };
        let progress = Progress::begin(is_hidden, "deleting", "entities", None);
        let mut whole = Deletion::default();
        while let Some(deletion) = deletions.next().await {
            let deletion = deletion.with_context(|| {
                format!(
                    "{} are deleted, and the others are not; run the command again to go on",
                    whole.deleted
                )
            })?;
            progress.add(deletion.deleted + deletion.gone);
            whole += deletion;
        }
        progress.end();
        self.print(whole, begin.elapsed().as_secs_f64())
    }

    async fn count(&self, table: &Table, progress: Progress) -> Result<()> {
        let mut count = 0;
        let mut found: BoxStream<'_, Result<()>> = match &self.from {
            Some(file) => keys(file).map_ok(drop).boxed(),
            None => {
                let query = self.filter.as_ref().map_or_else(Query::default, Query::of_text);
                table.query(query.select(["PartitionKey"])).map_ok(drop).map_err(Error::from).boxed()
            }
        };
        while found.try_next().await?.is_some() {
            count += 1;
            progress.add(1);
        }
        progress.end();
        let name = &self.place.table_name;
        match (self.place.account.output, &self.from) {
            (Output::Json, _) => println!("{:#}", json!({ "would_delete": count })),
            (Output::Table, None) => println!("would delete {count} entities of {name}"),
            (Output::Table, Some(_)) => {
                println!("would delete {count} entities of {name}, as far as they are there")
            }
        }
        Ok(())
    }

    /// Prints the summary. Fails if entities are left.
    fn print(&self, whole: Deletion, seconds: f64) -> Result<()> {
        let Deletion { deleted, gone, changed } = whole;
        let name = &self.place.table_name;
        match self.place.account.output {
            Output::Json => println!(
                "{:#}",
                json!({ "deleted": deleted, "gone": gone, "changed": changed, "seconds": seconds })
            ),
            Output::Table => {
                println!("deleted {deleted} entities of {name}; {gone} were gone already");
                println!("{seconds:.1} s, {:.0} entities/s", deleted as f64 / seconds.max(1e-3));
            }
        }
        if changed > 0 {
            bail!(
                "{changed} entities were written while the command ran, and are left; run it again to delete those of them that \
                 still meet the condition"
            );
        }
        Ok(())
    }
}

/// The keys of a file. An error ends them.
fn keys(file: &Path) -> impl Stream<Item = Result<Keys>> + Send + use<> {
    let file = file.to_owned();
    let pieces = stream::once(async move {
        let shown = file.display().to_string();
        stream::unfold(pieces(file, 0, KEYS_PIECE_BYTES), |mut pieces| async move {
            Some((pieces.recv().await?, pieces))
        })
        .map(move |piece| piece.with_context(|| shown.clone()))
    });
    let keys = |piece: Vec<_>| {
        stream::iter(piece.into_iter().map(|entity: rangehold_client::Entity| Ok(entity.keys)))
    };
    pieces.flatten().map_ok(keys).try_flatten()
}
