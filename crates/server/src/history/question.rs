//! Questions to the history, their answers, and how much one answer holds.

use rangehold_map::KeyRange;
use rangehold_map::history::{Shown, Tier};

use crate::limits::{HISTORY_CELLS_MAX, HISTORY_COLUMNS_MAX};

/// A question: which keys, which time, how fine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The first second, counted from 1970.
    pub from: i64,
    /// The second after the last one.
    pub to: i64,
    /// Seconds of a column; `None` chooses the shortest columns with which one answer holds everything.
    pub step: Option<i64>,
    /// The keys that are shown.
    pub keys: KeyRange,
    /// The most rows that are shown.
    pub rows_max: usize,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The first second: that of the question, rounded down to a whole step.
    pub from: i64,
    /// The second after the last one, on a whole step. If one answer does not hold everything, it is earlier than in
    /// the question.
    pub to: i64,
    /// Seconds of a column.
    pub step: i64,
    /// Rows and columns.
    pub shown: Shown,
    /// The time that is kept of each tier: its first second, and the one after its last.
    pub kept: Vec<(Tier, i64, i64)>,
    /// Bytes of the columns of ten seconds and of minutes.
    pub bytes: u64,
    /// The most that [`Answer::bytes`] may be.
    pub budget_bytes: u64,
    /// Columns that could not be kept since the process began.
    pub lost_columns: u64,
    /// Why no columns are kept at present; `None` while they are.
    pub trouble: Option<String>,
}

/// The columns of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) step: i64,
}

/// The steps to choose from if the question has none, in seconds.
const STEPS: [i64; 7] = [1, 10, 60, 600, 3_600, 21_600, 86_400];

impl Window {
    /// The columns that the answer to a question has at `now`, if the axis cuts its keys into `buckets` buckets.
    pub(super) fn of(question: &Question, now: i64, buckets: usize) -> Self {
        let columns_max = (HISTORY_CELLS_MAX / buckets.max(1)).clamp(1, HISTORY_COLUMNS_MAX) as i64;
        let (from, to) = (question.from.max(0), question.to.min(now.saturating_add(1)));
        let suits = |step: &i64| {
            let kept = from >= now - Tier::within(*step).term();
            kept && (to - from) / step < columns_max
        };
        let step = question.step.or_else(|| STEPS.into_iter().find(suits)).unwrap_or(STEPS[STEPS.len() - 1]);
        let from = from - from.rem_euclid(step);
        let steps = ((to - from).max(0) as u64).div_ceil(step as u64) as i64;
        Self { from, to: from + steps.min(columns_max) * step, step }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(from: i64, to: i64, step: Option<i64>) -> Question {
        Question { from, to, step, keys: KeyRange::whole(), rows_max: 1 }
    }

    #[test]
    fn a_step_is_chosen_that_shows_all_in_one_answer() {
        let now = 1_000_000_000;
        let window = |back, step| Window::of(&question(now - back, now, step), now, 64);
        assert_eq!(window(590, None).step, 1);
        assert_eq!(window(3_600, None).step, 10);
        assert_eq!(window(6 * 3_600, None).step, 60);
        assert_eq!(window(7 * 86_400, None).step, 3_600);
        let page = window(7 * 86_400, Some(60));
        assert_eq!((page.to - page.from) / 60, HISTORY_COLUMNS_MAX as i64);
        assert_eq!(Window::of(&question(now - 3_600, now, Some(1)), now, 2_048).to, now - 3_600 + 128);
    }

    #[test]
    fn a_window_lies_on_whole_steps_and_not_in_the_future() {
        let window = Window::of(&question(995, 5_000, Some(10)), 1_003, 1);
        assert_eq!(window, Window { from: 990, to: 1_010, step: 10 });
        let empty = Window::of(&question(2_000, 1_000, Some(10)), 3_000, 1);
        assert_eq!((empty.from, empty.to), (2_000, 2_000));
    }
}
