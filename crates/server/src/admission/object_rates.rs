//! The rates of requests for objects, in the profile `cloud`: those of buckets, of single names, and of bytes.
//!
//! The rule for buckets is pure: [`Capacity`] of the crate `map`. Here is what it needs around it: the buckets that are
//! in use, the two times, and which of them must be stored. `object::rates` reads and writes the rows.
//!
//! ```text
//!   request -- bytes of project and location? -- name written lately? -- bucket's span? --> handler
//!                 429                              429                     late, 429, 503
//! ```
//!
//! A write counts for its name when its bucket lets it in. Bytes are charged when they come and go, not when a request is let
//! in: how many they are is not known then.
//!
//! `view` is what people see of a bucket. For that, the names of busy buckets are sampled too.

mod view;

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use rangehold_map::capacity::{Answer, Capacity, MalformedCapacity, Rules, Usage};
use rangehold_map::names::{Comparison, Watch};
use rangehold_map::{BucketId, Timestamp};

pub(crate) use self::view::{RatesView, SpanRates};
use super::bucket::Bucket as Tokens;
use super::recent::Recent;
use crate::limits::{BUCKETS_WATCHED_MAX, BUCKETS_WITH_RATES_MAX, CAPACITY_STORED_EVERY};
use crate::profile::{Budget, ObjectRules};
use crate::throttled::Cause;

/// Names and scopes of bytes that are kept in memory.
const NAMES_MAX: usize = 65_536;
const SCOPES_MAX: usize = 1_024;
/// Names are sampled in stretches of this part of the time after which a bucket grows.
const STRETCHES: f64 = 4.0;
/// One in so many refusals by a bucket's rate is answered 503, the others 429.
const BACKEND_ERRORS_EVERY: u32 = 4;

/// A refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooFast {
    /// The name was written within the last second.
    Name,
    /// The bucket's rate, as 429.
    Bucket,
    /// The bucket's rate, as 503.
    Backend,
    /// The bytes of the project in this location.
    Bandwidth,
}

/// A request for an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectAsk<'a> {
    pub(crate) bucket: BucketId,
    /// The name; for a listing, where it begins.
    pub(crate) name: &'a str,
    pub(crate) usage: Usage,
    pub(crate) about: About,
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// One object. Its name takes one write in a while.
    Object,
    /// One folder, which can be made and renamed at once.
    Folder,
    /// All names from one on.
    Listing,
}

/// All rates of one process.
#[derive(Debug)]
pub(crate) struct ObjectRates {
    rules: ObjectRules,
    seed: u64,
    buckets: Mutex<HashMap<BucketId, Known>>,
    /// When names were last written.
    names: Mutex<Recent<Option<Duration>>>,
    bytes: Mutex<Recent<Tokens>>,
}

/// A bucket in use.
#[derive(Debug)]
struct Known {
    name: String,
    capacity: Capacity,
    names: Watch,
    refused: u32,
    used: Duration,
    /// When it was last stored, and whether it changed since.
    stored: Duration,
    is_changed: bool,
}

/// A bucket whose row must be written.
#[derive(Debug)]
pub(crate) struct ToStore {
    pub(crate) bucket: BucketId,
    pub(crate) name: String,
    pub(crate) row: Vec<u8>,
}

impl ObjectRates {
    pub(crate) fn new(rules: ObjectRules, seed: u64) -> Self {
        Self {
            rules,
            seed,
            buckets: Mutex::new(HashMap::new()),
            names: Mutex::new(Recent::new(NAMES_MAX)),
            bytes: Mutex::new(Recent::new(SCOPES_MAX)),
        }
    }

    /// The time between two calls of [`ObjectRates::tick`]: so short that the ramp's clock makes small steps.
    pub(crate) fn tick_every(&self) -> Duration {
        let slots = self.rules.rates.doubles_after.div_f64(self.rules.time_scale * 80.0);
        slots.clamp(Duration::from_millis(50), Duration::from_secs(1))
    }

    pub(crate) fn knows(&self, bucket: BucketId) -> bool {
        self.buckets.lock().contains_key(&bucket)
    }

