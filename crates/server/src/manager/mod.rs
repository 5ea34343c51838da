//! The partition manager: observes the load of ranges, plans changes, and has them carried out.
//!
//! ```text
//!   each second       look: verdicts that were reached, ranges that changed hands
//!   each 5 seconds    mend: changes that were broken off, ranges that no server serves
//!   each tick         observe: the load of every range
//!                     plan (pure, in `rangehold_map::plan`) -> changes, and a report for people
//!                                                                 |
//!   the command line, the admin API --------- a change ---------> carry out, in a task of its own
//!                                                                 |
//!                                                               events
//! ```
//!
//! Changes of a plan and changes that people ask for go through the same function, [`Manager::carry_out`]. A change
//! that was begun goes on to its end. When the process stops, the manager begins no more changes and waits for those
//! under way. A plan may be out of date when its changes begin. So each change names the generation for which it was
//! made, and is refused if the range has changed meanwhile.
//!
//! A change may be broken off without a crash: while the store gives no answer, it is not known whether the change is
//! done. The manager ends it when the store answers again, and opens ranges that no server serves (`mend`).
//!
//! All servers of a process live and end together with the manager. So the manager never suspects that a range made
//! a server end. But a server may lose its lease to a process that believes the server dead. Then the server no longer
//! answers reads. The planner sees it as dead, and gives its ranges to the others.

mod carry_out;
mod events;
mod memory;
mod mend;
pub(crate) mod names;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use rangehold_engine::{Executor, Node, PartitionServer, RangeSeen, with_causes};
use rangehold_map::plan::{Observations, Plan, ServerObservation, Standing, plan};
use rangehold_map::script::Names;
use rangehold_map::{RangeId, ServerId, Timestamp};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{info, warn};

pub use rangehold_map::load::LoadPolicy;
pub use rangehold_map::plan::Policy;

pub use carry_out::NotDone;
pub(crate) use carry_out::sentence;
pub use events::{Event, EventKind, Events, Happened};
use memory::Memory;

use crate::limits::{CHANGES_AT_ONCE, LOOK_EVERY, MEND_EVERY, PLANNED_CHANGES_AT_ONCE};
use crate::rehearsal::Rehearsals;

/// The options of a manager.
#[derive(Debug, Clone)]
pub struct ManagerOptions {
    /// Whether it plans. If not, it makes only the changes that it is asked for.
    pub plans: bool,
    /// The planner's numbers.
    pub policy: Policy,
    /// The load that each server is meant to bear, in cost per second.
    pub server_capacity: f64,
    /// The account of keys that do not name an account.
    pub account: String,
}

impl ManagerOptions {
    /// A manager that plans by the numbers of `policy`. The capacity of a server is that of two ranges at the cap of
    /// `load`.
    pub fn new(policy: Policy, load: &LoadPolicy, account: &str) -> Self {
        Self { plans: true, policy, server_capacity: 2.0 * load.cap, account: account.to_owned() }
    }
}

/// The manager of a process; see the module. Clones are the same manager.
#[derive(Clone)]
pub struct Manager(Arc<Inner>);

struct Inner {
    executor: Executor,
    rehearsals: Arc<Rehearsals>,
    options: ManagerOptions,
    events: Events,
    places: Arc<Semaphore>,
    /// The number of changes that are being carried out on each range.
    busy: Mutex<BTreeMap<RangeId, u32>>,
    /// Its only permit is taken while something is mended.
    mending: Arc<Semaphore>,
    /// Whether a change ended and it is not known what the store says about it.
    in_doubt: AtomicBool,
    planned: ArcSwapOption<Planned>,
    /// The names of tables when they were last read.
    named: ArcSwap<Names>,
}

/// The last plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// When the plan was made.
    pub at: Timestamp,
    /// The plan.
    pub plan: Plan,
}

/// A server and its ranges, as the manager sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSeen {
    /// The server.
    pub server: ServerId,
    /// Whether it has lost its lease. Then it answers no reads, and gets no ranges until the process is
    /// restarted.
    pub ended: bool,
    /// The load that it is meant to bear, in cost per second.
    pub capacity: f64,
    /// Its ranges, in the order of their keys.
    pub ranges: Vec<RangeSeen>,
}

impl Manager {
    /// A manager of the ranges of `node`. It tells `rehearsals` of each range that moves.
    pub fn new(node: &Node, rehearsals: Arc<Rehearsals>, options: ManagerOptions) -> Self {
        Self(Arc::new(Inner {
            executor: node.executor().clone(),
            rehearsals,
            named: ArcSwap::from_pointee(Names::new(&options.account).partial()),
            options,
            events: Events::new(node.host().clock().clone()),
            places: Arc::new(Semaphore::new(CHANGES_AT_ONCE)),
            busy: Mutex::default(),
            mending: Arc::new(Semaphore::new(1)),
            in_doubt: AtomicBool::new(false),
            planned: ArcSwapOption::empty(),
        }))
    }

    /// The events of its ranges.
    pub fn events(&self) -> &Events {
        &self.0.events
    }

