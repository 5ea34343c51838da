//! Where a look lies, compared with the look before.

use super::look::Look;

/// The sample of the look before, and what this look saw beyond its ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Edges {
    /// In order.
    before: Vec<Vec<u8>>,
    below: u64,
    above: u64,
}

/// From one look to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// The share of requests above the highest sample of the look before, less the share below the lowest.
    pub(super) climb: f64,
    /// Of all pairs of a sample of the look before and one of this look: the share in which this one is higher,
    /// less the share in which it is lower. It is 0, plus or minus 0.1, of samples of 64 that stay.
    pub(super) rise: f64,
}

impl Edges {
    pub(super) fn add(&mut self, partition: &[u8], cost: u32) {
        let (Some(low), Some(high)) = (self.before.first(), self.before.last()) else {
            return;
        };
        if partition < low.as_slice() {
            self.below += u64::from(cost);
        } else if partition > high.as_slice() {
            self.above += u64::from(cost);
        }
    }

    /// Ends a look, which had this sample in order; the next one is compared with it.
    pub(super) fn turn(&mut self, look: &Look, samples: &[Vec<u8>]) -> Step {
        let climb = look.share(self.above) - look.share(self.below);
        let step = Step { climb, rise: rise(&self.before, samples) };
        *self = Self { before: samples.to_vec(), ..Self::default() };
        step
    }
}

/// Both in order.
fn rise(before: &[Vec<u8>], now: &[Vec<u8>]) -> f64 {
    let over = |sample: &Vec<u8>| {
        let lower = before.partition_point(|other| other < sample);
        let higher = before.len() - before.partition_point(|other| other <= sample);
        lower as f64 - higher as f64
    };
    now.iter().map(over).sum::<f64>() / (before.len() * now.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &str) -> Vec<Vec<u8>> {
        keys.bytes().map(|key| vec![key]).collect()
    }

    #[test]
    fn a_step_is_told_by_its_ends_and_by_pairs() {
        let mut edges = Edges::default();
        let look = Look { cost: 100, ..Look::new(0) };
        assert_eq!(edges.turn(&look, &keys("dgk")).climb, 0.0);
        for (partition, cost) in [(b"k", 10), (b"l", 60), (b"a", 20)] {
            edges.add(partition, cost);
        }
        let step = edges.turn(&look, &keys("aklz"));
        assert!((step.climb - 0.4).abs() < 1e-9, "{step:?}");
        // a: -3; k: 2; l and z: 3 each; of twelve pairs.
        assert!((step.rise - 5.0 / 12.0).abs() < 1e-9, "{step:?}");
        assert_eq!(rise(&keys("aa"), &keys("aaa")), 0.0);
    }
}
