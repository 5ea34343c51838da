//! What protects a generation from deletion and replacement: holds, the bucket's retention period, and a retention
//! of its own.

use super::{Generation, RetentionMode, Settings, State};
use crate::object::error::{ErrorKind, ObjectError};
use crate::object::micros::Micros;

impl Generation {
    /// When the protection by retention ends. `period_seconds` is the retention period of the bucket. `None` if there
    /// is none, and while an event-based hold leaves the end open.
    pub fn retention_expiration(&self, period_seconds: Option<u64>) -> Option<Micros> {
        let own = self.settings.retention.map(|retention| retention.retain_until_time);
        if self.settings.is_held_for_event() {
            return own;
        }
        let start = self.released.map_or(self.created, |released| released.max(self.created));
        own.max(period_seconds.map(|seconds| start.plus_seconds(seconds)))
    }

    /// Checks that the generation of `bucket/name` may be deleted or replaced at `now`.
    pub fn check_unprotected(
        &self,
        bucket: &str,
        name: &str,
        period_seconds: Option<u64>,
        now: Micros,
    ) -> Result<(), ObjectError> {
        let hold = match (self.settings.is_held_for_now(), self.settings.is_held_for_event()) {
            (true, _) => Some("Temporary"),
            (_, true) => Some("Event-Based"),
            _ => None,
        };
        if let Some(hold) = hold {
            let message = format!(
                "Object '{bucket}/{name}' is under active {hold} hold and cannot be deleted, overwritten or \
                 archived until hold is removed."
            );
            return Err(ObjectError::new(ErrorKind::Hold, message));
        }
        match self.retention_expiration(period_seconds) {
            Some(end) if end > now => {
                let message = format!(
                    "Object '{bucket}/{name}' is subject to bucket's retention policy or object retention and \
                     cannot be deleted or overwritten until {}",
                    end.text()
                );
                Err(ObjectError::new(ErrorKind::Retention, message))
            }
            _ => Ok(()),
        }
    }

    /// The settings become `new` at `now`. Fails where that would weaken a retention of the object; `may_override`
    /// tells whether the request allows that for one that is not locked. `can_retain` tells whether the bucket lets
    /// its objects have retentions.
    pub fn change_settings(
        &mut self,
        new: Settings,
        may_override: bool,
        can_retain: bool,
        now: Micros,
    ) -> Result<(), ObjectError> {
        if new.retention != self.settings.retention {
            check_retention(&self.settings, &new, may_override, can_retain)?;
        }
        if self.settings.is_held_for_event() && !new.is_held_for_event() {
            self.released = Some(now);
        }
        self.settings = new;
        self.metageneration += 1;
        self.updated = now;
        Ok(())
    }

    /// Whether it can still be restored at `now`.
    pub fn can_be_restored(&self, now: Micros) -> bool {
        matches!(self.state, State::SoftDeleted { hard_delete, .. } if hard_delete > now)
    }
}

/// Checks a change of the retention from that in `old` to that in `new`.
fn check_retention(
    old: &Settings,
    new: &Settings,
    may_override: bool,
    can_retain: bool,
) -> Result<(), ObjectError> {
    if new.retention.is_some() && !can_retain {
        let hint = "The bucket was not created with object retention enabled.";
        return Err(ObjectError::invalid("retention", "a retention", hint));
    }
    let Some(old) = old.retention else { return Ok(()) };
    let weaker = new.retention.is_none_or(|new| {
        new.retain_until_time < old.retain_until_time
            || (old.mode == RetentionMode::Locked && new.mode == RetentionMode::Unlocked)
    });
    let why = match (weaker, old.mode, may_override) {
        (false, ..) | (true, RetentionMode::Unlocked, true) => return Ok(()),
        (true, RetentionMode::Locked, _) => "It is locked and can only be prolonged.",
        (true, RetentionMode::Unlocked, false) => {
            "Set overrideUnlockedRetention to shorten or remove a retention that is not locked."
        }
    };
    let message = format!("The object is retained until {}. {why}", old.retain_until_time.text());
    Err(ObjectError::new(ErrorKind::Retention, message))
}

#[cfg(test)]
mod tests {
    use super::super::Retention;
    use super::super::tests::generation;
    use super::*;

    const NOW: Micros = Micros::new(1_700_000_000_000_000);

    fn status(generation: &Generation, period: Option<u64>, seconds: u64) -> u16 {
        let now = NOW.plus_seconds(seconds);
        generation.check_unprotected("b", "o", period, now).err().map_or(200, |error| error.kind.status())
    }

    #[test]
    fn holds_and_periods_protect() {
        let mut generation = generation(1_700_000_000_000_000);
        assert_eq!(status(&generation, None, 0), 200);
        assert_eq!(status(&generation, Some(10), 9), 403);
        assert_eq!(status(&generation, Some(10), 10), 200);
        generation.settings.temporary_hold = Some(true);
        assert_eq!(status(&generation, None, 1_000), 403);
    }

    #[test]
    fn a_period_counts_from_the_release_of_an_event_based_hold() {
        let mut generation = generation(1_700_000_000_000_000);
        let held = Settings { event_based_hold: Some(true), ..generation.settings.clone() };
        let free = generation.settings.clone();
        generation.change_settings(held, false, false, NOW).expect("holds are always allowed");
        assert_eq!(generation.retention_expiration(Some(10)), None);
        generation.change_settings(free, false, false, NOW.plus_seconds(100)).expect("released");
        assert_eq!(generation.metageneration, 3);
        assert_eq!(status(&generation, Some(10), 109), 403);
        assert_eq!(status(&generation, Some(10), 110), 200);
    }

    #[test]
    fn a_retention_is_weakened_only_where_it_may_be() {
        let until = |mode, seconds| Settings {
            retention: Some(Retention { mode, retain_until_time: NOW.plus_seconds(seconds) }),
            ..Settings::default()
        };
        let change = |from: Settings, to: Settings, may_override| {
            let mut generation = generation(1_700_000_000_000_000);
            generation.settings = from;
            generation.change_settings(to, may_override, true, NOW).is_ok()
        };
        use RetentionMode::{Locked, Unlocked};
        assert!(change(Settings::default(), until(Unlocked, 5), false));
        assert!(change(until(Unlocked, 5), until(Locked, 5), false));
        assert!(change(until(Locked, 5), until(Locked, 6), false));
        assert!(!change(until(Locked, 5), until(Locked, 4), true));
        assert!(!change(until(Locked, 5), until(Unlocked, 9), true));
        assert!(!change(until(Unlocked, 5), Settings::default(), false));
        assert!(change(until(Unlocked, 5), Settings::default(), true));
        let mut generation = generation(1);
        let refused = generation.change_settings(until(Unlocked, 5), true, false, NOW);
        assert_eq!(refused.expect_err("the bucket has no retentions").kind.status(), 400);
    }
}
