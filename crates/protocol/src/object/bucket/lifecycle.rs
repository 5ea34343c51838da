//! Lifecycle rules: what happens to objects by their age.
//!
//! A rule has an action and conditions, all of which must hold. [`Lifecycle::action`] decides for one generation. If several
//! rules fit, deletion wins; among classes, the one that is cheapest at rest wins, as the real service documents it.

use serde::{Deserialize, Serialize};

use super::super::generation::{Generation, State};
use crate::object::error::ObjectError;
use crate::object::int64::{self, Int64};
use crate::object::limits::LIFECYCLE_RULES_MAX;
use crate::object::micros::Micros;
use crate::object::storage_class::StorageClass;

/// The rules of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lifecycle {
    /// The rules.
    pub rule: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rule {
    /// What is done.
    pub action: RuleAction,
    /// To which objects.
    pub condition: Condition,
}

/// The action of a rule, as clients write it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleAction {
    /// `Delete`, `SetStorageClass` or `AbortIncompleteMultipartUpload`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The new class.
    pub storage_class: Option<StorageClass>,
}

/// The conditions of a rule. One that is absent holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Days since the object was made.
    #[serde(deserialize_with = "int64::small")]
    pub age: Option<u32>,
    /// It was made before this day.
    pub created_before: Option<String>,
    /// Its custom time is before this day.
    pub custom_time_before: Option<String>,
    /// Days since its custom time.
    #[serde(deserialize_with = "int64::small")]
    pub days_since_custom_time: Option<u32>,
    /// Days since it stopped being live.
    #[serde(deserialize_with = "int64::small")]
    pub days_since_noncurrent_time: Option<u32>,
    /// Whether it is live.
    pub is_live: Option<bool>,
    /// A form that the service knows no more. It is kept and never holds.
    pub matches_pattern: Option<String>,
    /// Its name begins with one of these.
    pub matches_prefix: Option<Vec<String>>,
    /// Its name ends with one of these.
    pub matches_suffix: Option<Vec<String>>,
    /// Its class is one of these.
    pub matches_storage_class: Option<Vec<StorageClass>>,
    /// It stopped being live before this day.
    pub noncurrent_time_before: Option<String>,
    /// At least so many newer generations of its name are kept.
    #[serde(deserialize_with = "int64::small")]
    pub num_newer_versions: Option<u32>,
    /// It has more bytes.
    pub size_above_bytes: Option<Int64>,
    /// It has fewer bytes.
    pub size_below_bytes: Option<Int64>,
}

/// What is done with a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleAction {
    /// Delete it: a live one as a request without a generation does, an older one by its generation.
    Delete,
    /// Give it this class.
    SetStorageClass(StorageClass),
}

impl Lifecycle {
    /// Checks rules that a client sent.
    pub fn check(&self) -> Result<(), ObjectError> {
        let fault = |value: &str, hint| Err(ObjectError::invalid("lifecycle", value, hint));
        if self.rule.len() > LIFECYCLE_RULES_MAX {
            return fault(&self.rule.len().to_string(), "A bucket has at most 100 rules.");
        }
        for rule in &self.rule {
            match (rule.action.kind.as_deref(), rule.action.storage_class) {
                (Some("Delete"), None) | (Some("SetStorageClass"), Some(_)) => {}
                (Some("AbortIncompleteMultipartUpload"), None) if rule.condition.is_for_uploads() => {}
                (Some("AbortIncompleteMultipartUpload"), None) => {
                    return fault(
                        "a condition",
                        "This action takes age, matchesPrefix and matchesSuffix only.",
                    );
                }
                (kind, _) => {
                    let hint = "Actions are Delete, SetStorageClass with a storageClass, and \
                                AbortIncompleteMultipartUpload.";
                    return fault(kind.unwrap_or("no action"), hint);
                }
            }
            if rule.condition == Condition::default() {
                return fault("no condition", "A rule has at least one condition.");
            }
            for day in rule.condition.days().into_iter().flatten() {
                if Micros::parse(day).is_none() {
                    return fault(day, "A day is written as 2026-11-24.");
                }
            }
        }
        Ok(())
    }

    /// What the rules say at `now` about a generation of `name`. `newer` is how many newer generations of the name
    /// are kept.
    pub fn action(
        &self,
        name: &str,
        generation: &Generation,
        newer: u32,
        now: Micros,
    ) -> Option<LifecycleAction> {
        let mut class = None;
        for rule in self.rule.iter().filter(|rule| rule.condition.holds(name, generation, newer, now)) {
            match (rule.action.kind.as_deref(), rule.action.storage_class) {
                (Some("Delete"), _) => return Some(LifecycleAction::Delete),
                (Some("SetStorageClass"), Some(new)) if is_colder(new, class) => class = Some(new),
                _ => {}
            }
        }
        class
            .filter(|class| is_colder(*class, Some(generation.storage_class)))
            .map(LifecycleAction::SetStorageClass)
    }

