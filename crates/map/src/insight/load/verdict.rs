//! Verdicts: what was found about a hot range, and how it is said.

use std::time::Duration;

use strum::IntoStaticStr;

use super::partition::{in_words, row_in_words};
use super::top_keys::HotRow;
use crate::key::TableId;

/// What was decided about a hot range, when, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What was decided, with the figures it was decided by.
    pub cause: Cause,
    /// When, since the process began.
    pub at: Duration,
    /// When it ends: then the range, if it is still hot, is looked at again. It ends earlier when the
    /// load changes clearly.
    pub until: Duration,
}

/// Why a range is split, or why it is not. Shares are of the load (requests, the dear ones counted
/// several times, refused ones too) in the last look, from 0 to 1.
#[derive(Debug, Clone, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Cause {
    /// A cut that halves the load and is expected to go on doing so.
    Split {
        /// The cut: no partition lies on both sides.
        at: Vec<u8>,
        /// The share of the load at the cut and above.
        above: f64,
        /// The load beyond the cut is an append (or prepend) that goes on; the cut keeps the reads of what
        /// is already there apart from it.
        frontier: bool,
    },
    /// One partition has so much of the load that no cut relieves the range.
    HotKey {
        /// The bytes that the partition's keys begin with.
        key: Vec<u8>,
        /// Its share.
        share: f64,
        /// The row that most of that goes to, if there is one.
        row: Option<HotRow>,
    },
    /// The load moves on to ever higher keys.
    Append(Travel),
    /// The load moves on to ever lower keys.
    Prepend(Travel),
    /// Requests span so much that they would touch both sides of any cut.
    Scan {
        /// The share that touches both sides of the most balanced cut.
        share: f64,
    },
    /// Nothing of the above, and no good cut.
    Unclear(Doubt),
}

/// A load that moves through the keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Travel {
    /// How it was seen, which says what the figures mean.
    pub manner: Manner,
    /// A share of the load.
    pub share: f64,
    /// A time.
    pub over: Duration,
    /// A partition where it was when it was last looked at; empty if that is not known.
    pub front: Vec<u8>,
}

/// How it was seen that a load moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// `share` lies beyond the key that was the last of all `over` ago.
    Ahead,
    /// `share` lies beyond the key that halved the load `over` ago: it moves slowly for its width, as when
    /// entries come late by some minutes.
    Late,
    /// `share` moves on between two keys that were neighbours `over` ago: in one narrow place, such as one
    /// tenant's, with other load on both sides.
    Within,
    /// `share` moves towards the best cut and has passed it after `over`: one of several streams, such as
    /// of clocks that differ.
    Behind,
}

/// What is wrong with the best cut that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Doubt {
    /// The balance changed: the shares of the load above the cut, earlier and now.
    Shifts {
        /// In the second look.
        before: f64,
        /// In the last look.
        now: f64,
        /// The time between the two.
        over: Duration,
    },
    /// Balanced over seconds, but at any moment most is on one side: the share of the larger side.
    Swings {
        /// Of the larger side, on average over single seconds.
        larger: f64,
    },
    /// From one look to the next the load went where none was before, but not steadily one way.
    Wanders {
        /// The share that was beyond all that the look before had seen, when it was the most.
        share: f64,
        /// The length of a look.
        over: Duration,
    },
    /// The larger side has so much in every look.
    Uneven {
        /// Its share.
        larger: f64,
    },
    /// Too few requests to tell a drift from chance.
    Few,
}

impl Cause {
    /// One word, as it is shown in tables and counted in metrics.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl Verdict {
    /// What was found and what to do, for a person. `table_name` tells the name of an account's table, if
    /// it is known; else the table's id stands for it.
    pub fn sentence(&self, table_name: &dyn Fn(&str, TableId) -> Option<String>) -> String {
        match &self.cause {
            Cause::Split { at, above, frontier } => {
                let (below, above) = (percent(1.0 - above), percent(*above));
                let at = in_words(at, table_name);
                if *frontier {
                    format!(
                        "to be split at {at}: {above} of the load is above it and {below} below, where new keys \
                         are added on one side and old ones are read on the other; the side that grows will not \
                         be split further, so let its keys begin with something that spreads them"
                    )
                } else {
                    format!("to be split at {at}: {above} of the load is above it and {below} below")
                }
            }
            Cause::HotKey { key, share, row } => hot_key(&in_words(key, table_name), *share, row.as_ref()),
            Cause::Append(travel) | Cause::Prepend(travel) => {
                let front = Some(&travel.front).filter(|front| !front.is_empty());
                let front = front.map(|front| in_words(front, table_name));
                let words = match self.cause {
                    Cause::Append(_) => ["higher", "above", "highest"],
                    _ => ["lower", "below", "lowest"],
                };
                travels(travel, self.cause.name(), words, front.as_deref())
            }
            Cause::Scan { share } => format!(
                "not split: scans; {} of the load are scans that would touch both sides of a cut, so that both \
                 would do the work of one; ask for less at a time: one PartitionKey, or a narrower interval",
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

fn travels(travel: &Travel, name: &str, [higher, above, highest]: [&str; 3], front: Option<&str>) -> String {
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
    format!(
        "not split: {name}; {found}{front}; put something in front of the key that spreads it, such as a hash or the \
         name of a device, instead of a time or a counter"
    )
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
