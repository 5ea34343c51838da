//! Which entities exist, so that reads and changes find something. Pure.

use super::limits::KNOWN_MAX;

/// Entities by the number of their registration and their row. A write that was answered adds its first entity, and a deletion
/// takes one out when it is due, so that no two requests delete the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    entities: Vec<u64>,
    /// Where the next one goes when there is no room.
    next: usize,
}

impl Known {
    /// A registration whose first entity exists.
    pub(crate) fn add(&mut self, number: u64) {
        if self.entities.len() < KNOWN_MAX {
            self.entities.push(number);
            return;
        }
        self.next = (self.next + 1) % KNOWN_MAX;
        self.entities[self.next] = number;
    }

    /// One of them; `chance` is at least 0 and below 1.
    pub(crate) fn any(&self, chance: f64) -> Option<u64> {
        self.entities.get(self.place(chance)).copied()
    }

    /// One of them, which is no longer known then.
    pub(crate) fn take(&mut self, chance: f64) -> Option<u64> {
        let place = self.place(chance);
        (place < self.entities.len()).then(|| self.entities.swap_remove(place))
    }

    fn place(&self, chance: f64) -> usize {
        (chance * self.entities.len() as f64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entity_is_taken_once() {
        let mut known = Known::default();
        assert_eq!((known.any(0.5), known.take(0.5)), (None, None));
        (0..10).for_each(|number| known.add(number));
        let mut taken: Vec<u64> = (0..10).filter_map(|_| known.take(0.73)).collect();
        taken.sort_unstable();
        assert_eq!((taken, known.any(0.0)), ((0..10).collect(), None));
    }
}
