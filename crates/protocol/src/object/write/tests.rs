//! The judges, over the rows of one name in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rangehold_map::blob::{BlobId, Extent};
use rangehold_map::key::{BucketId, ObjectKey};
use serde_json::json;

use super::*;
use crate::object::bucket::{BodyMode, BucketParameters};
use crate::object::checksum::Crc32c;
use crate::object::condition::Conditions;
use crate::object::generation::tests::intent;
use crate::object::generation::{Content, Draft};
use crate::object::upload::{Progress, Session, UploadKind};

/// The rows of one name, and the time of the last write.
struct Store {
    bucket: Bucket,
    rows: BTreeMap<Vec<u8>, Bytes>,
    micros: i64,
    released: Vec<u128>,
}

const NAME: &str = "a/b";

impl Store {
    fn new(settings: serde_json::Value) -> Self {
        let mut body = json!({"name": "bucket", "softDeletePolicy": {"retentionDurationSeconds": 0}});
        crate::object::merge::merge_patch(&mut body, &settings);
        let parameters = BucketParameters { enable_object_retention: true, ..BucketParameters::default() };
        let body = body.as_object().expect("an object");
        let bucket = Bucket::insert(BucketId(1), "p", body, parameters, Micros::new(1)).expect("a bucket");
        Self { bucket, rows: BTreeMap::new(), micros: 1_700_000_000_000_000, released: Vec::new() }
    }

    /// Applies what a judge decides, as the engine does.
    fn write<T>(
        &mut self,
        keys: &[Vec<u8>],
        judge: impl FnOnce(&[Option<Bytes>], Timestamp) -> Verdict<T>,
    ) -> Result<T, u16> {
        self.micros += 1;
        let rows: Vec<_> = keys.iter().map(|key| self.rows.get(key).cloned()).collect();
        let outcome =
            judge(&rows, Micros::new(self.micros).timestamp()).map_err(|refusal| match refusal {
                Refusal::Refused(error) => error.kind.status(),
                Refusal::Intent(_) => 0,
            })?;
        for (key, value) in outcome.changes {
            assert!(key.starts_with(self.name().partition().as_bytes()), "all rows are of the name");
            match value {
                Some(value) => drop(self.rows.insert(key, value.into())),
                None => drop(self.rows.remove(&key)),
            }
        }
        self.released.extend(outcome.releases.iter().map(|(blob, _)| blob.0));
        Ok(outcome.answer)
    }

