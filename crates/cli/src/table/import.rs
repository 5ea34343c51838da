//! `rangehold table import`: from the folder of an export, or from one file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use rangehold_client::Entity;
use rangehold_client::moving::Fingerprint;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::export::{Line as ExportLine, MANIFEST};
use super::format::Format;
use super::journal::Journal;
use super::moving::{Pace, Summary, Target};
use super::pieces::pieces;
use crate::account::{AccountFlags, Output};
use crate::progress::Progress;
use crate::rates::Rates;

/// `rangehold table import`
#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(flatten)]
    account: AccountFlags,
    /// The table. It is made if it does not exist. Entities that it has are replaced if they come in the files, and stay
    /// if not.
    #[arg(long, short = 'n', value_name = "TABLE")]
    name: String,
    /// The folder of an export, or one file: .parquet, .csv or .jsonl.
    #[arg(long, value_name = "PATH")]
    from: PathBuf,
    /// Do not read the table afterwards to compare it with the files.
    #[arg(long)]
    no_compare: bool,
    #[command(flatten)]
    pace: Pace,
    #[command(flatten)]
    rates: Rates,
}

/// A line of the journal of an import.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    /// The import began.
    Begin {
        /// Whether the table had no entities.
        is_empty: bool,
    },
    /// The next entities of a file are written.
    Piece { file: String, entities: Fingerprint },
    /// A file was read to its end.
    File { file: String },
}

/// A file to import.
struct Wanted {
    /// Its name in the journal.
    name: String,
    path: PathBuf,
    /// What it must have, if an export says so.
    entities: Option<Fingerprint>,
}

/// Imports files.
pub(crate) async fn run(import: &Import) -> Result<()> {
    let begin = Instant::now();
    let files = files(&import.from)?;
    let target = Target::open(import.account.account()?, &import.name, &import.rates)?;
    let head = json!({
        "kind": "import", "version": 1, "from": import.from, "endpoint": target.endpoint, "table": import.name,
    });
    let (journal, lines) = Journal::open::<Line>(&journal_path(import, &target), &head)?;
    let was_empty = was_empty(&journal, &lines, &target).await?;
    let earlier = Earlier::of(&lines);
    let is_hidden = import.account.output == Output::Json;
    let progress = Progress::begin(is_hidden, "importing", "entities", total(&files));
    let before: Fingerprint = earlier.pieces.values().copied().sum();
    progress.add(before.count);
    let work = Arc::new(Work {
        target,
        journal,
        progress,
        earlier,
        sums: Mutex::default(),
        pace: import.pace.clone(),
    });
    let imported = stream::iter(files.into_iter().map(|file| {
        let work = work.clone();
        async move { tokio::spawn(async move { work.import(file).await }).await? }
    }));
    imported.buffer_unordered(import.pace.parallel()).try_collect::<()>().await?;
    work.progress.end();
    let moved: Fingerprint = work.sums.lock().values().copied().sum();
    let whole = before + moved;
    let took = begin.elapsed();
    let compared = match (import.no_compare, was_empty) {
        (true, _) => None,
        (false, true) => Some(work.target.compare(whole, &import.pace, is_hidden).await?),
        (false, false) => Some("not compared: the table had entities before"),
    };
    let what = format!("imported {} into {}", import.from.display(), import.name);
    Summary { what, whole, moved, took, compared }.print(import.account.output);
    match Arc::into_inner(work) {
        Some(work) => work.journal.remove(),
        None => Ok(()),
    }
}

/// Beside the files, so that they are found again together. One import into another table has another journal.
fn journal_path(import: &Import, target: &Target) -> PathBuf {
    let place = Entity::new(&target.endpoint, &import.name);
    let mark = &Fingerprint::of([&place]).hash()[..12];
    match import.from.is_dir() {
        true => import.from.join(format!("import-{mark}.jsonl")),
        false => {
            let mut name = import.from.clone().into_os_string();
            name.push(format!(".import-{mark}.jsonl"));
            name.into()
        }
    }
}

