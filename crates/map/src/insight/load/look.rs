//! Counts the load of one look on both sides of each cut that is tried.
//!
//! The cuts are keys in order. A request is counted in the gap in which it begins and in the gap in which it
//! ends, so recording it costs one binary search and two additions. At the end of a second, running sums give
//! the load left of each cut, right of it, and across it:
//!
//! ```text
//!   cuts               c0        c1        c2
//!   gaps          0    |    1    |    2    |    3
//!   a point read            x                       begins 1, ends 1: right of c0, left of c1
//!   a scan                  |---------|             begins 1, ends 2: across c1
//! ```

/// The load of one second, by gaps.
#[derive(Debug, Clone, Default)]
pub(super) struct Gaps {
    begins: Vec<u64>,
    ends: Vec<u64>,
    /// The part of `ends` that was not a write.
    reads: Vec<u64>,
}

impl Gaps {
    pub(super) fn new(cuts: usize) -> Self {
        Self { begins: vec![0; cuts + 1], ends: vec![0; cuts + 1], reads: vec![0; cuts + 1] }
    }

    pub(super) fn add(&mut self, begin: usize, end: usize, cost: u32, is_read: bool) {
        let cost = u64::from(cost);
        self.begins[begin] += cost;
        self.ends[end] += cost;
        if is_read {
            self.reads[end] += cost;
        }
    }

    /// The load on both sides of each cut. All counts are zero afterwards.
    pub(super) fn take(&mut self) -> Vec<Sides> {
        let total: u64 = self.begins.iter().sum();
        let reads: u64 = self.reads.iter().sum();
        let (mut begun, mut left, mut reads_left) = (0, 0, 0);
        let mut sides = Vec::with_capacity(self.ends.len() - 1);
        for gap in 0..self.ends.len() - 1 {
            begun += self.begins[gap];
            left += self.ends[gap];
            reads_left += self.reads[gap];
            sides.push(Sides { left, right: total - begun, reads_left, reads_right: reads - reads_left });
        }
        for counts in [&mut self.begins, &mut self.ends, &mut self.reads] {
            counts.fill(0);
        }
        sides
    }
}

/// The cost of the load on each side of a cut. Load that touched both sides is in neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sides {
    /// What ended below the cut.
    pub(super) left: u64,
    /// What began at the cut or above.
    pub(super) right: u64,
    /// The reads that ended below the cut, and all other reads.
    pub(super) reads_left: u64,
    pub(super) reads_right: u64,
}

impl Sides {
    pub(super) fn add(&mut self, other: &Self) {
        self.left += other.left;
        self.right += other.right;
        self.reads_left += other.reads_left;
        self.reads_right += other.reads_right;
    }

    /// (R-L) / (L+R): -1 if all load is left, 1 if all is right, 0 if there is none on either side.
    pub(super) fn balance(&self) -> f64 {
        let both = self.left + self.right;
        if both == 0 { 0.0 } else { (self.right as f64 - self.left as f64) / both as f64 }
    }
}

/// The mean balance of all cuts: -1 if all load is below them, 1 if all is above.
pub(super) fn mean_balance(sides: &[Sides]) -> f64 {
    sides.iter().map(Sides::balance).sum::<f64>() / sides.len().max(1) as f64
}

/// The load of one look, or of several looks in a row.
#[derive(Debug, Clone, Default)]
pub(super) struct Look {
    /// The sides of each cut.
    pub(super) sides: Vec<Sides>,
    /// The cost of all requests, and the sum of the squares of their costs.
    pub(super) cost: u64,
    pub(super) squares: u64,
}

impl Look {
    pub(super) fn new(cuts: usize) -> Self {
        Self { sides: vec![Sides::default(); cuts], cost: 0, squares: 0 }
    }

    /// How many requests of equal cost would be as good a sample as `cost` of these. A balance that was
    /// measured over `n` such requests has the standard deviation 1/sqrt(n).
    pub(super) fn sample(&self, cost: u64) -> f64 {
        if self.squares == 0 { 0.0 } else { cost as f64 * self.cost as f64 / self.squares as f64 }
    }

    /// The share of the load that touched both sides of a cut.
    pub(super) fn crossing(&self, cut: usize) -> f64 {
        let sides = &self.sides[cut];
        self.share(self.cost.saturating_sub(sides.left + sides.right))
    }

    /// The share of the load left of a cut.
    pub(super) fn left(&self, cut: usize) -> f64 {
        self.share(self.sides[cut].left)
    }

    /// The share of the load right of a cut.
    pub(super) fn right(&self, cut: usize) -> f64 {
        self.share(self.sides[cut].right)
    }

    pub(super) fn share(&self, cost: u64) -> f64 {
        if self.cost == 0 { 0.0 } else { cost as f64 / self.cost as f64 }
    }
}

/// Of all pairs of an earlier and a later sample: the share in which the later one is higher, less the share
/// in which it is lower. Both slices must be sorted.
pub(super) fn rise(before: &[Vec<u8>], now: &[Vec<u8>]) -> f64 {
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

    #[test]
    fn sides_are_what_ended_below_and_what_began_above() {
        let mut gaps = Gaps::new(2);
        gaps.add(0, 0, 1, true);
        gaps.add(1, 1, 10, false);
        gaps.add(0, 2, 100, true);
        gaps.add(2, 2, 1_000, false);
        let expected = [
            Sides { left: 1, right: 1_010, reads_left: 1, reads_right: 100 },
            Sides { left: 11, right: 1_000, reads_left: 1, reads_right: 100 },
        ];
        assert_eq!(gaps.take(), expected);
        assert_eq!(gaps.take(), [Sides::default(); 2]);
    }

    #[test]
    fn costly_requests_make_a_smaller_sample() {
        let mut look = Look::new(0);
        for cost in [1u64, 1, 1, 1, 4, 4] {
            look.cost += cost;
            look.squares += cost * cost;
        }
        assert_eq!(look.sample(look.cost), 4.0);
    }

    #[test]
    fn a_rise_is_measured_over_all_pairs() {
        let keys = |keys: &str| keys.bytes().map(|key| vec![key]).collect::<Vec<_>>();
        // a: -3; k: 2 and one pair is equal; l and z: 3 each; of twelve pairs.
        let rise_of = |before: &str, now: &str| rise(&keys(before), &keys(now));
        assert!((rise_of("dgk", "aklz") - 5.0 / 12.0).abs() < 1e-9, "{}", rise_of("dgk", "aklz"));
        assert_eq!([rise_of("aa", "aaa"), rise_of("", "a"), rise_of("b", "a")], [0.0, 0.0, -1.0]);
    }
}
