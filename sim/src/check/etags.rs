//! ETags only grow. A later write of an entity gives it a later tag, even if ranges were moved, processes crashed or
//! the entity was deleted in between. One tag stands for one value.

use std::collections::BTreeMap;
use std::time::Duration;

use super::register::Value;

/// An ETag as a client saw it on one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// When the client asked.
    pub begun: Duration,
    /// When the client got the answer.
    pub ended: Duration,
    /// The time in the tag; later times are greater.
    pub tag: u64,
    /// The value that it stands for.
    pub value: Value,
}

/// What is wrong with the tags of one entity, in words.
pub fn check(sights: &[Sight]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut values: BTreeMap<u64, Value> = BTreeMap::new();
    for sight in sights {
        let value = *values.entry(sight.tag).or_insert(sight.value);
        if value != sight.value {
            findings.push(format!("the tag {} stands for {value} and for {}", sight.tag, sight.value));
        }
    }
    let mut tags: BTreeMap<Value, u64> = BTreeMap::new();
    for sight in sights {
        let tag = *tags.entry(sight.value).or_insert(sight.tag);
        if tag != sight.tag {
            findings.push(format!("the value {} has the tags {tag} and {}", sight.value, sight.tag));
        }
    }
    findings.extend(going_back(sights));
    findings
}

/// Tags that are smaller than a tag that a client already knew when the request for the smaller tag was sent.
fn going_back(sights: &[Sight]) -> Vec<String> {
    let mut by_end: Vec<&Sight> = sights.iter().collect();
    by_end.sort_by_key(|sight| sight.ended);
    let mut by_begin: Vec<&Sight> = sights.iter().collect();
    by_begin.sort_by_key(|sight| sight.begun);
    let mut ended = by_end.into_iter().peekable();
    let mut greatest: Option<&Sight> = None;
    let mut findings = Vec::new();
    for sight in by_begin {
        while let Some(earlier) = ended.next_if(|earlier| earlier.ended < sight.begun) {
            if greatest.is_none_or(|greatest| greatest.tag < earlier.tag) {
                greatest = Some(earlier);
            }
        }
        if let Some(greatest) = greatest.filter(|greatest| greatest.tag > sight.tag) {
            findings.push(format!(
                "a tag went back: {} (value {}) was told at {:.3} s, and {} (value {}) was asked for at {:.3} s",
                greatest.tag,
                greatest.value,
                greatest.ended.as_secs_f64(),
                sight.tag,
                sight.value,
                sight.begun.as_secs_f64()
            ));
        }
    }
    findings
}
