//! Whether what was seen of a lane is as the page says.
//!
//! * *The most* that may be let in of a stretch follows from the rules alone: a bucket never doubles faster than in 20 minutes. It holds
//!   however slow clients and servers are.
//! * *The least* is what was asked for or what is borne, whichever is less in each slot of some seconds. A bucket bears that only if enough was asked for in all 20
//!   minutes before. So the least is judged only behind stretches in which the clients kept up with their schedule.

use super::seen::Counts;
use super::story::{DOUBLES_AFTER, STRETCH, Story, threshold};

/// How far what is let in may be from what is borne. Cuts are not quite even, and at the beginning of a stretch there is a second's
/// worth that was saved.
const OFF: f64 = 0.1;
/// The clients keep up if they send this part of their schedule in each slot. A server counts half of what it bears as use.
const KEEPS_UP: f64 = 0.6;
/// Seconds of a slot: a twentieth of the 20 minutes, as a server judges use.
const SLOT: usize = DOUBLES_AFTER.as_secs() as usize / 20;
/// One in so many refusals is a 503.
const BACKEND_EVERY: u64 = 4;

/// What is to be said of a lane in a stretch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    AsTold,
    /// It is not above the most. The clients did not keep up before, so the least is not known.
    OnlyTheMost,
    /// A sentence with the story, what was expected and what was seen.
    Missed(String),
}

/// Judges one lane of a story in a stretch. `counts` are those of all lanes.
pub(super) fn judge(story: &Story, counts: &[Counts], at: usize, stretch: u32) -> Verdict {
    let lane = &story.lanes[at];
    let (threshold, seconds) = (threshold(lane.usage), STRETCH.as_secs());
    let (asked, refused) = counts[at].of(stretch);
    let let_in = asked - refused;
    let missed = |word: &str, rate: f64| {
        let [seen, asked] = [let_in, asked].map(|count| count / seconds as f64);
        let (file, label, usage, minute) = (story.file, lane.label, lane.usage.name(), 20 * stretch);
        Verdict::Missed(format!(
            "{file}: {label}: expected at {word} {rate:.1} {usage}/s let in from minute {minute} on, seen {seen:.1} of {asked:.1}"
        ))
    };
    let begins = u64::from(stretch) * seconds;
    let doublings = |second: u64| (second / DOUBLES_AFTER.as_secs()) as u32;
    let borne = (lane.borne)(stretch);
    let most: f64 = (begins..begins + seconds)
        .map(|second| (1.0 + OFF) * threshold * borne.max((lane.borne)(doublings(second))))
        .sum();
    if let_in > most {
        return missed("most", most / seconds as f64);
    }
    if !(0..stretch).all(|before| keeps_up(story, counts, before)) {
        return Verdict::OnlyTheMost;
    }
    let slots = counts[at].asked[begins as usize..][..seconds as usize].chunks(SLOT);
    let could = |slot: &[f64]| slot.iter().sum::<f64>().min(threshold * borne * slot.len() as f64);
    let least = (1.0 - OFF) * slots.map(could).sum::<f64>();
    if let_in < least { missed("least", least / seconds as f64) } else { Verdict::AsTold }
}

/// Whether the clients of all lanes kept up with their schedules in a stretch.
fn keeps_up(story: &Story, counts: &[Counts], stretch: u32) -> bool {
    let seconds = STRETCH.as_secs() as usize;
    story.lanes.iter().zip(counts).all(|(lane, counts)| {
        let begins = stretch as usize * seconds;
        let due = story.schedule(lane).rate(stretch) * SLOT as f64;
        let mut slots = counts.asked[begins..begins + seconds].chunks_exact(SLOT);
        slots.all(|slot| slot.iter().sum::<f64>() >= KEEPS_UP * due)
    })
}

