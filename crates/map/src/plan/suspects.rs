//! Which ranges may have brought servers down.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Policy;
use crate::range::{RangeId, ServerId};

/// Remembers, for every range, which servers ended unasked while they held it.
///
/// A range whose requests kill its owner would be given to the next server, and kill that: so it
/// would walk through the fleet. The first end of a server makes all its ranges suspects; they are
/// spread, one to a server as far as there are servers, so that the second end names the culprit.
///
/// Different servers are counted, not ends: one server that ends again and again says nothing about
/// its ranges. Time comes in, as the time since any fixed moment.
#[derive(Debug, Clone, Default)]
pub struct Suspects {
    ends: BTreeMap<RangeId, Vec<(ServerId, Duration)>>,
}

impl Suspects {
    /// Notes that `server` ended unasked at `now` while it held `ranges`. A server that was told to
    /// stop, or was found without its lease but alive, is not to be noted.
    pub fn ended(&mut self, server: ServerId, ranges: impl IntoIterator<Item = RangeId>, now: Duration) {
        for range in ranges {
            let ends = self.ends.entry(range).or_default();
            ends.retain(|(other, _)| *other != server);
            ends.push((server, now));
        }
    }

    /// How many different servers are held against `range` at `now`.
    pub fn crashes(&self, range: RangeId, now: Duration, policy: &Policy) -> u32 {
        let Some(ends) = self.ends.get(&range) else { return 0 };
        ends.iter().filter(|(_, at)| now.saturating_sub(*at) < policy.crash_memory).count() as u32
    }

    /// Lets go of `range`: someone looked into it and set it online again.
    pub fn acquit(&mut self, range: RangeId) {
        self.ends.remove(&range);
    }

    /// Drops what is no longer held against anyone.
    pub fn forget(&mut self, now: Duration, policy: &Policy) {
        self.ends.retain(|_, ends| {
            ends.retain(|(_, at)| now.saturating_sub(*at) < policy.crash_memory);
            !ends.is_empty()
        });
    }
}
