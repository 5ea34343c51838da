//! Whether a story was as expected.

use super::expected::{Expected, Of};
use super::play::Played;
use super::story::Story;

/// All expectations of a story that were missed, each as a sentence with what was expected and what was seen in the first
/// minute in which that is wrong.
pub(super) fn missed(story: &Story, played: &Played) -> Vec<String> {
    story.expected.iter().filter_map(|expected| first_miss(expected, story, played)).collect()
}

fn first_miss(expected: &Expected, story: &Story, played: &Played) -> Option<String> {
    expected.minutes.clone().find_map(|minute| {
        let (within, seen) = ((expected.within)(minute), seen(expected.of, played, minute as usize));
        if seen.is_some_and(|seen| within.contains(&seen)) {
            return None;
        }
        let seen = seen.map_or("nothing".to_owned(), |seen| format!("{seen:.1}"));
        let (least, most) = (within.start(), within.end());
        let (file, what, of) = (story.file, expected.what, label(expected.of, story));
        Some(format!("{file}: {what}: expected {least:.1} to {most:.1} {of} in minute {minute}, seen {seen}"))
    })
}

/// `None` if the story ended before.
fn seen(of: Of, played: &Played, minute: usize) -> Option<f64> {
    match of {
        Of::Writes => played.writes_let_in(minute),
        Of::Sort(sort) => played.let_in.get(sort)?.1.get(minute).copied(),
        Of::Reads => played.reads_let_in.get(minute).copied(),
        Of::Borne => played.borne.get(minute).copied(),
    }
}

fn label(of: Of, story: &Story) -> String {
    match of {
        Of::Writes => "writes/s let in".to_owned(),
        Of::Sort(sort) => format!("writes/s of {} let in", story.sorts[sort].0),
        Of::Reads => "reads/s let in".to_owned(),
        Of::Borne => "writes/s borne".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::play::play;
    use super::super::story::{STORIES, named};
    use super::*;
    use std::ops::Range;

    #[test]
    fn each_story_has_expectations_of_minutes_that_it_has() {
        for story in &STORIES {
            assert!(!story.expected.is_empty(), "{} expects nothing", story.file);
            for expected in story.expected {
                let Range { start, end } = expected.minutes;
                assert!(start < end && end <= story.minutes, "{}: {}", story.file, expected.what);
            }
        }
    }

    #[test]
    fn a_story_with_other_names_is_not_as_expected_and_the_error_says_what_was_seen() {
        let (one, two) = (named("one-digit"), named("two-digits"));
        let story = Story { sorts: one.sorts, ..*two };
        let played = play(&story);
        let missed = missed(&story, &played);
        let [missed] = &missed[..] else { panic!("{missed:?}") };
        let says = "two-digits: beyond that it goes on: expected 31360.0 to 32000.0 writes/s let in in minute 102, seen 160";
        assert!(missed.starts_with(says), "{missed}");
    }

    #[test]
    fn a_minute_that_was_not_played_is_missed() {
        let story = Story { minutes: 10, ..*named("random") };
        let played = play(&story);
        let missed = missed(&story, &played);
        assert!(missed.iter().all(|missed| missed.ends_with("in minute 10, seen nothing")), "{missed:?}");
        assert_eq!(missed.len(), story.expected.len());
    }
}
