//! How often the global map is asked about a shard that can't be reached.
//!
//! A shard may be unreachable because it has moved. So a client that cannot connect asks the global map. But if a
//! shard is simply down, all its clients would ask again and again. So after a look with nothing new, the next look
//! is due in 5 s, and then in 10, 20, 30, 30 ... seconds, until a connection succeeds. These are the numbers of the
//! elastic database library.

use std::collections::HashMap;
use std::time::Duration;

use rangehold_map::shard::MappingId;
use tokio::time::Instant;

use crate::limits::{BACKED_OFF_MAPPINGS_MAX, LOOK_AGAIN_MAX, LOOK_AGAIN_MIN};

/// The mappings whose shard could not be reached.
#[derive(Debug, Default)]
pub(super) struct Backoff(HashMap<MappingId, Entry>);

#[derive(Debug)]
struct Entry {
    pause: Duration,
    due: Instant,
}

impl Backoff {
    /// Whether the caller may ask the global map now. If one caller may, no other may until the next look is due.
    pub(super) fn may_look(&mut self, mapping: MappingId, now: Instant) -> bool {
        if self.0.len() >= BACKED_OFF_MAPPINGS_MAX {
            self.0.retain(|_, entry| now < entry.due);
        }
        match self.0.get_mut(&mapping) {
            Some(entry) if now < entry.due => false,
            Some(entry) => {
                entry.pause = (entry.pause * 2).min(LOOK_AGAIN_MAX);
                entry.due = now + entry.pause;
                true
            }
            None => {
                // If the table is full of mappings that wait, none of them is forgotten. The global map is asked
                // about this one more often than it should be.
                if self.0.len() < BACKED_OFF_MAPPINGS_MAX {
                    self.0.insert(mapping, Entry { pause: LOOK_AGAIN_MIN, due: now + LOOK_AGAIN_MIN });
                }
                true
            }
        }
    }

    /// Notes that the shard was reached.
    pub(super) fn reached(&mut self, mapping: MappingId) {
        self.0.remove(&mapping);
    }

    /// The pause between two looks; zero if the last attempt reached the shard.
    pub(super) fn pause(&self, mapping: MappingId) -> Duration {
        self.0.get(&mapping).map_or(Duration::ZERO, |entry| entry.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_end_with_success() {
        let (mut backoff, mapping, start) =
            (Backoff::default(), MappingId(uuid::Uuid::nil()), Instant::now());
        let mut now = start;
        for seconds in [5, 10, 20, 30, 30] {
            assert!(backoff.may_look(mapping, now));
            assert_eq!(backoff.pause(mapping), Duration::from_secs(seconds));
            assert!(!backoff.may_look(mapping, now), "a second one at once");
            now += Duration::from_secs(seconds);
            assert!(!backoff.may_look(mapping, now - Duration::from_millis(1)));
        }
        backoff.reached(mapping);
        assert_eq!(backoff.pause(mapping), Duration::ZERO);
        assert!(backoff.may_look(mapping, start));
    }
}