    /// Its options.
    pub fn options(&self) -> &ManagerOptions {
        &self.0.options
    }

    /// The last plan. `None` before the first one, and for a manager that does not plan.
    pub fn planned(&self) -> Option<Arc<Planned>> {
        self.0.planned.load_full()
    }

    /// The servers and their ranges, as they are now.
    pub fn observe(&self) -> Vec<ServerSeen> {
        let capacity = self.0.options.server_capacity;
        let seen = |server: &PartitionServer| ServerSeen {
            server: server.id(),
            ended: server.has_ended(),
            capacity,
            ranges: server.observe(),
        };
        self.0.executor.servers().iter().map(seen).collect()
    }

    /// Observes and plans until it is told to stop. Run it as a task, once.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let began = Instant::now();
        let mut memory = Memory::default();
        let (mut planned_at, mut mended_at) = (Duration::ZERO, Duration::ZERO);
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = look.tick() => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let now = began.elapsed();
            self.look(&mut memory, now).await;
            self.look_for_ended(&mut memory).await;
            if now.saturating_sub(mended_at) >= MEND_EVERY {
                mended_at = now;
                self.mend(&mut memory);
            }
            if self.0.options.plans && now.saturating_sub(planned_at) >= self.0.options.policy.tick {
                planned_at = now;
                self.plan(&memory, now).await;
            }
        }
    }

    /// Looks at all ranges, and reports new verdicts as events.
    async fn look(&self, memory: &mut Memory, now: Duration) {
        let ranges = self.0.executor.servers().iter().flat_map(PartitionServer::glance).collect();
        let reached = memory.look(ranges, now);
        if reached.is_empty() {
            return;
        }
        let names = self.names().await;
        for (range, verdict) in reached {
            let text = names::told(&verdict, &names);
            info!(%range, "{text}");
            self.0.events.add(Happened {
                kind: EventKind::Verdict,
                ranges: vec![range],
                text,
                map_version: None,
                held_for: None,
            });
        }
    }

    /// Reports servers that have lost their leases since the last look.
    async fn look_for_ended(&self, memory: &mut Memory) {
        for server in memory.ended(&self.0.executor.servers()) {
            let ranges: Vec<RangeId> = server.glance().iter().map(|range| range.range).collect();
            let text = format!(
                "the partition server {} has lost its lease and answers no reads; its {} ranges are to go to others",
                server.id(),
                ranges.len()
            );
            warn!("{text}");
            let kind = EventKind::ServerEnded;
            self.0.events.add(Happened { kind, ranges, text, map_version: None, held_for: None });
            // The process that took the lease may already have moved the ranges, and written that into the map.
            if let Err(error) = self.0.executor.maps().refresh().await {
                warn!(error = with_causes(&error), "the map cannot be read again");
            }
        }
    }

    /// Makes a plan, keeps its report, and begins as many changes as may be under way at once. If the others are
    /// still wanted, the next plan has them again.
    async fn plan(&self, memory: &Memory, now: Duration) {
        let map = self.0.executor.maps().current();
        let observations = self.observations(memory, &self.observe(), now);
        let plan = plan(&map, &observations, &self.0.options.policy);
        let changes = plan.changes.clone();
        let at = self.clock_wall();
        self.0.planned.store(Some(Arc::new(Planned { at, plan })));
        if changes.is_empty() {
            return;
        }
        let names = Arc::new(self.names().await);
        for change in changes {
            // Some of the places are left to changes that people ask for.
            if self.0.places.available_permits() <= CHANGES_AT_ONCE - PLANNED_CHANGES_AT_ONCE {
                return;
            }
            let Ok(place) = Arc::clone(&self.0.places).try_acquire_owned() else { return };
            // The task is not joined: its end is an event, and `finish` waits until it gives its place back.
            tokio::spawn(self.clone().bring_to_its_end(change, Arc::clone(&names), place));
        }
    }

    fn observations(&self, memory: &Memory, seen: &[ServerSeen], now: Duration) -> Observations {
        let busy = self.busy();
        let ranges = seen.iter().flat_map(|server| &server.ranges);
        Observations {
            ranges: ranges
                .map(|range| memory.observation(range, now, busy.contains_key(&range.range)))
                .collect(),
            servers: seen
                .iter()
                .map(|server| ServerObservation {
                    id: server.server,
                    standing: if server.ended { Standing::Dead } else { Standing::Serving },
                    capacity: server.capacity,
                })
                .collect(),
        }
    }

    /// The names of tables as they are now. While the catalogue cannot be read, for example because its range is
    /// offline, they are those of the last time: a command that takes a range online again must understand its name.
    /// Tables without a name are written with their ids, which commands accept too.
    pub(crate) async fn names(&self) -> Names {
        match names::read(self.0.executor.router(), &self.0.options.account).await {
            Some(names) => {
                self.0.named.store(Arc::new(names.clone()));
                names
            }
            None => Names::clone(&self.0.named.load()).partial(),
        }
    }

    fn clock_wall(&self) -> Timestamp {
        self.0.events.clock().wall()
    }
}
