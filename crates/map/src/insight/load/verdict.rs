//! Verdicts: the cause that was found for a hot range, and the sentences that people read.

use std::time::Duration;

use strum::IntoStaticStr;

use super::partition::{in_words, row_in_words};
use super::titles::{ObjectTitle, Titles};
use super::top_keys::HotRow;
use crate::insight::names::{Namespace, hash_advice, time_advice, time_prefix};
use crate::key::is_of_objects;

/// What helps if names grow that lie in folders. The key has no whole name on which a better one could be shown.
const REMEDY_IN_FOLDERS: &str = "let the names in a folder begin with something that spreads them, such as a hash, and write \
                                 into folders that are there: each new one has a higher number";

/// The cause of a hot range's load, with the times between which it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The cause, with its figures.
    pub cause: Cause,
    /// When it was found, since the process began.
    pub at: Duration,
    /// When it ends. If the range is still hot then, it is observed again. The verdict ends earlier if the
    /// load clearly changes.
    pub until: Duration,
}

/// Why a range is split, or why it is not. Shares are from 0 to 1, of the load in the last look: of the cost
/// of answered and refused requests.
#[derive(Debug, Clone, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Cause {
    /// A cut halves the load, and is expected to do so in future.
    Split {
        /// The cut. No partition lies on both sides.
        at: Vec<u8>,
        /// The share of the load at the cut and above.
        above: f64,
        /// The load beyond the cut is an append or prepend that goes on, and the cut divides it from the
        /// reads of older keys.
        frontier: bool,
    },
    /// One partition has so much of the load that no cut relieves the range.
    HotKey {
        /// The bytes with which the partition's keys begin.
        key: Vec<u8>,
        /// Its share.
        share: f64,
        /// The row with most of that load, if there is one.
        row: Option<HotRow>,
    },
    /// The load moves to ever higher keys.
    Append(Travel),
    /// The load moves to ever lower keys.
    Prepend(Travel),
    /// Most requests are scans that would touch both sides of any cut.
    Scan {
        /// The share of the load that touches both sides of the most balanced cut.
        share: f64,
    },
    /// None of these causes, and no good cut.
    Unclear(Doubt),
}

/// A load that moves through the keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Travel {
    /// How the movement was seen, which gives the figures their meaning.
    pub manner: Manner,
    /// A share of the load; see [`Manner`].
    pub share: f64,
    /// A length of time; see [`Manner`].
    pub over: Duration,
    /// A partition in which the load was in the last look; empty if it is not known.
    pub front: Vec<u8>,
}

/// How the movement of a load was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// `share` is beyond the key that was the last one `over` ago.
    Ahead,
    /// `share` is beyond the key that halved the load `over` ago. The load moves slowly for its width, for
    /// example because entries come minutes late.
    Late,
    /// `share` moves between two keys that were neighbours `over` ago: in one narrow place, such as the keys
    /// of one tenant, with other load on both sides.
    Within,
    /// `share` moves towards the best cut and will pass it after `over`. It is one of several streams, for
    /// example of clocks that differ.
    Behind,
}

/// What is wrong with the best cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Doubt {
    /// The balance changes. The shares are of the load above the cut.
    Shifts {
        /// The share in the second look.
        before: f64,
        /// The share in the last look.
        now: f64,
        /// The time between these two looks.
        over: Duration,
    },
    /// The cut is balanced over some seconds, but at any moment most load is on one side.
    Swings {
        /// The share of the larger side, on average over single seconds.
        larger: f64,
    },
    /// From one look to the next the load goes to other keys, but not steadily in one direction.
    Wanders {
        /// The greatest share of a look beyond all keys of the look before.
        share: f64,
        /// The length of a look.
        over: Duration,
    },
    /// The cut is uneven.
    Uneven {
        /// The share of the larger side.
        larger: f64,
    },
    /// There were too few requests to tell a drift from chance.
    Few,
}

impl Cause {
    /// One word, as in tables and in metrics.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl Verdict {
    /// The cause and what to do about it, for people. `titles` has the names of tables and buckets.
    pub fn sentence(&self, titles: Titles<'_>) -> String {
        match &self.cause {
            Cause::Split { at, above, frontier } => {
                let (below, above) = (percent(1.0 - above), percent(*above));
                let caveat = ObjectTitle::of(at, titles).and_then(|object| passing(object.whole_name()?));
                let at = in_words(at, titles);
                if let Some(caveat) = caveat {
                    format!(
                        "to be split at {at}: {above} of the load is above it and {below} below, but only for now: {caveat}"
                    )
                } else if *frontier {
                    format!(
                        "to be split at {at}: {above} of the load is above it and {below} below, where new keys \
                         are added on one side and old ones are read on the other; the side that grows will not \
                         be split further, so let its keys begin with something that spreads them"
                    )
                } else {
                    format!("to be split at {at}: {above} of the load is above it and {below} below")
                }
            }
            Cause::HotKey { key, share, .. } if is_of_objects(key) => {
                let is_list = ObjectTitle::of(key, titles).is_some_and(|object| object.is_list_of_folders());
                hot_object(&in_words(key, titles), *share, is_list)
            }
            Cause::HotKey { key, share, row } => hot_key(&in_words(key, titles), *share, row.as_ref()),
            Cause::Append(travel) | Cause::Prepend(travel) => {
                let front = Some(&travel.front).filter(|front| !front.is_empty());
                let remedy =
                    front.and_then(|front| ObjectTitle::of(front, titles)).map(|object| remedy(&object));
                let front = front.map(|front| in_words(front, titles));
                let words = match self.cause {
                    Cause::Append(_) => ["higher", "above", "highest"],
                    _ => ["lower", "below", "lowest"],
                };
                travels(travel, self.cause.name(), words, front.as_deref(), remedy.as_deref())
            }
            Cause::Scan { share } => format!(
                "not split: scans; {} of the load are scans that would touch both sides of a cut, so both \
                 sides would do the work that one does now; ask for less at a time: one PartitionKey, or a narrower interval",
                percent(*share)
            ),
            Cause::Unclear(doubt) => self.unclear(doubt),
        }
    }

