//! Finds out whether the load of a span divides, and where.
//!
//! ```text
//!   0            1/4                  5/8                   1    of the time in which a span must be used
//!   | A: sample  | B: count each side | C: count each side  |
//! ```
//!
//! Between the names sampled in A lie the cuts to try. B and C count how much load lies on each side of each cut. A cut
//! divides the load if both sides have enough of it in B and in C, and about the same share in both. Load that goes to
//! ever higher names is above all cuts in C, and load that moves slowly has other shares in C than in B.

use strum::IntoStaticStr;

use super::limits::{MEASURED_MIN, SAMPLE_BYTES_MAX, SAMPLES_MAX};
use crate::insight::chance::Chance;
use crate::insight::sample::Sample;

/// The least share of the load on either side of a cut.
const SIDE_MIN: f64 = 0.1;
/// How far a share may differ between B and C, beside what chance does.
const DRIFT_MAX: f64 = 0.08;
/// Standard deviations that are put down to chance.
const SIGMAS: f64 = 3.0;
/// The share of the load that makes a name or a front the cause.
const MOST: f64 = 0.7;

/// Why the load of a span does not divide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Undivided {
    /// It goes to ever higher names.
    Append,
    /// It goes to ever lower names.
    Prepend,
    /// It goes to one name.
    OneName,
    /// It is now here and now there.
    Moves,
    /// Too few requests came to tell.
    Few,
}

impl Undivided {
    /// One word, for programs.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The reason, for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Append => "its load goes to ever higher names, and so past any cut",
            Self::Prepend => "its load goes to ever lower names, and so past any cut",
            Self::OneName => "most of its load is for one name, and a name is never cut",
            Self::Moves => "its load is now here and now there, so no cut stays balanced",
            Self::Few => "too few requests came to tell a cut that stays balanced from chance",
        }
    }
}

/// Where the load of a span divides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cut {
    /// The first bytes of the names above.
    pub(super) at: Vec<u8>,
    /// The share of the load below.
    pub(super) below: f64,
}

/// The three stretches of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stretch {
    Sampling,
    First,
    Second,
}

/// What is seen of a span's load.
#[derive(Debug, Clone)]
pub(super) struct Look {
    chance: Chance,
    stretch: Stretch,
    sample: Sample<Vec<u8>>,
    cuts: Vec<Vec<u8>>,
    first: Counts,
    second: Counts,
}

/// The load between the cuts.
#[derive(Debug, Clone, Default)]
struct Counts {
    between: Vec<f64>,
    requests: f64,
}

impl Look {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            chance: Chance::new(seed),
            stretch: Stretch::Sampling,
            sample: Sample::new(SAMPLES_MAX),
            cuts: Vec::new(),
            first: Counts::default(),
            second: Counts::default(),
        }
    }

    /// Counts requests for a name, which are so much load together.
    pub(super) fn record(&mut self, name: &[u8], requests: f64, weight: f64) {
        match self.stretch {
            Stretch::Sampling => {
                let kept = || name[..name.len().min(SAMPLE_BYTES_MAX)].to_vec();
                self.sample.offer(weight, &mut self.chance, kept);
            }
            Stretch::First => self.first.add(&self.cuts, name, requests, weight),
            Stretch::Second => self.second.add(&self.cuts, name, requests, weight),
        }
    }

    /// Goes on to the stretch of this part of the time, from 0 to 1.
    pub(super) fn go_on(&mut self, part: f64) {
        if self.stretch == Stretch::Sampling && part >= 0.25 {
            self.sample.kept.sort_unstable();
            self.cuts = cuts_between(&self.sample.kept);
            let between = vec![0.0; self.cuts.len() + 1];
            (self.first.between, self.second.between) = (between.clone(), between);
            self.stretch = Stretch::First;
        } else if self.stretch == Stretch::First && part >= 0.625 {
            self.stretch = Stretch::Second;
        }
    }

    /// The most even cut that divides the load.
    pub(super) fn cut(&self) -> Result<Cut, Undivided> {
        let requests = [self.first.requests, self.second.requests];
        if requests.iter().any(|requests| *requests < MEASURED_MIN) {
            return Err(if self.is_one_name() { Undivided::OneName } else { Undivided::Few });
        }
        let spread = requests.iter().map(|requests| 0.25 / *requests).sum::<f64>().sqrt();
        let drift_max = DRIFT_MAX + SIGMAS * spread;
        let (first, second) = (self.first.shares_below(), self.second.shares_below());
        let is_enough = |share: f64| (SIDE_MIN..=1.0 - SIDE_MIN).contains(&share);
        let divides = |at: &usize| {
            let (b, c) = (first[*at], second[*at]);
            is_enough(b) && is_enough(c) && (b - c).abs() <= drift_max
        };
        let below = |at: usize| (first[at] + second[at]) / 2.0;
        let off = |at: usize| (below(at) - 0.5).abs();
        let best = (0..self.cuts.len()).filter(divides).min_by(|a, b| off(*a).total_cmp(&off(*b)));
        best.map(|at| Cut { at: self.cuts[at].clone(), below: below(at) }).ok_or_else(|| self.cause())
    }

    fn cause(&self) -> Undivided {
        let between = &self.second.between;
        let whole: f64 = between.iter().sum();
        let is_most = |part: Option<&f64>| part.is_some_and(|part| *part >= MOST * whole);
        if self.is_one_name() {
            Undivided::OneName
        } else if is_most(between.last()) {
            Undivided::Append
        } else if is_most(between.first()) {
            Undivided::Prepend
        } else {
            Undivided::Moves
        }
    }

    /// Whether one name has most of the sample.
    fn is_one_name(&self) -> bool {
        let mut sorted: Vec<&[u8]> = self.sample.kept.iter().map(Vec::as_slice).collect();
        sorted.sort_unstable();
        let most = sorted.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0);
        most as f64 >= MOST * sorted.len().max(1) as f64
    }
}

