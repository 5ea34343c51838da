//! CockroachDB's way to find a split key (`pkg/kv/kvserver/split/finder.go`, the unweighted one), written
//! from its description.
//!
//! Twenty keys are kept, drawn from all requests so far. Each later request counts to the left or to the
//! right of every kept key. After ten seconds the key with the most even counts is the split key, if they
//! are even enough. Below the threshold everything is forgotten; one key is suggested a minute.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::balance::demand::Place;

const SAMPLES: usize = 20;
const SECONDS: f64 = 10.0;
const COUNTS_MIN: u64 = 100;
const IMBALANCE_MAX: f64 = 0.25;
const PAUSE: f64 = 60.0;

/// The finder of one range.
#[derive(Debug)]
pub(in crate::balance) struct Finder {
    threshold: f64,
    began: Option<f64>,
    suggested: f64,
    seen: u64,
    samples: Vec<Counts>,
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    key: Place,
    left: u64,
    right: u64,
}

impl Finder {
    pub(in crate::balance) fn new(threshold: f64) -> Self {
        Self { threshold, began: None, suggested: f64::NEG_INFINITY, seen: 0, samples: Vec::new() }
    }

    /// Takes the requests of the second that begins at `now`; may suggest a key.
    pub(in crate::balance) fn second(&mut self, requests: Vec<Place>, now: f64, seed: u64) -> Option<Place> {
        if (requests.len() as f64) < self.threshold {
            self.began = None;
            self.samples.clear();
            self.seen = 0;
            return None;
        }
        let began = *self.began.get_or_insert(now);
        let mut dice = StdRng::seed_from_u64(seed);
        for key in requests {
            self.count(key, &mut dice);
        }
        if now - began < SECONDS || now - self.suggested < PAUSE {
            return None;
        }
        let best = self.samples.iter().filter(|c| c.left + c.right >= COUNTS_MIN);
        let best = best.min_by(|a, b| a.imbalance().total_cmp(&b.imbalance()))?;
        (best.imbalance() < IMBALANCE_MAX).then(|| {
            self.suggested = now;
            best.key
        })
    }

    fn count(&mut self, key: Place, dice: &mut StdRng) {
        self.seen += 1;
        let fresh = Counts { key, left: 0, right: 0 };
        if self.samples.len() < SAMPLES {
            self.samples.push(fresh);
        } else if let Some(place) = self.samples.get_mut(dice.random_range(0..self.seen) as usize) {
            *place = fresh;
        } else {
            for counts in &mut self.samples {
                *(if key < counts.key { &mut counts.left } else { &mut counts.right }) += 1;
            }
        }
    }
}

impl Counts {
    fn imbalance(&self) -> f64 {
        self.left.abs_diff(self.right) as f64 / (self.left + self.right).max(1) as f64
    }
}