    /// Takes a bucket into use, with its row if it has one. A damaged row counts as none, and its error is returned.
    pub(crate) fn learn(
        &self,
        bucket: BucketId,
        name: &str,
        is_hierarchical: bool,
        row: Option<&[u8]>,
        now: Timestamp,
    ) -> Result<(), MalformedCapacity> {
        let real = since_1970(now);
        let rules = match is_hierarchical {
            true => self.rules.rates.clone().hierarchical(),
            false => self.rules.rates.clone(),
        };
        let (ramp, seed) = (self.ramp(real), self.seed ^ bucket.0);
        let begin = || Capacity::new(rules.clone(), real, ramp, seed);
        let restored =
            row.map(|row| Capacity::restore(row, self.rules.time_scale, rules.clone(), real, ramp, seed));
        let (capacity, result) = match restored.transpose() {
            Ok(restored) => (restored.unwrap_or_else(begin), Ok(())),
            Err(malformed) => (begin(), Err(malformed)),
        };
        let stretch = self.grows_after(&rules).div_f64(STRETCHES);
        let (name, names) = (name.to_owned(), Watch::new(stretch, real, seed));
        let known = Known { name, capacity, names, refused: 0, used: real, stored: real, is_changed: false };
        let mut buckets = self.buckets.lock();
        if buckets.len() >= BUCKETS_WITH_RATES_MAX {
            let oldest = buckets.iter().min_by_key(|(_, known)| known.used).map(|(bucket, _)| *bucket);
            oldest.map(|oldest| buckets.remove(&oldest));
        }
        // Of two requests that read the row at once, the first decides.
        buckets.entry(bucket).or_insert(known);
        result
    }

    /// Decides about a request for a bucket that is known, and returns how long it must wait before it is carried out.
    pub(crate) fn ask(&self, ask: &ObjectAsk<'_>, hash: u64, now: Timestamp) -> Result<Duration, TooFast> {
        let real = since_1970(now);
        let writes_name = ask.usage == Usage::Write && ask.about == About::Object;
        // Held until the bucket has decided, so that of two writes of a name at once only one is let in.
        let mut names = writes_name.then(|| self.names.lock());
        if let Some(names) = &mut names {
            let written = *names.get(hash, real, || None);
            if written.is_some_and(|written| real.saturating_sub(written) < self.rules.name_every) {
                // So people see which name it is.
                if let Some(known) = self.buckets.lock().get_mut(&ask.bucket) {
                    known.note(ask);
                }
                return Err(TooFast::Name);
            }
        }
        let delay = self.ask_bucket(ask, real)?;
        if let Some(names) = &mut names {
            *names.get(hash, real, || None) = Some(real + delay);
        }
        Ok(delay)
    }

    /// A write that was let in is not made after all, so its name may be written at once.
    pub(crate) fn not_written(&self, hash: u64, now: Timestamp) {
        *self.names.lock().get(hash, since_1970(now), || None) = None;
    }

    fn ask_bucket(&self, ask: &ObjectAsk<'_>, real: Duration) -> Result<Duration, TooFast> {
        let mut buckets = self.buckets.lock();
        let Some(known) = buckets.get_mut(&ask.bucket) else { return Ok(Duration::ZERO) };
        known.used = real;
        known.note(ask);
        match known.capacity.ask(real, ask.name.as_bytes(), ask.usage) {
            Answer::Now => Ok(Duration::ZERO),
            Answer::Late(delay) => Ok(delay),
            Answer::Refused => {
                known.refused = known.refused.wrapping_add(1);
                let is_backend = known.refused.is_multiple_of(BACKEND_ERRORS_EVERY);
                Err(if is_backend { TooFast::Backend } else { TooFast::Bucket })
            }
        }
    }

    /// Whether bytes have a budget.
    pub(crate) fn counts_bytes(&self) -> bool {
        self.rules.bytes_per_second.is_some()
    }

    /// Lets a request in if the bytes of a project in a location, given as a hash, are not used up. A request of any size is
    /// let in then; what it is too large is waited for by the next ones.
    pub(crate) fn ask_bytes(&self, scope: u64, now: Timestamp) -> Result<(), TooFast> {
        let is_left = |tokens: &mut Tokens, budget: &Budget, real| tokens.take(budget, real, 0.0, false);
        if self.with_bytes(scope, now, is_left).unwrap_or(true) { Ok(()) } else { Err(TooFast::Bandwidth) }
    }

    /// Charges bytes that have come or gone to a project in a location.
    pub(crate) fn charge_bytes(&self, scope: u64, bytes: u64, now: Timestamp) {
        self.with_bytes(scope, now, |tokens, budget, real| {
            tokens.charge(budget, real, bytes as f64, f64::INFINITY, false)
        });
    }