impl Counts {
    fn add(&mut self, cuts: &[Vec<u8>], name: &[u8], requests: f64, weight: f64) {
        self.between[cuts.partition_point(|cut| cut.as_slice() <= name)] += weight;
        self.requests += requests;
    }

    /// The share of the load below each cut.
    fn shares_below(&self) -> Vec<f64> {
        let whole: f64 = self.between.iter().sum();
        let mut sum = 0.0;
        let below = self.between.iter().map(|part| {
            sum += part;
            sum / whole.max(f64::MIN_POSITIVE)
        });
        below.collect()
    }
}

/// The shortest cut between each two neighbours of a sorted sample.
fn cuts_between(samples: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let differ = samples.windows(2).filter(|pair| pair[0] != pair[1]);
    differ.map(|pair| shortest_above(&pair[0], &pair[1]).to_vec()).collect()
}

/// The shortest beginning of `high` that is above `low`. `high` must be above `low`.
fn shortest_above<'a>(low: &[u8], high: &'a [u8]) -> &'a [u8] {
    let common = low.iter().zip(high).take_while(|(low, high)| low == high).count();
    &high[..high.len().min(common + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_the_shortest_text_between_two_names() {
        let between = |low: &str, high: &str| {
            String::from_utf8(shortest_above(low.as_bytes(), high.as_bytes()).to_vec()).expect("UTF-8")
        };
        assert_eq!(between("7/2016-05-10", "8/2016-05-10"), "8");
        assert_eq!(between("images/animals/z", "images/clouds/1.jpg"), "images/c");
        assert_eq!(between("a", "ab"), "ab");
    }

    /// Looks at names that a function makes of the part of the time and of a number.
    fn looked_at(name: impl Fn(f64, u64) -> String) -> Result<Cut, Undivided> {
        let mut look = Look::new(7);
        for step in 0..2_000_u64 {
            let part = step as f64 / 2_000.0;
            look.go_on(part);
            look.record(name(part, step).as_bytes(), 1.0, 1.0);
        }
        look.cut()
    }

    #[test]
    fn random_names_divide_and_fronts_and_single_names_do_not() {
        let scattered = |step: u64| step.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let random = looked_at(|_, step| format!("{:016x}", scattered(step))).expect("it divides");
        assert!((random.below - 0.5).abs() < 0.05, "{random:?}");
        assert_eq!(looked_at(|_, step| format!("log/{step:06}")), Err(Undivided::Append));
        assert_eq!(looked_at(|_, step| format!("log/{:06}", 9_999 - step)), Err(Undivided::Prepend));
        assert_eq!(looked_at(|_, _| "one".to_owned()), Err(Undivided::OneName));
        let digits =
            looked_at(|_, step| format!("{:x}/{step:06}", scattered(step) >> 60)).expect("it divides");
        assert_eq!(digits.at, b"8");
        // Two streams of one clock, the second of which follows the first by a third of the time.
        let stream = |step: u64| if step.is_multiple_of(2) { 1_000 + step } else { 1_000 + step - 667 };
        assert!(looked_at(|_, step| format!("{:06}", stream(step))).is_err());
        // All names of the third quarter are new.
        let prefix = |part: f64| if part < 0.6 { 1 } else { 2 };
        assert!(looked_at(|part, step| format!("{}/{:016x}", prefix(part), scattered(step))).is_err());
    }
}
