//! Moves of objects: in every order of their steps, with crashes and competing writers, readers see each move whole or
//! not at all.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use rangehold_map::key::{BucketId, ObjectRow};
use rangehold_protocol::object::bucket::{Bucket, BucketParameters};
use rangehold_protocol::object::checksum::Crc32c;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::generation::{Content, Draft, Generation, Head, Intent};
use rangehold_protocol::object::intent::{Begin, Commit, Decision, End, Forget, Settle, Standing};
use rangehold_protocol::object::limits::INTENT_SECONDS;
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::write::{Create, Judge, Name, Payload, Refusal};

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
        let bucket =
            Bucket::insert(BucketId(1), "project", body, BucketParameters::default(), Micros::new(1_000_000));
        Self { bucket: bucket.expect("a bucket"), rows: BTreeMap::new(), now: 2_000_000 }
    }

    /// What the engine does with a judge: it reads, judges, and applies.
    fn write<J: Judge>(&mut self, judge: &J) -> Result<J::Answer, Refusal> {
        self.now += 1;
        let rows: Vec<Option<Bytes>> = judge.keys().iter().map(|key| self.rows.get(key).cloned()).collect();
        let out = judge.judge(&rows, Micros::new(self.now).timestamp())?;
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
        let stored = row(name, &ObjectRow::Head)?;
        let head = Head::decode(&stored).expect("a head");
        if let Some(intent) = head.intent {
            let decided = row(&intent.target, &ObjectRow::Outcome(intent.id.as_str().into()));
            match Standing::of(&intent, decided.as_ref(), Some(&stored)).expect("a decision") {
                Standing::Stays => {}
                Standing::Gone(_) => return None,
                Standing::Changed => panic!("nothing came in between"),
            }
        }
        Some(head.live.bytes.expect("this test writes small objects"))
    }

    fn create(&mut self, name: &str, bytes: &Bytes, commits: Option<&Intent>) -> Result<(), Refusal> {
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
            None => self.write(&create).map(drop),
            Some(intent) => self.write(&Commit { create, intent, sources: &[SOURCE.to_owned()] }).map(drop),
        }
    }

    /// An intent of a change that begins now.
    fn new_intent(&self, id: &str) -> Intent {
        Intent { id: id.to_owned(), target: TARGET.to_owned(), begun: Micros::new(self.now), keeps: false }
    }

    fn begin(&mut self, seen: &Generation, intent: &Intent) -> Result<bool, Refusal> {
        let bucket = self.bucket.clone();
        self.write(&Begin { of: Name { bucket: &bucket, name: SOURCE }, seen, intent })
    }

    fn settle(&mut self, intent: &Intent) -> Decision {
        let bucket = self.bucket.clone();
        let settle = Settle { at: Name { bucket: &bucket, name: TARGET }, intent };
        self.write(&settle).expect("a decision can always be found").decision
    }

    fn end(&mut self, id: &str, decision: Decision) {
        let bucket = self.bucket.clone();
        let end = End { of: Name { bucket: &bucket, name: SOURCE }, id, decision };
        self.write(&end).expect("an intent can always be ended");
    }

    fn forget(&mut self, id: &str) -> bool {
        let bucket = self.bucket.clone();
        let forget = Forget { at: Name { bucket: &bucket, name: TARGET }, id };
        self.write(&forget).expect("a row can always be asked for")
    }

    fn source(&self) -> Option<Head> {
        let key = Name { bucket: &self.bucket, name: SOURCE }.key(&ObjectRow::Head);
        self.rows.get(&key).map(|row| Head::decode(row).expect("a head"))
    }

    fn intent(&self) -> Option<Intent> {
        self.source().and_then(|head| head.intent)
    }
}

