//! How many requests for its objects a bucket bears, as the cloud's documents describe it.
//!
//! A bucket is a list of *spans* of names, at first one. A span bears the threshold: so many writes and so many reads a
//! second. A span that was used for 20 minutes is cut in two where its load divides, and each half bears the
//! threshold. Neighbours that rested for days become one span again. `docs/design/0014-request-rates.md` has the
//! reasons.
//!
//! ```text
//!   names          0...............8...............        z
//!   at first       |-------------- 1,000 ------------------|
//!   after 20 min   |---- 1,000 ----|------- 1,000 ---------|
//!   after 40 min   |-1,000-|-1,000-|-1,000-|---- 1,000 ----|
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | `rules` | the numbers |
//! | `allowance` | what is let in from moment to moment |
//! | `look` | whether a load divides, and where |
//! | `usage` | how long a span has been used |
//! | `peaks` | the greatest demand of the last days |
//! | `span` | one span |
//! | `stored` | the stored form |
//!
//! There are two times: the *real* one, in which rates are measured, and that of the *ramp*, in which spans grow and fall
//! back. A caller may let the second one run faster. The caller chooses the moments from which they count; that of the ramp
//! must stay the same after a restart.

mod allowance;
pub mod limits;
mod look;
mod peaks;
mod rules;
mod span;
mod stored;
mod usage;

use std::time::Duration;

use self::limits::SPANS_MAX;
pub use self::look::Undivided;
use self::peaks::Peaks;
pub use self::rules::{Rules, Usage};
use self::span::Span;
pub use self::stored::MalformedCapacity;

/// Two neighbours whose greatest demands together are below this, in thresholds, become one.
const JOINED_BELOW: f64 = 0.5;

/// What a bucket bears, and what is asked of it.
#[derive(Debug, Clone)]
pub struct Capacity {
    rules: Rules,
    /// In order; the first one begins below all names.
    spans: Vec<Span>,
    /// When the last tick was, in real time and in that of the ramp.
    ticked: (Duration, Duration),
    /// When the stretches of the peaks last turned, in the ramp's time.
    turned: Duration,
    seed: u64,
}

/// Whether a request is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// At once.
    Now,
    /// After this time.
    Late(Duration),
    /// Not at all.
    Refused,
}

/// A span, to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanView<'a> {
    /// Its names are at or above this, and below the `low` of the next span.
    pub low: &'a [u8],
    /// Writes and reads each second that it bears.
    pub bears: [f64; 2],
    /// Writes and reads each second that are asked of it, averaged over a minute of the ramp's time.
    pub asked: [f64; 2],
    /// For how long it has been used, in the ramp's time.
    pub used_for: Option<Duration>,
    /// Why it was not cut when it had last been used for long enough.
    pub undivided: Option<Undivided>,
}

impl Capacity {
    /// A bucket that begins: one span. `seed` decides what is sampled.
    pub fn new(rules: Rules, real: Duration, ramp: Duration, seed: u64) -> Self {
        let spans = vec![Span::new(Vec::new(), 1.0, Peaks::default())];
        Self { rules, spans, ticked: (real, ramp), turned: ramp, seed }
    }

    /// Asks whether a request for a name is let in now, in real time. A listing is asked for where it begins.
    pub fn ask(&mut self, real: Duration, name: &[u8], usage: Usage) -> Answer {
        match self.let_in(real, name, usage, 1.0) {
            (passed, _) if passed < 1.0 => Answer::Refused,
            (_, Duration::ZERO) => Answer::Now,
            (_, delay) => Answer::Late(delay),
        }
    }

    /// Asks for many requests at once, as simulations do, and returns how many are let in.
    pub fn pour(&mut self, real: Duration, name: &[u8], usage: Usage, requests: f64) -> f64 {
        self.let_in(real, name, usage, requests).0
    }

    fn let_in(&mut self, real: Duration, name: &[u8], usage: Usage, requests: f64) -> (f64, Duration) {
        let at = self.spans.partition_point(|span| span.low.as_slice() <= name) - 1;
        self.spans[at].ask(real, name, usage, requests, &self.rules)
    }

    /// Ends a stretch of time: cuts spans that were used for long enough, and joins those that rested. Returns whether it did
    /// either. To be called about once a second, and 20 times or more in [`Rules::doubles_after`].
    pub fn tick(&mut self, real: Duration, ramp: Duration) -> bool {
        let seconds = real.saturating_sub(self.ticked.0).as_secs_f64();
        let passed = ramp.saturating_sub(self.ticked.1);
        if seconds <= 0.0 {
            return false;
        }
        self.ticked = (real, ramp);
        let before = self.spans.len();
        let mut room = SPANS_MAX.saturating_sub(before);
        for mut span in std::mem::take(&mut self.spans) {
            self.seed = self.seed.wrapping_add(1);
            match span.tick(seconds, passed, ramp, self.seed, &self.rules) {
                Some(cut) if room > 0 => {
                    room -= 1;
                    self.spans.extend(span.halves(cut));
                }
                Some(_) => {
                    span.used = None;
                    self.spans.push(span);
                }
                None => self.spans.push(span),
            }
        }
        let grown = self.spans.len() > before;
        self.fall_back(ramp) || grown
    }

    /// Turns the stretches of the peaks that are over, and joins neighbours that rested. Returns whether there were any.
    fn fall_back(&mut self, ramp: Duration) -> bool {
        let stretch = self.rules.idle_after / Peaks::PER_IDLE;
        let over = ramp.saturating_sub(self.turned).as_nanos() / stretch.as_nanos().max(1);
        if over == 0 {
            return false;
        }
        self.turned = ramp;
        for _ in 0..over.min(u128::from(Peaks::PER_IDLE) + 1) {
            self.spans.iter_mut().for_each(|span| span.peaks.turn());
        }
        let before = self.spans.len();
        let mut joined: Vec<Span> = Vec::with_capacity(before);
        for span in std::mem::take(&mut self.spans) {
            match joined.pop() {
                Some(last) if last.peaks.together(&span.peaks).greatest() < JOINED_BELOW => {
                    joined.push(last.with(&span));
                }
                last => joined.extend(last.into_iter().chain([span])),
            }
        }
        self.spans = joined;
        self.spans.len() < before
    }

    /// Requests each second that all spans bear together.
    pub fn bears(&self, usage: Usage) -> f64 {
        self.spans.iter().map(|span| span.units).sum::<f64>() * self.rules.threshold(usage)
    }

    /// The spans, in order.
    pub fn spans(&self) -> impl ExactSizeIterator<Item = SpanView<'_>> {
        let [writes, reads] = Usage::BOTH.map(|usage| self.rules.threshold(usage));
        self.spans.iter().map(move |span| SpanView {
            low: &span.low,
            bears: [span.units * writes, span.units * reads],
            asked: [span.demand[0] * writes, span.demand[1] * reads],
            used_for: span.used.as_ref().map(|used| self.ticked.1.saturating_sub(used.since)),
            undivided: span.undivided,
        })
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }
}
