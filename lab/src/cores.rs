//! The same work for many things, on all processors.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does `work` for each item, for as many at once as there are processors. The results come in the order of the items.
pub(crate) fn on_all_cores<T: Sync, R: Send + Sync>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<R>> = items.iter().map(|_| OnceLock::new()).collect();
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).zip(results.get(index))
    };
    let worker = || {
        while let Some((item, result)) = take() {
            result.get_or_init(|| work(item));
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(worker))));
    results.into_iter().map(|result| result.into_inner().expect("all workers have ended")).collect()
}
