//! What the keys of a peak say about it: partitions that are too coarse, keys that grow, and what spreading costs.

use super::{Facts, Finding, Grade};
use crate::stress::book::End;
use crate::stress::limits::PARTITION_TARGET;
use crate::stress::plan::Act;
use crate::stress::words::{count, millis, percent};

/// The share of its target above which a partition has little room.
const NEAR: f64 = 0.8;
/// How much of its target a partition should be asked for, when partitions are counted for an advice.
const ADVISED: f64 = 0.8;

/// A cause in words, as the headline has it.
pub(super) fn in_words(kind: &str) -> &str {
    match kind {
        "too-coarse" => "a hot partition",
        "append" => "an append",
        "prepend" => "a prepend",
        other => other,
    }
}

/// Places that are asked for more than they can give.
pub(super) fn limits(facts: &Facts<'_>) -> Vec<Finding> {
    too_coarse(facts).into_iter().chain(one_end(facts).filter(|end| end.grade == Grade::Limit)).collect()
}

fn too_coarse(facts: &Facts<'_>) -> Option<Finding> {
    let (partition, share) = facts.book.partitions.hottest()?;
    let asked = share * facts.asked_per_second();
    if asked <= PARTITION_TARGET {
        return None;
    }
    let (_, got) = facts.target_per_second();
    let needed = (asked / (PARTITION_TARGET * ADVISED)).ceil();
    let text = format!(
        "too coarse: the partition {partition:?} is asked for {} entities/s, {} of the load, and a partition serves {}; it got {} \
         GET and PUT together",
        count(asked),
        percent(share),
        count(PARTITION_TARGET),
        count(got),
    );
    let remedy = format!(
        "spread over more partitions, here at least {}: put something into the PartitionKey that divides the load, such as a digit \
         of a hash of the RowKey, or a field that queries know",
        count(needed)
    );
    Some(Finding::new(Grade::Limit, "too-coarse", text).with(remedy))
}

fn one_end(facts: &Facts<'_>) -> Option<Finding> {
    let (end, entities) = facts.book.growth.end()?;
    let rate = entities as f64 / facts.time.as_secs_f64().max(1e-3);
    let (kind, place) = match end {
        End::Append => ("append", "above all keys that were there before"),
        End::Prepend => ("prepend", "below all keys that were there before"),
    };
    let share = percent(rate / facts.asked_per_second().max(1e-9));
    let grade = if rate > PARTITION_TARGET { Grade::Limit } else { Grade::Note };
    let text = format!(
        "{kind}: {} entities/s, {share} of the load, go to partitions {place}, and so to one range at one server; no split helps, \
         because the next keys lie beyond every cut",
        count(rate)
    );
    let remedy = "put something before the number that spreads, such as a digit of its hash; a query in the order of numbers then \
                  asks each prefix";
    Some(Finding::new(grade, kind, text).with(remedy))
}

/// What else is worth knowing.
pub(super) fn notes(facts: &Facts<'_>) -> Vec<Finding> {
    let end = one_end(facts).filter(|end| end.grade == Grade::Note);
    near(facts).into_iter().chain(end).chain(fan_outs(facts)).chain(told(facts)).collect()
}

fn near(facts: &Facts<'_>) -> Option<Finding> {
    let (partition, share) = facts.book.partitions.hottest()?;
    let asked = share * facts.asked_per_second();
    let is_near = asked > PARTITION_TARGET * NEAR && asked <= PARTITION_TARGET;
    is_near.then(|| {
        let text = format!(
            "little room: the partition {partition:?} is asked for {} entities/s of {}",
            count(asked),
            count(PARTITION_TARGET)
        );
        Finding::new(Grade::Note, "near", text)
    })
}

/// The price of keys that are spread: queries that ask each prefix.
fn fan_outs(facts: &Facts<'_>) -> Vec<Finding> {
    let all = facts.plan.kinds.iter().zip(&facts.book.lines);
    all.filter_map(|(kind, line)| {
        let requests = f64::from(kind.act.requests());
        let is_query = matches!(kind.act, Act::Query { .. });
        (is_query && requests > 1.0).then(|| {
            let times = [0.5, 0.99].map(|share| line.times.at(share).map_or_else(|| "-".to_owned(), millis));
            let text = format!(
                "the price of the spread keys: {}: one query is {} requests, so {} queries/s are {} requests/s; half of them took at \
                 most {}, 99 in a hundred at most {}",
                kind.name,
                count(requests),
                rate(kind.per_second),
                count(kind.per_second * requests),
                times[0],
                times[1],
            );
            Finding::new(Grade::Note, "fan-out", text)
        })
    })
    .collect()
}

fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.1}") } else { count(per_second) }
}

/// What the service itself told.
fn told(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(seen) = facts.seen else { return Vec::new() };
    let mut found = Vec::new();
    if let Some(look) = seen.last() {
        let done = seen.events.iter().filter(|event| event.kind == "done").count();
        let text = format!(
            "the service had the table in {} ranges on {} servers at the end, after {done} changes of ranges",
            look.ranges, look.servers
        );
        found.push(Finding::new(Grade::Note, "ranges", text));
    }
    found.extend(seen.verdicts.iter().map(|(range, verdict)| {
        let text = format!("the service says of {range} {}: {}", verdict.keys, verdict.sentence);
        Finding::new(Grade::Note, "verdict", text)
    }));
    found
}