    fn name(&self) -> Name<'_> {
        Name { bucket: &self.bucket, name: NAME }
    }

    fn create(&mut self, conditions: &Conditions, blob: Option<u128>) -> Result<Generation, u16> {
        let content = match blob {
            None => Content::Inline(Bytes::from_static(b"hello")),
            Some(blob) => {
                let extent = Extent { blob: BlobId(blob), first: 0, chunk_bytes: 9, bytes: 9, crc32c: 0 };
                Content::Extents(vec![extent])
            }
        };
        self.create_of(&content, conditions, None)
    }

    fn create_of(
        &mut self,
        content: &Content,
        conditions: &Conditions,
        ends_upload: Option<&str>,
    ) -> Result<Generation, u16> {
        let bucket = self.bucket.clone();
        let payload = Payload::new(content, Crc32c::of(b"hello"), None, "upload");
        let (draft, also) = (Draft::default(), RowChanges::new());
        let to = Name { bucket: &bucket, name: NAME };
        let create = Create {
            to,
            draft: &draft,
            conditions,
            payload: &payload,
            owner: "user-a",
            ends_upload,
            also: &also,
        };
        self.write(&create.keys(), |rows, stamp| create.judge(rows, stamp))
    }

    fn patch(&mut self, generation: Option<u64>, body: serde_json::Value) -> Result<Generation, u16> {
        let bucket = self.bucket.clone();
        let body = body.as_object().expect("an object").clone();
        let edit =
            Edit::Body { body: &body, mode: BodyMode::Patch { whole: &[] }, acl: None, may_override: false };
        let of = Name { bucket: &bucket, name: NAME };
        let change = Change { of, generation, conditions: &Conditions::default(), edit };
        self.write(&change.keys(), |rows, stamp| change.judge(rows, stamp))
    }

    fn delete(&mut self, generation: Option<u64>) -> Result<(), u16> {
        let bucket = self.bucket.clone();
        let of = Name { bucket: &bucket, name: NAME };
        let delete = Delete { of, generation, conditions: &Conditions::default() };
        self.write(&delete.keys(), |rows, stamp| delete.judge(rows, stamp))
    }

    fn restore(&mut self, generation: u64) -> Result<Generation, u16> {
        let bucket = self.bucket.clone();
        let of = Name { bucket: &bucket, name: NAME };
        let generation = ObjectGeneration(generation);
        let restore =
            Restore { of, generation, token: None, conditions: &Conditions::default(), copies_acl: true };
        self.write(&restore.keys(), |rows, stamp| restore.judge(rows, stamp))
    }

    /// The rows, as letters: `h` a head, `c` a content, `n` a noncurrent and `s` a soft-deleted generation, `u` an
    /// upload, `a` an answer.
    fn shape(&self) -> String {
        let letter = |(key, value): (&Vec<u8>, &Bytes)| match ObjectKey::decode(key)
            .expect("a key of an object")
            .row
        {
            ObjectRow::Head => 'h',
            ObjectRow::Content(_) => 'c',
            ObjectRow::NotLive(_) => match Generation::decode(value).expect("a generation").state {
                State::Noncurrent(_) => 'n',
                State::SoftDeleted { .. } => 's',
                State::Live => panic!("a live generation has the head"),
            },
            ObjectRow::Upload(_) => 'u',
            ObjectRow::Answer(_) => 'a',
            other => panic!("nobody writes {other:?} here"),
        };
        self.rows.iter().map(letter).collect()
    }
}

fn any() -> Conditions {
    Conditions::default()
}

#[test]
fn an_object_that_is_replaced_or_deleted_leaves_nothing() {
    let mut store = Store::new(json!({}));
    let first = store.create(&any(), Some(1)).expect("created");
    let second = store.create(&any(), None).expect("replaced");
    assert!(second.id > first.id && second.metageneration == 1);
    assert_eq!((store.shape().as_str(), &store.released[..]), ("h", &[1][..]));
    assert_eq!(store.delete(Some(first.id.0)), Err(404));
    assert_eq!(store.delete(None), Ok(()));
    assert_eq!(store.delete(None), Err(404));
    assert_eq!(store.shape(), "");
}

#[test]
fn a_bucket_with_versions_keeps_them_until_they_are_deleted_by_number() {
    let mut store = Store::new(json!({"versioning": {"enabled": true}}));
    let first = store.create(&any(), Some(1)).expect("created");
    store.create(&any(), Some(2)).expect("replaced");
    assert_eq!(store.shape(), "hccn");
    assert_eq!(store.delete(None), Ok(()));
    assert_eq!((store.shape().as_str(), store.released.len()), ("ccnn", 0));
    let patched = store.patch(Some(first.id.0), json!({"contentType": "a/b"})).expect("an older one");
    assert_eq!((patched.metageneration, patched.id), (2, first.id));
    assert_eq!(store.delete(Some(first.id.0)), Ok(()));
    assert_eq!((store.shape().as_str(), &store.released[..]), ("cn", &[1][..]));
}

