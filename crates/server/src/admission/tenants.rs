//! Which requests to refuse under overload: those of the hottest tenant first.
//!
//! To *shed* a request is to refuse it because the process has too much to do. While the process is under pressure,
//! the arrivals of each interval are counted by account and by partition. The counts are a bounded sketch
//! (SpaceSaving: with N places it always has each tenant that sends more than 1/N of all arrivals). When a share of
//! the arrivals must be shed, the accounts are cut down to a common *level*: the highest first, and none below the
//! level.
//!
//! ```text
//!    arrivals    #
//!                #                      all above the level goes
//!                #.......#............. level
//!                #       #       #
//!                a       b       c
//! ```
//!
//! The cut of an account is divided among its partitions in the same way. So a partition that asks for no
//! more than its fair share is served as usual, whatever its neighbours do. If a partition is cut down from
//! `rate` to `level`, each of its requests is let in with the probability `level / rate`.
//!
//! **Backing off.** If clients wait before they try again, the rate of their partition falls; if they try again at
//! once, it does not. A partition whose arrivals fell since it was first shed loses only half as much.

/// The most accounts that are counted.
const ACCOUNTS_MAX: usize = 32;
/// The most partitions that are counted.
const PARTITIONS_MAX: usize = 128;
/// The share of a count that is carried over to the next interval.
const REMEMBERED: f64 = 0.5;
/// A partition backs off when its arrivals fall below this share of those at which it was first shed.
const BACKED_OFF: f64 = 0.7;

/// Counts arrivals, and decides which tenants are shed.
#[derive(Debug)]
pub(crate) struct Tenants {
    /// The probability of an account applies to those of its partitions that are not counted.
    accounts: Vec<Count>,
    partitions: Vec<Count>,
    total: f64,
    /// The probability of accounts that are not counted.
    others: f64,
}

/// The arrivals of one account or one partition; the true number may be lower.
#[derive(Debug, Clone)]
struct Count {
    key: u64,
    account: u64,
    arrived: f64,
    /// The probability with which its requests are let in; `None` before the first decision.
    keep: Option<f64>,
    /// The arrivals when it was first shed; `None` while it is not shed.
    first_shed_at: Option<f64>,
    /// Whether the arrivals have fallen since then.
    backs_off: bool,
}

impl Tenants {
    /// Nothing is counted, and no tenant is shed.
    pub(crate) fn new() -> Self {
        Self { accounts: Vec::new(), partitions: Vec::new(), total: 0.0, others: 1.0 }
    }

    /// Counts a request; `weight` is roughly what it costs.
    pub(crate) fn arrived(&mut self, account: u64, partition: u64, weight: f64) {
        count(&mut self.accounts, ACCOUNTS_MAX, account, account, weight);
        count(&mut self.partitions, PARTITIONS_MAX, partition, account, weight);
        self.total += weight;
    }

    /// The probability with which a request of this partition is to be let in.
    pub(crate) fn probability(&self, account: u64, partition: u64) -> f64 {
        let counted = self.partitions.iter().find(|count| count.key == partition);
        if let Some(keep) = counted.and_then(Count::keep_for_client) {
            return keep;
        }
        let account = self.accounts.iter().find(|count| count.key == account);
        account.and_then(|account| account.keep).unwrap_or(self.others)
    }

    /// Decides for the next interval, in which the share `keep` of all arrivals is to be let in. The next interval
    /// begins with a part of each count ([`REMEMBERED`]).
    pub(crate) fn decide(&mut self, keep: f64) {
        let counted: f64 = self.accounts.iter().map(|account| account.arrived).sum();
        let rest = (self.total - counted).max(0.0);
        let water = Water::level(self.accounts.iter(), rest, keep * self.total.max(counted));
        self.others = water.base;
        for account in &mut self.accounts {
            let allowed = water.share(account.arrived) * account.arrived;
            account.keep = Some(share_among(&mut self.partitions, account, allowed));
            account.arrived *= REMEMBERED;
        }
        for partition in &mut self.partitions {
            partition.note_backing_off();
            partition.arrived *= REMEMBERED;
        }
        self.total *= REMEMBERED;
    }
}

/// Divides the `allowed` arrivals of an account among its partitions. Returns the probability of the partitions
/// that are not counted.
fn share_among(partitions: &mut [Count], account: &Count, allowed: f64) -> f64 {
    let of_account = |partition: &&Count| partition.account == account.key;
    let counted: f64 = partitions.iter().filter(of_account).map(|partition| partition.arrived).sum();
    let rest = (account.arrived - counted).max(0.0);
    let water = Water::level(partitions.iter().filter(of_account), rest, allowed);
    for partition in partitions.iter_mut().filter(|partition| partition.account == account.key) {
        partition.keep = Some(water.share(partition.arrived));
    }
    water.base
}

impl Count {
    fn new(key: u64, account: u64, arrived: f64) -> Self {
        Self { key, account, arrived, keep: None, first_shed_at: None, backs_off: false }
    }

    /// A partition whose clients back off loses half as much.
    fn keep_for_client(&self) -> Option<f64> {
        self.keep.map(|keep| if self.backs_off { keep + (1.0 - keep) / 2.0 } else { keep })
    }

    fn note_backing_off(&mut self) {
        let is_shed = self.keep.is_some_and(|keep| keep < 1.0);
        self.first_shed_at = is_shed.then(|| self.first_shed_at.unwrap_or(self.arrived));
        self.backs_off = self.first_shed_at.is_some_and(|first| self.arrived < first * BACKED_OFF);
    }
}

