//! Everything that can go wrong, as switches. Each is on in some seeds and off in the others.
//!
//! | catalogue | switch, or why one process cannot have it |
//! |---|---|
//! | **process** crash | [`Fault::Crash`] |
//! | crash loop | [`Fault::CrashLoop`] |
//! | stopped for 1-60 s (zombie) | [`Fault::Pause`] |
//! | started while it still runs | [`Fault::TwoLives`] |
//! | slow CPU | [`Fault::SlowProcess`]: as its callers see it, by calls that take long; [`Fault::SlowScan`] |
//! | out of memory | like a crash. That memory is bounded is measured on real processes |
//! | **clock** skew of 15 min | [`Fault::ClockSkew`] |
//! | jump, run backwards | [`Fault::ClockStep`] |
//! | stop | [`Fault::ClockStop`] |
//! | **network** drop, half open | [`Fault::LostReply`]: the reply never comes, the connection hangs |
//! | delay, clog, reorder | [`Fault::SlowNetwork`]; connections overtake one another in any case |
//! | duplicates | [`Fault::DuplicateRequest`] |
//! | partitions between front end, partition server and manager | not here: they call each other, and use no network yet |
//! | **store** 503, slow down | [`Fault::StoreBusy`] |
//! | timeout before the effect | [`Fault::TimeoutBefore`] |
//! | timeout after the effect | [`Fault::TimeoutAfter`] |
//! | lost response | [`Fault::LostResponse`] |
//! | CAS conflict with own earlier try | [`Fault::OwnConflict`] |
//! | stale LIST | [`Fault::StaleList`]; not of manifests, which the engine below a range must see as they are |
//! | torn append | [`Fault::TornUpload`]: a store has no appends; the upload of a file breaks off |
//! | bit flip | [`Fault::FlippedBit`], while it is read: nothing here changes what is stored |
//! | truncated read | [`Fault::TruncatedRead`], of all kinds of files |
//! | misdirected read | [`Fault::MisdirectedRead`] |
//! | ENOSPC | [`Fault::StoreFull`] |
//! | 10x latency | [`Fault::SlowStore`] |
//! | throttled per prefix | [`Fault::ThrottledPrefix`] |
//! | one process refused, in a way that is not tried again | [`Fault::AccessLost`]; its ranges are given to others |
//! | one write refused, in a way that is not tried again | [`Fault::WriteDenied`] |
//! | **control** two managers | [`Fault::TwoManagers`] |
//! | manager that takes a living process for dead | [`Fault::WrongSuspicion`] |
//! | manager dead for long | [`Fault::ManagerDead`], for up to the whole run |
//! | stale map at a front end | [`Fault::StaleMap`] |
//! | restart in the middle of a change | [`Fault::CrashMidChange`] |
//! | map rolled back, upgrade N, N+1, N | not here: a run has one version of the program, and its store is never restored |
//! | **load** flash crowd | [`Fault::FlashCrowd`] |
//! | retry storm | [`Fault::RetryStorm`] |
//! | poison request | not here: no request is known that ends a server; if one did, the run would fail |
//! | **client** slow body | [`Fault::SlowBody`] |
//! | cancelled request | [`Fault::CancelledRequest`] |
//! | duplicate request ids | [`Fault::DuplicateRequest`] |
//!
//! The end of each run is *calm*: the switches go off, processes that crashed or were stopped come back, and then the
//! cluster must serve everything again.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::chance::{Chance, Dice};

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A process ends at a random moment, and comes back after a while.
    Crash,
    /// A process ends as soon as it has started, several times in a row.
    CrashLoop,
    /// A process is stopped for 1 to 60 s, and then goes on as if nothing had happened.
    Pause,
    /// A process is started although its life before still runs, and clients still talk to that one.
    TwoLives,
    /// The calls of one process take ten times as long for a while.
    SlowProcess,
    /// A scan is held up between two ranges.
    SlowScan,
    /// A process's wall clock is up to 15 minutes off.
    ClockSkew,
    /// A process's wall clock steps, ahead or back, by up to 15 minutes.
    ClockStep,
    /// A process's wall clock stands still for a while.
    ClockStop,
    /// The reply to a request never arrives, though the connection stays.
    LostReply,
    /// Requests and replies take long.
    SlowNetwork,
    /// A call of the store is refused: "slow down".
    StoreBusy,
    /// A call of the store has no effect, and an error comes late.
    TimeoutBefore,
    /// A call of the store has its effect, and an error comes late.
    TimeoutAfter,
    /// A call of the store has its effect, and an error comes at once.
    LostResponse,
    /// A conditional put has its effect, but the answer says that another writer was faster. The other writer was in
    /// fact its own first try.
    OwnConflict,
    /// A listing shows the state of up to 2 s before.
    StaleList,
    /// The upload of a file breaks off in the middle, and no part of the file exists.
    TornUpload,
    /// A read returns one wrong bit; the stored file stays right.
    FlippedBit,
    /// A read returns bytes of another object of the same kind, or of another place in the object.
    MisdirectedRead,
    /// A read returns fewer bytes than were asked for.
    TruncatedRead,
    /// The store takes no writes for a while.
    StoreFull,
    /// The store takes ten times as long for a while.
    SlowStore,
    /// All calls below one prefix are refused for a while.
    ThrottledPrefix,
    /// The store refuses all calls of one process for a while, and says that trying again does not help. The manager
    /// takes the process for dead. Sometimes the store takes the calls to its ranges again before the others.
    AccessLost,
    /// The store refuses a single write, and says that trying again does not help. The database that wrote is lost.
    WriteDenied,
    /// Two managers work at the same time.
    TwoManagers,
    /// There is no manager for a while.
    ManagerDead,
    /// A front end does not see new maps for a while.
    StaleMap,
    /// A process crashes at a named step of a split, merge or move.
    CrashMidChange,
    /// Many clients come at once, all to one partition.
    FlashCrowd,
    /// Clients that are refused try again at once, and again.
    RetryStorm,
    /// The body of a request comes slowly.
    SlowBody,
    /// A client hangs up before the reply is there.
    CancelledRequest,
    /// A request arrives twice, with the same request id.
    DuplicateRequest,
    /// A manager gives the ranges of processes that work to others.
    WrongSuspicion,
}