/// The files of an export, or the one file.
fn files(from: &Path) -> Result<Vec<Wanted>> {
    if !from.is_dir() {
        Format::of(from)?;
        let name = from.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(vec![Wanted { name, path: from.to_owned(), entities: None }]);
    }
    let (_, lines) = Journal::read::<ExportLine>(&from.join(MANIFEST))
        .with_context(|| format!("{} is not the folder of an export", from.display()))?;
    if !lines.iter().any(|line| matches!(line, ExportLine::End { .. })) {
        bail!("the export in {} is not complete: run it again first", from.display());
    }
    let mut files: Vec<Wanted> = lines
        .into_iter()
        .filter_map(|line| match line {
            ExportLine::Part { file: Some(file), entities, .. } => {
                Some(Wanted { path: from.join(&file), name: file, entities: Some(entities) })
            }
            _ => None,
        })
        .collect();
    spread(&mut files);
    Ok(files)
}

/// Puts neighbours far apart. Files at the same place of the key space would all load the same range of the target.
fn spread<T>(files: &mut Vec<T>) {
    let mut numbered: Vec<(usize, T)> = std::mem::take(files).into_iter().enumerate().collect();
    numbered.sort_by_key(|(number, _)| number.reverse_bits());
    files.extend(numbered.into_iter().map(|(_, file)| file));
}

fn total(files: &[Wanted]) -> Option<u64> {
    files.iter().map(|file| Some(file.entities?.count)).sum()
}

async fn was_empty(journal: &Journal, lines: &[Line], target: &Target) -> Result<bool> {
    let known = lines.iter().find_map(|line| match line {
        Line::Begin { is_empty } => Some(*is_empty),
        _ => None,
    });
    match known {
        Some(is_empty) => Ok(is_empty),
        None => {
            let is_empty = target.is_empty().await?;
            journal.append(&Line::Begin { is_empty })?;
            Ok(is_empty)
        }
    }
}

/// What earlier runs have done.
#[derive(Default)]
struct Earlier {
    /// What is written of each file: its first entities.
    pieces: BTreeMap<String, Fingerprint>,
    /// The files that are written to their end.
    whole: Vec<String>,
}

impl Earlier {
    fn of(lines: &[Line]) -> Self {
        let mut earlier = Self::default();
        for line in lines {
            match line {
                Line::Begin { .. } => {}
                Line::Piece { file, entities } => {
                    *earlier.pieces.entry(file.clone()).or_default() += *entities
                }
                Line::File { file } => earlier.whole.push(file.clone()),
            }
        }
        earlier
    }
}

/// What the importers of all files share.
struct Work {
    target: Target,
    journal: Journal,
    progress: Progress,
    earlier: Earlier,
    /// What this run wrote of each file.
    sums: Mutex<BTreeMap<String, Fingerprint>>,
    pace: Pace,
}

impl Work {
    async fn import(&self, file: Wanted) -> Result<()> {
        if self.earlier.whole.contains(&file.name) {
            return Ok(());
        }
        let before = self.earlier.pieces.get(&file.name).copied().unwrap_or_default();
        let mut sum = before;
        let mut pieces = pieces(file.path.clone(), before.count, self.pace.part_bytes());
        while let Some(piece) = pieces.recv().await {
            let piece = piece.with_context(|| file.path.display().to_string())?;
            let entities = Fingerprint::of(&piece);
            self.target.upsert(piece, |count| self.progress.add(count)).await?;
            self.journal.append(&Line::Piece { file: file.name.clone(), entities })?;
            sum += entities;
            *self.sums.lock().entry(file.name.clone()).or_default() += entities;
        }
        match file.entities {
            Some(wanted) if wanted != sum => bail!(
                "{} is damaged: it has {sum}, and the export wrote {wanted}; export again",
                file.path.display()
            ),
            _ => self.journal.append(&Line::File { file: file.name }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_far_apart() {
        let mut files: Vec<u32> = (0..8).collect();
        spread(&mut files);
        assert_eq!(files, [0, 4, 2, 6, 1, 5, 3, 7]);
    }
}
