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

/// The cuts to try, in order: each sampled partition, and just above those that were drawn often, so that a heavy
/// one can come to lie on either side, and above the last, where keys that grow go on.
///
/// A scan from before all partitions of its table is sampled as where it begins. Just above that, nothing of the table
/// is left: only where it is the last sample that is a cut.
pub(super) fn cuts_around(samples: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut cuts = Vec::with_capacity(samples.len() + 1);
    let mut drawn = samples.chunk_by(|a, b| a == b).peekable();
    while let Some(times) = drawn.next() {
        let partition = &times[0];
        cuts.push(partition.clone());
        let above = just_above(partition);
        let is_wanted = |next: &&[Vec<u8>]| times.len() >= OFTEN && above < next[0];
        if drawn.peek().is_none_or(is_wanted) {
            cuts.push(above);
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{PartitionPrefix, TableId, table_prefix};

    /// Seed 423 of the simulation: scans of whole tables were sampled often, the cut above them lay above all
    /// others, and the judge looked for samples between two cuts of which the first was the greater.
    #[test]
    fn cuts_are_in_order_whatever_was_sampled() {
        let table = table_prefix("acme", TableId(7));
        let partition = |key: &str| PartitionPrefix::entity("acme", TableId(7), key).as_bytes().to_vec();
        let mut samples = vec![table.clone(); 9];
        samples.extend([partition("a"), partition("b"), partition("b"), partition("b"), partition("b")]);
        samples.push(partition("c"));
        let cuts = cuts_around(&samples);
        assert!(cuts.is_sorted_by(|a, b| a < b), "{cuts:?}");
        let above = |key: &str| just_above(&partition(key));
        let expected = [table, partition("a"), partition("b"), above("b"), partition("c"), above("c")];
        assert_eq!(cuts, expected);
    }

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
