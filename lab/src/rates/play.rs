//! Plays a story on the pure rules, second by second.

use std::time::Duration;

use rangehold_map::capacity::{Capacity, Rules, Usage};

use super::story::Story;
use crate::balance::Curve;

/// The requests of a second come in so many parts of each sort.
pub(super) const PARTS: u64 = 64;
/// Reads for each write.
const READS: f64 = 5.0;
/// Names that are kept of a story, twice.
const SAMPLES: usize = 120;

/// What became of a story, by the minute. All rates are of writes each second.
#[derive(Default)]
pub(super) struct Played {
    pub(super) asked: Vec<f64>,
    /// What was let in of each sort of names, with the sort's label.
    pub(super) let_in: Vec<(&'static str, Vec<f64>)>,
    /// Reads each second that were let in of all sorts.
    pub(super) reads_let_in: Vec<f64>,
    pub(super) borne: Vec<f64>,
    /// Names that were used, earlier and later.
    pub(super) samples: [Vec<String>; 2],
}

pub(super) fn play(story: &Story, parts: u64) -> Played {
    let mut capacity = Capacity::new(Rules::documented(), Duration::ZERO, Duration::ZERO, 7);
    let mut played = Played { let_in: Vec::new(), ..Played::default() };
    played.let_in.extend(story.sorts.iter().map(|(label, _)| (*label, Vec::new())));
    for minute in 0..story.minutes {
        let rate = (story.writes)(minute);
        let each = rate / story.sorts.len() as f64 / parts as f64;
        let mut writes = vec![0.0; story.sorts.len()];
        let mut reads = 0.0;
        for second in minute * 60..minute * 60 + 60 {
            let now = Duration::from_secs(second);
            for part in 0..parts {
                let number = (second * parts + part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                for (sort, (_, name)) in story.sorts.iter().enumerate() {
                    let name = name(second, number);
                    writes[sort] += capacity.pour(now, name.as_bytes(), Usage::Write, each);
                    reads += capacity.pour(now, name.as_bytes(), Usage::Read, each * READS);
                    sample(&mut played.samples, minute, story.minutes, part, name);
                }
            }
            let end = Duration::from_secs(second + 1);
            capacity.tick(end, end);
        }
        played.asked.push(rate);
        played.borne.push(capacity.bears(Usage::Write));
        played.reads_let_in.push(reads / 60.0);
        played.let_in.iter_mut().zip(writes).for_each(|((_, minutes), writes)| minutes.push(writes / 60.0));
    }
    played
}

/// Keeps some names of the last minute but one, and of the last.
fn sample(samples: &mut [Vec<String>; 2], minute: u64, minutes: u64, part: u64, name: String) {
    let Some(sample) = (minute + 2).checked_sub(minutes).and_then(|which| samples.get_mut(which as usize))
    else {
        return;
    };
    if sample.len() < SAMPLES && part < 8 {
        sample.push(name);
    }
}

impl Played {
    /// What was let in of all sorts.
    #[cfg(test)]
    fn all_let_in(&self, minute: usize) -> f64 {
        self.let_in.iter().map(|(_, minutes)| minutes[minute]).sum()
    }

    /// One line for the last minute of each 20.
    pub(super) fn table(&self) -> Vec<(usize, String)> {
        let line = |minute: usize| {
            let sorts: Vec<String> = self
                .let_in
                .iter()
                .map(|(label, minutes)| format!("{label} {:.0}", minutes[minute]))
                .collect();
            let (asked, reads, borne) = (self.asked[minute], self.reads_let_in[minute], self.borne[minute]);
            let sorts = sorts.join(", ");
            (
                minute,
                format!(
                    "asked {asked:.0} writes/s, let in {sorts}, and {reads:.0} reads/s; borne {borne:.0}"
                ),
            )
        };
        (19..self.asked.len()).step_by(20).map(line).collect()
    }

    pub(super) fn curves(&self) -> Vec<Curve> {
        let times: Vec<f64> = (1..=self.asked.len()).map(|minute| 60.0 * minute as f64).collect();
        let mut curves = vec![Curve::new("asked", &times, &self.asked)];
        curves.extend(self.let_in.iter().map(|(label, minutes)| Curve::new(*label, &times, minutes)));
        curves.push(Curve::new("borne by the bucket", &times, &self.borne));
        curves
    }
}

#[cfg(test)]
mod tests {
    use super::super::story::STORIES;
    use super::*;

    fn played(file: &str, minutes: u64, parts: u64) -> Played {
        let story = STORIES.iter().find(|story| story.file == file).expect("there is such a story");
        play(&Story { minutes, ..*story }, parts)
    }

    #[test]
    fn one_hex_digit_reaches_16_000_writes_and_80_000_reads_in_80_minutes_and_no_more() {
        let played = played("one-digit", 104, 32);
        for minute in 0..100 {
            let (asked, let_in) = (played.asked[minute], played.all_let_in(minute));
            assert!(let_in > 0.995 * asked, "minute {minute}: {let_in} of {asked}");
        }
        assert!(played.reads_let_in[99] > 79_500.0, "{}", played.reads_let_in[99]);
        assert!((15_900.0..17_700.0).contains(&played.all_let_in(103)), "{}", played.all_let_in(103));
    }

    #[test]
    fn folders_with_random_names_scale_beside_one_that_does_not() {
        let played = played("folders", 100, 16);
        let [animals, landscape, clouds] = [0, 1, 2].map(|sort: usize| played.let_in[sort].1[99]);
        let each = played.asked[99] / 3.0;
        assert!(animals > 0.98 * each && landscape > 0.98 * each, "{animals} and {landscape} of {each}");
        assert!(clouds <= 1_101.0, "{clouds}");
    }

    #[test]
    fn a_prefix_by_the_hour_falls_back_at_each_hour() {
        let played = played("by-the-hour", 64, 32);
        assert!(played.all_let_in(59) > 0.98 * 4_000.0, "{}", played.all_let_in(59));
        assert!(played.all_let_in(62) < 1_101.0, "{}", played.all_let_in(62));
    }
}
