//! What the service told of the table's ranges during a peak: those of Rangehold do. Pure: it reads answers of the admin API.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::limits::EVENTS_MAX;
use crate::output::{cell, keys, list};

/// The ranges over time.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Seen {
    /// How many there were, each time that was looked.
    pub(crate) looks: Vec<Look>,
    /// What happened to them.
    pub(crate) events: Vec<Event>,
    /// What the service says of their load: the last sentence about each range that has one.
    pub(crate) verdicts: BTreeMap<String, Verdict>,
    /// The names of all ranges that the table ever had.
    #[serde(skip)]
    names: BTreeSet<String>,
}

/// One look.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Look {
    /// Seconds since the peak began.
    pub(crate) at_s: f64,
    /// Ranges with a part of the table.
    pub(crate) ranges: usize,
    /// Servers that serve them.
    pub(crate) servers: usize,
}

/// Something that happened to a range of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Event {
    /// Seconds since the peak began, when it was seen.
    pub(crate) at_s: f64,
    /// `done`, `verdict` and so on, as the admin API has them.
    pub(crate) kind: String,
    /// Which ranges, and what.
    pub(crate) text: String,
}

/// What the service says of a range's load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// When it was seen for the last time.
    pub(crate) at_s: f64,
    /// The keys of the range.
    pub(crate) keys: String,
    /// `append`, `hot-key`, `split` and so on.
    pub(crate) cause: String,
    /// Why it is split or not, and what to do.
    pub(crate) sentence: String,
}

impl Seen {
    /// Takes an answer of `/v1/ranges`.
    pub(crate) fn ranges(&mut self, at_s: f64, table: &str, answer: &Value) {
        let all = list(&answer["ranges"]);
        let is_in = |low: &Value| low.as_str().is_some_and(|low| is_of(low, table));
        let is_begin = |low: &Value| low.as_str().is_some_and(|low| low.ends_with("/*"));
        // The range in which the table begins has the end of what is before it, too. A table in one range is in the last one,
        // since it was made last.
        let is_cut = all.iter().any(|range| is_in(&range["low"]));
        let begins_in = |at: usize| match all.get(at + 1) {
            Some(next) => is_in(&next["low"]) && !is_begin(&next["low"]),
            None => !is_cut,
        };
        let mut servers = BTreeSet::new();
        let mut ranges = 0;
        for (at, range) in all.iter().enumerate() {
            if !is_in(&range["low"]) && !begins_in(at) {
                continue;
            }
            ranges += 1;
            servers.insert(cell(&range["server"]));
            let name = cell(&range["range"]);
            let verdict = &range["load"]["verdict"];
            if let Some(sentence) = verdict["sentence"].as_str() {
                let (cause, sentence) = (cell(&verdict["cause"]), sentence.to_owned());
                self.verdicts.insert(name.clone(), Verdict { at_s, keys: keys(range), cause, sentence });
            }
            self.names.insert(name);
        }
        self.looks.push(Look { at_s, ranges, servers: servers.len() });
    }

    /// Takes an answer of `/v1/events`; returns the last number that was seen.
    pub(crate) fn events(&mut self, at_s: f64, answer: &Value, after: u64) -> u64 {
        let mut last = after;
        for event in list(&answer["events"]) {
            last = event["number"].as_u64().unwrap_or(last);
            let names: Vec<String> = list(&event["ranges"]).iter().map(cell).collect();
            // An event may name the generation too.
            let bare = |name: &String| name.split('@').next().unwrap_or_default().to_owned();
            let is_ours = names.iter().any(|name| self.names.contains(&bare(name)));
            if is_ours && self.events.len() < EVENTS_MAX {
                self.names.extend(names.iter().map(bare));
                let text = format!("{}: {}", names.join(", "), cell(&event["text"]));
                self.events.push(Event { at_s, kind: cell(&event["kind"]), text });
            }
        }
        last
    }

    /// The last look.
    pub(crate) fn last(&self) -> Option<Look> {
        self.looks.last().copied()
    }
}

/// Whether a key, as the admin API writes it, is one of the table.
fn is_of(low: &str, table: &str) -> bool {
    let low = low.split_once(':').map_or(low, |(_, low)| low);
    low.split_once('/').is_some_and(|(name, _)| name.eq_ignore_ascii_case(table))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ranges_verdicts_and_events_of_the_table_are_kept_and_others_are_not() {
        let mut seen = Seen::default();
        let verdict = json!({ "verdict": { "cause": "append", "sentence": "not split: append; ..." } });
        let answer = json!({ "ranges": [
            { "range": "r1", "server": "s1", "low": "start" },
            { "range": "r2", "server": "s1", "low": "other/a", "high": "stress1/b" },
            { "range": "r3", "server": "s2", "low": "stress1/b", "load": verdict },
            { "range": "r4", "server": "s3", "low": "zoo/*" },
        ] });
        seen.ranges(4.0, "stress1", &answer);
        assert_eq!(seen.last(), Some(Look { at_s: 4.0, ranges: 2, servers: 2 }));
        assert_eq!(seen.verdicts.keys().collect::<Vec<_>>(), ["r3"]);
        let event = |number: u64, ranges: &[&str]| json!({ "number": number, "kind": "done", "ranges": ranges, "text": "split" });
        let events = json!({ "events": [event(8, &["r4"]), event(9, &["r3@2", "r7"])] });
        assert_eq!(seen.events(5.0, &events, 7), 9);
        assert_eq!(
            seen.events.iter().map(|event| event.text.as_str()).collect::<Vec<_>>(),
            ["r3@2, r7: split"]
        );
        // The range r7 was made of one of the table.
        assert_eq!(seen.events(6.0, &json!({ "events": [event(10, &["r7"])] }), 9), 10);
        assert_eq!(seen.events.len(), 2);
    }

    #[test]
    fn a_table_in_one_range_is_in_the_range_where_it_begins() {
        let mut seen = Seen::default();
        seen.ranges(
            1.0,
            "stress1",
            &json!({ "ranges": [{ "range": "r1", "server": "s1", "low": "start" }] }),
        );
        assert_eq!(seen.last().map(|look| look.ranges), Some(1));
    }
}