#[test]
fn a_soft_deleted_generation_is_restored_with_its_content() {
    let mut store = Store::new(json!({"softDeletePolicy": {"retentionDurationSeconds": 604_800}}));
    let first = store.create(&any(), Some(1)).expect("created");
    store.delete(None).expect("deleted");
    assert_eq!(store.shape(), "cs");
    assert_eq!(store.delete(Some(first.id.0)), Err(404), "it is deleted already");
    store.create(&any(), None).expect("another one");
    let restored = store.restore(first.id.0).expect("restored");
    assert!(restored.id > first.id && restored.blobs == first.blobs);
    assert_eq!((store.shape().as_str(), store.released.len()), ("hcs", 0));
    assert_eq!(store.restore(first.id.0), Err(404));
    assert_eq!(store.restore(restored.id.0), Err(412), "it is live");
    // After the time of the policy the other one can no longer be restored, and is removed.
    store.micros += 604_800_000_001;
    let bucket = store.bucket.clone();
    let of = Name { bucket: &bucket, name: NAME };
    let dead: Vec<_> = store
        .rows
        .keys()
        .filter_map(|key| match ObjectKey::decode(key).expect("a key").row {
            ObjectRow::NotLive(generation) => Some(generation),
            _ => None,
        })
        .collect();
    assert_eq!(store.restore(dead[0].0), Err(412));
    let expire = Expire { of, generation: dead[0] };
    assert_eq!(store.write(&expire.keys(), |rows, stamp| expire.judge(rows, stamp)), Ok(true));
    assert_eq!(store.write(&expire.keys(), |rows, stamp| expire.judge(rows, stamp)), Ok(false));
    assert_eq!(store.shape(), "hc");
}

#[test]
fn held_and_retained_objects_stay() {
    let mut store = Store::new(json!({"retentionPolicy": {"retentionPeriod": "10"}}));
    store.create(&any(), None).expect("created");
    assert_eq!((store.delete(None), store.create(&any(), None).map(drop)), (Err(403), Err(403)));
    store.micros += 10_000_000;
    store.patch(None, json!({"temporaryHold": true})).expect("held");
    assert_eq!(store.delete(None), Err(403));
    store.patch(None, json!({"temporaryHold": false})).expect("free");
    assert_eq!(store.delete(None), Ok(()));
}

#[test]
fn conditions_are_checked_on_the_live_generation() {
    let mut store = Store::new(json!({}));
    let wanted =
        |generation_match| Conditions { generation_match: Some(generation_match), ..Conditions::default() };
    assert_eq!(store.create(&wanted(5), None).map(drop), Err(412));
    let first = store.create(&wanted(0), None).expect("there was none");
    assert_eq!(store.create(&wanted(0), None).map(drop), Err(412));
    assert!(store.create(&wanted(first.id.0), None).is_ok());
}

#[test]
fn lists_cannot_be_written_under_uniform_access() {
    let uniform = json!({"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": true}}});
    let mut store = Store::new(uniform);
    store.create(&any(), None).expect("created");
    let list = json!({"acl": [{"entity": "user-a@b", "role": "READER"}]});
    assert_eq!(store.patch(None, list).map(drop), Err(400));
    assert_eq!(store.patch(None, json!({"acl": []})).map(drop), Ok(()));
    let mut store = Store::new(json!({"iamConfiguration": {"publicAccessPrevention": "enforced"}}));
    store.create(&any(), None).expect("created");
    let public = json!({"acl": [{"entity": "allUsers", "role": "READER"}]});
    assert_eq!(store.patch(None, public).map(drop), Err(412));
}

fn session() -> Session {
    Session {
        kind: UploadKind::Resumable,
        begun: Micros::new(1),
        draft: Draft::default(),
        conditions: Conditions::default(),
        announced: Default::default(),
        owner: "user-a".to_owned(),
        progress: Progress::default(),
    }
}

fn begin(store: &mut Store) {
    let bucket = store.bucket.clone();
    let of = Name { bucket: &bucket, name: NAME };
    let begin = BeginUpload { of, upload: "u", session: &session() };
    store.write(&begin.keys(), |rows, stamp| begin.judge(rows, stamp)).expect("an upload");
}

#[test]
fn a_repeated_end_of_an_upload_gets_the_first_answer() {
    let mut store = Store::new(json!({}));
    let content = Content::Inline(Bytes::from_static(b"hello"));
    assert_eq!(store.create_of(&content, &any(), Some("u")).map(drop), Err(404));
    begin(&mut store);
    let first = store.create_of(&content, &any(), Some("u")).expect("finished");
    assert_eq!(store.shape(), "ha");
    store.create(&any(), None).expect("overwritten");
    let answered = Generation { bytes: None, ..first };
    assert_eq!(store.create_of(&content, &any(), Some("u")), Ok(answered));
}

