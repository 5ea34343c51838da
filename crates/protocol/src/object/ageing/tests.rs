//! Rows of a bucket in memory, and what is due.

use rangehold_map::Timestamp;
use rangehold_map::blob::{BlobId, Extent};
use rangehold_map::key::BucketId;
use serde_json::json;

use super::super::generation::tests::{generation, intent};
use super::*;
use crate::object::bucket::BucketParameters;
use crate::object::checksum::{Announced, Crc32c, Md5};
use crate::object::generation::{Content, Draft};
use crate::object::intent::Decision;
use crate::object::parts::Part;
use crate::object::upload::Progress;
use crate::object::write::{Judge, Name};

const BORN: u64 = 1_700_000_000_000_000;
const DAY: u64 = 24 * 3600;
const NAME: &str = "a/b";

fn bucket(rules: serde_json::Value) -> Bucket {
    let body = json!({"name": "bucket", "lifecycle": {"rule": rules}});
    let body = body.as_object().expect("an object");
    Bucket::insert(BucketId(1), "p", body, BucketParameters::default(), Micros::new(1)).expect("a bucket")
}

fn rule(action: &str, condition: serde_json::Value) -> serde_json::Value {
    json!({"action": {"type": action}, "condition": condition})
}

fn after(days: u64) -> Micros {
    Micros::new(BORN as i64).plus_seconds(days * DAY)
}

fn older(id: u64) -> (ObjectRow<'static>, Vec<u8>) {
    let mut older = generation(id);
    older.state = State::Noncurrent(after(0));
    (ObjectRow::NotLive(older.id), older.encode())
}

fn session(kind: UploadKind) -> Session {
    let extent =
        Extent { blob: BlobId(9), first: 0, chunk_bytes: 1 << 24, bytes: 5, crc32c: Crc32c::of(b"hello").0 };
    Session {
        kind,
        begun: after(0),
        draft: Draft::default(),
        conditions: Conditions::default(),
        announced: Announced::default(),
        owner: "user-a@example.com".to_owned(),
        progress: Progress { bytes: 5, extents: vec![extent], ..Progress::default() },
    }
}

fn part() -> Vec<u8> {
    let extents = session(UploadKind::Parts).progress.extents;
    Part { modified: after(0), md5: Md5([7; 16]), crc32c: Crc32c::of(b"hello"), extents }.encode()
}

