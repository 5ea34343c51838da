//! `rangehold object rm`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, future};
use rangehold_client::bulk::{Gate, Spread, run as run_jobs};
use rangehold_client::object::{Bucket, Condition, Object, Storage};

use super::find::{Found, Look, below, matching};
use super::folders::delete_folders;
use super::limits::{AT_ONCE, AT_ONCE_MAX, WINDOW};
use super::place::{Cloud, cloud};
use super::report::{Ended, Report};
use super::service::{Kind, ServiceFlags};

/// `rangehold object rm`
#[derive(Debug, Args)]
pub(super) struct Rm {
    /// Objects, patterns, or with --recursive folders and buckets, such as gs://BUCKET/a* or gs://BUCKET/NAME#GENERATION.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Folders with all that is below them. A whole bucket goes with all versions of its objects, and the bucket too.
    #[arg(short, long, visible_short_alias = 'R')]
    recursive: bool,
    /// All generations, and not only the live one.
    #[arg(short, long)]
    all_versions: bool,
    /// Go on after a failure; the command still fails at its end.
    #[arg(short, long)]
    continue_on_error: bool,
    /// Deletions at the same time.
    #[arg(long, value_name = "N", default_value_t = AT_ONCE as u16, value_parser = clap::value_parser!(u16).range(1..=i64::from(AT_ONCE_MAX)))]
    parallel: u16,
}

/// Deletes.
pub(super) async fn run(service: &ServiceFlags, rm: &Rm) -> Result<()> {
    let places = rm.urls.iter().map(|url| cloud(url)).collect::<Result<Vec<_>>>()?;
    let (storage, gate) = service.open(Kind::Writes)?;
    let mut report = Report::new(service.output, "deleted", places.len());
    for place in &places {
        let bucket = storage.bucket(&place.bucket)?;
        let versions = rm.all_versions || place.name.is_empty() || place.generation.is_some();
        let objects = objects(&bucket, place, rm, versions).await?;
        let mut failed = delete_all(&bucket, objects, versions, rm, &gate, &mut report).await?;
        if rm.recursive && !failed && !place.is_pattern() && place.generation.is_none() {
            failed = delete_folders(&bucket, &place.as_folder(), &gate, &mut report).await?;
        }
        if place.name.is_empty() && !failed {
            end(&storage, &bucket, &mut report).await;
        } else if failed && !rm.continue_on_error {
            break;
        }
    }
    report.end("nothing matches, and nothing was deleted")
}

/// The objects that one argument names.
async fn objects(
    bucket: &Bucket,
    place: &Cloud,
    rm: &Rm,
    versions: bool,
) -> Result<BoxStream<'static, Result<Object>>> {
    if let Some(generation) = place.generation {
        let found = bucket.stat(&place.name, Some(generation)).await.with_context(|| place.to_string())?;
        let found = found.with_context(|| format!("there is no object {place}"))?;
        return Ok(futures::stream::iter([Ok(found)]).boxed());
    }
    if place.is_pattern() {
        let found = matching(bucket, place, Look { versions, folders: rm.recursive })?;
        let from = bucket.clone();
        let objects = found.and_then(move |found| {
            future::ready(Ok(match found {
                Found::Object(object) => futures::stream::iter([Ok(*object)]).boxed(),
                Found::Folder(prefix) => below(&from, &prefix, versions),
            }))
        });
        return Ok(objects.try_flatten().boxed());
    }
    if place.is_folder() && !rm.recursive {
        bail!("{place} is a folder or a bucket; delete it with --recursive");
    }
    let (name, folder) = (place.name.clone(), place.as_folder());
    let recursive = rm.recursive;
    // The object of this name, and what is below it if it is a folder too.
    let named = below(bucket, &place.name, versions)
        .try_take_while(move |object| {
            // Listings are in order: after the name itself come others only if the folder is wanted.
            future::ready(Ok(recursive || object.name == name))
        })
        .try_filter({
            let name = place.name.clone();
            move |object| future::ready(object.name == name || object.name.starts_with(&folder))
        });
    Ok(named.boxed())
}

/// Deletes objects; says whether one of them could not be deleted.
async fn delete_all(
    bucket: &Bucket,
    objects: BoxStream<'static, Result<Object>>,
    versions: bool,
    rm: &Rm,
    gate: &Gate,
    report: &mut Report,
) -> Result<bool> {
    let objects = report.listed(objects, |object: &Object| object.size);
    let jobs = Spread::new(WINDOW, crate::chance::seed()?).over(objects);
    let stop = Arc::new(AtomicBool::new(false));
    let (shared, bucket) = (stop.clone(), bucket.clone());
    let work = move |job: Result<Object>| {
        let (stop, bucket) = (shared.clone(), bucket.clone());
        async move {
            let object = job?;
            let ended = match stop.load(Ordering::Relaxed) {
                true => Ended::NotBegun,
                false => delete(&bucket, &object, versions).await,
            };
            Ok::<_, anyhow::Error>((ended, object.size))
        }
    };
    let mut ended = std::pin::pin!(run_jobs(jobs, rm.parallel.into(), gate.clone(), work));
    let mut failed = false;
    while let Some((ended, size)) = ended.try_next().await? {
        failed |= matches!(ended, Ended::Failed(..));
        stop.store(failed && !rm.continue_on_error, Ordering::Relaxed);
        report.ended(size, ended);
    }
    Ok(failed)
}

async fn delete(bucket: &Bucket, object: &Object, by_generation: bool) -> Ended {
    let deleted = match by_generation {
        true => bucket.delete_generation(&object.name, object.generation).await,
        false => bucket.delete(&object.name, Condition::Is(object.generation)).await,
    };
    match deleted {
        Ok(()) => Ended::Done(object.size),
        // Another client was faster, or an attempt whose answer was lost.
        Err(error) if error.has_status(404) => Ended::Skipped,
        Err(error) => Ended::Failed(format!("gs://{}/{}", bucket.name(), object.name), error.into()),
    }
}

/// Deletes the bucket itself.
async fn end(storage: &Storage, bucket: &Bucket, report: &mut Report) {
    match storage.delete_bucket(bucket.name()).await {
        Ok(()) => {
            report.count(Ended::Done(0));
            report.say(&format!("deleted the bucket gs://{}", bucket.name()));
        }
        Err(error) => report.count(Ended::Failed(format!("gs://{}", bucket.name()), error.into())),
    }
}
