//! The loop that reserves numbers.
//!
//! One *round* reserves `count` numbers: read the entity, add, merge with `If-Match`; again after 412 and 409. If the process
//! has just made a round, the next one takes the entity to be as it was left, and reads it only after a refusal. After some
//! rounds it reads all the same: else a process that was fast once would be the fastest for long. A merge whose answer was
//! lost is *in doubt*.
//!
//! * Without claims a round in doubt is given up, and the next try reserves other numbers. The merge in doubt may have
//!   been carried out, or may still be on its way; both cost numbers and give none twice, because only a clear success
//!   gives numbers out.
//! * With claims the next try first reads the entity and then the claims of the try in doubt. If they carry this
//!   round's nonce, the numbers are ours. If they do not, and the entity has another version than the try in doubt
//!   wanted, that try has failed for good, because its condition can never hold again. If the version is still the same,
//!   the same batch is sent again, and at most one of both can succeed. The order of the two reads matters: a batch that
//!   arrives between them changes the version, and its claims are seen by the second read.

use std::sync::atomic::{AtomicU64, Ordering};

use futures::TryStreamExt;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::SequenceError;
use crate::entity::{ETag, Entity, Keys, Value};
use crate::error::Error;
use crate::limits::{
    SEQUENCE_KNOWN_FOR, SEQUENCE_MERGES_MAX, SEQUENCE_ROUND_MAX, SEQUENCE_STRICT_ROUND_MAX, SEQUENCE_WAIT,
};
use crate::request::{Change, Condition, Filter, Query};
use crate::table::Table;

/// The property with the last number that was reserved.
const VALUE: &str = "Value";
/// The property of a claim that says whose it is.
pub(super) const NONCE: &str = "Nonce";
/// The property of a claim with its number.
pub(super) const NUMBER: &str = "Number";

/// The type of `Value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Numbers up to 2,147,483,647.
    Int32,
    /// Numbers up to 9,223,372,036,854,775,807.
    Int64,
}

impl Width {
    const fn last(self) -> i64 {
        match self {
            Self::Int32 => i32::MAX as i64,
            Self::Int64 => i64::MAX,
        }
    }

    fn value(self, number: i64) -> Value {
        match self {
            Self::Int32 => {
                Value::Int32(i32::try_from(number).expect("a number is at most the width's last one"))
            }
            Self::Int64 => Value::Int64(number),
        }
    }
}

/// How numbers are reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// At least `block` at a time, without claims.
    Plain { block: u32 },
    /// As many as are wanted, each with a claim.
    Strict,
}

/// What a sequence has done, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Numbers that were reserved.
    pub numbers: u64,
    /// Reservations that succeeded.
    pub rounds: u64,
    /// Merges that were tried for them.
    pub tries: u64,
    /// Tries that met another client.
    pub conflicts: u64,
    /// Tries whose outcome was in doubt.
    pub in_doubt: u64,
}

#[derive(Default)]
struct Counting {
    numbers: AtomicU64,
    rounds: AtomicU64,
    tries: AtomicU64,
    conflicts: AtomicU64,
    in_doubt: AtomicU64,
}

/// A number, and the version of its claim if it has one.
#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) number: i64,
    pub(super) claim: Option<ETag>,
}

/// One sequence in its table.
pub(super) struct Counter {
    pub(super) table: Table,
    pub(super) keys: Keys,
    width: Width,
    tries_max: u32,
    mode: Mode,
    counting: Counting,
    /// The entity as the last merge left it, and when.
    left: Mutex<Option<(Instant, Before)>>,
}

/// The entity as a try found it.
struct Before {
    /// `None` if there is no entity.
    version: Option<ETag>,
    width: Width,
    value: i64,
    /// How many merges of this process have followed each other since it read the entity.
    merges: u32,
}

/// A try whose outcome is not known.
struct Doubt {
    version: Option<ETag>,
    first: i64,
    count: i64,
}

/// How a try ended.
enum Try {
    Done(Vec<Reserved>),
    Conflict,
    InDoubt(Doubt),
}