/// What is due for these rows of one name after so many days.
fn due(bucket: &Bucket, rows: &[(ObjectRow<'_>, Vec<u8>)], days: u64) -> Vec<What> {
    let (mut ageing, mut due) = (Ageing::default(), Vec::new());
    for (row, value) in rows {
        let key = PartitionPrefix::object(bucket.id, NAME).object_row(row);
        ageing
            .visit(bucket, after(days), &key, &Bytes::copy_from_slice(value), &mut due)
            .expect("a row that can be read");
    }
    ageing.finish(bucket, after(days), &mut due);
    assert!(due.iter().all(|due| due.name == NAME));
    due.into_iter().map(|due| due.what).collect()
}

#[test]
fn a_rule_counts_the_live_generation_and_the_older_ones_that_come_after() {
    let bucket = bucket(json!([rule("Delete", json!({"numNewerVersions": 2, "isLive": false}))]));
    let head = Head { live: generation(BORN + 9), intent: None }.encode();
    let mut soft = generation(BORN + 4);
    soft.state = State::SoftDeleted { at: after(0), hard_delete: after(90), noncurrent: None };
    let rows = [
        (ObjectRow::Head, head),
        older(BORN + 1),
        older(BORN + 2),
        (ObjectRow::NotLive(soft.id), soft.encode()),
        older(BORN + 5),
    ];
    let deleted = |what: &What| match what {
        What::Delete(target) => target.generation(),
        other => panic!("{other:?}"),
    };
    let with_live: Vec<_> = due(&bucket, &rows, 1).iter().map(deleted).collect();
    assert_eq!(with_live, [Some(BORN + 1), Some(BORN + 2)]);
    let without: Vec<_> = due(&bucket, &rows[1..], 1).iter().map(deleted).collect();
    assert_eq!(without, [Some(BORN + 1)]);
}

#[test]
fn many_older_generations_are_decided_without_remembering_all_of_them() {
    let bucket = bucket(json!([rule("Delete", json!({"numNewerVersions": NEWER_VERSIONS_COUNTED_MAX}))]));
    let rows: Vec<_> = (0..NEWER_VERSIONS_COUNTED_MAX as u64 + 3).map(|n| older(BORN + n)).collect();
    assert_eq!(due(&bucket, &rows, 1).len(), 3);
}

#[test]
fn a_rule_counts_only_while_the_generation_is_as_it_saw_it() {
    let bucket = bucket(json!([rule("Delete", json!({"age": 3}))]));
    let mut live = generation(BORN);
    live.metageneration = 4;
    let rows = [(ObjectRow::Head, Head { live, intent: None }.encode())];
    assert_eq!(due(&bucket, &rows, 2), []);
    let due = due(&bucket, &rows, 3);
    let [What::Delete(target)] = due.as_slice() else { panic!("{due:?}") };
    let conditions = target.conditions();
    assert_eq!(target.generation(), None);
    assert_eq!((conditions.generation_match, conditions.metageneration_match), (Some(BORN), Some(4)));
}

#[test]
fn a_soft_deleted_generation_is_due_when_it_can_no_longer_be_restored() {
    let mut soft = generation(BORN);
    soft.state = State::SoftDeleted { at: after(0), hard_delete: after(7), noncurrent: None };
    let rows = [(ObjectRow::NotLive(soft.id), soft.encode())];
    assert_eq!(due(&bucket(json!([])), &rows, 6), []);
    assert_eq!(due(&bucket(json!([])), &rows, 7), [What::Expire(soft.id)]);
}

#[test]
fn uploads_are_due_after_a_week_or_when_a_rule_says_so_and_their_parts_with_them() {
    let upload = |kind| (ObjectRow::Upload("u".into()), session(kind).encode());
    let part = (ObjectRow::Part { upload: "u".into(), part: 3 }, part());
    let plain = bucket(json!([]));
    let ruled = bucket(json!([rule("AbortIncompleteMultipartUpload", json!({"age": 2}))]));
    let ended = [What::EndUpload("u".to_owned()), What::RemovePart("u".to_owned(), 3)];
    let in_parts = [upload(UploadKind::Parts), part.clone()];
    assert_eq!(due(&plain, &in_parts, 6), []);
    assert_eq!(due(&plain, &in_parts, 7), ended);
    assert_eq!(due(&ruled, &in_parts, 2), ended);
    assert_eq!(due(&ruled, &[upload(UploadKind::Resumable)], 6), []);
    assert_eq!(due(&plain, &[part], 0), ended[1..]);
    let answer = (ObjectRow::Answer("u".into()), Answer::Cancelled.encode(after(0)));
    assert_eq!(due(&plain, std::slice::from_ref(&answer), 6), []);
    assert_eq!(due(&plain, &[answer], 7), [What::RemoveAnswer("u".to_owned())]);
}

#[test]
fn a_change_that_nobody_carries_out_is_due_after_a_minute_and_one_that_was_undone_after_a_day() {
    let plain = bucket(json!([rule("Delete", json!({"age": 0}))]));
    let begun = Intent { begun: after(0), ..intent() };
    let head = Head { live: generation(BORN), intent: Some(begun.clone()) };
    let head = [(ObjectRow::Head, head.encode())];
    let decided = |decision| {
        let row = Decided { begun: after(0), decision, sources: Vec::new() };
        [(ObjectRow::Outcome("i".into()), row.encode())]
    };
    let settled = |rows: &[(ObjectRow<'_>, Vec<u8>)], seconds: u64| {
        let (mut ageing, mut due) = (Ageing::default(), Vec::new());
        let key = PartitionPrefix::object(plain.id, NAME).object_row(&rows[0].0);
        let now = after(0).plus_seconds(seconds);
        ageing
            .visit(&plain, now, &key, &Bytes::copy_from_slice(&rows[0].1), &mut due)
            .expect("a row that can be read");
        due.into_iter().map(|due| due.what).collect::<Vec<_>>()
    };
    let forget = [What::Forget("i".to_owned())];
    assert_eq!((settled(&head, 59), settled(&head, 60)), (vec![], vec![What::Settle(begun)]));
    let committed = decided(Decision::Committed);
    assert_eq!((settled(&committed, 59), &settled(&committed, 60)[..]), (vec![], &forget[..]));
    let undone = decided(Decision::Undone);
    assert_eq!((settled(&undone, DAY - 1), &settled(&undone, DAY)[..]), (vec![], &forget[..]));
}

#[test]
fn all_that_a_bucket_without_soft_delete_has_left_is_due_when_it_is_deleted() {
    let mut deleted = bucket(json!([]));
    deleted.deleted = Some((after(0), after(0)));
    let mut soft = generation(BORN);
    soft.state = State::SoftDeleted { at: after(0), hard_delete: after(90), noncurrent: None };
    let undone = Decided { begun: after(0), decision: Decision::Undone, sources: Vec::new() };
    let rows = [
        (ObjectRow::NotLive(soft.id), soft.encode()),
        (ObjectRow::Upload("u".into()), session(UploadKind::Resumable).encode()),
        (ObjectRow::Answer("v".into()), Answer::Cancelled.encode(after(0))),
        (ObjectRow::Outcome("i".into()), undone.encode()),
    ];
    let all = [
        What::Expire(soft.id),
        What::EndUpload("u".to_owned()),
        What::RemoveAnswer("v".to_owned()),
        What::Forget("i".to_owned()),
    ];
    assert_eq!(due(&deleted, &rows, 0), all);
}

#[test]
fn the_walk_passes_over_contents() {
    let bucket = bucket(json!([]));
    let key = PartitionPrefix::object(bucket.id, NAME);
    let content = key.object_row(&ObjectRow::Content(ObjectGeneration(BORN)));
    let past = Ok(Want::Seek(key.object_row(&ObjectRow::NotLive(ObjectGeneration(0)))));
    let visit =
        |key: &[u8], row: Bytes| Ageing::default().visit(&bucket, after(0), key, &row, &mut Vec::new());
    assert_eq!(visit(&content, Bytes::new()), past);
    let live = generation(BORN);
    let small = live.clone().with_few_bytes(&Content::Inline(Bytes::from_static(b"hello")));
    for (live, want) in [(live, past), (small, Ok(Want::Next))] {
        let head = Head { live, intent: None }.encode();
        assert_eq!(visit(&key.object_row(&ObjectRow::Head), head.into()), want);
    }
}

#[test]
fn the_judges_remove_only_what_is_over_as_the_rows_are_now() {
    let bucket = bucket(json!([]));
    let of = Name { bucket: &bucket, name: NAME };
    let at = |days| -> Timestamp { after(days).timestamp() };
    let row = |bytes: Vec<u8>| Some(Bytes::from(bytes));
    let end = EndUpload { of, upload: "u" };
    let rows = [row(session(UploadKind::Resumable).encode())];
    assert!(end.judge(&rows, at(6)).expect("a verdict").changes.is_empty());
    let ended = end.judge(&rows, at(7)).expect("a verdict");
    assert_eq!((ended.changes.len(), ended.releases.len(), ended.answer), (1, 1, true));
    assert!(!end.judge(&[None], at(7)).expect("a verdict").answer);

    let remove = RemovePart { of, upload: "u", number: 3 };
    let kept = remove.judge(&[row(part()), rows[0].clone()], at(0)).expect("a verdict");
    assert!(!kept.answer && kept.changes.is_empty() && kept.releases.is_empty());
    let removed = remove.judge(&[row(part()), None], at(0)).expect("a verdict");
    assert_eq!(removed.changes, [(remove.keys()[0].clone(), None)]);
    assert_eq!(removed.releases[0].0, BlobId(9));

    let answer = RemoveAnswer { of, upload: "u" };
    let rows = [row(Answer::Cancelled.encode(after(0)))];
    assert!(!answer.judge(&rows, at(6)).expect("a verdict").answer);
    assert_eq!(answer.judge(&rows, at(7)).expect("a verdict").changes.len(), 1);
}
