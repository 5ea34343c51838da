//! The faults of the cluster. Each switch that is on and concerns processes, clocks or the whole store has a task that
//! lets it strike from time to time, until the calm.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rangehold_engine::{ScanHook, Step};
use rangehold_map::{RangeId, Timestamp};
use tokio::time::sleep;

use super::World;
use crate::chance::Dice;
use crate::faults::Fault;
use crate::store::Refused;

/// The largest error of a clock, and its largest step.
const CLOCK_OFF_MAX_SECONDS: i64 = 15 * 60;
/// How often a clock that stands still is set back.
const STOPPED_CLOCK_EVERY: Duration = Duration::from_millis(100);
/// The number of starts in a crash loop.
const CRASH_LOOP_MAX: u64 = 6;
/// How often a store that takes the calls of a process again begins with those to its ranges. A store may give access by
/// prefix, and not to all prefixes at one moment.
const RANGES_FIRST_SHARE: f64 = 0.5;
/// For how long it takes only those, in milliseconds. A range tries to open its database again each five seconds.
const RANGES_FIRST_MILLIS: (u64, u64) = (2_000, 12_000);
/// How long the store goes on refusing the process before that, if others neither take its ranges nor split one.
const TAKEN_WITHIN: Duration = Duration::from_secs(15);
/// How long a scan is held up between two ranges at most, in milliseconds.
const SCAN_MILLIS_MAX: u64 = 400;

impl World {
    /// Starts a task for each switch that is on.
    pub fn let_loose(&self) {
        for fault in Fault::ALL.into_iter().filter(|fault| self.weather().is_on(*fault)) {
            let (world, mut dice) = (self.clone(), self.dice(&fault.to_string()));
            tokio::spawn(async move {
                if fault == Fault::ClockSkew {
                    return world.skew_clocks(&mut dice);
                }
                loop {
                    sleep(Duration::from_millis(dice.between(500, 14_000))).await;
                    if world.weather().is_calm() {
                        return;
                    }
                    world.strike(fault, &mut dice).await;
                }
            });
        }
    }

    /// One strike of a fault, from its beginning to its end. Faults of single calls strike elsewhere.
    async fn strike(&self, fault: Fault, dice: &mut Dice) {
        let number = dice.index(self.processes());
        match fault {
            Fault::Crash => {
                self.weather().struck(fault);
                self.crash(number);
                self.while_stormy(dice, 10, 4_000).await;
                self.restart(number);
            }
            Fault::CrashLoop => self.crash_loop(number, dice).await,
            Fault::Pause if self.process(number).is_some() => {
                self.weather().struck(fault);
                self.set_paused(number, true);
                // The length is drawn so that short pauses are as frequent as long ones.
                let ms = dice.spread(1_000.0, 60_000.0);
                self.while_stormy_for(Duration::from_millis(ms as u64)).await;
                self.set_paused(number, false);
            }
            Fault::AccessLost if self.process(number).is_some() => self.lose_access(number, dice).await,
            Fault::TwoLives if self.process(number).is_some() => {
                self.weather().struck(fault);
                self.start_twice(number);
                let ms = dice.spread(3_000.0, 40_000.0);
                self.while_stormy_for(Duration::from_millis(ms as u64)).await;
                self.end_old_life(number);
            }
            Fault::SlowProcess => {
                self.weather().struck(fault);
                self.set_slow(number, true);
                self.while_stormy(dice, 2_000, 12_000).await;
                self.set_slow(number, false);
            }
            Fault::ClockStep => {
                self.weather().struck(fault);
                let seconds = dice.spread(1.0, CLOCK_OFF_MAX_SECONDS as f64) as i64;
                let ticks = seconds * Timestamp::TICKS_PER_SECOND;
                self.step_clock(number, if dice.happens(0.5) { ticks } else { -ticks });
            }
            Fault::ClockStop => self.stop_clock(number, dice).await,
            Fault::FlashCrowd => {
                self.weather().set_raging(fault, true);
                self.while_stormy(dice, 500, 2_000).await;
                self.weather().set_raging(fault, false);
            }
            Fault::SlowNetwork | Fault::StoreFull | Fault::SlowStore | Fault::RetryStorm => {
                self.weather().set_raging(fault, true);
                self.while_stormy(dice, 1_000, 10_000).await;
                self.weather().set_raging(fault, false);
            }
            Fault::ThrottledPrefix => {
                self.weather().throttle(Some(self.some_prefix(dice)));
                self.while_stormy(dice, 1_000, 8_000).await;
                self.weather().throttle(None);
            }
            Fault::CrashMidChange => {
                self.set_trap(*dice.pick(&Step::ALL));
            }
            // With one process and no real manager, no second process could be a manager.
            Fault::TwoManagers if self.processes() == 1 && self.0.size.planner.is_none() => {}
            // No other process could take the ranges of a single one.
            Fault::WrongSuspicion if self.processes() == 1 => {}
            Fault::TwoManagers | Fault::ManagerDead | Fault::StaleMap | Fault::WrongSuspicion => {
                self.weather().set_raging(fault, true);
                let ms = dice.spread(1_000.0, 60_000.0);
                self.while_stormy_for(Duration::from_millis(ms as u64)).await;
                self.weather().set_raging(fault, false);
            }
            _ => {}
        }
    }