/// Three in four refusals have the status 429, the fourth has 503. Others have no place here.
pub(super) fn judge_refusals(story: &Story, [too_many, backend]: [u64; 2]) -> Option<String> {
    let expected = (too_many + backend) / BACKEND_EVERY;
    (backend != expected).then(|| {
        format!(
            "{}: of {} refusals expected {expected} with 503, seen {backend}",
            story.file,
            too_many + backend
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::story::STORIES;
    use super::*;

    /// A story whose clients keep up, and of which this share of what is borne is let in.
    fn told(story: &Story, share: f64) -> Vec<Counts> {
        let seconds = STRETCH.as_secs();
        let lanes = story.lanes.iter().map(|lane| {
            let (schedule, threshold) = (story.schedule(lane), threshold(lane.usage));
            let mut counts = Counts::default();
            for second in 0..u64::from(story.stretches) * seconds {
                let stretch = (second / seconds) as u32;
                let asked = schedule.rate(stretch);
                let let_in = asked.min(share * threshold * (lane.borne)(stretch));
                counts.asked.push(asked);
                counts.refused.push(asked - let_in);
            }
            counts
        });
        lanes.collect()
    }

    fn verdicts(story: &Story, counts: &[Counts]) -> Vec<Verdict> {
        let lanes =
            (0..story.lanes.len()).flat_map(|at| (0..story.stretches).map(move |stretch| (at, stretch)));
        lanes.map(|(at, stretch)| judge(story, counts, at, stretch)).collect()
    }

    fn is_missed(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Missed(_))
    }

    #[test]
    fn what_the_page_says_is_right_and_a_fifth_less_or_a_third_more_is_not() {
        for story in &STORIES {
            let verdicts_of = |share| verdicts(story, &told(story, share));
            assert!(verdicts_of(1.0).iter().all(|verdict| *verdict == Verdict::AsTold), "{}", story.file);
            assert!(verdicts_of(0.8).iter().all(is_missed), "{}", story.file);
            assert!(verdicts_of(4.0 / 3.0).iter().any(is_missed), "{}", story.file);
        }
    }

    #[test]
    fn a_bucket_that_never_doubles_is_missed_from_the_second_stretch_on() {
        let story = &STORIES[0];
        let mut counts = told(story, 1.0);
        for second in 0..counts[0].asked.len() {
            counts[0].refused[second] = counts[0].asked[second] - 10.0;
        }
        let verdicts = verdicts(story, &counts);
        assert_eq!(verdicts[0], Verdict::AsTold);
        assert!(verdicts[1..].iter().all(is_missed));
        let says = "live-random: random: expected at least 18.0 writes/s let in from minute 20 on, seen 10.0 of 160.0";
        assert_eq!(verdicts[1], Verdict::Missed(says.to_owned()));
    }

    #[test]
    fn clients_that_could_not_ask_for_so_much_are_not_a_failure() {
        let story = &STORIES[0];
        // Nothing is refused, and no more than the threshold is asked for.
        let mut counts = told(story, 1.0);
        counts[0].asked.iter_mut().for_each(|asked| *asked = 10.0);
        counts[0].refused.iter_mut().for_each(|refused| *refused = 0.0);
        assert!(!verdicts(story, &counts).iter().any(is_missed));
        // They stood still for seven seconds in the first stretch, and so the bucket did not double.
        let mut counts = told(story, 1.0);
        counts[0].asked[20..27].iter_mut().for_each(|asked| *asked = 0.0);
        counts[0].refused[20..27].iter_mut().for_each(|refused| *refused = 0.0);
        for second in STRETCH.as_secs() as usize..counts[0].asked.len() {
            counts[0].refused[second] = counts[0].asked[second] - 10.0;
        }
        let verdicts = verdicts(story, &counts);
        assert_eq!(verdicts[0], Verdict::AsTold);
        assert!(verdicts[1..].iter().all(|verdict| *verdict == Verdict::OnlyTheMost));
    }

    #[test]
    fn one_refusal_in_four_is_a_503() {
        assert_eq!(judge_refusals(&STORIES[0], [6, 1]), None);
        let missed = judge_refusals(&STORIES[0], [5, 3]).expect("there are too many");
        assert_eq!(missed, "live-random: of 8 refusals expected 2 with 503, seen 3");
    }
}
