//! Moves of objects: in every order of their steps, with crashes and competing writers, readers see each move whole or
//! not at all.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use rangehold_map::Timestamp;
use rangehold_map::key::ObjectRow;
use rangehold_protocol::object::bucket::{Bucket, BucketParameters};
use rangehold_protocol::object::checksum::Crc32c;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::generation::{Content, Draft, Head, Intent};
use rangehold_protocol::object::intent::{Begin, Commit, Decided, Decision, End, Forget, Settle};
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::write::{Create, Judge, Name, Payload, Refusal, Verdict};

const SOURCE: &str = "source";
const TARGET: &str = "target";

/// The rows of a bucket, and a clock for stamps.
struct Store {
    bucket: Bucket,
    rows: BTreeMap<Vec<u8>, Bytes>,
    now: i64,
}

impl Store {
    fn new() -> Self {
        let body = serde_json::json!({"name": "bucket", "softDeletePolicy": {"retentionDurationSeconds": 0}});
        let body = body.as_object().expect("an object");
        let bucket = Bucket::insert("project", body, BucketParameters::default(), Micros::new(1_000_000));
        Self { bucket: bucket.expect("a bucket"), rows: BTreeMap::new(), now: 2_000_000 }
    }

    /// What the engine does with a judge: it reads, judges, and applies.
    fn write<T>(
        &mut self,
        keys: &[Vec<u8>],
        judge: impl Fn(&[Option<Bytes>], Timestamp) -> Verdict<T>,
    ) -> Result<T, Refusal> {
        self.now += 1;
        let rows: Vec<Option<Bytes>> = keys.iter().map(|key| self.rows.get(key).cloned()).collect();
        let out = judge(&rows, Micros::new(self.now).timestamp())?;
        for (key, value) in out.changes {
            match value {
                Some(value) => self.rows.insert(key, value.into()),
                None => self.rows.remove(&key),
            };
        }
        Ok(out.answer)
    }

    /// What a reader sees at a name.
    fn seen(&self, name: &str) -> Option<Bytes> {
        let row = |name: &str, row: &ObjectRow<'_>| {
            self.rows.get(&Name { bucket: &self.bucket, name }.key(row)).cloned()
        };
        let head = Head::decode(&row(name, &ObjectRow::Head)?).expect("a head");
        if let Some(intent) = head.intent {
            let decided = row(&intent.target, &ObjectRow::Outcome(intent.id.into()));
            let decided = decided.map(|row| Decided::decode(&row).expect("a decision").decision);
            if decided == Some(Decision::Committed) {
                return None;
            }
        }
        match Content::decode(&row(name, &ObjectRow::Content(head.live.id))?).expect("a content") {
            Content::Inline(bytes) => Some(bytes),
            Content::Extents(_) => panic!("this test writes small objects"),
        }
    }

    fn create(&mut self, name: &str, bytes: &Bytes, commits: Option<&str>) -> Result<(), Refusal> {
        let bucket = self.bucket.clone();
        let payload = Payload::new(&Content::Inline(bytes.clone()), Crc32c::of(bytes), None, "upload");
        let create = Create {
            to: Name { bucket: &bucket, name },
            draft: &Draft::default(),
            conditions: &Conditions::default(),
            payload: &payload,
            owner: "user-a@example.com",
            ends_upload: None,
            also: &Vec::new(),
        };
        match commits {
            None => self.write(&create.keys(), |rows, stamp| create.judge(rows, stamp)).map(drop),
            Some(id) => {
                let commit = Commit { create, id };
                self.write(&commit.keys(), |rows, stamp| commit.judge(rows, stamp)).map(drop)
            }
        }
    }

    fn begin(&mut self, id: &str) -> Result<(), Refusal> {
        let bucket = self.bucket.clone();
        let intent = Intent { id: id.to_owned(), target: TARGET.to_owned() };
        let conditions = Conditions::default();
        let of = Name { bucket: &bucket, name: SOURCE };
        let begin = Begin { of, generation: None, conditions: &conditions, intent: &intent };
        self.write(&begin.keys(), |rows, stamp| begin.judge(rows, stamp)).map(drop)
    }

    fn settle(&mut self, id: &str) -> Decision {
        let bucket = self.bucket.clone();
        let settle = Settle { at: Name { bucket: &bucket, name: TARGET }, id };
        self.write(&settle.keys(), |rows, stamp| settle.judge(rows, stamp))
            .expect("a decision can always be found")
    }

    fn end(&mut self, id: &str, decision: Decision) {
        let bucket = self.bucket.clone();
        let end = End { of: Name { bucket: &bucket, name: SOURCE }, id, decision };
        self.write(&end.keys(), |rows, stamp| end.judge(rows, stamp)).expect("an intent can always be ended");
    }

    fn forget(&mut self, id: &str) {
        let bucket = self.bucket.clone();
        let forget = Forget { at: Name { bucket: &bucket, name: TARGET }, id };
        self.write(&forget.keys(), |rows, stamp| forget.judge(rows, stamp))
            .expect("a row can always be removed");
    }

    fn intent(&self) -> Option<Intent> {
        let key = Name { bucket: &self.bucket, name: SOURCE }.key(&ObjectRow::Head);
        self.rows.get(&key).and_then(|row| Head::decode(row).expect("a head").intent)
    }
}

