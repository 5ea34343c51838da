//! A random sample of the partitions of a look, in proportion to their load.

use super::partition::just_above;
use crate::insight::chance::Chance;

/// The size of the sample.
pub(super) const SAMPLES_MAX: usize = 64;

/// A partition that is in the sample this many times is heavy.
const OFTEN: usize = 4;

/// Chao's reservoir. Once it is full, a request of cost `c` takes a random place with the probability `64 c /
/// C`, where `C` is the cost of all requests so far. So a partition is in it in proportion to its load, even
/// if it has few and costly requests.
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

    /// The sample, sorted; a partition may be in it several times. The reservoir is empty afterwards.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        let mut samples = std::mem::take(self).samples;
        samples.sort_unstable();
        samples
    }
}

/// The cuts to try, in order. Each sampled partition is one. So are the keys just above each heavy partition,
/// so that it can lie on either side, and just above the last one, where growing keys go on.
///
/// The sample of a scan that begins below all partitions of its table is the beginning of the table, and just
/// above that lies the end of the table. A key just above a sample is a cut only if it is below the next one.
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

    /// Seed 423 of the simulation. Scans of whole tables were sampled often, and the cut just above them lay
    /// above all other cuts. So the cuts were not in order, and the judge failed.
    #[test]
    fn cuts_are_in_order_for_every_sample() {
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
        let mut costly = 0;
        for _ in 0..20 {
            let mut reservoir = Reservoir::default();
            for request in 0..20_000u32 {
                // One request in a hundred costs as much as the other 99 together.
                let (kind, cost) = if request % 100 == 0 { (1, 99) } else { (0, 1) };
                reservoir.offer(&[&[kind][..], &request.to_be_bytes()].concat(), cost, &mut chance);
            }
            costly += reservoir.take().iter().filter(|sample| sample[0] == 1).count();
        }
        assert!((570..710).contains(&costly), "{costly} of 1280");
    }
}