impl Counter {
    pub(super) fn new(
        table: Table,
        scope: &str,
        name: &str,
        width: Width,
        tries_max: u32,
        mode: Mode,
    ) -> Self {
        let keys = Keys::new(scope, name);
        Self { table, keys, width, tries_max, mode, counting: Counting::default(), left: Mutex::default() }
    }

    /// How many callers one round can serve.
    pub(super) fn round_max(&self) -> usize {
        match self.mode {
            Mode::Plain { .. } => SEQUENCE_ROUND_MAX,
            Mode::Strict => SEQUENCE_STRICT_ROUND_MAX,
        }
    }

    /// The row of a number's claim.
    pub(super) fn claim_keys(&self, number: i64) -> Keys {
        Keys::new(&self.keys.partition_key, format!("{}~{number:019}", self.keys.row_key))
    }

    /// Reserves numbers for `wanted` callers: at least one, ascending and without a gap between them.
    pub(super) async fn reserve(&self, wanted: usize) -> Result<Vec<Reserved>, SequenceError> {
        let count = match self.mode {
            Mode::Plain { block } => i64::from(block).max(wanted as i64),
            Mode::Strict => wanted as i64,
        };
        let nonce = self.table.fresh();
        let (mut doubt, mut conflicts) = (None, 0);
        let mut left = self.left_just_now();
        let mut waits = 0;
        for tries in 1..=self.tries_max {
            let before = match left.take() {
                Some(before) => before,
                None => {
                    if waits > 0 {
                        // Clients that met once should not meet again, so any part of the wait may come.
                        let wait = SEQUENCE_WAIT.wait(waits, self.table.chance());
                        tokio::time::sleep(wait.mul_f64(self.table.chance())).await;
                    }
                    waits += 1;
                    self.read().await?
                }
            };
            if let Some(numbers) = self.settled(&mut doubt, &before, &nonce).await? {
                return Ok(self.done(numbers, tries));
            }
            self.counting.tries.fetch_add(1, Ordering::Relaxed);
            match self.attempt(&before, count, &nonce).await? {
                Try::Done(numbers) => return Ok(self.done(numbers, tries)),
                Try::InDoubt(new) => {
                    self.counting.in_doubt.fetch_add(1, Ordering::Relaxed);
                    doubt = Some(new);
                }
                Try::Conflict => {
                    self.counting.conflicts.fetch_add(1, Ordering::Relaxed);
                    conflicts += 1;
                }
            }
        }
        Err(SequenceError::Contended { keys: self.keys.clone(), tries: self.tries_max, conflicts })
    }

    fn done(&self, numbers: Vec<Reserved>, tries: u32) -> Vec<Reserved> {
        self.counting.numbers.fetch_add(numbers.len() as u64, Ordering::Relaxed);
        self.counting.rounds.fetch_add(1, Ordering::Relaxed);
        let first = numbers.first().map(|reserved| reserved.number);
        tracing::debug!(sequence = %self.keys, first, count = numbers.len(), tries, "numbers were reserved");
        numbers
    }

    /// The entity as this process has just left it, if it has.
    fn left_just_now(&self) -> Option<Before> {
        let (at, before) = self.left.lock().take()?;
        let is_known = at.elapsed() < SEQUENCE_KNOWN_FOR && before.merges < SEQUENCE_MERGES_MAX;
        // Only the entity itself tells that no number is left.
        (is_known && before.value < before.width.last()).then_some(before)
    }

    async fn read(&self) -> Result<Before, SequenceError> {
        let found = self.table.get(&self.keys.partition_key, &self.keys.row_key).await?;
        let Some(entity) = found else {
            return Ok(Before { version: None, width: self.width, value: 0, merges: 0 });
        };
        let (width, value) = match entity.get(VALUE) {
            Some(Value::Int32(value)) if *value >= 0 => (Width::Int32, i64::from(*value)),
            Some(Value::Int64(value)) if *value >= 0 => (Width::Int64, *value),
            other => {
                let value = other.map_or_else(|| "absent".to_owned(), |value| format!("{value:?}"));
                return Err(SequenceError::NotASequence { keys: self.keys.clone(), value });
            }
        };
        Ok(Before { version: entity.etag, width, value, merges: 0 })
    }

