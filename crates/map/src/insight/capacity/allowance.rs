//! What is let in of a span's requests, from moment to moment.
//!
//! ```text
//!    one second's worth  |  full      requests pass at once
//!                     0  |----------
//!                        |  debt      requests pass late: each waits until its part of the debt is paid
//!   delay_max's worth    |__________
//!                                     requests are refused
//! ```

use std::time::Duration;

/// The level of one span for one use.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Allowance {
    /// Requests that may pass at once; below zero, the requests that wait.
    level: f64,
    /// When it was last filled.
    at: Option<Duration>,
}

impl Allowance {
    /// Lets `wanted` requests in as far as they may be, one after the other or, below one, in part. Returns how many
    /// pass, and how long the last of them waits.
    pub(super) fn take(
        &mut self,
        now: Duration,
        rate: f64,
        delay_max: Duration,
        wanted: f64,
    ) -> (f64, Duration) {
        self.fill(now, rate);
        let debt_max = rate * delay_max.as_secs_f64();
        let room = self.level + debt_max;
        let passed =
            if wanted <= 1.0 { if room >= wanted { wanted } else { 0.0 } } else { wanted.min(room.max(0.0)) };
        self.level -= passed;
        (passed, Duration::from_secs_f64((-self.level / rate).max(0.0)))
    }

    fn fill(&mut self, now: Duration, rate: f64) {
        let full = rate.max(1.0);
        self.level = match self.at {
            None => full,
            Some(at) => (self.level + now.saturating_sub(at).as_secs_f64() * rate).min(full),
        };
        self.at = Some(self.at.unwrap_or_default().max(now));
    }
}
