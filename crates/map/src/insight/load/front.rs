//! Estimates when a moving load on one side of a cut will pass the cut.
//!
//! Suppose that two clocks are two minutes apart, and that each writes a stream of ever higher keys. A cut
//! between the streams halves the load in every look, until after two minutes the second stream has passed
//! the cut too. Two tenants that append look the same, but there the cut stays good. The difference is how
//! far the stream is from the cut, compared with how far it moved from B to C:
//!
//! ```text
//!   keys        front in B    front in C             the cut       the other stream
//!   clocks      ...10:00:15   ...10:00:55            ...10:02:07   ...10:02:55
//!   tenants     a/10:00:15    a/10:00:55             b/10:00:07    b/10:00:55
//! ```
//!
//! Keys are read as [numbers](super::digits) for this. In the first row the stream is 1.7 times as far from
//! the cut as it moved; in the second row, thousands of times as far.

use std::time::Duration;

use super::digits::readings;
use super::finder::Evidence;

/// The least share of C's samples on a side that must lie beyond all of B's samples on that side.
const MOVES_MIN: f64 = 0.2;
/// The greatest probability that this happens by chance on a side that does not move. If it is more likely,
/// that share must also lie in one gap between samples of A, which is an independent test. A front that has
/// reached the keys that another stream left behind fails it.
const CHANCE_MAX: f64 = 0.001;

/// A direction in the key space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// To higher keys.
    Up,
    /// To lower keys.
    Down,
}

impl Way {
    pub(super) fn sign(self) -> f64 {
        match self {
            Self::Up => 1.0,
            Self::Down => -1.0,
        }
    }

    pub(super) fn back(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// The time until the load below a cut (above it, for `Down`) has moved past the cut; `None` if it does not
/// move that way. Only the order of magnitude is right.
pub(super) fn time_to_pass(evidence: &Evidence, cut: usize, way: Way) -> Option<Duration> {
    let cut_key = evidence.cuts[cut].as_slice();
    let (b, c) = (side(evidence.samples_b(), cut_key, way), side(evidence.samples_c(), cut_key, way));
    let (front_b, front_c) = (front(b, way)?, front(c, way)?);
    let is_beyond = |sample: &&Vec<u8>| match way {
        Way::Up => sample.as_slice() > front_b,
        Way::Down => sample.as_slice() < front_b,
    };
    let beyond = c.iter().filter(is_beyond).count() as f64 / c.len() as f64;
    let is_alone = || share_at(evidence, front_c, cut, way) >= MOVES_MIN;
    let by_chance = (1.0 - beyond).powf(b.len() as f64);
    if beyond < MOVES_MIN || by_chance > CHANCE_MAX && !is_alone() {
        return None;
    }
    // Without the byte that closes a partition, because a cut just above a partition has another last byte.
    let keys = [front_b, front_c, cut_key].map(|key| &key[..key.len().saturating_sub(1)]);
    // The soonest of all readings: a split whose cut is passed is worse than no split.
    let gaps = readings(keys).map(|[was, is, cut]| (cut - is).abs() / (is - was).abs());
    gaps.reduce(f64::min).map(|gaps| evidence.gap.mul_f64(gaps.min(1e9)))
}

/// The share of C's load on that side of a cut that lies in the same gap of A's samples as the front.
fn share_at(evidence: &Evidence, front: &[u8], cut: usize, way: Way) -> f64 {
    let above = evidence.cuts.partition_point(|cut| cut.as_slice() <= front);
    let load = |cut: usize| {
        let sides = evidence.c.sides[cut];
        if way == Way::Up { sides.left } else { sides.right }
    };
    let within = match way {
        Way::Up => load(above) - above.checked_sub(1).map_or(0, load),
        Way::Down => load(above - 1) - if above < evidence.cuts.len() { load(above) } else { 0 },
    };
    within as f64 / load(cut).max(1) as f64
}

/// The samples from which a front that moves that way would reach the cut.
pub(super) fn side<'a>(samples: &'a [Vec<u8>], cut: &[u8], way: Way) -> &'a [Vec<u8>] {
    let at = samples.partition_point(|sample| sample.as_slice() < cut);
    match way {
        Way::Up => &samples[..at],
        Way::Down => &samples[at..],
    }
}

/// The sample that is furthest that way.
pub(super) fn front(samples: &[Vec<u8>], way: Way) -> Option<&[u8]> {
    let front = match way {
        Way::Up => samples.last(),
        Way::Down => samples.first(),
    };
    front.map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::super::look::{Look, Sides};
    use super::*;

    fn seconds_to_pass(b: &[&str], c: &[&str], cut: &str, way: Way) -> Option<u64> {
        let bytes = |keys: &[&str]| keys.iter().map(|key| [key.as_bytes(), b"\0"].concat()).collect();
        let mut looked = Look::new(1);
        looked.sides[0] = Sides { left: 100, right: 100, ..Sides::default() };
        let evidence = Evidence {
            cuts: bytes(&[cut]),
            b: looked.clone(),
            c: looked,
            samples: vec![bytes(b), bytes(c)],
            look: Duration::from_secs(10),
            gap: Duration::from_secs(40),
            swings: vec![0.0],
            climbs: Vec::new(),
            jump: 0.0,
            top_b: None,
            top_c: None,
        };
        time_to_pass(&evidence, 0, way).map(|time| time.as_secs())
    }

    #[test]
    fn a_stream_behind_reaches_the_cut_soon() {
        for (b, c, cut) in [
            ("10:00:19", "10:00:59", "10:02:07"),
            ("2026-11-21T09:59:19", "2026-11-21T09:59:59", "2026-11-21T10:01:07"),
            ("0fd9da600", "0fffffff0", "104c4b400"),
            ("1763719159", "1763719199", "1763719267"),
            ("2026-11-09T09:59:19", "2026-11-09T09:59:59", "2026-11-09T10:01:07"),
        ] {
            let seconds = seconds_to_pass(&[b], &[c], cut, Way::Up).expect("it moves");
            // The right answer is 68 s; in the third row, which counts microseconds, 80 s.
            assert!((20..600).contains(&seconds), "{c} to {cut}: {seconds} s");
        }
    }

    #[test]
    fn a_stream_of_another_tenant_never_does() {
        for (b, c, cut) in [
            ("a/10:00:19", "a/10:00:59", "b/10:00:07"),
            ("7-1763719159", "7-1763719199", "8-1763719167"),
            ("tenant-a-2026-11-21T10:00:19", "tenant-a-2026-11-21T10:00:59", "tenant-b-2026-11-21T10:00:07"),
        ] {
            // Four days if a letter counts as a digit in front of the hours; `None` if the stream did not move.
            let seconds = seconds_to_pass(&[b], &[c], cut, Way::Up);
            assert!(seconds.is_none_or(|seconds| seconds > 100_000), "{c} to {cut}: {seconds:?} s");
        }
    }

    #[test]
    fn a_side_that_stays_where_it_is_reaches_nothing() {
        let (b, c) = (["a", "f", "k", "p"], ["b", "e", "l", "o"]);
        assert_eq!(seconds_to_pass(&b, &c, "q", Way::Up), None);
        assert_eq!(seconds_to_pass(&b, &c, "a", Way::Down), None);
        assert_eq!(seconds_to_pass(&[], &c, "z", Way::Up), None);
    }

    #[test]
    fn a_stream_from_above_moves_down() {
        let soon = seconds_to_pass(&["95", "99"], &["85", "89"], "75", Way::Down).expect("it moves");
        assert!((30..80).contains(&soon), "{soon} s");
    }
}
