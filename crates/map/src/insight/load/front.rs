//! Fronts that move through one side of a cut.
//!
//! Two clocks that are two minutes apart write two streams of ever higher keys. A cut between them
//! halves the load in every look, until two minutes are over and the stream behind has passed it too.
//! Two tenants that append look just the same, and there the cut is good for ever. What tells one from the
//! other is how far the stream is from the cut, compared with how far it came from B to C:
//!
//! ```text
//!   keys        front in B    front in C             the cut       the other stream
//!   clocks      ...10:00:15   ...10:00:55            ...10:02:07   ...10:02:55
//!   tenants     a/10:00:15    a/10:00:55             b/10:00:07    b/10:00:55
//! ```
//!
//! Keys are read as [numbers](super::digits) for this. In the first row the cut is twice as far as the way
//! made, in the second further by powers of ten.

use std::time::Duration;

use super::digits::readings;
use super::finder::Evidence;

/// The share of a side, in C, that must be where nothing was: beyond all samples that B took of the side.
const MOVES_MIN: f64 = 0.2;
/// How likely that may be of a side that does not move; if it is likelier, the share must be in one gap between
/// samples of A too, which is independent. A front that has reached what another stream left behind is not.
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

/// When the load on the side below a cut (above it, for `Down`) will have moved past the cut, if it moves
/// that way at all. The order of magnitude is right.
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
    // Without the byte that closes a partition, which is another one in a cut above.
    let keys = [front_b, front_c, cut_key].map(|key| &key[..key.len().saturating_sub(1)]);
    // The soonest of all readings: a cut that is passed is worse than one that is not made.
    let gaps = readings(keys).map(|[was, is, cut]| (cut - is).abs() / (is - was).abs());
    gaps.reduce(f64::min).map(|gaps| evidence.gap.mul_f64(gaps.min(1e9)))
}

/// Of the load of C on that side of a cut, the share in the gap of A's samples in which the front is.
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
            // In truth 68 s, or 80 s in the third row, which counts microseconds.
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
            // Four days if one letter is one digit in front of the hours; no time at all if the way made is nothing.
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
