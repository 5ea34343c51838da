//! `rangehold table export`: a folder with a file for each part of the table, and a journal that names them.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use clap::Args;
use parking_lot::Mutex;
use rangehold_client::Entity;
use rangehold_client::moving::{Fingerprint, Part, Source, Span, read_parts, rest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::format::Format;
use super::journal::{Journal, sync_folder};
use super::moving::{Pace, Summary, Wanted};
use crate::account::{AccountFlags, Output};
use crate::progress::Progress;

/// The journal of an export, in its folder.
pub(super) const MANIFEST: &str = "manifest.jsonl";
/// How the names of the files with entities begin.
const PART: &str = "part-";

/// `rangehold table export`
#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    account: AccountFlags,
    /// The table.
    #[arg(long, short = 'n', value_name = "TABLE")]
    name: String,
    /// The folder that gets the files. A command that was killed goes on there when it is run again.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// The form of the files.
    #[arg(long, value_name = "FORMAT", default_value = "parquet")]
    format: Format,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    pace: Pace,
}

/// A line of the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Line {
    /// A span was read; its entities are in a file, if there are any.
    Part {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        span: Span,
        entities: Fingerprint,
    },
    /// The table was read to its end.
    End { entities: Fingerprint },
}

impl Export {
    fn head(&self) -> Result<Value> {
        Ok(json!({
            "kind": "export", "version": 1, "format": self.format, "endpoint": self.account.endpoint()?,
            "table": self.name, "filter": self.wanted.filter, "select": self.wanted.select,
        }))
    }
}

/// Exports a table.
pub(crate) async fn run(export: &Export) -> Result<()> {
    let begin = Instant::now();
    let source = export.wanted.of(export.account.table(&export.name)?);
    std::fs::create_dir_all(&export.to).with_context(|| format!("cannot make {}", export.to.display()))?;
    let (journal, lines) = Journal::open::<Line>(&export.to.join(MANIFEST), &export.head()?)?;
    let earlier = Earlier::of(&lines);
    let (before, mut moved) = (earlier.entities, Fingerprint::default());
    if !earlier.is_complete {
        remove_orphans(&export.to, &lines)?;
        let is_hidden = export.account.output == Output::Json;
        let folder = Arc::new(Folder {
            path: export.to.clone(),
            format: export.format,
            next: AtomicU64::new(earlier.next),
            journal,
            progress: Progress::begin(is_hidden, "exporting", "entities", None),
            moved: Mutex::default(),
        });
        read_into(&folder, &source, rest(earlier.spans), &export.pace).await?;
        folder.progress.end();
        moved = *folder.moved.lock();
        folder.journal.append(&Line::End { entities: before + moved })?;
    }
    let what = format!("exported {} to {}", export.name, export.to.display());
    let summary = Summary { what, whole: before + moved, moved, took: begin.elapsed(), compared: None };
    summary.print(export.account.output);
    Ok(())
}

async fn read_into(folder: &Arc<Folder>, source: &Source, spans: Vec<Span>, pace: &Pace) -> Result<()> {
    let take = {
        let folder = folder.clone();
        move |part: Part| {
            let folder = folder.clone();
            // A file is made by the processor and the disk, and other parts need their turns meanwhile.
            async move { tokio::task::spawn_blocking(move || folder.put(part)).await? }
        }
    };
    read_parts(source, spans, pace.parallel(), pace.part_bytes(), take).await
}

/// What earlier runs have done.
struct Earlier {
    spans: Vec<Span>,
    entities: Fingerprint,
    /// The number of the next file.
    next: u64,
    is_complete: bool,
}

impl Earlier {
    fn of(lines: &[Line]) -> Self {
        let mut earlier =
            Self { spans: Vec::new(), entities: Fingerprint::default(), next: 1, is_complete: false };
        for line in lines {
            match line {
                Line::Part { file, span, entities } => {
                    let number = file.as_deref().and_then(number_of).unwrap_or_default();
                    earlier.next = earlier.next.max(number + 1);
                    earlier.spans.push(span.clone());
                    earlier.entities += *entities;
                }
                Line::End { .. } => earlier.is_complete = true,
            }
        }
        earlier
    }
}

/// The number in the name of a file.
fn number_of(file: &str) -> Option<u64> {
    file.strip_prefix(PART)?.split('.').next()?.parse().ok()
}

/// Removes files of parts that the journal does not name: the command was killed between the two.
fn remove_orphans(folder: &Path, lines: &[Line]) -> Result<()> {
    let named = |name: &str| {
        lines.iter().any(|line| matches!(line, Line::Part { file: Some(file), .. } if file == name))
    };
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_orphan = name.to_str().is_some_and(|name| number_of(name).is_some() && !named(name));
        if is_orphan {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Where the parts go.
struct Folder {
    path: PathBuf,
    format: Format,
    next: AtomicU64,
    journal: Journal,
    progress: Progress,
    /// What this run wrote.
    moved: Mutex<Fingerprint>,
}

impl Folder {
    /// Writes a part. It counts only when the journal names it, so a file may be torn before that.
    fn put(&self, part: Part) -> Result<()> {
        let file = match part.entities.as_slice() {
            [] => None,
            entities => Some(self.put_file(entities)?),
        };
        self.journal.append(&Line::Part { file, span: part.span, entities: part.fingerprint })?;
        self.progress.add(part.fingerprint.count);
        *self.moved.lock() += part.fingerprint;
        Ok(())
    }

    fn put_file(&self, entities: &[Entity]) -> Result<String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PART}{number:06}.{}", self.format.ending());
        let path = self.path.join(&name);
        let bytes = self.format.write(entities)?;
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        written.with_context(|| format!("cannot write {}", path.display()))?;
        sync_folder(&path)?;
        Ok(name)
    }
}