impl Fault {
    /// All switches, in the order of the table.
    pub const ALL: [Self; 36] = [
        Self::Crash,
        Self::CrashLoop,
        Self::Pause,
        Self::TwoLives,
        Self::SlowProcess,
        Self::SlowScan,
        Self::ClockSkew,
        Self::ClockStep,
        Self::ClockStop,
        Self::LostReply,
        Self::SlowNetwork,
        Self::StoreBusy,
        Self::TimeoutBefore,
        Self::TimeoutAfter,
        Self::LostResponse,
        Self::OwnConflict,
        Self::StaleList,
        Self::TornUpload,
        Self::FlippedBit,
        Self::MisdirectedRead,
        Self::TruncatedRead,
        Self::StoreFull,
        Self::SlowStore,
        Self::ThrottledPrefix,
        Self::AccessLost,
        Self::WriteDenied,
        Self::TwoManagers,
        Self::ManagerDead,
        Self::StaleMap,
        Self::CrashMidChange,
        Self::FlashCrowd,
        Self::RetryStorm,
        Self::SlowBody,
        Self::CancelledRequest,
        Self::DuplicateRequest,
        Self::WrongSuspicion,
    ];

    fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // People write `StoreBusy` as `store-busy`.
        for (at, letter) in format!("{self:?}").char_indices() {
            if letter.is_uppercase() && at > 0 {
                f.write_str("-")?;
            }
            write!(f, "{}", letter.to_ascii_lowercase())?;
        }
        Ok(())
    }
}

/// The share of seeds without any fault. In these no client may see an error, even while ranges are split, merged or
/// moved.
const FAULTLESS_SHARE: f64 = 0.12;
/// The probability that a switch is on in a seed with faults.
const ON_SHARE: f64 = 0.2;
/// The bounds of the probability with which a fault of single calls strikes a call.
const STRIKE_SHARES: (f64, f64) = (0.002, 0.05);
/// [`ON_SHARE`] for a scan that is held up. It is greater, as [`SLOW_SCAN_SHARES`] are: few scans read two ranges, and fewer
/// while something happens there.
const SLOW_SCAN_ON_SHARE: f64 = 0.5;
/// [`STRIKE_SHARES`] for a scan that is held up.
const SLOW_SCAN_SHARES: (f64, f64) = (0.2, 0.6);
/// [`ON_SHARE`] for a single write that is denied: the one fault after which a process goes on and a write of its own never
/// took effect.
const WRITE_DENIED_ON_SHARE: f64 = 0.3;
/// [`STRIKE_SHARES`] for it. They are less, since each strike costs a database, and all that waits for it.
const WRITE_DENIED_SHARES: (f64, f64) = (0.001, 0.01);

