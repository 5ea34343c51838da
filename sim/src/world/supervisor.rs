//! The supervisor of a process: starts it, and starts it again when it has ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rangehold_engine::{Clock, PartitionServer, StepHook};
use rangehold_map::{RangeMap, Timestamp};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::process::Start;
use super::{EPOCH_SECONDS, Freezer, Process, World};
use crate::check::ids;
use crate::store::Door;

/// How long a process that could not start waits before it tries again.
const START_AGAIN_AFTER: Duration = Duration::from_millis(500);

impl World {
    /// Makes all processes that are up known to one another.
    fn introduce(&self) {
        let up: Vec<Arc<Process>> = (0..self.processes()).filter_map(|number| self.process(number)).collect();
        let servers: Vec<PartitionServer> =
            up.iter().flat_map(|process| process.servers()).cloned().collect();
        up.iter().for_each(|process| process.introduce(&servers));
    }

    /// Keeps a process up as long as it should run: a supervisor that starts it again.
    pub(super) async fn keep_up(self, number: usize) {
        let slot = &self.0.slots[number];
        // The first one makes the first range.
        if number > 0 {
            let _ = self.0.slots[0].up.subscribe().wait_for(Option::is_some).await;
        }
        loop {
            let mut wanted = slot.wanted.subscribe();
            let _ = wanted.wait_for(|wanted| *wanted).await;
            let start = self.next_life(number);
            let door = start.door.clone();
            let starting = tokio::spawn(start.freezer.clone().hold(Process::start(start)));
            let abort = starting.abort_handle();
            let ended = async {
                let _ = wanted.wait_for(|wanted| !*wanted).await;
            };
            tokio::select! {
                biased;
                () = ended => {}
                started = starting => match started {
                    Ok(Ok(process)) => {
                        self.0.events.add("world", format_args!("p{number} is up"));
                        tokio::spawn(self.clone().watch_ids(process.executor().maps().subscribe()));
                        self.mark(number);
                        slot.up.send_replace(Some(Arc::new(process)));
                        self.introduce();
                        if self.until_ended(number, &mut wanted).await {
                            self.crash(number);
                            self.restart(number);
                            sleep(START_AGAIN_AFTER).await;
                        }
                        continue;
                    }
                    Ok(Err(error)) => self.0.events.add("world", format_args!("p{number} did not start: {error}")),
                    Err(error) => self.found(format_args!("starting p{number} failed: {error}")),
                }
            }
            abort.abort();
            door.set(crate::store::Passage::Closed);
            sleep(START_AGAIN_AFTER).await;
        }
    }

    /// Watches the versions of the map that a process sees, as long as it lives.
    async fn watch_ids(self, mut maps: watch::Receiver<Arc<RangeMap>>) {
        let mut before = maps.borrow_and_update().clone();
        while maps.changed().await.is_ok() {
            let after = maps.borrow_and_update().clone();
            for id in ids::given_again(&before, &after) {
                self.found(format_args!("version {} of the map may give {id} again", after.version()));
            }
            before = after;
        }
    }

    /// Waits until the process must end, or has given its place to another life. True if it must be started again: one
    /// of its servers has learnt that its ranges were given to others.
    async fn until_ended(&self, number: usize, wanted: &mut watch::Receiver<bool>) -> bool {
        loop {
            let unwanted = timeout(START_AGAIN_AFTER, wanted.wait_for(|wanted| !*wanted)).await.is_ok();
            let Some(process) = self.process(number).filter(|_| !unwanted) else { return false };
            if process.servers().iter().any(PartitionServer::has_ended) {
                return true;
            }
        }
    }

    fn next_life(&self, number: usize) -> Start {
        let slot = &self.0.slots[number];
        let life = slot.lives.fetch_add(1, Ordering::Relaxed) + 1;
        let name = format!("p{number}.{life}");
        let (inner, dice) = (&self.0, self.dice(&name));
        let since = i64::try_from(self.now().as_nanos() / 100).unwrap_or(i64::MAX);
        let wall = Timestamp::from_unix_seconds(EPOCH_SECONDS)
            .saturating_add(since)
            .saturating_add(slot.clock_ticks.load(Ordering::Relaxed));
        let world = self.clone();
        Start {
            number,
            life,
            servers: inner.size.servers,
            planner: inner.size.planner,
            cloud: inner.size.cloud,
            page_within: inner.size.page_within,
            planned: Arc::clone(&inner.planned),
            events: inner.events.clone(),
            weather: inner.weather.clone(),
            after_step: StepHook::new(move |step, range| world.clone().after_step(number, life, step, range)),
            after_scan_step: self.scan_hook(&name),
            clock: Clock::manual(wall),
            seed: inner.chance.number(&name),
            door: Door::new(
                name,
                Arc::clone(&inner.bucket),
                inner.weather.clone(),
                dice,
                inner.events.clone(),
            ),
            freezer: Freezer::default(),
        }
    }
}
