//! Copies: many jobs at the same time, whatever the two ends are.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use rangehold_client::bulk::{Spread, run};
use rangehold_client::object::{Bucket, Condition, Object, Source};

use super::engine::{Engine, Existing, Job, To, look};
use super::entry::Body;
use super::{down, up};
use crate::object::limits::WINDOW;
use crate::object::moving::Moving;
use crate::object::report::{Ended, Report};

/// Carries jobs out, in an order that spreads over the keys, and counts them.
pub(in crate::object) async fn carry_out(
    engine: &Arc<Engine>,
    jobs: BoxStream<'static, Result<Job>>,
    report: &mut Report,
) -> Result<()> {
    let seed = crate::chance::seed()?;
    // An error of the list itself, such as a folder that cannot be read, ends the command.
    let jobs = Spread::new(WINDOW, seed).over(report.listed(jobs, |job: &Job| job.from.body.size()));
    let shared = engine.clone();
    let work = move |job: Result<Job>| {
        let engine = shared.clone();
        async move {
            let job = job?;
            let (size, moving) = (job.from.body.size(), engine.flow.begin());
            Ok::<_, anyhow::Error>((one(&engine, job, &moving).await, size, moving))
        }
    };
    let mut ended = std::pin::pin!(run(jobs, engine.at_once, engine.gate.clone(), work));
    while let Some((ended, size, moving)) = ended.try_next().await? {
        if matches!(ended, Ended::Failed(..)) && !engine.continue_on_error {
            engine.stop.store(true, Ordering::Relaxed);
        }
        report.ended(size, ended);
        // From here on its bytes count as passed, and not as on their way.
        drop(moving);
    }
    Ok(())
}

/// One job, with its failure as a part of the report.
async fn one(engine: &Engine, job: Job, moving: &Moving) -> Ended {
    if engine.stop.load(Ordering::Relaxed) {
        return Ended::NotBegun;
    }
    let what = what(&job);
    match copy(engine, job, moving).await {
        Ok(ended) => ended,
        Err(error) => Ended::Failed(what, error),
    }
}

/// The source of a job, for its error.
fn what(job: &Job) -> String {
    match (&job.from.body, &job.bucket) {
        (Body::File { path, .. }, _) => path.display().to_string(),
        (Body::Object(object), Some(bucket)) => format!("gs://{}/{}", bucket.name(), object.name),
        (Body::Object(object), None) => object.name.clone(),
    }
}

async fn copy(engine: &Engine, job: Job, moving: &Moving) -> Result<Ended> {
    let Job { from, bucket, to, existing } = job;
    let is_within = matches!((&bucket, &to), (Some(from), To::Object(to, _)) if from.name() == to.name());
    if engine.moves && is_within && matches!(&to, To::Object(_, name) if from.body.has_name(name)) {
        // It would be found at its target, and then removed as a source that has been moved.
        bail!("it cannot be moved to itself");
    }
    let ended = match (&from.body, &to, &bucket) {
        (Body::File { path, size }, To::Object(bucket, name), _) => {
            let file = up::Up { engine, path, size: *size, bucket, name, moving };
            file.upload(existing).await?
        }
        (Body::Object(object), To::Path(path), Some(bucket)) => {
            down::download(engine, bucket, object, path, moving).await?
        }
        (Body::Object(object), To::Object(target, name), Some(bucket)) => {
            across(engine, bucket, object, target, name, existing).await?
        }
        _ => bail!("both ends are files; one of them has to be gs://BUCKET/NAME"),
    };
    let has_source_to_remove = match ended {
        // Under --no-clobber the target may have other bytes, so the source stays.
        Ended::Skipped => !engine.no_clobber,
        // Within one bucket the service has renamed the object, so its source is gone.
        _ => !is_within,
    };
    if engine.moves && has_source_to_remove {
        remove(&from.body, bucket.as_ref()).await?;
    }
    Ok(ended)
}

async fn across(
    engine: &Engine,
    from: &Bucket,
    object: &Object,
    to: &Bucket,
    name: &str,
    existing: Existing,
) -> Result<Ended> {
    let existing = look(to, name, existing).await?;
    let condition = match &existing {
        None => Condition::Absent,
        Some(_) if engine.no_clobber => return Ok(Ended::Skipped),
        Some(there)
            if there.crc32c.is_some() && there.size == object.size && there.crc32c == object.crc32c =>
        {
            return Ok(Ended::Skipped);
        }
        Some(there) => Condition::Is(there.generation),
    };
    let source = Source { name: object.name.clone(), generation: Some(object.generation) };
    if engine.moves && from.name() == to.name() {
        to.rename(&source, name, condition).await?;
        return Ok(Ended::Done(0));
    }
    let copied = to.copy(from, &source, name, condition).await?;
    Ok(Ended::Done(copied.size))
}

/// Removes a source that was moved.
async fn remove(source: &Body, bucket: Option<&Bucket>) -> Result<()> {
    match (source, bucket) {
        (Body::File { path, .. }, _) => std::fs::remove_file(path)
            .with_context(|| format!("{} was copied, and cannot be removed", path.display())),
        (Body::Object(object), Some(bucket)) => {
            match bucket.delete(&object.name, Condition::Is(object.generation)).await {
                Err(error) if error.has_status(404) => Ok(()),
                deleted => deleted.context("it was copied, and cannot be deleted"),
            }
        }
        (Body::Object(_), None) => Ok(()),
    }
}
