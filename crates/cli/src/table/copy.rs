//! `rangehold table copy`: from a table to another one, of the same account or of another.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use parking_lot::Mutex;
use rangehold_client::moving::{Fingerprint, Part, Span, read_parts, rest};
use rangehold_client::{Account, Entity};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::journal::Journal;
use super::moving::{Pace, Summary, Target, Wanted};
use crate::account::{AccountFlags, Output};
use crate::progress::Progress;
use crate::rates::Rates;

/// `rangehold table copy`
#[derive(Debug, Args)]
pub(crate) struct Copy {
    #[command(flatten)]
    account: AccountFlags,
    /// The table to read.
    #[arg(long, short = 'n', value_name = "TABLE")]
    name: String,
    /// Connection string of the account to write to [default: the same account]
    #[arg(long, env = "RANGEHOLD_TO_CONNECTION_STRING", value_name = "TEXT", hide_env_values = true)]
    to_connection_string: Option<String>,
    /// The table to write [default: one of the same name]. It is made if it does not exist.
    #[arg(long, value_name = "TABLE")]
    to_name: Option<String>,
    /// The file that notes what is done, so that a killed command goes on. It is removed at the end
    /// [default: rangehold-copy-NAME.jsonl in the working directory, with a mark of both tables in its name]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Do not read the target afterwards to compare it with what was written.
    #[arg(long)]
    no_compare: bool,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    pace: Pace,
    #[command(flatten)]
    rates: Rates,
}

/// A line of the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    /// The copy began.
    Begin {
        /// Whether the target had no entities.
        is_empty: bool,
    },
    /// A span is copied.
    Part { span: Span, entities: Fingerprint },
}

impl Copy {
    fn target(&self) -> Result<Target> {
        let name = self.to_name.as_ref().unwrap_or(&self.name);
        let account = match &self.to_connection_string {
            None => self.account.account()?,
            Some(text) => Account::from_connection_string(text)?,
        };
        Target::open(account, name, &self.rates)
    }

    fn journal_path(&self, head: &Value) -> PathBuf {
        let mark = Fingerprint::of([&Entity::new(head.to_string(), "")]).hash();
        let default = || format!("rangehold-copy-{}-{}.jsonl", self.name, &mark[..12]).into();
        self.journal.clone().unwrap_or_else(default)
    }
}

/// Copies a table.
pub(crate) async fn run(copy: &Copy) -> Result<()> {
    let begin = Instant::now();
    let (target, from) = (copy.target()?, copy.account.endpoint()?);
    if target.endpoint == from && target.table.name().eq_ignore_ascii_case(&copy.name) {
        bail!("{} cannot be copied to itself: give --to-name or --to-connection-string", copy.name);
    }
    let head = json!({
        "kind": "copy", "version": 1, "from": from, "table": copy.name, "filter": copy.wanted.filter,
        "select": copy.wanted.select, "to": target.endpoint, "to_table": target.table.name(),
    });
    let source = copy.wanted.of(copy.account.table(&copy.name)?);
    let Earlier { journal, was_empty, spans, entities: before } =
        Earlier::open(&copy.journal_path(&head), &head, &target).await?;
    let is_hidden = copy.account.output == Output::Json;
    let progress = Progress::begin(is_hidden, "copying", "entities", None);
    let work = Arc::new(Work { target, journal, progress, moved: Mutex::default() });
    let take = {
        let work = work.clone();
        move |part: Part| {
            let work = work.clone();
            async move { work.put(part).await }
        }
    };
    read_parts(&source, rest(spans), copy.pace.parallel(), copy.pace.part_bytes(), take).await?;
    work.progress.end();
    let moved = *work.moved.lock();
    let whole = before + moved;
    let took = begin.elapsed();
    let compared = match (copy.no_compare, was_empty) {
        (true, _) => None,
        (false, true) => Some(work.target.compare(whole, &copy.pace, is_hidden).await?),
        (false, false) => Some("not compared: the table had entities before"),
    };
    let what = format!("copied {} to {} at {}", copy.name, work.target.table.name(), work.target.endpoint);
    Summary { what, whole, moved, took, compared }.print(copy.account.output);
    match Arc::into_inner(work) {
        Some(work) => work.journal.remove(),
        None => Ok(()),
    }
}

/// What earlier runs have done.
struct Earlier {
    journal: Journal,
    /// Whether the target had no entities when the first run began.
    was_empty: bool,
    spans: Vec<Span>,
    entities: Fingerprint,
}

impl Earlier {
    async fn open(path: &Path, head: &Value, target: &Target) -> Result<Self> {
        let (journal, lines) = Journal::open::<Line>(path, head)?;
        let (mut was_empty, mut spans, mut entities) = (None, Vec::new(), Fingerprint::default());
        for line in lines {
            match line {
                Line::Begin { is_empty } => was_empty = Some(is_empty),
                Line::Part { span, entities: part } => {
                    spans.push(span);
                    entities += part;
                }
            }
        }
        let was_empty = match was_empty {
            Some(was_empty) => was_empty,
            None => {
                let is_empty = target.is_empty().await?;
                journal.append(&Line::Begin { is_empty })?;
                is_empty
            }
        };
        Ok(Self { journal, was_empty, spans, entities })
    }
}

/// What all parts share.
struct Work {
    target: Target,
    journal: Journal,
    progress: Progress,
    moved: Mutex<Fingerprint>,
}

impl Work {
    async fn put(&self, part: Part) -> Result<()> {
        let Part { span, entities, fingerprint, .. } = part;
        self.target.upsert(entities, |count| self.progress.add(count)).await?;
        self.journal.append(&Line::Part { span, entities: fingerprint })?;
        *self.moved.lock() += fingerprint;
        Ok(())
    }
}
