//! Has ranges split, merged and moved by the admin API at the times of a schedule.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;

use rangehold_testkit::client::Admin;
use rangehold_testkit::load::{Finding, Kind};

use super::super::changes::{What, prepare};
use super::refusals::{Cause, Window};

/// How often it looks whether the next change is due.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Refusals of changes that are kept in words.
const REFUSED_KEPT_MAX: usize = 10;

/// See the module.
pub(super) struct Changer {
    due: VecDeque<Duration>,
    rng: StdRng,
    /// Changes that were asked for, and what came of them.
    pub(super) asked: u32,
    pub(super) made: u32,
    /// Changes without an answer, because the server was killed.
    pub(super) broken_off: u32,
    /// Changes that were refused, as often as they were asked for.
    pub(super) refused: u32,
    /// The first of them in words.
    pub(super) refusals: Vec<String>,
    /// When ranges changed hands.
    pub(super) windows: Vec<Window>,
    pub(super) findings: Vec<Finding>,
}

impl Changer {
    /// Makes changes at these times.
    pub(super) fn new(due: Vec<Duration>, rng: StdRng) -> Self {
        Self {
            due: due.into(),
            rng,
            asked: 0,
            made: 0,
            broken_off: 0,
            refused: 0,
            refusals: Vec::new(),
            windows: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Changes that were not asked for: they came due while an earlier one was under way, and then the run ended.
    pub(super) fn left(&self) -> usize {
        self.due.len()
    }

    /// Has made what is due, one after the other, until `stop` or until the server is gone.
    pub(super) fn run(&mut self, admin: &Admin, began: Instant, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if self.due.front().is_none_or(|at| *at > began.elapsed()) {
                thread::sleep(LOOK_EVERY);
                continue;
            }
            self.due.pop_front();
            self.asked += 1;
            let from = Instant::now();
            let what = What::ALL[self.rng.random_range(0..What::ALL.len())];
            let result =
                prepare(admin, what, &mut self.rng).and_then(|change| admin.change_patiently(&change));
            self.windows.push(Window { cause: Cause::Change, from, to: Instant::now() });
            match result {
                Ok(_) => self.made += 1,
                Err(error) if error.chain().any(|cause| cause.is::<io::Error>()) => {
                    self.broken_off += 1;
                    return;
                }
                Err(error) => self.refused(&format!("{what:?}: {error:#}")),
            }
        }
    }

    fn refused(&mut self, what: &str) {
        self.refused += 1;
        if self.refusals.len() < REFUSED_KEPT_MAX {
            self.refusals.push(what.to_owned());
        }
        if what.contains(" was answered 5") && !what.contains(" was answered 503") {
            self.findings.push(Finding::new(Kind::Wrong, format!("a change of ranges: {what}")));
        }
    }
}