/// Adds to a count. In a full sketch, a new tenant takes the place of the smallest one and continues its count.
fn count(counts: &mut Vec<Count>, most: usize, key: u64, account: u64, weight: f64) {
    if let Some(count) = counts.iter_mut().find(|count| count.key == key) {
        count.arrived += weight;
        return;
    }
    if counts.len() < most {
        counts.push(Count::new(key, account, weight));
        return;
    }
    let least = counts.iter_mut().min_by(|a, b| a.arrived.total_cmp(&b.arrived));
    let least = least.expect("a full sketch has counts");
    *least = Count::new(key, account, least.arrived + weight);
}

/// The common level to which the highest counts are cut.
#[derive(Debug, PartialEq)]
struct Water {
    level: f64,
    /// The share of the level, or of a count below it, that is kept. It is 1 unless the cut to the level is not
    /// enough.
    base: f64,
}

impl Water {
    /// The level at which `counts` and `rest` together come to `allowed`. `rest` is the sum of many small tenants.
    fn level<'a>(counts: impl Iterator<Item = &'a Count>, rest: f64, allowed: f64) -> Self {
        let mut heights: Vec<f64> = counts.map(|count| count.arrived).collect();
        heights.sort_unstable_by(|a, b| b.total_cmp(a));
        // The level stays above the lowest count while there is a rest, because a tenant of the rest may be as high.
        let floor = if rest > 0.0 { heights.last().copied().unwrap_or(0.0) } else { 0.0 };
        let mut below: f64 = heights.iter().sum::<f64>() + rest;
        if below <= allowed {
            return Self { level: f64::INFINITY, base: 1.0 };
        }
        for (index, height) in heights.iter().enumerate() {
            below -= height;
            let level = (allowed - below) / (index + 1) as f64;
            let next = heights.get(index + 1).copied().unwrap_or(0.0);
            if level >= next.max(floor) {
                return Self { level, base: 1.0 };
            }
        }
        let left = floor * heights.len() as f64 + rest;
        Self { level: floor, base: if left > 0.0 { allowed / left } else { 1.0 } }
    }

    /// The share that is kept of a tenant with this count.
    fn share(&self, height: f64) -> f64 {
        if height > self.level { self.level / height * self.base } else { self.base }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counted(arrivals: &[(u64, u64, u32)]) -> Tenants {
        let mut tenants = Tenants::new();
        for &(account, partition, times) in arrivals {
            tenants.arrived(account, partition, f64::from(times));
        }
        tenants
    }

    #[test]
    fn a_hot_partition_is_shed_and_its_neighbours_are_not() {
        let mut tenants = counted(&[(1, 10, 900), (1, 11, 50), (1, 12, 50)]);
        tenants.decide(0.5);
        assert!((tenants.probability(1, 10) - 400.0 / 900.0).abs() < 1e-9);
        assert_eq!((tenants.probability(1, 11), tenants.probability(1, 12)), (1.0, 1.0));
    }

    #[test]
    fn a_hot_account_of_many_partitions_is_shed_and_a_quiet_account_is_not() {
        let mut arrivals: Vec<(u64, u64, u32)> = (0..90).map(|partition| (1, 100 + partition, 10)).collect();
        // Its only partition has more than any partition of the hot account.
        arrivals.push((2, 10, 100));
        let mut tenants = counted(&arrivals);
        tenants.decide(0.5);
        assert_eq!(tenants.probability(2, 10), 1.0);
        assert!((tenants.probability(1, 100) - 400.0 / 900.0).abs() < 1e-9);
    }

    #[test]
    fn a_client_that_backs_off_is_shed_less() {
        let mut tenants = counted(&[(1, 10, 900), (1, 11, 900), (1, 12, 200)]);
        tenants.decide(0.5);
        let before = tenants.probability(1, 10);
        // One partition goes on as before; of the other only a third still arrives.
        for _ in 0..2 {
            tenants.arrived(1, 10, 450.0);
            tenants.arrived(1, 11, 1.0);
            tenants.arrived(1, 12, 100.0);
            tenants.decide(0.5);
        }
        assert!(tenants.probability(1, 10) <= before);
        assert!(tenants.probability(1, 11) > tenants.probability(1, 10));
    }

    proptest! {
        /// The requests that are let in add up to the share that was wanted. No tenant is cut below a smaller one,
        /// and a tenant that is small enough is not cut at all.
        #[test]
        fn the_cut_is_exact_and_fair(
            arrivals in prop::collection::vec((0..4_u64, 0..30_u64, 1..1_000_u32), 1..60),
            keep in 0.1..1.0_f64,
        ) {
            let arrivals: Vec<_> = arrivals.iter().map(|&(a, p, n)| (a, a * 1_000 + p, n)).collect();
            let mut tenants = counted(&arrivals);
            tenants.decide(keep);
            let mut by_partition = std::collections::BTreeMap::new();
            for &(account, partition, times) in &arrivals {
                *by_partition.entry((account, partition)).or_insert(0.0) += f64::from(times);
            }
            let total: f64 = by_partition.values().sum();
            let served = |(&(account, partition), &arrived): (&(u64, u64), &f64)| {
                arrived * tenants.probability(account, partition)
            };
            let let_in: f64 = by_partition.iter().map(served).sum();
            prop_assert!((let_in - keep * total).abs() < 1e-6 * total, "{let_in} of {total}, not {keep}");
            for (one, other) in by_partition.iter().flat_map(|a| by_partition.iter().map(move |b| (a, b))) {
                if one.0.0 == other.0.0 && one.1 >= other.1 {
                    prop_assert!(served(one) >= served(other) - 1e-9);
                }
            }
        }
    }
}
