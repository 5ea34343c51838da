//! A random sample of what is used, in proportion to its load.

use super::chance::Chance;

/// Chao's reservoir: once it is full, an item of weight `w` takes a random place with the probability `most w / W`, where `W`
/// is the weight of all items so far. So an item is in it in proportion to its weight.
#[derive(Debug, Clone)]
pub(super) struct Sample<T> {
    /// What is in the sample, in no order.
    pub(super) kept: Vec<T>,
    most: usize,
    offered: f64,
}

impl<T> Sample<T> {
    /// An empty sample of at most so many items.
    pub(super) fn new(most: usize) -> Self {
        Self { kept: Vec::new(), most, offered: 0.0 }
    }

    /// Offers an item, which is made only if it is taken.
    pub(super) fn offer(&mut self, weight: f64, chance: &mut Chance, item: impl FnOnce() -> T) {
        self.offered += weight;
        if self.kept.len() < self.most {
            self.kept.push(item());
        } else if chance.share() * self.offered < self.most as f64 * weight {
            let place = chance.below(self.most as u64) as usize;
            self.kept[place] = item();
        }
    }
}