    /// Whether an upload of `name` that was begun at `begun` is to be given up at `now`.
    pub fn aborts_upload(&self, name: &str, begun: Micros, now: Micros) -> bool {
        self.rule.iter().any(|rule| {
            rule.action.kind.as_deref() == Some("AbortIncompleteMultipartUpload")
                && rule.condition.age.is_none_or(|age| days_after(begun, age) <= now)
                && rule.condition.fits_name(name)
        })
    }
}

/// How cheap a class is at rest.
fn rank(class: StorageClass) -> u8 {
    match class {
        StorageClass::Archive => 3,
        StorageClass::Coldline => 2,
        StorageClass::Nearline => 1,
        _ => 0,
    }
}

fn is_colder(new: StorageClass, old: Option<StorageClass>) -> bool {
    old.is_none_or(|old| rank(new) > rank(old))
}

fn days_after(time: Micros, days: u32) -> Micros {
    time.plus_seconds(u64::from(days) * 24 * 3600)
}

impl Condition {
    fn days(&self) -> [Option<&str>; 3] {
        [&self.created_before, &self.custom_time_before, &self.noncurrent_time_before].map(Option::as_deref)
    }

    fn is_for_uploads(&self) -> bool {
        let others = Self {
            age: None,
            matches_prefix: None,
            matches_suffix: None,
            matches_pattern: None,
            ..self.clone()
        };
        others == Self::default()
    }

    fn fits_name(&self, name: &str) -> bool {
        let fits = |texts: &Option<Vec<String>>, is: fn(&str, &str) -> bool| {
            texts.as_ref().is_none_or(|texts| texts.iter().any(|text| is(name, text)))
        };
        fits(&self.matches_prefix, |name, text| name.starts_with(text))
            && fits(&self.matches_suffix, |name, text| name.ends_with(text))
    }