    /// Does something with the budget of bytes of a project in a location; `None` if bytes have no budget.
    fn with_bytes<T>(
        &self,
        scope: u64,
        now: Timestamp,
        act: impl FnOnce(&mut Tokens, &Budget, Duration) -> T,
    ) -> Option<T> {
        let (per_second, real) = (self.rules.bytes_per_second?, since_1970(now));
        let budget = Budget { per_second, credit: Duration::ZERO };
        let mut scopes = self.bytes.lock();
        Some(act(scopes.get(scope, real, || Tokens::full(&budget, real)), &budget, real))
    }

    /// Lets time pass for all buckets. Returns those whose rows must be written, and the number of all spans.
    pub(crate) fn tick(&self, now: Timestamp) -> (Vec<ToStore>, usize) {
        let Ticked { to_store, spans, to_compare } = self.tick_buckets(now);
        // Without the lock, for which each request waits.
        for (bucket, comparison) in to_compare {
            let found = comparison.found();
            if let Some(known) = self.buckets.lock().get_mut(&bucket) {
                known.names.learn(found);
            }
        }
        (to_store, spans)
    }

    fn tick_buckets(&self, now: Timestamp) -> Ticked {
        let real = since_1970(now);
        let (ramp, scale) = (self.ramp(real), self.rules.time_scale);
        let mut ticked = Ticked::default();
        let mut buckets = self.buckets.lock();
        let watched = buckets.values().filter(|known| known.names.is_sampling()).count();
        let mut places = BUCKETS_WATCHED_MAX.saturating_sub(watched);
        for (bucket, known) in buckets.iter_mut() {
            known.is_changed |= known.capacity.tick(real, ramp);
            places -= usize::from(known.names.tick(real, places > 0));
            ticked.to_compare.extend(known.names.take_comparison().map(|comparison| (*bucket, comparison)));
            let count = known.capacity.spans().len();
            ticked.spans += count;
            let is_due = count > 1 && real.saturating_sub(known.stored) >= CAPACITY_STORED_EVERY;
            if known.is_changed || is_due {
                (known.stored, known.is_changed) = (real, false);
                let row = known.capacity.encode(scale);
                ticked.to_store.push(ToStore { bucket: *bucket, name: known.name.clone(), row });
            }
        }
        ticked
    }

    /// A row could not be written: it is tried again.
    pub(crate) fn not_stored(&self, bucket: BucketId) {
        if let Some(known) = self.buckets.lock().get_mut(&bucket) {
            known.is_changed = true;
        }
    }

    /// The bucket is gone.
    pub(crate) fn forget(&self, bucket: BucketId) {
        self.buckets.lock().remove(&bucket);
    }

    /// After how much use a bucket grows, in real time.
    fn grows_after(&self, rules: &Rules) -> Duration {
        rules.doubles_after.div_f64(self.rules.time_scale)
    }

    /// The time of the ramp, which runs `time_scale` times as fast since 1970.
    fn ramp(&self, real: Duration) -> Duration {
        real.mul_f64(self.rules.time_scale)
    }
}

/// What is left to do after time has passed for all buckets.
#[derive(Default)]
struct Ticked {
    to_store: Vec<ToStore>,
    /// The number of all spans.
    spans: usize,
    to_compare: Vec<(BucketId, Comparison)>,
}

impl Known {
    /// Notes the name of a request for an object, let in or not. Listings have none, and names of folders grow by other rules.
    fn note(&mut self, ask: &ObjectAsk<'_>) {
        if ask.about == About::Object {
            self.names.note(ask.name, ask.usage, 1.0 / self.capacity.rules().threshold(ask.usage));
        }
    }
}

impl TooFast {
    /// As the metrics count it.
    pub(crate) fn cause(self) -> Cause {
        match self {
            Self::Name => Cause::ObjectName,
            Self::Bucket | Self::Backend => Cause::BucketRate,
            Self::Bandwidth => Cause::Bandwidth,
        }
    }
}

