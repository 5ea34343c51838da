//! The rules of a batch, and how a list of changes is cut so that each piece keeps them.

use std::collections::{BTreeMap, BTreeSet};

use rangehold_protocol::table::limits::{BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX};

use super::super::{Change, Invalid};
use crate::entity::body;
use crate::limits::BATCH_BYTES_SPARE;

/// Bytes that a part has besides its keys and its body: delimiters and headers.
const PART_BYTES: usize = 512;

/// Cuts `changes` into batches. Changes of one entity stay in their order, in different batches. Changes of different
/// partitions have no order among each other.
///
/// Each batch is carried out as a whole, but not all of them together.
pub fn groups(changes: impl IntoIterator<Item = Change>) -> Vec<Vec<Change>> {
    let mut groups: Vec<Group> = Vec::new();
    // The last group of each partition, which may still grow.
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    for change in changes {
        let partition = change.keys().partition_key.clone();
        let at = match open.get(&partition).filter(|at| groups[**at].takes(&change)) {
            Some(at) => *at,
            None => {
                groups.push(Group::default());
                open.insert(partition, groups.len() - 1);
                groups.len() - 1
            }
        };
        groups[at].add(change);
    }
    groups.into_iter().map(|group| group.changes).collect()
}

/// A batch that is being filled.
#[derive(Default)]
struct Group {
    changes: Vec<Change>,
    row_keys: BTreeSet<String>,
    bytes: usize,
}

impl Group {
    fn takes(&self, change: &Change) -> bool {
        self.changes.len() < BATCH_OPERATIONS_MAX
            && self.bytes + bytes_of(change) <= BATCH_BYTES_MAX - BATCH_BYTES_SPARE
            && !self.row_keys.contains(&change.keys().row_key)
    }

    fn add(&mut self, change: Change) {
        self.bytes += bytes_of(&change);
        self.row_keys.insert(change.keys().row_key.clone());
        self.changes.push(change);
    }
}

/// Bytes of a change in a batch, with every character of its keys percent-encoded.
fn bytes_of(change: &Change) -> usize {
    let keys = change.keys();
    let encoded = 3 * (keys.partition_key.len() + keys.row_key.len());
    PART_BYTES + encoded + change.entity().map_or(0, |entity| body(entity).len())
}

/// Whether `changes` keep the rules, with the first rule that they break.
pub(super) fn check(changes: &[Change]) -> Result<(), Invalid> {
    let Some(first) = changes.first() else {
        return Err(Invalid("the batch is empty".to_owned()));
    };
    if changes.len() > BATCH_OPERATIONS_MAX {
        return Err(broken(format!(
            "it has {} changes, and {BATCH_OPERATIONS_MAX} is the limit",
            changes.len()
        )));
    }
    let mut row_keys = BTreeSet::new();
    for change in changes {
        let (keys, wanted) = (change.keys(), &first.keys().partition_key);
        if keys.partition_key != *wanted {
            return Err(broken(format!("{keys} is not in the partition {wanted:?} of the first change")));
        }
        if !row_keys.insert(&keys.row_key) {
            return Err(broken(format!("{keys} comes twice")));
        }
    }
    let bytes: usize = changes.iter().map(bytes_of).sum();
    if bytes > BATCH_BYTES_MAX {
        return Err(broken(format!("it has {bytes} bytes, and {BATCH_BYTES_MAX} is the limit")));
    }
    Ok(())
}

fn broken(rule: String) -> Invalid {
    Invalid(format!("this cannot be one batch: {rule}; cut it with rangehold_client::groups"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entity::Entity;

    fn change(partition: u8, row: u8, bytes: usize) -> Change {
        let entity = Entity::new(format!("p{partition}"), format!("r{row}"));
        Change::InsertOrReplace(entity.with("Data", vec![0_u8; bytes]))
    }

    proptest! {
        // Each case writes some megabytes of JSON.
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn each_group_is_a_valid_batch_and_no_change_is_lost_or_overtaken(
            list in prop::collection::vec((0..3_u8, 0..40_u8, 0..60_000_usize), 0..150)
        ) {
            let changes: Vec<Change> = list.iter().map(|&(p, r, bytes)| change(p, r, bytes)).collect();
            let cut = groups(changes.clone());
            for group in &cut {
                prop_assert_eq!(check(group), Ok(()));
            }
            for keys in changes.iter().map(Change::keys) {
                let of = |list: &[Change]| -> Vec<Change> {
                    list.iter().filter(|change| change.keys() == keys).cloned().collect()
                };
                prop_assert_eq!(of(&changes), of(&cut.concat()));
            }
        }
    }

    #[test]
    fn a_batch_that_breaks_a_rule_is_refused_with_the_rule() {
        let many: Vec<Change> = (0..101).map(|row| change(0, row, 0)).collect();
        for (changes, rule) in [
            (vec![], "empty"),
            (many, "101 changes"),
            (vec![change(0, 0, 0), change(1, 1, 0)], "not in the partition"),
            (vec![change(0, 0, 0), change(0, 0, 0)], "twice"),
            ((0..60).map(|row| change(0, row, 60_000)).collect(), "bytes"),
        ] {
            let error = check(&changes).expect_err(rule).to_string();
            assert!(error.contains(rule), "{error}");
        }
    }
}
