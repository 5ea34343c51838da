//! The two bulk jobs on objects that most programs need.

use futures::{Stream, StreamExt, TryStreamExt};

use super::gate::Gate;
use super::run::run;
use super::spread::Spread;
use crate::limits::{BULK_AT_ONCE, BULK_WINDOW};
use crate::object::{Bucket, Condition, Content, Crc32c, Error, Generation, Listing, Object};

/// What became of one object.
#[derive(Debug)]
pub enum Outcome {
    /// It was made or deleted.
    Done(String),
    /// An object with the same bytes was there; nothing was sent but the question.
    Skipped(String),
    /// It failed. The others go on.
    Failed(String, Error),
}

/// Makes an object of each content, in an order that spreads over the ranges of names. Each comes out of the stream when it is
/// done, which is the progress. An object that exists with other bytes is replaced.
///
/// To resume after a crash, run it again with the same names: objects with the same bytes are skipped.
pub fn upload_all(
    bucket: &Bucket,
    contents: impl Stream<Item = (String, Content)>,
    gate: &Gate,
    seed: u64,
) -> impl Stream<Item = Outcome> {
    let spread = Spread::new(BULK_WINDOW, seed).over(contents.map(Ok::<_, std::convert::Infallible>));
    let jobs = spread.map(|Ok(job)| job);
    let bucket = bucket.clone();
    run(jobs, BULK_AT_ONCE, gate.clone(), move |(name, content)| {
        let bucket = bucket.clone();
        async move {
            match upload(&bucket, &name, content).await {
                Ok(true) => Outcome::Done(name),
                Ok(false) => Outcome::Skipped(name),
                Err(error) => Outcome::Failed(name, error),
            }
        }
    })
}

/// Whether the upload was needed.
async fn upload(bucket: &Bucket, name: &str, content: Content) -> Result<bool, Error> {
    let same = |object: &Object| object.crc32c == Some(Crc32c::of(&content.bytes));
    match bucket.upload(name, content.clone(), Condition::Absent).await {
        Ok(_) => return Ok(true),
        Err(error) if error.has_status(412) => {}
        Err(error) => return Err(error),
    }
    match bucket.stat(name, None).await? {
        Some(object) if same(&object) => Ok(false),
        Some(object) => bucket.upload(name, content, Condition::Is(object.generation)).await.map(|_| true),
        None => bucket.upload(name, content, Condition::Absent).await.map(|_| true),
    }
}

/// Deletes all objects of a listing, in an order that spreads over the ranges of names. To resume, run it again. An object that
/// was replaced since it was listed is left alone, and fails with status 412.
pub fn delete_all(
    bucket: &Bucket,
    listing: Listing,
    gate: &Gate,
    seed: u64,
) -> impl Stream<Item = Result<Outcome, Error>> {
    let versions = listing.versions;
    let listed = bucket.list(listing).map_ok(|object| (object.name, object.generation));
    let jobs = Spread::new(BULK_WINDOW, seed).over(listed);
    let bucket = bucket.clone();
    run(jobs, BULK_AT_ONCE, gate.clone(), move |job| {
        let bucket = bucket.clone();
        async move {
            match job {
                Ok((name, generation)) => Ok(delete(&bucket, name, generation, versions).await),
                Err(error) => Err(error),
            }
        }
    })
}

async fn delete(bucket: &Bucket, name: String, generation: Generation, by_generation: bool) -> Outcome {
    let deleted = match by_generation {
        true => bucket.delete_generation(&name, generation).await,
        false => bucket.delete(&name, Condition::Is(generation)).await,
    };
    match deleted {
        Ok(()) => Outcome::Done(name),
        // Somebody was faster, or an earlier attempt of this deletion was.
        Err(error) if error.has_status(404) => Outcome::Skipped(name),
        Err(error) => Outcome::Failed(name, error),
    }
}