fn since_1970(now: Timestamp) -> Duration {
    Duration::from_nanos(u64::try_from(now.ticks()).unwrap_or(0).saturating_mul(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(bytes_per_second: Option<f64>) -> ObjectRates {
        let rules = ObjectRules { bytes_per_second, ..ObjectRules::cloud() };
        let rates = ObjectRates::new(rules, 7);
        rates.learn(BucketId(1), "photos", false, None, at(0)).expect("there is no row");
        rates
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_unix_seconds(1_800_000_000).saturating_add(ms * Timestamp::TICKS_PER_MS)
    }

    fn spans(rates: &ObjectRates, bucket: u64) -> usize {
        rates.view(BucketId(bucket), at(0)).expect("it is known").spans.len()
    }

    fn write(name: &str) -> ObjectAsk<'_> {
        ObjectAsk { bucket: BucketId(1), name, usage: Usage::Write, about: About::Object }
    }

    #[test]
    fn one_name_takes_one_write_a_second_and_others_are_not_concerned() {
        let rates = rates(None);
        assert_eq!(rates.ask(&write("a"), 1, at(0)), Ok(Duration::ZERO));
        assert_eq!(rates.ask(&write("a"), 1, at(900)), Err(TooFast::Name));
        assert_eq!(rates.ask(&write("b"), 2, at(900)), Ok(Duration::ZERO));
        assert_eq!(rates.ask(&write("a"), 1, at(1_000)), Ok(Duration::ZERO));
    }

    #[test]
    fn a_write_that_its_bucket_refuses_does_not_count_for_its_name() {
        let rates = rates(None);
        assert!((0..2_000).all(|n| rates.ask(&write("x"), n, at(0)).is_ok()));
        assert_eq!(rates.ask(&write("a"), 5_000, at(0)), Err(TooFast::Bucket));
        let late = Duration::from_millis(501);
        assert_eq!(rates.ask(&write("a"), 5_000, at(500)), Ok(late));
        // It is written when it has waited, and the next second begins then.
        assert_eq!(rates.ask(&write("a"), 5_000, at(2_000)), Err(TooFast::Name));
        assert!(rates.ask(&write("a"), 5_000, at(2_001)).is_ok());
        rates.not_written(5_000, at(2_001));
        assert!(rates.ask(&write("a"), 5_000, at(2_001)).is_ok());
    }

    #[test]
    fn a_bucket_that_is_too_busy_answers_429_and_now_and_then_503() {
        let rates = rates(None);
        let answers: Vec<_> = (0..2_400).map(|n| rates.ask(&write("x"), n, at(0))).collect();
        assert!(answers[..1_000].iter().all(|answer| *answer == Ok(Duration::ZERO)));
        assert!(answers[1_000..2_000].iter().all(Result::is_ok));
        let refused = |kind| answers[2_000..].iter().filter(|answer| **answer == Err(kind)).count();
        assert_eq!([refused(TooFast::Bucket), refused(TooFast::Backend)], [300, 100]);
    }

    #[test]
    fn bytes_have_a_budget_of_their_own_only_if_one_is_set() {
        let unlimited = rates(None);
        unlimited.charge_bytes(1, u64::MAX, at(0));
        assert_eq!(unlimited.ask_bytes(1, at(0)), Ok(()));
        let rates = rates(Some(1_000.0));
        assert_eq!(rates.ask_bytes(1, at(0)), Ok(()));
        for _ in 0..3 {
            rates.charge_bytes(1, 1_000, at(0));
        }
        assert_eq!(rates.ask_bytes(1, at(2_000)), Err(TooFast::Bandwidth));
        assert_eq!(rates.ask_bytes(2, at(2_000)), Ok(()));
        assert_eq!(rates.ask_bytes(1, at(2_001)), Ok(()));
    }

    #[test]
    fn a_bucket_that_has_grown_is_stored_and_comes_back() {
        let rules = ObjectRules { time_scale: 20.0, ..ObjectRules::cloud() };
        let rates = ObjectRates::new(rules.clone(), 7);
        rates.learn(BucketId(1), "photos", false, None, at(0)).expect("there is no row");
        let mut stored = Vec::new();
        for second in 0..70_i64 {
            for n in 0..900_u64 {
                let name =
                    format!("{:08x}", (n + second as u64 * 900).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32);
                let _ = rates.ask(&write(&name), n + second as u64 * 900, at(second * 1_000));
            }
            stored.extend(rates.tick(at(second * 1_000 + 999)).0);
        }
        let [row] = &stored[..] else { panic!("{} rows", stored.len()) };
        assert_eq!((row.bucket, row.name.as_str()), (BucketId(1), "photos"));
        let again = ObjectRates::new(rules, 8);
        again.learn(BucketId(1), "photos", false, Some(&row.row), at(80_000)).expect("it is a row");
        assert_eq!(spans(&again, 1), 2);
        assert!(again.learn(BucketId(2), "other", false, Some(b"damaged"), at(80_000)).is_err());
        assert_eq!(spans(&again, 2), 1);
    }
}
