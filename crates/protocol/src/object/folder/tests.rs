use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;
use rangehold_map::key::ObjectKey;
use rangehold_map::{BucketId, Timestamp};
use serde_json::json;

use super::*;
use crate::object::bucket::BucketParameters;
use crate::object::condition::Conditions;
use crate::object::write::{Judge, Refusal};

/// The rows of the folders of one bucket.
struct Store {
    bucket: Bucket,
    rows: BTreeMap<Vec<u8>, Bytes>,
    stamp: i64,
}

impl Store {
    fn new() -> Self {
        let body = json!({
            "name": "photos",
            "hierarchicalNamespace": {"enabled": true},
            "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": true}},
        });
        let body = body.as_object().expect("an object");
        let bucket = Bucket::insert(BucketId(7), "p", body, BucketParameters::default(), Micros::new(1));
        Self { bucket: bucket.expect("a bucket"), rows: BTreeMap::new(), stamp: 1 }
    }

    fn write<J: Judge>(&mut self, judge: &J) -> Result<J::Answer, ErrorKind> {
        let rows: Vec<_> = judge.keys().iter().map(|key| self.rows.get(key).cloned()).collect();
        self.stamp += 1;
        match judge.judge(&rows, Timestamp::from_ticks(self.stamp * Timestamp::TICKS_PER_SECOND)) {
            Ok(outcome) => {
                for (key, value) in outcome.changes {
                    match value {
                        Some(value) => self.rows.insert(key, value.into()),
                        None => self.rows.remove(&key),
                    };
                }
                Ok(outcome.answer)
            }
            Err(Refusal::Refused(error)) => Err(error.kind),
            Err(Refusal::Intent(intent)) => panic!("folders have no intents: {intent:?}"),
        }
    }

    fn row(&self, row: &ObjectRow<'_>) -> Option<&Bytes> {
        let partition = rangehold_map::PartitionPrefix::object(self.bucket.id, "");
        self.rows.get(&partition.object_row(row))
    }

    fn seen(&self) -> u64 {
        Tree::read(self.row(&ObjectRow::Tree)).expect("a tree").changes
    }

    /// The ids of the folders of a whole name that exist.
    fn way(&self, folders: &[&str]) -> Vec<u64> {
        let mut ids = Vec::new();
        for name in folders {
            let parent = ids.last().copied().unwrap_or(ROOT);
            match self.row(&name_row(parent, name)) {
                Some(row) => ids.push(decode_id(row).expect("an id")),
                None => break,
            }
        }
        ids
    }

    fn make(&mut self, whole: &str) {
        let (folders, _) = folders_of(whole);
        let (ids, bucket) = (self.way(&folders), self.bucket.clone());
        if ids.len() < folders.len() {
            let (seen, parent) = (self.seen(), ids.last().copied().unwrap_or(ROOT));
            let make = Make { bucket: &bucket, seen, parent, names: &folders[ids.len()..] };
            assert!(self.write(&make).expect("it is not refused").is_some());
        }
    }

    /// Renames, as a request does that has seen this change. `None` if its look is too old.
    fn rename(&mut self, from: &str, to: &str, seen: u64) -> Result<Option<Folder>, ErrorKind> {
        let bucket = self.bucket.clone();
        let ((source, _), (target, _)) = (folders_of(from), folders_of(to));
        let (ids, above) = (self.way(&source), self.way(&target[..target.len() - 1]));
        if ids.len() < source.len() || above.len() + 1 < target.len() {
            return Err(ErrorKind::NotFound);
        }
        let (id, parent) = (ids[ids.len() - 1], ids.iter().rev().nth(1).copied().unwrap_or(ROOT));
        let from = Place { whole: from, parent, name: source[source.len() - 1] };
        let parent = above.last().copied().unwrap_or(ROOT);
        let to = Place { whole: to, parent, name: target[target.len() - 1] };
        let conditions = Conditions::default();
        self.write(&Rename { bucket: &bucket, seen, id, from, to, above: &above, conditions: &conditions })
    }

    fn remove(&mut self, whole: &str, seen: u64) -> Result<Option<()>, ErrorKind> {
        let bucket = self.bucket.clone();
        let (folders, _) = folders_of(whole);
        let ids = self.way(&folders);
        if ids.len() < folders.len() {
            return Err(ErrorKind::NotFound);
        }
        let parent = ids.iter().rev().nth(1).copied().unwrap_or(ROOT);
        let at = Place { whole, parent, name: folders[folders.len() - 1] };
        let (id, conditions) = (ids[ids.len() - 1], Conditions::default());
        self.write(&Remove { bucket: &bucket, seen, id, at, conditions: &conditions })
    }

    /// The whole names of all folders, by the rows of their names; checked against the rows by id.
    fn names(&self) -> BTreeSet<String> {
        let mut folders = BTreeMap::new();
        for (key, row) in &self.rows {
            if let ObjectRow::Folder(id) = ObjectKey::decode(key).expect("a key").row {
                folders.insert(id, Folder::decode(row).expect("a folder"));
            }
        }
        let mut names = BTreeSet::new();
        for (id, folder) in &folders {
            let row = self.row(&name_row(folder.parent, &folder.name)).expect("a folder has a name");
            assert_eq!(decode_id(row), Ok(*id));
            let below = folders.values().filter(|other| other.parent == *id).count();
            assert_eq!(folder.folders, below as u64, "{folder:?}");
            let (mut whole, mut parent) = (folder.name.clone(), folder.parent);
            while parent != ROOT {
                whole.insert_str(0, &folders[&parent].name);
                parent = folders[&parent].parent;
            }
            names.insert(whole);
        }
        let tree = usize::from(self.row(&ObjectRow::Tree).is_some());
        assert_eq!(self.rows.len(), 2 * folders.len() + tree, "no other row is left");
        names
    }
}