    /// One merge, or the insert of the first number.
    async fn attempt(&self, before: &Before, count: i64, nonce: &str) -> Result<Try, SequenceError> {
        let last = before.width.last();
        if before.value == last {
            return Err(SequenceError::Exhausted { keys: self.keys.clone(), last });
        }
        let count = count.min(last - before.value);
        let entity = Entity { keys: self.keys.clone(), ..Entity::new("", "") };
        let entity = entity.with(VALUE, before.width.value(before.value + count));
        let merge = match &before.version {
            None => Change::Insert(entity),
            Some(version) => Change::Merge(entity, Condition::from(version)),
        };
        let first = before.value + 1;
        let sent = match self.mode {
            Mode::Plain { .. } => self.table.apply(merge).await.map(|version| vec![version]),
            Mode::Strict => self.table.batch(self.with_claims(merge, first, count, nonce)).await,
        };
        match sent {
            Ok(versions) => {
                // The first version is that of the counter itself.
                let mut versions = versions.into_iter();
                let left = versions.next().flatten().map(|version| {
                    let (value, merges) = (before.value + count, before.merges + 1);
                    (Instant::now(), Before { version: Some(version), width: before.width, value, merges })
                });
                *self.left.lock() = left;
                let claims = versions.chain(std::iter::repeat(None));
                let numbers = (first..=first + (count - 1)).zip(claims);
                Ok(Try::Done(numbers.map(|(number, claim)| Reserved { number, claim }).collect()))
            }
            Err(Error::OutcomeUnknown(_)) => {
                Ok(Try::InDoubt(Doubt { version: before.version.clone(), first, count }))
            }
            Err(error) if error.has_status(409) || error.has_status(412) => Ok(Try::Conflict),
            Err(error) => Err(error.into()),
        }
    }

    fn with_claims(&self, merge: Change, first: i64, count: i64, nonce: &str) -> Vec<Change> {
        let claim = |number: i64| {
            let entity = Entity { keys: self.claim_keys(number), ..Entity::new("", "") };
            Change::Insert(entity.with(NUMBER, number).with(NONCE, nonce))
        };
        std::iter::once(merge).chain((first..=first + (count - 1)).map(claim)).collect()
    }

    /// The numbers of a try in doubt, if it turns out that it was carried out. Ends the doubt if it never will be.
    async fn settled(
        &self,
        doubt: &mut Option<Doubt>,
        before: &Before,
        nonce: &str,
    ) -> Result<Option<Vec<Reserved>>, SequenceError> {
        let Some(Doubt { version, first, count }) = doubt.as_ref().filter(|_| self.mode == Mode::Strict)
        else {
            *doubt = None;
            return Ok(None);
        };
        let claims = self.claims(*first, *first + (*count - 1)).await?;
        let ours: Vec<Reserved> = claims
            .into_iter()
            .filter(|claim| claim.text(NONCE) == Some(nonce))
            .filter_map(|claim| Some(Reserved { number: claim.integer(NUMBER)?, claim: claim.etag }))
            .collect();
        if !ours.is_empty() {
            return Ok(Some(ours));
        }
        if *version != before.version {
            *doubt = None;
        }
        Ok(None)
    }

    /// The claims of the numbers from `first` to `last`.
    pub(super) async fn claims(&self, first: i64, last: i64) -> Result<Vec<Entity>, Error> {
        let scope = Filter::partition(&self.keys.partition_key);
        let (low, high) = (self.claim_keys(first).row_key, self.claim_keys(last).row_key);
        // Above the claim itself, and below that of the next number.
        let rows = Filter::key_range("RowKey", &low, &format!("{high}~"));
        self.table.query(Query::of(scope.and(rows))).try_collect().await
    }

    pub(super) fn counts(&self) -> Counts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            numbers: get(&self.counting.numbers),
            rounds: get(&self.counting.rounds),
            tries: get(&self.counting.tries),
            conflicts: get(&self.counting.conflicts),
            in_doubt: get(&self.counting.in_doubt),
        }
    }
}
