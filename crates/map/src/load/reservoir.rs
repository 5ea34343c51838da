//! A sample of the partitions that a look saw, each with the chance that its load deserves.

use super::chance::Chance;
use super::partition::just_above;

/// Partitions in the sample.
pub(super) const SAMPLES_MAX: usize = 64;

/// Times that a partition is drawn from which it is heavy.
const OFTEN: usize = 4;

/// Chao's reservoir: once it is full, a request of cost `c` takes a random place with the chance
/// `64 c / C`, `C` being all cost so far. A partition is in it in proportion to its load, however few
/// and dear its requests are.
#[derive(Debug, Clone, Default)]
pub(super) struct Reservoir {
    samples: Vec<Vec<u8>>,
    cost: u64,
}

impl Reservoir {
    pub(super) fn offer(&mut self, partition: &[u8], cost: u32, chance: &mut Chance) {
        self.cost += u64::from(cost);
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(partition.to_vec());
        } else if chance.below(self.cost) < SAMPLES_MAX as u64 * u64::from(cost) {
            let place = &mut self.samples[chance.below(SAMPLES_MAX as u64) as usize];
            place.clear();
            place.extend_from_slice(partition);
        }
    }

    /// The partitions, in order, as often as they were drawn; the reservoir is empty afterwards.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        let mut samples = std::mem::take(self).samples;
        samples.sort_unstable();
        samples
    }
}

/// The cuts to try: each sampled partition, and just above those that were drawn often, so that a heavy one
/// can come to lie on either side, and above the last, where keys that grow go on.
pub(super) fn cuts_around(samples: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut cuts = Vec::with_capacity(samples.len() + 1);
    for drawn in samples.chunk_by(|a, b| a == b) {
        let partition = &drawn[0];
        cuts.push(partition.clone());
        if drawn.len() >= OFTEN || samples.last() == Some(partition) {
            cuts.push(just_above(partition));
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_follows_the_cost() {
        let mut chance = Chance::new(7);
        let mut dear = 0;
        for _ in 0..20 {
            let mut reservoir = Reservoir::default();
            for request in 0..20_000u32 {
                // One request in a hundred costs as much as the other 99 together.
                let (kind, cost) = if request % 100 == 0 { (1, 99) } else { (0, 1) };
                reservoir.offer(&[&[kind][..], &request.to_be_bytes()].concat(), cost, &mut chance);
            }
            dear += reservoir.take().iter().filter(|sample| sample[0] == 1).count();
        }
        assert!((570..710).contains(&dear), "{dear} of 1280");
    }
}
