//! The order of a bulk job: by chance, within a window.
//!
//! ```text
//!   sorted input  a1 a2 a3 b1 b2 c1 ...  ->  [ window, full ]  ->  one drawn for each one that comes in  b1 a3 c1 ...
//! ```
//!
//! Memory is that of the window. With a window as large as the input the order is that of a shuffle. With a smaller one,
//! jobs that follow each other still come from all over the window. Where jobs differ in size, such as batches, the window is as large
//! as the sum of their sizes.

use futures::{Stream, StreamExt, stream};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A window of jobs, from which one is drawn by chance.
#[derive(Debug)]
pub struct Spread<T> {
    window: Vec<T>,
    /// The sum of the sizes of the jobs in the window.
    filled: usize,
    size: usize,
    size_of: fn(&T) -> usize,
    chance: StdRng,
}

impl<T> Spread<T> {
    /// A window of `size` jobs, at least 1. The same `seed` gives the same order.
    pub fn new(size: usize, seed: u64) -> Self {
        Self::of_sizes(size, seed, |_| 1)
    }

    /// A window of jobs whose sizes, as `size_of` says them, are `size` together.
    pub fn of_sizes(size: usize, seed: u64, size_of: fn(&T) -> usize) -> Self {
        let chance = StdRng::seed_from_u64(seed);
        Self { window: Vec::new(), filled: 0, size: size.max(1), size_of, chance }
    }

    /// Takes a job in. Gives one out if the window was full.
    pub fn push(&mut self, job: T) -> Option<T> {
        let drawn = if self.is_full() { self.pop() } else { None };
        self.put(job);
        drawn
    }

    /// Draws a job; `None` if the window is empty. For the end of the input.
    pub fn pop(&mut self) -> Option<T> {
        let jobs = self.window.len();
        let drawn = (jobs > 0).then(|| self.window.swap_remove(self.chance.random_range(0..jobs)))?;
        self.filled -= (self.size_of)(&drawn);
        Some(drawn)
    }

    fn put(&mut self, job: T) {
        self.filled += (self.size_of)(&job);
        self.window.push(job);
    }

    fn is_full(&self) -> bool {
        self.filled >= self.size
    }

    /// The jobs of a stream in the order of the window. The first job comes when the window is full or the stream has ended; an
    /// error comes at once, and ends it.
    pub fn over<E>(self, jobs: impl Stream<Item = Result<T, E>>) -> impl Stream<Item = Result<T, E>> {
        let state = (Box::pin(jobs), self, false);
        stream::unfold(state, |(mut jobs, mut spread, ended)| async move {
            let mut ended = ended;
            while !ended && !spread.is_full() {
                match jobs.next().await {
                    None => ended = true,
                    Some(Ok(job)) => spread.put(job),
                    Some(Err(error)) => {
                        spread.window.clear();
                        return Some((Err(error), (jobs, spread, true)));
                    }
                }
            }
            let drawn = spread.pop()?;
            Some((Ok(drawn), (jobs, spread, ended)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn order(jobs: u32, size: usize, seed: u64) -> Vec<u32> {
        let mut spread = Spread::new(size, seed);
        let mut order: Vec<u32> = (0..jobs).filter_map(|job| spread.push(job)).collect();
        order.extend(std::iter::from_fn(|| spread.pop()));
        order
    }

    #[test]
    fn jobs_that_follow_each_other_come_from_many_folders() {
        // 100 folders of 100 files, and a window of a tenth: how many folders are among 50 jobs in a row?
        let order = order(10_000, 1_000, 7);
        let folders = |jobs: &[u32]| jobs.iter().map(|job| job / 100).collect::<BTreeSet<_>>().len();
        assert!(order.chunks(50).all(|jobs| folders(jobs) >= 9), "{order:?}");
    }

    #[tokio::test]
    async fn the_sizes_of_jobs_bound_the_window() {
        // Light jobs first, and then heavy ones: never more than the window's size and one job are held.
        let sizes = (0..2_000_usize).map(|job| if job < 1_000 { 1 } else { 100 });
        let taken = std::cell::Cell::new(0);
        let jobs = stream::iter(sizes.inspect(|size| taken.set(taken.get() + size)));
        let spread = Spread::of_sizes(500, 7, |size: &usize| *size);
        let mut order = std::pin::pin!(spread.over(jobs.map(Ok::<_, std::convert::Infallible>)));
        let (mut given, mut jobs) = (0, 0);
        while let Some(Ok(size)) = order.next().await {
            assert!(taken.get() - given <= 600, "{} taken, {given} given", taken.get());
            given += size;
            jobs += 1;
        }
        assert_eq!((jobs, given), (2_000, 101_000));
    }

    proptest! {
        #[test]
        fn every_job_comes_out_once_and_the_seed_decides_the_order(jobs in 0..300_u32, size in 0..400_usize, seed: u64) {
            let drawn = order(jobs, size, seed);
            prop_assert_eq!(&drawn, &order(jobs, size, seed));
            prop_assert_eq!(drawn.into_iter().collect::<BTreeSet<_>>(), (0..jobs).collect::<BTreeSet<_>>());
        }
    }
}
