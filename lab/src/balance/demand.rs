//! What clients want, as rates over the key space.
//!
//! The key space is a row of cells, each with a load of its own, spread evenly inside. Neighbouring
//! cells form groups whose load rises and falls together (a tenant, a time zone). On top of that come
//! pieces: intervals, or single keys, that come and go and move.

/// A place in the key space: the cell in the upper 32 bits, the place within it in the lower.
pub(super) type Place = u64;

/// The width of a cell.
pub(super) const CELL: Place = 1 << 32;

/// Load spread evenly over an interval of keys; over one key if that is all the interval has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) low: Place,
    pub(super) high: Place,
    /// Per second.
    pub(super) rate: f64,
}

impl Piece {
    /// All load on one key.
    pub(super) fn key(at: Place, rate: f64) -> Self {
        Self { low: at, high: at + 1, rate }
    }

    /// The part of it that lies in `[low, high)`.
    pub(super) fn within(&self, low: Place, high: Place) -> f64 {
        let (from, to) = (self.low.max(low), self.high.min(high));
        if from >= to { 0.0 } else { self.rate * (to - from) as f64 / (self.high - self.low) as f64 }
    }

    /// Whether it is one key.
    pub(super) fn is_key(&self) -> bool {
        self.high - self.low == 1
    }
}

/// The wanted rates of one moment.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    /// The load of all cells below this one. The list is one longer than there are cells.
    sums: Vec<f64>,
    /// The factor by which the cells of each group are multiplied.
    pub(super) factors: Vec<f64>,
    cells_per_group: usize,
    pub(super) pieces: Vec<Piece>,
}

impl Demand {
    /// Cells of these rates, in `groups` groups.
    pub(super) fn new(cells: &[f64], groups: usize) -> Self {
        let mut sums = vec![0.0];
        let mut sum = 0.0;
        for rate in cells {
            sum += rate;
            sums.push(sum);
        }
        let cells_per_group = cells.len().div_ceil(groups);
        Self { sums, factors: vec![1.0; groups], cells_per_group, pieces: Vec::new() }
    }

    /// The end of the key space.
    pub(super) fn end(&self) -> Place {
        (self.sums.len() as u64 - 1) * CELL
    }

    /// The group of the cell in which `place` lies.
    fn group(&self, place: Place) -> usize {
        (place / CELL) as usize / self.cells_per_group
    }

    /// The group that all of `[low, high)` lies in, if one does.
    pub(super) fn one_group(&self, low: Place, high: Place) -> Option<usize> {
        let group = self.group(low);
        (group == self.group(high - 1)).then_some(group)
    }

    /// The load of the cells below `place`, before factors.
    fn sum(&self, place: Place) -> f64 {
        let (cell, inside) = ((place / CELL) as usize, (place % CELL) as f64 / CELL as f64);
        let next = self.sums.get(cell + 1).map_or(0.0, |next| (next - self.sums[cell]) * inside);
        self.sums[cell] + next
    }

    /// The load of the cells in `[low, high)`, before factors.
    pub(super) fn plain(&self, low: Place, high: Place) -> f64 {
        self.sum(high) - self.sum(low)
    }

    /// The load of the cells in `[low, high)`.
    pub(super) fn cells(&self, low: Place, high: Place) -> f64 {
        let group_width = self.cells_per_group as u64 * CELL;
        let part = |group: usize| {
            let (from, to) = (group as u64 * group_width, (group as u64 + 1) * group_width);
            self.factors[group] * self.plain(low.max(from), high.min(to))
        };
        (self.group(low)..=self.group(high - 1)).map(part).sum()
    }

    /// All load in `[low, high)`.
    pub(super) fn between(&self, low: Place, high: Place) -> f64 {
        self.cells(low, high) + self.pieces.iter().map(|piece| piece.within(low, high)).sum::<f64>()
    }

    /// The place below which `share` of the cells' load in `[low, high)` lies, not counting factors.
    pub(super) fn quantile(&self, low: Place, high: Place, share: f64) -> Place {
        let target = self.sum(low) + share * self.plain(low, high);
        let cell = self.sums.partition_point(|sum| *sum <= target).saturating_sub(1);
        let width = self.sums.get(cell + 1).map_or(0.0, |next| next - self.sums[cell]);
        let inside = if width > 0.0 { (target - self.sums[cell]) / width } else { 0.0 };
        (cell as u64 * CELL + (inside * CELL as f64) as u64).clamp(low, high - 1)
    }

    /// The load of all cells.
    pub(super) fn whole(&self) -> f64 {
        self.cells(0, self.end())
    }

    /// The place below which `share` of the load of all cells lies.
    pub(super) fn place_of(&self, share: f64) -> Place {
        let mut left = share * self.whole();
        let width = self.cells_per_group as u64 * CELL;
        for (group, factor) in (0u64..).zip(&self.factors) {
            let (low, high) = (group * width, ((group + 1) * width).min(self.end()));
            let load = factor * self.plain(low, high);
            if left < load {
                return self.quantile(low, high, left / load);
            }
            left -= load;
        }
        self.end() - 1
    }

    /// The place below which half of all load in `[low, high)` lies.
    pub(super) fn median(&self, low: Place, high: Place) -> Place {
        let half = self.between(low, high) / 2.0;
        let (mut below, mut above) = (low, high);
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if self.between(low, middle) < half { below = middle } else { above = middle }
        }
        above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_load_lies_below_its_place() {
        let mut demand = Demand::new(&[1.0, 3.0, 0.0, 2.0, 5.0], 2);
        demand.factors = vec![2.0, 0.5];
        for share in [0.0, 0.1, 0.5, 0.69, 0.7, 0.9, 0.999] {
            let below = demand.cells(0, demand.place_of(share) + 1) / demand.whole();
            assert!((below - share).abs() < 1e-6, "{share}: {below}");
        }
        assert!(demand.place_of(1.0) < demand.end());
    }
}
