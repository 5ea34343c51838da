//! `rangehold object sync`: makes a target equal to a source, as `gcloud storage rsync` does.
//!
//! Both sides are listed in the order of names and compared side by side: by size, and if that is equal, by CRC32C. Times do not count.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, future};
use rangehold_client::bulk::{Spread, run as run_jobs};
use rangehold_client::object::{Bucket, Condition, Storage};

use super::cp::{
    Body, Engine, Entry, Existing, How, Job, Pair, To, carry_out, files_below, join, objects_below,
};
use super::limits::WINDOW;
use super::place::{Place, below, place};
use super::report::{Ended, Report};
use super::service::{Kind, ServiceFlags};

/// `rangehold object sync`
#[derive(Debug, Args)]
pub(super) struct Sync {
    /// A folder, a bucket, or a folder in a bucket.
    source: String,
    /// The same; one of the two is in the cloud.
    target: String,
    /// Delete what is at the target and not at the source.
    #[arg(long)]
    delete_unmatched_destination_objects: bool,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    how: How,
}

/// One of the two sides.
#[derive(Clone)]
enum Side {
    Folder(std::path::PathBuf),
    Prefix(Bucket, String),
}

impl Side {
    fn new(storage: &Storage, text: &str) -> Result<Self> {
        Ok(match place(text)? {
            Place::Pipe => bail!("- is not a folder"),
            Place::Path(path) => Self::Folder(path),
            Place::Cloud(cloud) if cloud.is_pattern() || cloud.generation.is_some() => {
                bail!("{text}: a pattern or a generation is not a folder")
            }
            Place::Cloud(cloud) => Self::Prefix(storage.bucket(&cloud.bucket)?, cloud.as_folder()),
        })
    }

    fn list(&self, may_lack: bool) -> BoxStream<'static, Result<Entry>> {
        match self {
            Self::Folder(folder) => files_below(folder, may_lack),
            Self::Prefix(bucket, prefix) => objects_below(bucket, prefix),
        }
    }

    fn bucket(&self) -> Option<Bucket> {
        match self {
            Self::Folder(_) => None,
            Self::Prefix(bucket, _) => Some(bucket.clone()),
        }
    }

    fn to(&self, name: &str) -> Result<To> {
        match self {
            Self::Folder(folder) => Ok(To::Path(below(folder, name)?)),
            Self::Prefix(bucket, prefix) => Ok(To::Object(bucket.clone(), format!("{prefix}{name}"))),
        }
    }

    fn show(&self, name: &str) -> String {
        match self {
            Self::Folder(folder) => folder.join(name).display().to_string(),
            Self::Prefix(bucket, prefix) => format!("gs://{}/{prefix}{name}", bucket.name()),
        }
    }
}

/// Makes the target equal to the source.
pub(super) async fn run(service: &ServiceFlags, sync: &Sync) -> Result<()> {
    let kind = if sync.target.starts_with("gs://") { Kind::Writes } else { Kind::Reads };
    let (storage, gate) = service.open(kind)?;
    let (source, target) = (Side::new(&storage, &sync.source)?, Side::new(&storage, &sync.target)?);
    if matches!((&source, &target), (Side::Folder(_), Side::Folder(_))) {
        bail!("both sides are folders on the disk; one of them has to be gs://BUCKET");
    }
    let (verb, listings) = if sync.dry_run { ("would copy", 0) } else { ("copied", 1) };
    let mut report = Report::new(service.output, verb, listings);
    let pairs = join(source.list(false), target.list(true));
    if sync.dry_run {
        rehearse(sync, pairs, &source, &target, &mut report).await?;
        return report.end("");
    }
    let engine = Arc::new(sync.how.engine(gate, &report));
    let (from, to, recursive) = (source.clone(), target.clone(), sync.how.recursive);
    let jobs = pairs.try_filter_map(move |pair| {
        let job = match pair {
            Pair::Target(_) => None,
            Pair::Source(entry) => Some((entry, Existing::Nothing)),
            Pair::Both(entry, there) => Some((entry, Existing::There(there.body))),
        };
        let job = job.filter(|(entry, _)| is_in(entry, recursive)).map(|(entry, existing)| {
            Ok(Job { to: to.to(&entry.name)?, bucket: from.bucket(), existing, from: entry })
        });
        future::ready(job.transpose())
    });
    carry_out(&engine, jobs.boxed(), &mut report).await?;
    // After everything was copied, and only if nothing failed. Both sides are listed again, so that no list of names has to be
    // kept, however long it would be.
    if sync.delete_unmatched_destination_objects && !report.has_failed() {
        let pairs = join(source.list(false), target.list(true));
        delete_unmatched(&engine, pairs, &target, recursive, &mut report).await?;
    }
    report.end("")
}

/// Without --recursive only what is directly in the folder counts. Marks of folders never do.
fn is_in(entry: &Entry, recursive: bool) -> bool {
    !entry.name.is_empty() && !entry.name.ends_with('/') && (recursive || !entry.name.contains('/'))
}

/// Says what would be done.
async fn rehearse(
    sync: &Sync,
    mut pairs: BoxStream<'static, Result<Pair>>,
    source: &Side,
    target: &Side,
    report: &mut Report,
) -> Result<()> {
    while let Some(pair) = pairs.try_next().await? {
        let entry = match pair {
            Pair::Target(entry) => {
                if sync.delete_unmatched_destination_objects && is_in(&entry, sync.how.recursive) {
                    report.say(&format!("would delete {}", target.show(&entry.name)));
                }
                continue;
            }
            Pair::Both(entry, there) if entry.body.has_bytes_of(&there.body).await? => {
                report.count(Ended::Skipped);
                continue;
            }
            Pair::Source(entry) | Pair::Both(entry, _) => entry,
        };
        if is_in(&entry, sync.how.recursive) {
            report.say(&format!("would copy {} to {}", source.show(&entry.name), target.show(&entry.name)));
            report.count(Ended::Done(entry.body.size()));
        }
    }
    Ok(())
}

/// Deletes what only the target has.
async fn delete_unmatched(
    engine: &Engine,
    pairs: BoxStream<'static, Result<Pair>>,
    target: &Side,
    recursive: bool,
    report: &mut Report,
) -> Result<()> {
    let unmatched = pairs.try_filter_map(move |pair| {
        future::ready(Ok(match pair {
            Pair::Target(entry) if is_in(&entry, recursive) => Some(entry),
            _ => None,
        }))
    });
    let unmatched = Spread::new(WINDOW, crate::chance::seed()?).over(unmatched);
    let side = target.clone();
    let work = move |entry: Result<Entry>| {
        let side = side.clone();
        async move {
            let entry = entry?;
            let place = side.show(&entry.name);
            Ok::<_, anyhow::Error>((delete(&side, &entry.body).await, place))
        }
    };
    let mut ended = std::pin::pin!(run_jobs(unmatched, engine.at_once, engine.gate.clone(), work));
    while let Some((deleted, place)) = ended.try_next().await? {
        match deleted {
            Ok(()) => report.say(&format!("deleted {place}")),
            Err(error) => report.count(Ended::Failed(place, error)),
        }
    }
    Ok(())
}

async fn delete(side: &Side, body: &Body) -> Result<()> {
    match (body, side.bucket()) {
        (Body::Object(object), Some(bucket)) => {
            match bucket.delete(&object.name, Condition::Is(object.generation)).await {
                Err(error) if error.has_status(404) => Ok(()),
                deleted => Ok(deleted?),
            }
        }
        (Body::File { path, .. }, _) => std::fs::remove_file(path).context("cannot remove the file"),
        (Body::Object(_), None) => Ok(()),
    }
}
