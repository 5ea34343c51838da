//! The load on keys below and above those that the look before has sampled.

use super::look::Look;

/// The ends of the last look's sample, and the cost of the requests beyond them.
#[derive(Debug, Clone, Default)]
pub(super) struct Edges {
    ends: Option<(Vec<u8>, Vec<u8>)>,
    below: u64,
    above: u64,
}

impl Edges {
    pub(super) fn add(&mut self, partition: &[u8], cost: u32) {
        if let Some((low, high)) = &self.ends {
            if partition < low.as_slice() {
                self.below += u64::from(cost);
            } else if partition > high.as_slice() {
                self.above += u64::from(cost);
            }
        }
    }

    /// Ends a look and returns its climb. `samples` is its sample, in order; the next look is compared with it.
    pub(super) fn turn(&mut self, look: &Look, samples: &[Vec<u8>]) -> f64 {
        let climb = look.share(self.above) - look.share(self.below);
        let ends = samples.first().cloned().zip(samples.last().cloned());
        *self = Self { ends, ..Self::default() };
        climb
    }
}
