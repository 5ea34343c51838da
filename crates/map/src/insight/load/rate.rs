//! Decaying rates, and the peak of the last minutes.

use std::f64::consts::LN_2;
use std::time::Duration;

/// Events per second over the recent past. Events of one half-life ago count half.
///
/// The decayed count is divided by the time, which decays in the same way. So the rate is right from the
/// first second on, without a warm-up.
#[derive(Debug, Clone)]
pub(super) struct Rate {
    half_life: f64,
    count: f64,
    seconds: f64,
}

impl Rate {
    pub(super) fn new(half_life: Duration) -> Self {
        Self { half_life: half_life.as_secs_f64(), count: 0.0, seconds: 0.0 }
    }

    /// Adds events that were spread evenly over the last `seconds`, which must be more than 0.
    pub(super) fn add(&mut self, count: u64, seconds: f64) {
        let kept = (-seconds / self.half_life).exp2();
        // The mean decay within these seconds.
        let weight = (1.0 - kept) * self.half_life / (LN_2 * seconds);
        self.count = self.count * kept + count as f64 * weight;
        self.seconds = self.seconds * kept + seconds * weight;
    }

    /// Events per second; 0 before the first [`Rate::add`].
    pub(super) fn per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.count / self.seconds } else { 0.0 }
    }
}

/// The number of windows of a [`Peak`].
const WINDOWS: usize = 6;

/// The greatest rate of the time to be remembered, or of up to one window more.
#[derive(Debug, Clone)]
pub(super) struct Peak {
    /// The length of a window. All windows but the current one together cover the time to be remembered.
    window: Duration,
    windows: [f64; WINDOWS],
    /// The window that is being filled, and when it began.
    current: usize,
    began: Option<Duration>,
    /// How many windows are complete.
    filled: usize,
}

impl Peak {
    pub(super) fn over(time: Duration) -> Self {
        let window = time / (WINDOWS - 1) as u32;
        Self { window, windows: [0.0; WINDOWS], current: 0, began: None, filled: 0 }
    }

    /// Adds the rate that was seen at `now`.
    pub(super) fn add(&mut self, rate: f64, now: Duration) {
        let mut began = *self.began.get_or_insert(now);
        // After a long pause all windows are old, and more turns change nothing.
        for _ in 0..WINDOWS {
            if now.saturating_sub(began) < self.window {
                break;
            }
            began += self.window;
            self.current = (self.current + 1) % WINDOWS;
            self.windows[self.current] = 0.0;
            self.filled = (self.filled + 1).min(WINDOWS - 1);
        }
        self.began = Some(if now.saturating_sub(began) < self.window { began } else { now });
        self.windows[self.current] = self.windows[self.current].max(rate);
    }

    /// The peak. `None` until all windows are complete, so that a range does not look quiet before it was
    /// measured.
    pub(super) fn value(&self) -> Option<f64> {
        (self.filled == WINDOWS - 1).then(|| self.windows.iter().copied().fold(0.0, f64::max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_right_from_the_first_second_and_forgets_by_half_lives() {
        let mut rate = Rate::new(Duration::from_secs(10));
        rate.add(300, 1.0);
        assert!((rate.per_second() - 300.0).abs() < 1e-9);
        for _ in 0..200 {
            rate.add(300, 1.0);
        }
        rate.add(0, 10.0);
        assert!((rate.per_second() - 150.0).abs() < 0.1, "{}", rate.per_second());
    }

    #[test]
    fn a_peak_is_unknown_for_ten_minutes_and_then_forgotten() {
        let mut peak = Peak::over(Duration::from_secs(600));
        for second in 0..=1_300 {
            peak.add(if second == 119 { 900.0 } else { 10.0 }, Duration::from_secs(second));
            let expected = match second {
                0..600 => None,
                600..720 => Some(900.0),
                _ => Some(10.0),
            };
            assert_eq!(peak.value(), expected, "{second}");
        }
    }

    #[test]
    fn a_peak_survives_a_long_pause() {
        let mut peak = Peak::over(Duration::from_secs(600));
        peak.add(900.0, Duration::ZERO);
        peak.add(5.0, Duration::from_secs(100_000));
        assert_eq!(peak.value(), Some(5.0));
    }
}
