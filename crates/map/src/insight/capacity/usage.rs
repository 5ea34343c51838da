//! How long a span has been used, and what is seen of its load meanwhile.
//!
//! The time in which a span must be used is cut into twenty slots. A slot counts if the demand in it was at least half of
//! the capacity. Two slots in a row that do not count end the use: the demand pauses. One may, since demand comes by
//! chance, above all at small rates.

use std::time::Duration;

use super::look::{Cut, Look, Undivided};
use super::rules::Rules;

/// Slots in the time in which a span must be used.
const SLOTS: u32 = 20;

/// The use of a span that is under way.
#[derive(Debug, Clone)]
pub(super) struct Used {
    pub(super) since: Duration,
    slot_begun: Duration,
    /// Demand of this slot, and of the whole time, in units times seconds.
    in_slot: f64,
    in_all: f64,
    idle_slots: u32,
    pub(super) look: Look,
}

/// What became of a use in some time.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Became {
    GoesOn,
    Paused,
    /// It lasted long enough, and the load divides, or it does not.
    Complete(Result<Cut, Undivided>),
}

impl Used {
    pub(super) fn new(since: Duration, seed: u64) -> Self {
        let look = Look::new(seed);
        Self { since, slot_begun: since, in_slot: 0.0, in_all: 0.0, idle_slots: 0, look }
    }

    /// Counts the demand, in units, of the time that ends now. `least` is what counts as use.
    pub(super) fn tick(
        &mut self,
        passed: Duration,
        now: Duration,
        demand: f64,
        least: f64,
        rules: &Rules,
    ) -> Became {
        self.in_slot += demand * passed.as_secs_f64();
        self.in_all += demand * passed.as_secs_f64();
        let slot = now.saturating_sub(self.slot_begun);
        if slot >= rules.doubles_after / SLOTS {
            let is_idle = self.in_slot < least * slot.as_secs_f64();
            self.idle_slots = if is_idle { self.idle_slots + 1 } else { 0 };
            (self.slot_begun, self.in_slot) = (now, 0.0);
            if self.idle_slots >= 2 {
                return Became::Paused;
            }
        }
        let so_far = now.saturating_sub(self.since);
        self.look.go_on(so_far.as_secs_f64() / rules.doubles_after.as_secs_f64());
        match so_far >= rules.doubles_after {
            false => Became::GoesOn,
            true if self.in_all < least * so_far.as_secs_f64() => Became::Paused,
            true => Became::Complete(self.look.cut()),
        }
    }
}