#[test]
fn a_cancelled_upload_stays_cancelled_and_gives_its_blob_back() {
    let mut store = Store::new(json!({}));
    begin(&mut store);
    let bucket = store.bucket.clone();
    let of = Name { bucket: &bucket, name: NAME };
    let extent = Extent { blob: BlobId(7), first: 0, chunk_bytes: 9, bytes: 9, crc32c: 0 };
    let progress = Progress { bytes: 9, extents: vec![extent], ..Progress::default() };
    let save = SaveUpload { of, upload: "u", from: 0, progress: &progress };
    assert!(store.write(&save.keys(), |rows, stamp| save.judge(rows, stamp)).is_ok());
    let again = store.write(&save.keys(), |rows, stamp| save.judge(rows, stamp)).map(drop);
    assert_eq!(again, Err(503), "another request was first");
    let cancel = CancelUpload { of, upload: "u" };
    for _ in 0..2 {
        assert_eq!(store.write(&cancel.keys(), |rows, stamp| cancel.judge(rows, stamp)), Ok(()));
    }
    assert_eq!((store.shape().as_str(), &store.released[..]), ("a", &[7][..]));
    let content = Content::Inline(Bytes::new());
    assert_eq!(store.create_of(&content, &any(), Some("u")).map(drop), Err(499));
}

#[test]
fn a_change_of_two_names_is_resolved_first() {
    let mut store = Store::new(json!({}));
    let live = store.create(&any(), None).expect("created");
    let intent = intent();
    let key = store.name().key(&ObjectRow::Head);
    store.rows.insert(key, Head { live, intent: Some(intent) }.encode().into());
    assert_eq!(store.create(&any(), None).map(drop), Err(0));
    assert_eq!((store.delete(None), store.patch(None, json!({})).map(drop)), (Err(0), Err(0)));
}

proptest! {
    /// After any writes every generation has its content, every content its generation, few bytes are in the row of their
    /// generation, and each blob that was written is either still used or was released once.
    #[test]
    fn contents_and_generations_belong_together(
        versions: bool,
        soft_deletes: bool,
        steps in proptest::collection::vec((0u8..5, 0usize..6), 1..20),
    ) {
        let seconds = if soft_deletes { 604_800 } else { 0 };
        let policy = json!({"retentionDurationSeconds": seconds});
        let mut store = Store::new(json!({"versioning": {"enabled": versions}, "softDeletePolicy": policy}));
        let (mut numbers, mut written) = (Vec::new(), 0);
        let few = Bytes::from_static(b"hello");
        for (step, which) in steps {
            let number = numbers.get(which).copied();
            match (step, number) {
                (0, _) => {
                    written += 1;
                    numbers.push(store.create(&any(), Some(written)).expect("nothing forbids it").id.0);
                }
                (1, _) => numbers.push(store.create(&any(), None).expect("nothing forbids it").id.0),
                (2, _) => drop(store.delete(None)),
                (3, Some(_)) => drop(store.delete(number)),
                (4, Some(number)) => numbers.extend(store.restore(number).map(|restored| restored.id.0)),
                _ => {}
            }
            let mut used = Vec::new();
            let mut contents = 0;
            for (key, value) in &store.rows {
                let generation = match ObjectKey::decode(key).expect("a key").row {
                    ObjectRow::Head => Head::decode(value).expect("a head").live,
                    ObjectRow::NotLive(_) => Generation::decode(value).expect("a generation"),
                    _ => {
                        contents += 1;
                        continue;
                    }
                };
                let has_content = store.rows.contains_key(&store.name().key(&ObjectRow::Content(generation.id)));
                match generation.blobs {
                    Some(blobs) => {
                        prop_assert!(has_content && generation.bytes.is_none());
                        used.extend(blobs.blobs.iter().map(|blob| blob.0));
                    }
                    None => prop_assert!(!has_content && generation.bytes.as_ref() == Some(&few)),
                }
            }
            prop_assert_eq!(contents, used.len());
            used.extend(&store.released);
            used.sort_unstable();
            prop_assert_eq!(used, (1..=written).collect::<Vec<_>>());
        }
    }
}
