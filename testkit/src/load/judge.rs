//! The verdict: does what the service holds agree with what it acknowledged?
//!
//! A writer's part must equal the state after its acknowledged operations, or that state with the one unanswered
//! operation applied whole. If it equals neither, every difference gets a name. So a failure says which promise was
//! broken, and for which key.

use std::collections::BTreeSet;
use std::fmt;

use super::op::{Key, Op, Row, State};

/// Which promise a difference breaks.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// An acknowledged write, or table, is gone or has an older value.
    Lost,
    /// An acknowledged delete of an entity or table did not hold.
    Undone,
    /// A batch was applied in part.
    Torn,
    /// Something is there that no writer wrote.
    Phantom,
    /// The running service gave an answer that is impossible.
    Wrong,
}

impl Kind {
    /// All kinds, in the order they are printed.
    pub const ALL: [Self; 5] = [Self::Lost, Self::Undone, Self::Torn, Self::Phantom, Self::Wrong];

    /// The text for a count of this kind.
    pub fn label(self) -> &'static str {
        match self {
            Self::Lost => "acknowledged writes lost",
            Self::Undone => "acknowledged deletes undone",
            Self::Torn => "torn batches",
            Self::Phantom => "rows nobody wrote",
            Self::Wrong => "wrong answers",
        }
    }
}

/// One broken promise.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What kind of mistake it is.
    pub kind: Kind,
    /// What was expected and what was found.
    pub what: String,
}

impl Finding {
    /// A finding of this kind.
    pub fn new(kind: Kind, what: String) -> Self {
        Self { kind, what }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.label(), self.what)
    }
}

/// Compares what was found with the state after all acknowledged operations and the one operation
/// that may or may not have happened. Returns whether that one was applied, and every difference.
pub fn judge(acknowledged: &State, pending: Option<&Op>, found: &State) -> (bool, Vec<Finding>) {
    if found == acknowledged {
        return (false, Vec::new());
    }
    let Some(op) = pending else {
        return (false, differences(acknowledged, None, found));
    };
    let mut applied = acknowledged.clone();
    applied.apply(op);
    if *found == applied {
        return (true, Vec::new());
    }
    (false, differences(acknowledged, Some(&applied), found))
}

/// The tally must lie between what was acknowledged or shown, and that plus the unanswered increments.
pub fn judge_tally(found: Option<u64>, low: u64, high: u64) -> Option<Finding> {
    let found_text = found.map_or("gone".to_owned(), |value| value.to_string());
    match found {
        Some(value) if value > high => {
            Some(Finding::new(Kind::Phantom, format!("the tally is {value}, at most {high} is possible")))
        }
        Some(value) if value >= low => None,
        _ => Some(Finding::new(
            Kind::Lost,
            format!("the tally is {found_text}, {low} was acknowledged or shown"),
        )),
    }
}

/// Names every difference between `found` and the two states that were possible.
fn differences(acknowledged: &State, applied: Option<&State>, found: &State) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in acknowledged.tables.union(&found.tables) {
        let possible = [Some(acknowledged), applied];
        let is = found.tables.contains(name);
        if possible.into_iter().flatten().any(|state| state.tables.contains(name) == is) {
            continue;
        }
        let kind = if is { Kind::Undone } else { Kind::Lost };
        findings.push(Finding::new(kind, format!("table {name}")));
    }
    let keys: BTreeSet<&Key> = acknowledged
        .rows
        .keys()
        .chain(found.rows.keys())
        .chain(applied.iter().flat_map(|state| state.rows.keys()))
        .collect();
    let (mut old, mut new) = (0, 0);
    for key in keys {
        let is = found.rows.get(key);
        let before = acknowledged.rows.get(key);
        let after = applied.map_or(before, |state| state.rows.get(key));
        if before != after && is == before {
            old += 1;
        } else if before != after && is == after {
            new += 1;
        } else if is != before {
            findings.push(difference(key, before, is));
        }
    }
    if old > 0 && new > 0 {
        let what = format!("{new} of its {} changes are there, {old} are not", old + new);
        findings.push(Finding::new(Kind::Torn, what));
    }
    findings
}

fn difference(key: &Key, before: Option<&Row>, is: Option<&Row>) -> Finding {
    let serial =
        |row: Option<&Row>| row.and_then(|row| row.get("n")).map_or("no number".into(), ToString::to_string);
    match (before, is) {
        (None, Some(_)) => {
            Finding::new(Kind::Undone, format!("{key} is back, from operation {}", serial(is)))
        }
        (Some(_), None) => Finding::new(Kind::Lost, format!("{key}, from operation {}", serial(before))),
        _ => Finding::new(
            Kind::Lost,
            format!("{key} is as operation {} left it, {} was acknowledged", serial(is), serial(before)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::op::{Generator, Shape};
    use super::*;

    /// A writer's history of some length, and its next operation.
    fn history(seed: u64, length: usize) -> (State, Op) {
        let mut generator = Generator::new(0, seed, Shape::default());
        let mut state = State::default();
        for _ in 0..length {
            let op = generator.next(&state);
            state.apply(&op);
        }
        let op = generator.next(&state);
        (state, op)
    }

    #[test]
    fn both_outcomes_of_the_unanswered_operation_are_fine() {
        for seed in 0..200 {
            let (state, op) = history(seed, 60);
            assert!(judge(&state, Some(&op), &state).1.is_empty());
            let mut after = state.clone();
            after.apply(&op);
            let (applied, findings) = judge(&state, Some(&op), &after);
            assert!(findings.is_empty(), "{findings:?}");
            assert_eq!(applied, state != after);
        }
    }

    #[test]
    fn each_kind_of_damage_is_named() {
        let mut seen = BTreeSet::new();
        for seed in 0..200 {
            let (state, op) = history(seed, 60);
            let mut lost = state.clone();
            let (key, row) = lost.rows.pop_first().expect("60 operations leave rows");
            let kinds = |found: &State| {
                judge(&state, Some(&op), found).1.iter().map(|finding| finding.kind).collect::<BTreeSet<_>>()
            };
            let touched = matches!(&op, Op::Change(change) if change.key == key)
                || matches!(&op, Op::Batch(changes) if changes.iter().any(|change| change.key == key));
            if !touched {
                assert!(kinds(&lost).contains(&Kind::Lost));
                let mut undone = state.clone();
                undone.rows.insert(Key { row: "deleted-before".into(), ..key }, row);
                assert!(kinds(&undone).contains(&Kind::Undone));
            }
            if let Op::Batch(changes) = &op {
                let mut torn = state.clone();
                torn.apply(&Op::Batch(changes[..1].to_vec()));
                let whole = {
                    let mut whole = state.clone();
                    whole.apply(&op);
                    whole
                };
                if torn != state && torn != whole {
                    assert_eq!(kinds(&torn), BTreeSet::from([Kind::Torn]));
                    seen.insert(Kind::Torn);
                }
            }
        }
        assert!(seen.contains(&Kind::Torn), "no seed led to a batch");
    }

    #[test]
    fn the_tally_has_two_bounds() {
        assert!(judge_tally(Some(5), 5, 7).is_none());
        assert!(judge_tally(Some(7), 5, 7).is_none());
        assert_eq!(judge_tally(Some(8), 5, 7).map(|finding| finding.kind), Some(Kind::Phantom));
        assert_eq!(judge_tally(Some(4), 5, 7).map(|finding| finding.kind), Some(Kind::Lost));
        assert_eq!(judge_tally(None, 0, 7).map(|finding| finding.kind), Some(Kind::Lost));
    }
}