    fn unclear(&self, doubt: &Doubt) -> String {
        let found = match doubt {
            Doubt::Shifts { before, now, over } => format!(
                "no cut stays balanced; the best had {} of the load above it, and {} s later {}",
                percent(*before),
                over.as_secs(),
                percent(*now)
            ),
            Doubt::Swings { larger } => format!(
                "the load jumps from side to side; within single seconds one side of the best cut has {} of it",
                percent(*larger)
            ),
            Doubt::Wanders { share, over } => format!(
                "the load wanders; once, {} of it was beyond all keys of {} s before",
                percent(*share),
                over.as_secs()
            ),
            Doubt::Uneven { larger } => {
                format!("no cut is balanced; the best leaves {} of the load on one side", percent(*larger))
            }
            Doubt::Few => "too few requests came to tell a cut that stays balanced from chance".to_owned(),
        };
        let wait = self.until.saturating_sub(self.at).as_secs() / 60;
        format!("not split: unclear; {found}; looked at again after {wait} min")
    }
}

fn hot_object(object: &str, share: f64, is_list_of_folders: bool) -> String {
    let remedy = if is_list_of_folders {
        "it is one partition, which is never cut; make fewer folders, and write into those that are there"
    } else {
        "the rows of one name are never separated; a name takes about one write a second, so write to several names, and \
         let readers keep a copy"
    };
    format!("not split: hot key; {object} has {} of the load, and {remedy}", percent(share))
}

fn hot_key(key: &str, share: f64, row: Option<&HotRow>) -> String {
    let row = row.map_or(String::new(), |row| {
        format!(" ({} for its row {})", percent(row.share), row_in_words(&row.key))
    });
    let remedy = if row.is_empty() {
        "spread its rows over several PartitionKeys, such as by a short hash of the RowKey in front"
    } else {
        "read that row from a cache, or keep several copies of it (for a counter: several parts) under \
         different PartitionKeys"
    };
    let share = percent(share);
    format!("not split: hot key; {key} has {share} of the load{row}, and a partition is never cut; {remedy}")
}

/// What helps if names of objects grow, shown on one of them.
fn remedy(object: &ObjectTitle) -> String {
    match object.whole_name() {
        Some(name) => passing(name).unwrap_or_else(|| hash_advice(name, Namespace::Flat)),
        None => REMEDY_IN_FOLDERS.to_owned(),
    }
}

/// Advice for a name behind a time that lasts for an hour or a day.
fn passing(name: &str) -> Option<String> {
    let time = time_prefix(name).filter(|time| time.is_long)?;
    Some(time_advice(time.prefix, name, Namespace::Flat))
}

fn travels(
    travel: &Travel,
    name: &str,
    [higher, above, highest]: [&str; 3],
    front: Option<&str>,
    remedy: Option<&str>,
) -> String {
    let (share, seconds) = (percent(travel.share), travel.over.as_secs());
    let found = match travel.manner {
        Manner::Ahead => format!(
            "{share} of the load is {above} the {highest} key of {seconds} s ago, and so on one side of any cut"
        ),
        Manner::Late => format!(
            "the load moves to ever {higher} keys, and so past any cut: {share} of it is {above} the key that \
             halved it {seconds} s ago"
        ),
        Manner::Within => format!(
            "{share} of the load moves to ever {higher} keys in one narrow place, such as one tenant's, where \
             nothing was {seconds} s ago, and so on one side of any cut"
        ),
        Manner::Behind => format!(
            "{share} of the load moves to ever {higher} keys behind the rest, and would pass the best cut in \
             about {seconds} s"
        ),
    };
    let front = front.map_or(String::new(), |front| format!("; it was last around {front}"));
    let remedy = remedy.unwrap_or(
        "put something in front of the key that spreads it, such as a hash or the name of a device, instead of a time or \
         a counter",
    );
    format!("not split: {name}; {found}{front}; {remedy}")
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