/// The faults of one run. Clones are the same.
#[derive(Debug, Clone)]
pub struct Weather(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    switches: [Switch; Fault::ALL.len()],
    calm: AtomicBool,
    throttled: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct Switch {
    /// The probability that it strikes a call; `None` if the switch is off.
    share: Option<f64>,
    /// For a fault that lasts: whether it is active now.
    raging: AtomicBool,
    struck: AtomicU64,
}

impl Weather {
    /// The faults that the seed chooses.
    pub fn of(chance: Chance) -> Self {
        let mut dice = chance.dice("weather");
        let faultless = dice.happens(FAULTLESS_SHARE);
        let switches = Fault::ALL.map(|fault| {
            // Some switches were added later. They have generators of their own, so that the other switches of each seed
            // stay as they were.
            let own = match fault {
                Fault::MisdirectedRead => Some("misdirected reads"),
                Fault::AccessLost => Some("access lost"),
                Fault::WriteDenied => Some("writes denied"),
                Fault::TwoLives => Some("two lives"),
                Fault::SlowScan => Some("slow scans"),
                Fault::WrongSuspicion => Some("wrong suspicions"),
                _ => None,
            };
            let mut own = own.map(|name| chance.dice(name));
            let dice = own.as_mut().unwrap_or(&mut dice);
            let (on_share, shares) = match fault {
                Fault::SlowScan => (SLOW_SCAN_ON_SHARE, SLOW_SCAN_SHARES),
                Fault::WriteDenied => (WRITE_DENIED_ON_SHARE, WRITE_DENIED_SHARES),
                _ => (ON_SHARE, STRIKE_SHARES),
            };
            let on = dice.happens(on_share) && !faultless;
            let share = dice.spread(shares.0, shares.1);
            Switch { share: on.then_some(share), ..Switch::default() }
        });
        Self::with(switches)
    }

    /// No faults.
    pub fn fair() -> Self {
        Self::with(std::array::from_fn(|_| Switch::default()))
    }

    /// One switch on, which strikes a call with probability `share`: for tests.
    pub fn only(fault: Fault, share: f64) -> Self {
        let mut switches: [Switch; Fault::ALL.len()] = std::array::from_fn(|_| Switch::default());
        switches[fault.index()].share = Some(share);
        Self::with(switches)
    }

    fn with(switches: [Switch; Fault::ALL.len()]) -> Self {
        Self(Arc::new(Inner { switches, calm: AtomicBool::new(false), throttled: Mutex::new(None) }))
    }

    /// Whether the switch is on in this run.
    pub fn is_on(&self, fault: Fault) -> bool {
        self.switch(fault).share.is_some()
    }

    /// Whether no switch is on.
    pub fn is_fair(&self) -> bool {
        !Fault::ALL.into_iter().any(|fault| self.is_on(fault))
    }

    /// Whether no switch is on that a client may notice. A process must still serve every request if it sees no new
    /// maps or if there is no manager.
    pub fn is_harmless(&self) -> bool {
        let harmless = |fault| matches!(fault, Fault::StaleMap | Fault::ManagerDead);
        !Fault::ALL.into_iter().any(|fault| self.is_on(fault) && !harmless(fault))
    }

    /// Ends all faults from now on.
    pub fn calm_down(&self) {
        self.0.calm.store(true, Ordering::Relaxed);
        *self.throttled() = None;
    }

    /// Whether it has calmed down.
    pub fn is_calm(&self) -> bool {
        self.0.calm.load(Ordering::Relaxed)
    }

    /// Whether the fault strikes now.
    pub fn strikes(&self, fault: Fault, dice: &mut Dice) -> bool {
        let switch = self.switch(fault);
        let Some(share) = switch.share else { return false };
        let strikes = dice.happens(share) && !self.is_calm();
        if strikes {
            self.struck(fault);
        }
        strikes
    }

    /// Counts a fault that other code has caused.
    pub fn struck(&self, fault: Fault) {
        self.switch(fault).struck.fetch_add(1, Ordering::Relaxed);
    }

    /// A fault that lasts begins or ends.
    pub fn set_raging(&self, fault: Fault, raging: bool) {
        if raging {
            self.struck(fault);
        }
        self.switch(fault).raging.store(raging, Ordering::Relaxed);
    }

    /// Whether a fault that lasts is active now.
    pub fn rages(&self, fault: Fault) -> bool {
        self.switch(fault).raging.load(Ordering::Relaxed) && !self.is_calm()
    }

    /// Refuses all calls below `prefix`, or none.
    pub fn throttle(&self, prefix: Option<String>) {
        if prefix.is_some() {
            self.struck(Fault::ThrottledPrefix);
        }
        *self.throttled() = prefix;
    }

    /// Whether the object at `path` is below the throttled prefix.
    pub fn throttles(&self, path: &str) -> bool {
        self.throttled().as_deref().is_some_and(|prefix| path.starts_with(prefix))
    }

    /// How often the fault took place.
    pub fn count(&self, fault: Fault) -> u64 {
        self.switch(fault).struck.load(Ordering::Relaxed)
    }

    fn switch(&self, fault: Fault) -> &Switch {
        &self.0.switches[fault.index()]
    }

    fn throttled(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.0.throttled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
