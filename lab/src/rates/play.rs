//! Plays a story on the pure rules, second by second.

use std::time::Duration;

use rangehold_map::capacity::{Capacity, Rules, Usage};

use super::story::{READS, Story, scattered};
use crate::balance::Curve;

/// The requests of a second come in so many parts of each sort.
const PARTS: u64 = 64;
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

pub(super) fn play(story: &Story) -> Played {
    let mut capacity = Capacity::new(Rules::documented(), Duration::ZERO, Duration::ZERO, 7);
    let mut played = Played { let_in: Vec::new(), ..Played::default() };
    played.let_in.extend(story.sorts.iter().map(|(label, _)| (*label, Vec::new())));
    for minute in 0..story.minutes {
        let rate = (story.writes)(minute);
        let each = rate / story.sorts.len() as f64 / PARTS as f64;
        let mut writes = vec![0.0; story.sorts.len()];
        let mut reads = 0.0;
        for second in minute * 60..minute * 60 + 60 {
            let now = Duration::from_secs(second);
            for part in 0..PARTS {
                let number = scattered(second * PARTS + part);
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
    /// Writes of all sorts that were let in each second of a minute; `None` after the end of the story.
    pub(super) fn writes_let_in(&self, minute: usize) -> Option<f64> {
        self.let_in.iter().map(|(_, minutes)| minutes.get(minute)).sum()
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
