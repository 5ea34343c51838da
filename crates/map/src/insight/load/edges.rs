//! What a look saw beyond the ends of the look before.

use super::look::Look;

/// The ends of the last look's sample, and what came beyond them.
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

    /// Ends a look, which had this sample, in order: the ends of the next one. Returns the climb.
    pub(super) fn turn(&mut self, look: &Look, samples: &[Vec<u8>]) -> f64 {
        let climb = look.share(self.above) - look.share(self.below);
        let ends = samples.first().cloned().zip(samples.last().cloned());
        *self = Self { ends, ..Self::default() };
        climb
    }
}
