//! What people see of the rates of a bucket. All times are real ones.

use std::time::Duration;

use rangehold_map::capacity::{SpanView, Undivided, Usage};
use rangehold_map::names::Finding;
use rangehold_map::{BucketId, Timestamp};

use super::{Known, ObjectRates, since_1970};

/// What a bucket bears, what is asked of it, and how its names grow. Rates are of writes and of reads, each second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RatesView {
    /// What a part bears at least.
    pub(crate) threshold: [f64; 2],
    /// After how much use a part is cut, if its load divides.
    pub(crate) grows_after: Duration,
    /// For how long names are sampled at a time.
    pub(crate) sampled_for: Duration,
    /// The parts of its names, in order.
    pub(crate) spans: Vec<SpanRates>,
    /// What was found about its names, and when.
    pub(crate) found: Option<(Timestamp, Vec<(Usage, Finding)>)>,
}

/// A part of the names of a bucket.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SpanRates {
    /// The first bytes of its names; the names of the next part are above them.
    pub(crate) low: Vec<u8>,
    /// What it bears.
    pub(crate) bears: [f64; 2],
    /// What is asked of it.
    pub(crate) asked: [f64; 2],
    /// For how long half of what it bears, or more, has been asked for without a pause. It begins again when it was seen that
    /// the load does not divide.
    pub(crate) used_for: Option<Duration>,
    /// Why it was not cut when it had last been used for long enough.
    pub(crate) undivided: Option<Undivided>,
}

impl ObjectRates {
    /// The rates of a bucket, if it is in use.
    pub(crate) fn view(&self, bucket: BucketId, now: Timestamp) -> Option<RatesView> {
        self.buckets.lock().get(&bucket).map(|known| self.view_of(known, now))
    }

    fn view_of(&self, known: &Known, now: Timestamp) -> RatesView {
        let rules = known.capacity.rules();
        let found = known.names.found().map(|found| {
            let ago = since_1970(now).saturating_sub(found.at);
            (before(now, ago), found.findings.clone())
        });
        RatesView {
            threshold: Usage::BOTH.map(|usage| rules.threshold(usage)),
            grows_after: self.grows_after(rules),
            sampled_for: known.names.stretch(),
            spans: known.capacity.spans().map(|span| self.span(&span)).collect(),
            found,
        }
    }

    fn span(&self, span: &SpanView<'_>) -> SpanRates {
        SpanRates {
            low: span.low.to_vec(),
            bears: span.bears,
            asked: span.asked,
            used_for: span.used_for.map(|used| used.div_f64(self.rules.time_scale)),
            undivided: span.undivided,
        }
    }
}

/// The time so long before `now`.
fn before(now: Timestamp, ago: Duration) -> Timestamp {
    let ticks = i64::try_from(ago.as_nanos() / 100).unwrap_or(i64::MAX);
    now.saturating_add(-ticks)
}

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hash, Hasher};

    use rangehold_map::names::Growth;

    use super::super::{About, ObjectAsk};
    use super::*;
    use crate::profile::ObjectRules;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_unix_seconds(1_800_000_000).saturating_add(ms * Timestamp::TICKS_PER_MS)
    }

    fn write(name: &str) -> ObjectAsk<'_> {
        ObjectAsk { bucket: BucketId(1), name, usage: Usage::Write, about: About::Object }
    }

    /// A clock that runs twenty times as fast: a bucket grows after a minute, and names are sampled for 15 s at a time.
    fn busy(seconds: i64, name: impl Fn(i64, u64) -> String) -> ObjectRates {
        let rates = ObjectRates::new(ObjectRules { time_scale: 20.0, ..ObjectRules::cloud() }, 7);
        rates.learn(BucketId(1), "photos", false, None, at(0)).expect("there is no row");
        for second in 0..seconds {
            for n in 0..900_u64 {
                let name = name(second, n);
                let mut hasher = DefaultHasher::new();
                name.hash(&mut hasher);
                let _ = rates.ask(&write(&name), hasher.finish(), at(second * 1_000));
            }
            let listing = ObjectAsk { usage: Usage::Read, about: About::Listing, ..write("images/") };
            assert_eq!(rates.ask(&listing, 0, at(second * 1_000)), Ok(Duration::ZERO));
            rates.tick(at(second * 1_000 + 999));
        }
        rates
    }

    #[test]
    fn people_see_what_a_bucket_bears_and_how_its_names_grow() {
        let rates = busy(70, |second, n| match n % 2 {
            0 => format!("images/clouds/{:08}.jpg", second * 900 + n as i64),
            _ => {
                let scattered = (second as u64 * 900 + n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                format!("images/animals/{scattered:016x}/1.jpg")
            }
        });
        let view = rates.view(BucketId(1), at(70_000)).expect("it is known");
        assert_eq!((view.threshold, view.grows_after), ([1_000.0, 5_000.0], Duration::from_secs(60)));
        let lows: Vec<_> = view.spans.iter().map(|span| String::from_utf8_lossy(&span.low)).collect();
        assert_eq!(lows, ["", "images/c"]);
        assert!(
            view.spans.iter().all(|span| (1_000.0..1_010.0).contains(&span.bears[0])),
            "{:?}",
            view.spans
        );
        let used: Vec<_> = view.spans.iter().map(|span| span.used_for.is_some()).collect();
        assert_eq!(used, [false, false], "half of 900 is less than half of what a part bears");
        assert!(view.spans.iter().all(|span| (300.0..600.0).contains(&span.asked[0])), "{:?}", view.spans);
        let found = view.found.expect("samples were compared");
        assert!((at(45_000)..=at(70_000)).contains(&found.0), "{:?}", found.0);
        let seen: Vec<_> = found.1.iter().map(|(usage, f)| (*usage, f.prefix.as_str(), f.growth)).collect();
        // Listings do not count as names.
        let expected = [
            (Usage::Write, "images/animals/", Growth::Spreads),
            (Usage::Write, "images/clouds/", Growth::Append),
        ];
        assert_eq!(seen, expected);
        assert_eq!(rates.view(BucketId(2), at(0)), None);
    }

    #[test]
    fn a_name_that_is_written_too_often_is_found_though_most_of_its_writes_are_refused() {
        let rates = busy(40, |_, _| "counters/visits.json".to_owned());
        let view = rates.view(BucketId(1), at(40_000)).expect("it is known");
        let (_, found) = view.found.expect("samples were compared");
        let [(usage, finding)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((*usage, finding.growth), (Usage::Write, Growth::OneName));
    }

    #[test]
    fn a_part_whose_names_grow_says_so() {
        let rates = busy(90, |second, n| format!("log/{:08}", second * 900 + n as i64));
        let view = rates.view(BucketId(1), at(90_000)).expect("it is known");
        let [span] = &view.spans[..] else { panic!("{} spans", view.spans.len()) };
        assert_eq!(span.undivided, Some(Undivided::Append));
        let used_for = span.used_for.expect("it is used").as_secs();
        assert!(
            (20..40).contains(&used_for),
            "a minute was over once, and the next is under way: {used_for} s"
        );
    }
}
