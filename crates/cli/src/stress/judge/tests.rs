//! Verdicts on peaks that are made up.

use super::*;
use crate::stress::book::{Asked, Outcome as Ended};
use crate::stress::designs::Design;
use crate::stress::plan::Target;

/// The seconds of a peak here.
const SECONDS: u64 = 20;

/// A peak of a design: each wish is asked at its rate, and `ends` says how it ends and after which time.
fn peak(design: Design, ends: impl Fn(&Asked, u64) -> (Ended, u64)) -> (Plan, Book) {
    let plan = design.plan().unwrap();
    let mut book = Book::new(&plan, &Target::of(&plan));
    let mut number = 0;
    for (kind, of_kind) in plan.kinds.iter().enumerate() {
        for wish in 0..(of_kind.per_second * SECONDS as f64) as u64 {
            number += 1;
            let at = Duration::from_secs_f64(wish as f64 / of_kind.per_second);
            let is_new = matches!(of_kind.act, crate::stress::plan::Act::Batch { .. });
            let partition = plan.keys.partition(number);
            let asked = Asked { kind, at, partition, is_new };
            book.asked(&asked, Duration::ZERO);
            let (outcome, ms) = ends(&asked, wish);
            book.ended(&asked, at + Duration::from_millis(ms), outcome);
        }
    }
    (plan, book)
}

fn done(asked: &Asked, plan: &Plan) -> Ended {
    Ended::Done(plan.kinds[asked.kind].act.entities())
}

fn judged(plan: &Plan, book: &Book) -> Judgement {
    judge(&Facts { plan, book, time: Duration::from_secs(SECONDS), seen: None })
}

fn kinds(judgement: &Judgement) -> Vec<&str> {
    judgement.findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn the_four_designs_are_named_by_what_limits_them_even_if_all_is_answered() {
    for (design, outcome, cause, words) in [
        (Design::OneValue, Outcome::Limited, "too-coarse", "LIMITED by a hot partition"),
        (Design::EventDistance, Outcome::Limited, "too-coarse", "LIMITED by a hot partition"),
        (Design::Number, Outcome::Limited, "append", "LIMITED by an append"),
        (Design::HashedNumber, Outcome::Bears, "fan-out", "BEARS the peak"),
    ] {
        let of = design.plan().unwrap();
        let (plan, book) = peak(design, |asked, _| (done(asked, &of), 1));
        let judgement = judged(&plan, &book);
        assert_eq!((judgement.outcome, kinds(&judgement)[0]), (outcome, cause), "{judgement:?}");
        assert!(judgement.headline.starts_with(words), "{}", judgement.headline);
        assert!(judgement.headline.contains("4,000 entities/s"), "{}", judgement.headline);
    }
}

#[test]
fn a_hot_partition_is_named_with_its_rate_and_the_number_of_partitions_that_it_needs() {
    let of = Design::OneValue.plan().unwrap();
    // Half of everything is refused.
    let (plan, book) = peak(Design::OneValue, |asked, wish| match wish % 2 {
        0 => (done(asked, &of), 1),
        _ => (Ended::Busy, 1),
    });
    let judgement = judged(&plan, &book);
    let hot = &judgement.findings[0];
    for word in ["\"New York City Marathon\"", "4,000 entities/s", "100 % of the load", "it got 2,000"] {
        assert!(hot.text.contains(word), "{word}: {}", hot.text);
    }
    assert!(hot.remedy.as_ref().unwrap().contains("at least 3"), "{hot:?}");
    // Each kind is missed, and is named with what became of it.
    let missed: Vec<&Finding> =
        judgement.findings.iter().filter(|finding| finding.kind == "missed").collect();
    assert_eq!(missed.len(), plan.kinds.len());
    assert!(missed[0].text.contains("1,700 refused with ServerBusy"), "{}", missed[0].text);
    assert!(missed[0].text.starts_with("a club registers its 20 runners: 50 % were answered within 500 ms"));
}

#[test]
fn late_answers_and_wishes_that_were_not_sent_are_missed_though_nothing_was_refused() {
    let of = Design::HashedNumber.plan().unwrap();
    let (plan, book) = peak(Design::HashedNumber, |asked, wish| match (asked.kind, wish % 20) {
        // Each twentieth lookup comes late, and each twentieth change is not sent.
        (4, 0) => (done(asked, &of), 101),
        (2, 0) => (Ended::Unsent, 0),
        _ => (done(asked, &of), 100),
    });
    let judgement = judged(&plan, &book);
    assert_eq!(judgement.outcome, Outcome::Missed);
    assert_eq!(kinds(&judgement), ["missed", "missed", "fan-out"]);
    assert!(judgement.headline.starts_with("MISSED for 2 of 6 kinds"), "{}", judgement.headline);
    assert!(judgement.findings[0].text.contains("150 not sent"), "{}", judgement.findings[0].text);
    assert!(judgement.findings[1].text.contains("200 answered late"), "{}", judgement.findings[1].text);
    assert!(
        judgement.findings[2].text.contains("one query is 16 requests"),
        "{}",
        judgement.findings[2].text
    );
}

#[test]
fn one_wish_in_a_hundred_may_be_missed() {
    let of = Design::HashedNumber.plan().unwrap();
    let (plan, book) = peak(Design::HashedNumber, |asked, wish| match wish % 100 {
        99 => (Ended::TimedOut, 1),
        _ => (done(asked, &of), 1),
    });
    assert_eq!(judged(&plan, &book).outcome, Outcome::Bears);
}
