//! Jobs of a stream, several at the same time, at the pace of a gate.

use futures::{Stream, StreamExt};

use super::gate::Gate;

/// Does `work` for each job: at most `at_once` at the same time, each as a task of its own, and each after the gate let it
/// pass. Results come in the order in which they are ready. If the stream is dropped, jobs that have begun still
/// end by themselves.
///
/// # Panics
/// If `work` does.
pub fn run<J, T, F>(
    jobs: impl Stream<Item = J>,
    at_once: usize,
    gate: Gate,
    work: impl Fn(J) -> F,
) -> impl Stream<Item = T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let passed = jobs.then(move |job| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            job
        }
    });
    run_unpaced(passed, at_once, work)
}

/// The same, where the jobs themselves wait for their turn.
pub(super) fn run_unpaced<J, T, F>(
    jobs: impl Stream<Item = J>,
    at_once: usize,
    work: impl Fn(J) -> F,
) -> impl Stream<Item = T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    jobs.map(move |job| tokio::spawn(work(job)))
        .buffer_unordered(at_once.max(1))
        .map(|ended| ended.expect("a job is not cancelled, and does not panic"))
}
