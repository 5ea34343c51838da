//! How long tenants were held up, and by what. Times are microseconds of the machine's clock, since writers are processes
//! of their own.

use super::attempt::Attempt;

/// A time in which something was at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spell {
    pub from: i64,
    pub to: i64,
}

impl Spell {
    /// How much of an attempt lies in it.
    fn share(&self, attempt: &Attempt) -> i64 {
        (self.to.min(attempt.ended) - self.from.max(attempt.began)).max(0)
    }

    /// Whether some of an attempt lies in it.
    pub fn touches(&self, attempt: &Attempt) -> bool {
        attempt.began <= self.to && self.from <= attempt.ended
    }
}

/// The longest time that an attempt waited in one of the spells, without the pauses of its writer. Attempts while a server
/// was down are left out.
pub fn longest(attempts: &[Attempt], spells: &[Spell], outages: &[Spell]) -> i64 {
    let undisturbed = attempts.iter().filter(|one| !outages.iter().any(|outage| outage.touches(one)));
    let waited = undisturbed.flat_map(|one| spells.iter().map(|spell| spell.share(one).min(one.waited())));
    waited.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::attempt::Outcome;

    fn attempt(began: i64, ended: i64, pause: i64) -> Attempt {
        let (door, what) = (String::new(), String::new());
        Attempt { n: 1, rows: 1, outcome: Outcome::Refused, door, tenant: 1, began, ended, pause, what }
    }

    #[test]
    fn a_wait_counts_inside_of_a_spell_without_its_pause() {
        let spells = [Spell { from: 100, to: 200 }, Spell { from: 1_000, to: 2_000 }];
        assert_eq!(longest(&[attempt(50, 150, 0)], &spells, &[]), 50);
        assert_eq!(longest(&[attempt(50, 150, 80)], &spells, &[]), 20);
        assert_eq!(longest(&[attempt(300, 900, 0)], &spells, &[]), 0);
        assert_eq!(longest(&[attempt(110, 120, 0), attempt(900, 3_000, 0)], &spells, &[]), 1_000);
    }

    #[test]
    fn a_wait_during_an_outage_does_not_count() {
        let (spell, outage) = (Spell { from: 0, to: 1_000 }, Spell { from: 500, to: 600 });
        assert_eq!(longest(&[attempt(0, 450, 0), attempt(400, 1_000, 0)], &[spell], &[outage]), 450);
    }
}
