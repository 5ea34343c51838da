//! The sentences of a report.

use std::fmt;
use std::time::Duration;

use super::{BusyWait, MergeWait, NoSplit, Reported, SplitWait};

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rehomed { range, from, dead, to } => {
                let state = if *dead { "dead" } else { "leaving" };
                write!(f, "{range} goes to {to}: its server {from} is {state}")
            }
            Self::Quarantined { range, crashes } => write!(
                f,
                "{range} is set offline: {crashes} servers crashed while they held it; \
                 find out why before you set it online"
            ),
            Self::TooManySuspects { ranges } => write!(
                f,
                "{ranges} ranges held servers that crashed, too many for one bad range to be the cause: \
                 they are served again"
            ),
            Self::Split { range, rate, above } => {
                write!(f, "{range} with {rate:.0}/s is split: {} of that goes above the cut", Percent(*above))
            }
            Self::Moved { range, rate, from, from_utilisation, to, to_utilisation } => write!(
                f,
                "{range} with {rate:.0}/s moves from {from} ({} busy) to {to} ({})",
                Percent(*from_utilisation),
                Percent(*to_utilisation)
            ),
            Self::Merged { left, right, peak, moves_first } => {
                write!(f, "{left} and {right} become one: at most {peak:.0}/s together in ten minutes")?;
                match moves_first {
                    Some((from, to)) => write!(f, "; first {right} moves from {from} to {to}"),
                    None => Ok(()),
                }
            }
            Self::SplitWaits { range, until } => write!(f, "{range} is split later: {until}"),
            Self::NotSplit { range, rate, why } => {
                write!(f, "{range} with {rate:.0}/s is not split: {why}")
            }
            Self::MergeWaits { left, right, until } => write!(f, "{left} merges with {right} {until}"),
            Self::FewRanges { ranges, merging, kept } => {
                match merging {
                    0 => write!(f, "no cold ranges merge: there are {ranges} ranges")?,
                    _ => {
                        write!(f, "no more cold ranges merge: after these merges there are {ranges} ranges")?
                    }
                }
                write!(f, ", and up to {kept} are kept to spread load over")
            }
            Self::StaysBusy { server, over_mean, why } => {
                write!(f, "{server} has {over_mean:.2} times the mean load: {why}")
            }
            Self::Calm { utilisation, from } => write!(
                f,
                "nothing moves: the busiest server uses {} of its capacity, and moves begin at {}",
                Percent(*utilisation),
                Percent(*from)
            ),
            Self::Floor { range, rate, mean, floor, why } => {
                write!(
                    f,
                    "the busiest server cannot come below {floor:.2} times the mean: {range} alone has \
                     {rate:.0}/s, and a server has {mean:.0}/s on average"
                )?;
                why.map_or(Ok(()), |why| write!(f, "; {why}"))
            }
            Self::Unfinished { range, doing, server } => write!(
                f,
                "{range} is {doing} and its server {server} does not serve: that change has to be finished or undone first"
            ),
            Self::OfflineWithoutServer { range, server } => write!(
                f,
                "{range} is offline and its server {server} is gone: it gets another when it is set online"
            ),
            Self::RehomeWaits { range, server } => {
                write!(f, "{range} cannot leave {server} yet: another change of it is under way")
            }
            Self::NoServer { ranges } => write!(f, "no server serves, and {ranges} ranges need one"),
            Self::Unseen { ranges } => {
                write!(f, "{ranges} ranges were not observed: nothing is decided about them")
            }
            Self::Omitted { kind, lines } => write!(f, "and {lines} more lines of the kind {kind:?}"),
        }
    }
}

impl fmt::Display for SplitWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn { limit: 1 } => write!(f, "one range is split at a time, the hottest first"),
            Self::Turn { limit } => write!(f, "{limit} ranges are split at a time, the hottest first"),
            Self::Room { limit } => write!(f, "{limit} ranges are as many as these servers may have"),
            Self::Busy => write!(f, "it is offline, or another change of it is under way"),
            Self::NewVerdict => write!(f, "its keys have changed since its load was judged"),
        }
    }
}

impl fmt::Display for NoSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HotKey(share) => write!(f, "one partition has {} of it", Percent(*share)),
            Self::Append(share) => {
                write!(f, "{} of it goes above the highest keys so far", Percent(*share))
            }
            Self::Prepend(share) => {
                write!(f, "{} of it goes below the lowest keys so far", Percent(*share))
            }
            Self::Scan(share) => write!(f, "{} of it reads across any cut", Percent(*share)),
            Self::Unclear => write!(f, "no cut divides it evenly and stays even"),
        }
    }
}

impl fmt::Display for MergeWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unchanged { left, of } => {
                write!(f, "in {}: both must be unchanged for {}", Span(*left), Span(*of))
            }
            Self::Budget { share } => {
                write!(
                    f,
                    "later: one of them has to move first, and {} of all load moves already",
                    Percent(*share)
                )
            }
            Self::Turn { server } => write!(f, "later: {server} is in another merge"),
        }
    }
}

impl fmt::Display for BusyWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { share } => {
                write!(f, "it gives more next time: only {} of all load moves at once", Percent(*share))
            }
            Self::CoolDown { range, left } => {
                write!(f, "{range} came a short while ago and stays {}", Span(*left))
            }
            Self::Settling { range, left } => {
                write!(f, "{range} is new, and its load is known in {}", Span(*left))
            }
            Self::UnderWay { range } => write!(f, "a change of {range} is under way"),
            Self::NothingFits => write!(f, "none of its ranges would be better off elsewhere"),
        }
    }
}

/// A share, for people.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} %", self.0 * 100.0)
    }
}

/// A length of time, for people: "4 min 10 s".
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Upwards, so that what is waited for is not announced too early.
        let seconds = self.0.as_millis().div_ceil(1_000);
        match (seconds / 60, seconds % 60) {
            (0, seconds) => write!(f, "{seconds} s"),
            (minutes, 0) => write!(f, "{minutes} min"),
            (minutes, seconds) => write!(f, "{minutes} min {seconds} s"),
        }
    }
}