#[test]
fn every_slash_of_a_name_ends_a_folder() {
    for (whole, folders, rest) in [
        ("a.txt", &[][..], "a.txt"),
        ("a/b/c.txt", &["a/", "b/"], "c.txt"),
        ("a/", &["a/"], ""),
        ("//a", &["/", "/"], "a"),
    ] {
        assert_eq!(folders_of(whole), (folders.to_vec(), rest), "{whole}");
    }
    assert_eq!(["a/", "a/b/", "a//", "/"].map(parent_of), ["", "a/", "a/", ""]);
    assert_eq!(stored_parts(&stored_name(17, "x/y")), Some((17, "x/y")));
    assert_eq!((stored_parts("a/b"), stored_parts("0000000000000011")), (None, None));
}

#[test]
fn a_rename_keeps_the_id_and_with_it_all_that_lies_in_the_folder() {
    let mut store = Store::new();
    store.make("a/b/c/");
    store.make("d/");
    let before = store.way(&["a/", "b/", "c/"]);
    assert_eq!(store.rename("a/b/", "d/e/", 0).map(|folder| folder.expect("seen").metageneration), Ok(2));
    let after = store.way(&["d/", "e/", "c/"]);
    assert_eq!(after[1..], before[1..]);
    assert_eq!(Vec::from_iter(store.names()), ["a/", "d/", "d/e/", "d/e/c/"]);
    assert_eq!(store.rename("d/", "d/e/x/", 1), Err(ErrorKind::Invalid));
    assert_eq!(store.rename("a/", "d/", 1), Err(ErrorKind::Conflict));
    assert_eq!(
        (store.remove("d/e/", 1), store.remove("d/e/c/", 1)),
        (Err(ErrorKind::BucketRule), Ok(Some(())))
    );
    assert_eq!(store.seen(), 2);
}

#[test]
fn a_change_that_has_not_seen_the_last_one_changes_nothing() {
    let mut store = Store::new();
    store.make("a/");
    store.make("b/");
    // The change 1 is announced, and another request counts it as used before it is made.
    let bucket = store.bucket.clone();
    store.write(&Raise { bucket: &bucket, to: 1 }).expect("it is never refused");
    let rows = store.rows.clone();
    assert_eq!((store.rename("a/", "c/", 0), store.remove("b/", 0)), (Ok(None), Ok(None)));
    let make = Make { bucket: &bucket, seen: 0, parent: ROOT, names: &["x/"] };
    assert_eq!(store.write(&make), Ok(None));
    let there = Make { bucket: &bucket, seen: 1, parent: ROOT, names: &["a/"] };
    assert_eq!(store.write(&there), Ok(None));
    assert_eq!(store.rows, rows);
    assert!(store.rename("a/", "c/", 1).expect("not refused").is_some());
}

/// What the model says of a rename.
fn renamed(names: &BTreeSet<String>, from: &str, to: &str) -> Option<BTreeSet<String>> {
    let parent = parent_of(to);
    let allowed = names.contains(from)
        && !names.contains(to)
        && !to.starts_with(from)
        && (parent.is_empty() || names.contains(parent));
    allowed.then(|| {
        names
            .iter()
            .map(|name| name.strip_prefix(from).map_or(name.clone(), |rest| format!("{to}{rest}")))
            .collect()
    })
}

fn any_folder() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a/", "b/", "a-b/", "/"]), 1..4)
        .prop_map(|names| names.concat())
}

proptest! {
    #[test]
    fn folders_are_what_a_set_of_whole_names_would_be(
        steps in prop::collection::vec((0..4u8, any_folder(), any_folder()), 1..40)
    ) {
        let (mut store, mut names) = (Store::new(), BTreeSet::<String>::new());
        for (step, one, other) in steps {
            let seen = store.seen();
            match step {
                0 | 1 => {
                    store.make(&one);
                    let ends = one.match_indices('/').map(|(at, _)| one[..=at].to_owned());
                    names.extend(ends);
                }
                2 => match renamed(&names, &one, &other) {
                    Some(after) => {
                        prop_assert!(matches!(store.rename(&one, &other, seen), Ok(Some(_))));
                        names = after;
                    }
                    None => prop_assert!(store.rename(&one, &other, seen).is_err(), "{one} {other}"),
                },
                _ => {
                    let below = names.iter().filter(|name| name.starts_with(&one)).count();
                    let removed = store.remove(&one, seen);
                    prop_assert_eq!(removed == Ok(Some(())), below == 1);
                    if below == 1 {
                        names.remove(&one);
                    }
                }
            }
            prop_assert_eq!(&store.names(), &names);
        }
    }
}
