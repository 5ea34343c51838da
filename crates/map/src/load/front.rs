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
//! Keys are read as numbers for this, from the first byte in which the three differ: in the first row the
//! cut is about twice as far as the way made, in the second further by powers of 256.

use std::time::Duration;

use super::finder::Evidence;

/// The share of a side, in C, that must lie beyond what B saw of it: then the side moves.
const MOVES_MIN: f64 = 0.25;

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
}

/// When the load on the side below a cut (above it, for `Down`) will have moved past the cut, if it moves
/// that way at all. The order of magnitude is right.
pub(super) fn time_to_pass(evidence: &Evidence, cut: usize, way: Way) -> Option<Duration> {
    let cut = evidence.cuts[cut].as_slice();
    let (b, c) = (side(&evidence.samples_b, cut, way), side(&evidence.samples_c, cut, way));
    let (front_b, front_c) = (front(b, way)?, front(c, way)?);
    let is_beyond = |sample: &&Vec<u8>| match way {
        Way::Up => sample.as_slice() > front_b,
        Way::Down => sample.as_slice() < front_b,
    };
    let beyond = c.iter().filter(is_beyond).count();
    if (beyond as f64) < MOVES_MIN * c.len() as f64 {
        return None;
    }
    let start = [front_c, cut].iter().map(|key| common(front_b, key)).min()?;
    let made = number(front_b, start).abs_diff(number(front_c, start));
    let ahead = number(front_c, start).abs_diff(number(cut, start));
    (made > 0).then(|| evidence.gap.mul_f64((ahead as f64 / made as f64).min(1e9)))
}

/// The samples from which a front that moves that way would reach the cut.
fn side<'a>(samples: &'a [Vec<u8>], cut: &[u8], way: Way) -> &'a [Vec<u8>] {
    let at = samples.partition_point(|sample| sample.as_slice() < cut);
    match way {
        Way::Up => &samples[..at],
        Way::Down => &samples[at..],
    }
}

fn front(side: &[Vec<u8>], way: Way) -> Option<&[u8]> {
    let front = match way {
        Way::Up => side.last(),
        Way::Down => side.first(),
    };
    front.map(Vec::as_slice)
}

/// How many bytes two keys begin with in common.
fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Eight bytes of a key as a number; what the key lacks is 0.
fn number(key: &[u8], start: usize) -> u64 {
    (start..start + 8).fold(0, |number, at| number << 8 | u64::from(key.get(at).copied().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::look::Look;

    fn seconds_to_pass(b: &[&str], c: &[&str], cut: &str, way: Way) -> Option<u64> {
        let bytes = |keys: &[&str]| keys.iter().map(|key| key.as_bytes().to_vec()).collect();
        let evidence = Evidence {
            cuts: bytes(&[cut]),
            b: Look::new(1),
            c: Look::new(1),
            samples_b: bytes(b),
            samples_c: bytes(c),
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
    fn a_stream_behind_reaches_the_cut_and_that_of_a_tenant_does_not() {
        let (b, c) = (["10:00:11", "10:00:19"], ["10:00:51", "10:00:59"]);
        let soon = seconds_to_pass(&b, &c, "10:02:07", Way::Up).expect("it moves");
        assert!((40..1_200).contains(&soon), "{soon} s");
        let later = seconds_to_pass(&b, &c, "20:00:07", Way::Up).expect("it moves");
        assert!(later > 10_000, "{later} s");
        let (b, c) = (["a/10:00:11", "a/10:00:19"], ["a/10:00:51", "a/10:00:59"]);
        let never = seconds_to_pass(&b, &c, "b/10:00:07", Way::Up).expect("it moves");
        assert!(never > 10_000_000, "{never} s");
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