    fn holds(&self, name: &str, generation: &Generation, newer: u32, now: Micros) -> bool {
        let noncurrent = match generation.state {
            State::Live => None,
            State::Noncurrent(at) => Some(at),
            State::SoftDeleted { .. } => return false,
        };
        let custom = generation.settings.custom_time;
        let is_before = |time: Option<Micros>, day: &Option<String>| {
            let Some(day) = day else { return true };
            matches!((time, Micros::parse(day)), (Some(time), Some(day)) if time < day)
        };
        let is_old = |time: Option<Micros>, days: Option<u32>| {
            days.is_none_or(|days| time.is_some_and(|time| days_after(time, days) <= now))
        };
        let classes = self.matches_storage_class.as_ref();
        is_old(Some(generation.created), self.age)
            && is_before(Some(generation.created), &self.created_before)
            && is_before(custom, &self.custom_time_before)
            && is_old(custom, self.days_since_custom_time)
            && is_old(noncurrent, self.days_since_noncurrent_time)
            && is_before(noncurrent, &self.noncurrent_time_before)
            && self.is_live.is_none_or(|live| live == noncurrent.is_none())
            && self.matches_pattern.is_none()
            && self.fits_name(name)
            && classes.is_none_or(|classes| classes.contains(&generation.storage_class))
            && self.num_newer_versions.is_none_or(|least| newer >= least)
            && self.size_above_bytes.is_none_or(|bytes| generation.size > bytes.0)
            && self.size_below_bytes.is_none_or(|bytes| generation.size < bytes.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::generation::tests::generation;
    use super::*;

    const DAY: u64 = 24 * 3600;
    const BORN: u64 = 1_700_000_000_000_000;

    fn rules(value: serde_json::Value) -> Lifecycle {
        serde_json::from_value(json!({ "rule": value })).expect("rules")
    }

    fn action(rules: &Lifecycle, generation: &Generation, newer: u32, days: u64) -> Option<LifecycleAction> {
        rules.action("logs/a.txt", generation, newer, generation.created.plus_seconds(days * DAY))
    }

    #[test]
    fn all_conditions_of_a_rule_must_hold() {
        let object = generation(BORN);
        let delete = json!({"type": "Delete"});
        for (condition, days, holds) in [
            (json!({"age": 3}), 2, false),
            (json!({"age": 3}), 3, true),
            (json!({"age": 3, "isLive": false}), 3, false),
            (json!({"age": 3, "matchesPrefix": ["x", "logs/"]}), 3, true),
            (json!({"matchesSuffix": [".csv"]}), 3, false),
            (json!({"createdBefore": "2023-11-14"}), 3, false),
            (json!({"createdBefore": "2023-11-15"}), 3, true),
            (json!({"daysSinceCustomTime": 0}), 3, false),
            (json!({"daysSinceNoncurrentTime": 0}), 3, false),
            (json!({"sizeAboveBytes": "4", "sizeBelowBytes": "6"}), 0, true),
            (json!({"sizeAboveBytes": 5}), 0, false),
            (json!({"matchesStorageClass": ["NEARLINE"]}), 0, false),
            (json!({"age": 0, "matchesPattern": "*"}), 9, false),
        ] {
            let rules = rules(json!([{"action": delete, "condition": condition}]));
            let expected = holds.then_some(LifecycleAction::Delete);
            assert_eq!(action(&rules, &object, 0, days), expected, "{condition}");
        }
    }

    #[test]
    fn numbers_of_days_and_versions_may_be_texts() {
        let condition: Condition = serde_json::from_value(json!({
            "age": "7", "daysSinceCustomTime": "8", "daysSinceNoncurrentTime": 9, "numNewerVersions": null
        }))
        .expect("a condition");
        assert_eq!((condition.age, condition.days_since_custom_time), (Some(7), Some(8)));
        assert_eq!((condition.days_since_noncurrent_time, condition.num_newer_versions), (Some(9), None));
        let shown = serde_json::to_value(&condition).expect("JSON");
        assert_eq!(
            (&shown["age"], &shown["daysSinceCustomTime"]),
            (&json!(7), &json!(8)),
            "shown as numbers"
        );
        let row = postcard::to_allocvec(&condition).expect("a row");
        assert_eq!(postcard::from_bytes(&row), Ok(condition));
        for age in [json!("seven"), json!("-1"), json!("4294967296"), json!(1.5), json!(true)] {
            assert!(serde_json::from_value::<Condition>(json!({ "age": age })).is_err(), "{age}");
        }
    }

    #[test]
    fn older_generations_are_counted() {
        let mut old = generation(BORN);
        old.state = State::Noncurrent(old.created.plus_seconds(DAY));
        let rules = rules(json!([
            {"action": {"type": "Delete"}, "condition": {"numNewerVersions": 2, "daysSinceNoncurrentTime": 1}}
        ]));
        assert_eq!(action(&rules, &old, 1, 9), None);
        assert_eq!(action(&rules, &old, 2, 1), None);
        assert_eq!(action(&rules, &old, 2, 2), Some(LifecycleAction::Delete));
        old.state = State::SoftDeleted { at: old.created, hard_delete: old.created, noncurrent: None };
        assert_eq!(action(&rules, &old, 2, 9), None);
    }

    #[test]
    fn deletion_wins_and_then_the_coldest_class() {
        let mut object = generation(BORN);
        let set = |class: &str, age| {
            let action = json!({"type": "SetStorageClass", "storageClass": class});
            json!({"action": action, "condition": {"age": age}})
        };
        let delete = json!({"action": {"type": "Delete"}, "condition": {"age": 9}});
        let rules = rules(json!([set("ARCHIVE", 5), set("NEARLINE", 1), delete]));
        let class = |class| Some(LifecycleAction::SetStorageClass(class));
        assert_eq!(action(&rules, &object, 0, 1), class(StorageClass::Nearline));
        assert_eq!(action(&rules, &object, 0, 5), class(StorageClass::Archive));
        assert_eq!(action(&rules, &object, 0, 9), Some(LifecycleAction::Delete));
        object.storage_class = StorageClass::Coldline;
        assert_eq!(action(&rules, &object, 0, 1), None);
    }

    #[test]
    fn uploads_are_given_up_by_their_age() {
        let abort = json!({"type": "AbortIncompleteMultipartUpload"});
        let rules = rules(json!([{"action": abort, "condition": {"age": 2}}]));
        let begun = Micros::new(0);
        assert!(!rules.aborts_upload("a", begun, begun.plus_seconds(DAY)));
        assert!(rules.aborts_upload("a", begun, begun.plus_seconds(2 * DAY)));
        assert_eq!(rules.check(), Ok(()));
    }

    #[test]
    fn wrong_rules_are_refused() {
        for rule in [
            json!({"action": {"type": "Burn"}, "condition": {"age": 1}}),
            json!({"action": {}, "condition": {"age": 1}}),
            json!({"action": {"type": "Delete"}, "condition": {}}),
            json!({"action": {"type": "SetStorageClass"}, "condition": {"age": 1}}),
            json!({"action": {"type": "Delete"}, "condition": {"createdBefore": "soon"}}),
            json!({"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"isLive": true}}),
        ] {
            let error = rules(json!([rule])).check().expect_err("a wrong rule");
            assert_eq!(error.kind.status(), 400, "{rule}");
        }
    }
}