    /// The hook after each step of a change: a process may have to crash there.
    pub(super) async fn after_step(self, number: usize, life: u64, step: Step, range: RangeId) {
        self.events().add(format_args!("p{number}.{life}"), format_args!("{} of {range}", step.name()));
        let trapped = {
            let mut trap = self.0.trap.lock().unwrap_or_else(PoisonError::into_inner);
            trap.take_if(|trap| *trap == step).is_some()
        };
        let lives = self.process(number).is_some_and(|process| process.life == life);
        if trapped && lives && !self.weather().is_calm() {
            self.weather().struck(Fault::CrashMidChange);
            let mut dice = self.dice(&format!("trap {range} {}", step.name()));
            let world = self.clone();
            tokio::spawn(async move {
                world.crash(number);
                world.while_stormy(&mut dice, 10, 9_000).await;
                world.restart(number);
            });
            std::future::pending::<()>().await;
        }
    }

    /// The hook after each range of a scan, for the process `name`: the scan may be held up there.
    pub(super) fn scan_hook(&self, name: &str) -> ScanHook {
        let (weather, dice) = (self.weather().clone(), Mutex::new(self.dice(&format!("{name} scans"))));
        ScanHook::new(move |_, _| {
            let mut dice = dice.lock().unwrap_or_else(PoisonError::into_inner);
            let millis =
                weather.strikes(Fault::SlowScan, &mut dice).then(|| dice.between(1, SCAN_MILLIS_MAX));
            async move {
                if let Some(millis) = millis {
                    sleep(Duration::from_millis(millis)).await;
                }
            }
        })
    }

    async fn crash_loop(&self, number: usize, dice: &mut Dice) {
        for _ in 0..dice.between(2, CRASH_LOOP_MAX) {
            if self.weather().is_calm() {
                break;
            }
            self.weather().struck(Fault::CrashLoop);
            self.crash(number);
            self.while_stormy(dice, 1, 200).await;
            self.restart(number);
            self.while_stormy(dice, 5, 1_500).await;
        }
    }

    /// The store refuses the calls of a process for a while. Sometimes that lasts until others have its ranges and
    /// have split or merged one of them, and then the process reaches its databases before it can learn of that.
    async fn lose_access(&self, number: usize, dice: &mut Dice) {
        self.weather().struck(Fault::AccessLost);
        let held = self.held_by(number);
        self.set_refused(number, Refused::All);
        let ms = dice.spread(1_000.0, 30_000.0);
        self.while_stormy_for(Duration::from_millis(ms as u64)).await;
        if dice.happens(RANGES_FIRST_SHARE) {
            let until = self.now() + TAKEN_WITHIN;
            while self.now() < until
                && !self.weather().is_calm()
                && !self.replace_taken(number, &held, dice).await
            {
                self.while_stormy(dice, 100, 500).await;
            }
            if !self.weather().is_calm() {
                self.set_refused(number, Refused::AllButRanges);
                self.while_stormy(dice, RANGES_FIRST_MILLIS.0, RANGES_FIRST_MILLIS.1).await;
            }
        }
        self.set_refused(number, Refused::Nothing);
    }

    async fn stop_clock(&self, number: usize, dice: &mut Dice) {
        self.weather().struck(Fault::ClockStop);
        let ticks = i64::try_from(STOPPED_CLOCK_EVERY.as_nanos() / 100).unwrap_or(i64::MAX);
        for _ in 0..dice.between(10, 120) {
            if self.weather().is_calm() {
                break;
            }
            sleep(STOPPED_CLOCK_EVERY).await;
            self.step_clock(number, -ticks);
        }
    }

    fn skew_clocks(&self, dice: &mut Dice) {
        for number in 0..self.processes() {
            self.weather().struck(Fault::ClockSkew);
            let ticks = CLOCK_OFF_MAX_SECONDS * Timestamp::TICKS_PER_SECOND;
            let off = dice.below(2 * ticks.unsigned_abs());
            self.step_clock(number, i64::try_from(off).unwrap_or(0) - ticks);
        }
    }

    fn some_prefix(&self, dice: &mut Dice) -> String {
        let prefixes =
            ["ranges/", "cluster/map", "cluster/", "changes/", "ranges/1-", "ranges/2-", "ranges/3-"];
        (*dice.pick(&prefixes)).to_owned()
    }

    /// Waits between `low` and `high` milliseconds, or until the calm.
    async fn while_stormy(&self, dice: &mut Dice, low: u64, high: u64) {
        self.while_stormy_for(Duration::from_millis(dice.between(low, high))).await;
    }

    async fn while_stormy_for(&self, wait: Duration) {
        let until = self.now() + wait;
        while self.now() < until && !self.weather().is_calm() {
            sleep(Duration::from_millis(100).min(until - self.now())).await;
        }
    }
}
