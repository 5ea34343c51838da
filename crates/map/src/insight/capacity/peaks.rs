//! The greatest demand of the last days, in four stretches of a third of [`Rules::idle_after`](super::Rules).

/// Stretches that are kept. The first is under way.
const STRETCHES: usize = 4;

/// The greatest demand of each stretch, for writes and reads, in units.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Peaks(pub(super) [[f32; STRETCHES]; 2]);

impl Peaks {
    /// Stretches in [`Rules::idle_after`](super::Rules).
    pub(super) const PER_IDLE: u32 = STRETCHES as u32 - 1;

    pub(super) fn note(&mut self, demand: [f64; 2]) {
        for (stretches, demand) in self.0.iter_mut().zip(demand) {
            stretches[0] = stretches[0].max(demand as f32);
        }
    }

    /// A stretch is over.
    pub(super) fn turn(&mut self) {
        for stretches in &mut self.0 {
            stretches.rotate_right(1);
            stretches[0] = 0.0;
        }
    }

    /// Those of two spans together, if their greatest demands came at once.
    pub(super) fn together(&self, other: &Self) -> Self {
        let mut sum = *self;
        for (stretches, others) in sum.0.iter_mut().zip(other.0) {
            stretches.iter_mut().zip(others).for_each(|(own, other)| *own += other);
        }
        sum
    }

    /// Those of a part of a span with this share of its load.
    pub(super) fn part(&self, share: f64) -> Self {
        Self(self.0.map(|stretches| stretches.map(|demand| demand * share as f32)))
    }

    /// The greatest of all.
    pub(super) fn greatest(&self) -> f64 {
        f64::from(self.0.as_flattened().iter().copied().fold(0.0, f32::max))
    }
}
