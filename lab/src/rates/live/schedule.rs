//! When each request is due: at even distances, with another rate in each stretch.

use std::time::Duration;

/// The requests of some stretches of equal length.
pub(super) struct Schedule {
    stretch: Duration,
    /// Requests each second, of each stretch.
    rates: Vec<f64>,
}

impl Schedule {
    pub(super) fn new(stretch: Duration, rates: Vec<f64>) -> Self {
        Self { stretch, rates }
    }

    /// The time of a request; `None` if there are fewer.
    pub(super) fn due(&self, number: u64) -> Option<Duration> {
        let (mut begins, mut left) = (Duration::ZERO, number as f64);
        for rate in &self.rates {
            let requests = rate * self.stretch.as_secs_f64();
            if left < requests {
                return Some(begins + Duration::from_secs_f64(left / rate));
            }
            begins += self.stretch;
            left -= requests;
        }
        None
    }

    /// All requests, each with its time and its number.
    pub(super) fn all(&self) -> impl Iterator<Item = (Duration, u64)> {
        (0..).map_while(|number| Some((self.due(number)?, number)))
    }

    /// Requests that are due each second in a stretch.
    pub(super) fn rate(&self, stretch: u32) -> f64 {
        self.rates[stretch as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stretch_has_its_rate_at_even_distances() {
        let schedule = Schedule::new(Duration::from_secs(10), vec![2.0, 4.0]);
        let due = |number| schedule.due(number).map(|due| due.as_millis());
        assert_eq!([due(0), due(1), due(19)], [Some(0), Some(500), Some(9_500)]);
        assert_eq!([due(20), due(21), due(59)], [Some(10_000), Some(10_250), Some(19_750)]);
        assert_eq!(due(60), None);
        assert_eq!(schedule.all().count(), 60);
    }
}