/// A process that moves the source, between two of its steps. A crash begins it again with a new id.
#[derive(Debug, Clone, PartialEq)]
enum Mover {
    Begin,
    Commit(Bytes),
    End(Decision),
    Forget,
}

/// A process that writes the source, between two of its steps.
#[derive(Debug, Clone, PartialEq)]
enum Writer {
    Write,
    Settle(Intent),
    End(Intent, Decision),
}

/// All that happens, and what readers must see: it changes only with a write that took place, and with a commit.
struct World {
    store: Store,
    movers: Vec<(Mover, u32)>,
    writer: Writer,
    source: Option<Bytes>,
    target: Option<Bytes>,
    written: u32,
}

impl World {
    fn new() -> Self {
        let movers = vec![(Mover::Begin, 0); 2];
        Self { store: Store::new(), movers, writer: Writer::Write, source: None, target: None, written: 0 }
    }

    fn advance_mover(&mut self, at: usize) {
        let (mover, round) = self.movers[at].clone();
        let id = format!("{at}-{round}");
        let next = match mover {
            Mover::Begin => {
                // The bytes are read under the intent, so they are those that will go.
                match self.store.begin(&id) {
                    Ok(()) => Mover::Commit(self.store.seen(SOURCE).expect("the source is live")),
                    Err(_) => Mover::Begin,
                }
            }
            Mover::Commit(bytes) => match self.store.create(TARGET, &bytes, Some(&id)) {
                Ok(()) => {
                    assert_eq!(self.source.take(), Some(bytes.clone()), "other bytes were moved");
                    self.target = Some(bytes);
                    Mover::End(Decision::Committed)
                }
                Err(_) => Mover::End(Decision::Undone),
            },
            Mover::End(decision) => {
                self.store.end(&id, decision);
                if decision == Decision::Committed { Mover::Forget } else { Mover::Begin }
            }
            Mover::Forget => {
                self.store.forget(&id);
                Mover::Begin
            }
        };
        let round = if next == Mover::Begin { round + 1 } else { round };
        self.movers[at] = (next, round);
    }

    fn crash_mover(&mut self, at: usize) {
        let round = self.movers[at].1;
        self.movers[at] = (Mover::Begin, round + 1);
    }

    fn advance_writer(&mut self) {
        self.writer = match self.writer.clone() {
            Writer::Write => {
                let bytes = Bytes::from(format!("content {}", self.written));
                match self.store.create(SOURCE, &bytes, None) {
                    Ok(()) => {
                        self.written += 1;
                        self.source = Some(bytes);
                        Writer::Write
                    }
                    Err(Refusal::Intent(intent)) => Writer::Settle(intent),
                    Err(Refusal::Refused(error)) => panic!("a write without conditions was refused: {error}"),
                }
            }
            Writer::Settle(intent) => {
                let decision = self.store.settle(&intent.id);
                Writer::End(intent, decision)
            }
            Writer::End(intent, decision) => {
                self.store.end(&intent.id, decision);
                Writer::Write
            }
        };
    }

    fn check(&self) {
        assert_eq!(self.store.seen(SOURCE), self.source, "the source");
        assert_eq!(self.store.seen(TARGET), self.target, "the target");
    }
}

#[test]
fn a_move_that_is_alone_leaves_no_row_behind() {
    let mut world = World::new();
    world.advance_writer();
    for _ in 0..4 {
        world.advance_mover(0);
        world.check();
    }
    assert_eq!(world.target.as_deref(), Some(b"content 0".as_slice()));
    assert_eq!(world.store.rows.len(), 2, "the head and the content of the target");
}

#[test]
fn a_late_commit_of_a_change_that_was_undone_fails() {
    let mut world = World::new();
    world.advance_writer();
    world.advance_mover(0);
    for _ in 0..4 {
        world.advance_writer();
        world.check();
    }
    world.advance_mover(0);
    assert_eq!(world.movers[0].0, Mover::End(Decision::Undone));
    assert_eq!(world.source.as_deref(), Some(b"content 1".as_slice()));
    world.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn readers_see_each_move_whole_or_not_at_all(events in prop::collection::vec(0_u8..12, 1..120)) {
        let mut world = World::new();
        for event in events {
            match event {
                0..=3 => world.advance_mover(0),
                4..=6 => world.advance_mover(1),
                7 => world.crash_mover(0),
                8 => world.crash_mover(1),
                _ => world.advance_writer(),
            }
            world.check();
        }
        // A last request settles what crashed processes left.
        if let Some(intent) = world.store.intent() {
            let decision = world.store.settle(&intent.id);
            world.store.end(&intent.id, decision);
        }
        prop_assert_eq!(world.store.intent(), None);
        world.check();
    }
}