/// A process that moves the source, between two of its steps. A crash begins it again with a new id.
#[derive(Debug, Clone, PartialEq)]
enum Mover {
    Read,
    /// With the source as it was read.
    Begin(Box<Generation>, Bytes),
    Commit(Intent, Bytes),
    End(Intent, Decision),
    Forget(Intent),
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
        let movers = vec![(Mover::Read, 0); 2];
        Self { store: Store::new(), movers, writer: Writer::Write, source: None, target: None, written: 0 }
    }

    fn advance_mover(&mut self, at: usize) {
        let (mover, round) = self.movers[at].clone();
        let id = format!("{at}-{round}");
        let next = match mover {
            Mover::Read => match self.store.source() {
                Some(Head { live, .. }) if self.store.seen(SOURCE).is_some() => {
                    Mover::Begin(Box::new(live), self.store.seen(SOURCE).expect("it was just there"))
                }
                _ => Mover::Read,
            },
            Mover::Begin(seen, bytes) => {
                let intent = self.store.new_intent(&id);
                match self.store.begin(&seen, &intent) {
                    Ok(true) => Mover::Commit(intent, bytes),
                    Ok(false) | Err(_) => Mover::Read,
                }
            }
            Mover::Commit(intent, bytes) => match self.store.create(TARGET, &bytes, Some(&intent)) {
                Ok(()) => {
                    assert_eq!(self.source.take(), Some(bytes.clone()), "other bytes were moved");
                    self.target = Some(bytes);
                    Mover::End(intent, Decision::Committed)
                }
                Err(_) => Mover::End(intent, Decision::Undone),
            },
            Mover::End(intent, decision) => {
                self.store.end(&intent.id, decision);
                if decision == Decision::Committed { Mover::Forget(intent) } else { Mover::Read }
            }
            Mover::Forget(intent) => {
                self.store.forget(&intent.id);
                Mover::Read
            }
        };
        let round = if next == Mover::Read { round + 1 } else { round };
        self.movers[at] = (next, round);
    }

    fn crash_mover(&mut self, at: usize) {
        let round = self.movers[at].1;
        self.movers[at] = (Mover::Read, round + 1);
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
                let decision = self.store.settle(&intent);
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
    for _ in 0..5 {
        world.advance_mover(0);
        world.check();
    }
    assert_eq!(world.target.as_deref(), Some(b"content 0".as_slice()));
    assert_eq!(world.store.rows.len(), 1, "the head of the target");
}

#[test]
fn a_late_commit_of_a_change_that_was_undone_fails() {
    let mut world = World::new();
    world.advance_writer();
    world.advance_mover(0);
    world.advance_mover(0);
    for _ in 0..4 {
        world.advance_writer();
        world.check();
    }
    let Mover::Commit(intent, bytes) = world.movers[0].0.clone() else { panic!("{:?}", world.movers[0]) };
    world.advance_mover(0);
    assert_eq!(world.movers[0].0, Mover::End(intent.clone(), Decision::Undone));
    assert_eq!(world.source.as_deref(), Some(b"content 1".as_slice()));
    world.check();
    // The row that says so stays for a day. After that no commit can come, so it may go.
    assert!(!world.store.forget(&intent.id));
    world.store.now += 1_000_000 * INTENT_SECONDS as i64;
    assert!(world.store.forget(&intent.id));
    assert!(world.store.create(TARGET, &bytes, Some(&intent)).is_err());
    world.check();
}

#[test]
fn a_reader_that_finds_no_decision_reads_the_head_again() {
    let mut world = World::new();
    for step in [
        World::advance_writer as fn(&mut World),
        |world| world.advance_mover(0),
        |world| world.advance_mover(0),
    ] {
        step(&mut world);
    }
    // A reader has the head with the intent in its hand. Then the move is committed, ended and forgotten.
    let intent = world.store.intent().expect("the move has begun");
    for _ in 0..3 {
        world.advance_mover(0);
    }
    let key = Name { bucket: &world.store.bucket, name: SOURCE }.key(&ObjectRow::Head);
    let standing = Standing::of(&intent, None, world.store.rows.get(&key));
    assert_eq!(standing, Ok(Standing::Changed));
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
            let decision = world.store.settle(&intent);
            world.store.end(&intent.id, decision);
        }
        prop_assert_eq!(world.store.intent(), None);
        world.check();
    }
}
