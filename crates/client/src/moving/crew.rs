//! Readers that work on a table at the same time.

use std::collections::VecDeque;
use std::future::Future;

use tokio::task::{JoinError, JoinSet};

use super::source::{Part, Source};
use super::span::Span;
use crate::error::Error;

/// Reads all entities of `spans`, with `at_once` readers, in parts of about `bytes` bytes; `take` gets each part.
///
/// A span is cut in two while there are fewer spans than readers. What a part leaves of its span waits for the next
/// free reader, so a long span occupies nobody for long. Up to `at_once` parts are in memory at a time.
///
/// Ends with the first error; parts that were not taken yet are then dropped.
pub async fn read_parts<F, T, E>(
    source: &Source,
    spans: Vec<Span>,
    at_once: usize,
    bytes: usize,
    take: F,
) -> Result<(), E>
where
    F: Fn(Part) -> T + Clone + Send + Sync + 'static,
    T: Future<Output = Result<(), E>> + Send + 'static,
    E: From<Error> + Send + 'static,
{
    let mut waiting: VecDeque<Task> = spans.into_iter().map(Task::Fresh).collect();
    let mut crew: JoinSet<Result<Vec<Task>, E>> = JoinSet::new();
    loop {
        while crew.len() < at_once.max(1)
            && let Some(task) = waiting.pop_front()
        {
            let is_short = crew.len() + 1 + waiting.len() < at_once;
            let (source, take) = (source.clone(), take.clone());
            crew.spawn(async move {
                match task {
                    Task::Fresh(span) if is_short => Ok(cut(&source, span).await?),
                    Task::Fresh(span) | Task::Whole(span) => {
                        let (part, rest) = source.part(span, bytes, &|_| {}).await?;
                        take(part).await?;
                        Ok(rest.map(Task::Fresh).into_iter().collect())
                    }
                }
            });
        }
        match crew.join_next().await {
            None => return Ok(()),
            Some(done) => waiting.extend(done.unwrap_or_else(|error| raise(error))?),
        }
    }
}

/// A span that waits.
enum Task {
    /// It may be cut.
    Fresh(Span),
    /// It cannot be cut.
    Whole(Span),
}

async fn cut(source: &Source, span: Span) -> Result<Vec<Task>, Error> {
    Ok(match source.cut(&span).await? {
        Some(halves) => halves.map(Task::Fresh).into(),
        None => vec![Task::Whole(span)],
    })
}

/// A panic of a reader is one of the caller. Readers are cancelled only when the caller is gone.
fn raise(error: JoinError) -> ! {
    std::panic::resume_unwind(error.into_panic())
}
