//! An hour of everything at once.
//!
//! The other runs break one thing at a time. Here all of it happens together, to one data directory, by a schedule that
//! is drawn from the seed before the run begins ([`schedule`]):
//!
//! - eight writers change entities, and make and delete tables ([`rangehold_testkit::load`]);
//! - a client lists everything by pages, again and again ([`walk`]);
//! - ranges are split, merged and moved ([`changer`]);
//! - backups are made, opened by a second server and compared ([`backups`]);
//! - the process is killed and started, and stands still for some seconds.
//!
//! At each check all of them rest. What the service holds is compared with what it acknowledged, and a sample tells what
//! it uses ([`sample`]). At the end the refusals must have reasons ([`refusals`]), and nothing may have grown in the
//! second half of the run ([`growth`]). How long anything took is never judged: a stop of twenty seconds slows answers.

mod backups;
mod changer;
mod growth;
mod refusals;
mod sample;
mod schedule;
mod walk;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::backups::Backups;
use self::changer::Changer;
use self::refusals::{Cause, Window};
use self::sample::Sample;
use self::schedule::{Event, Schedule};
use self::walk::Walker;
use super::changes::unmanaged;
use super::kill::START_MILLIS_MAX;
use super::{compare, conclude};
use rangehold_testkit::load::{Finding, Kind, Ledger, Load, Refused};
use rangehold_testkit::server::{Server, Setup, text};

/// How often a comparison that was refused is tried again, and the time between two tries.
const COMPARE_AGAIN_MAX: u32 = 40;
const COMPARE_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Runs everything for so many minutes.
pub(super) fn run(minutes: u32, seed: u64) -> Result<()> {
    let length = Duration::from_secs(60) * minutes;
    let setup = unmanaged("crash-hour")?;
    let mut rng = StdRng::seed_from_u64(seed);
    let schedule = Schedule::draw(&mut rng, length);
    let ledger: Arc<Ledger> = Arc::default();
    let mut load = Load::new(seed, false);
    for writer in &mut load.writers {
        writer.ledger = Some(Arc::clone(&ledger));
        writer.refused = Some(Vec::new());
    }
    println!(
        "{minutes} minutes: {} changes of ranges, {} kills, {} stops, {} backups, {} checks",
        schedule.changes.len(),
        schedule.count(|event| *event == Event::Kill),
        schedule.count(|event| matches!(event, Event::Stop(_))),
        schedule.count(|event| *event == Event::Backup),
        schedule.count(|event| *event == Event::Check),
    );
    let (ask, asked) = channel();
    thread::scope(|scope| {
        let (setup, ledger) = (&setup, &ledger);
        let backups = scope.spawn(move || backups::run(setup, ledger, &asked));
        let mut hour = Hour::new(setup, load, schedule, Arc::clone(ledger), ask, rng);
        let ended = hour.run();
        // The sender goes with it, and so the thread of the backups ends after those that were asked for.
        let hour = hour.without_sender();
        let backups = backups.join().expect("the thread of the backups does not panic");
        hour.judge(ended, backups, length)
    })
}

/// The run so far.
struct Hour<'a> {
    setup: &'a Setup,
    load: Load,
    began: Instant,
    events: VecDeque<(Duration, Event)>,
    changer: Changer,
    walker: Walker,
    /// Asks for backups; `None` when there will be no more.
    ask: Option<Sender<()>>,
    rng: StdRng,
    windows: Vec<Window>,
    refused: Vec<Refused>,
    samples: Vec<Sample>,
    findings: Vec<Finding>,
    kills: u32,
    slowest: Duration,
}

impl<'a> Hour<'a> {
    fn new(
        setup: &'a Setup,
        load: Load,
        schedule: Schedule,
        ledger: Arc<Ledger>,
        ask: Sender<()>,
        mut rng: StdRng,
    ) -> Self {
        Self {
            setup,
            load,
            began: Instant::now(),
            events: schedule.events.into(),
            changer: Changer::new(schedule.changes, StdRng::seed_from_u64(rng.random())),
            walker: Walker::new(ledger),
            ask: Some(ask),
            rng,
            windows: Vec::new(),
            refused: Vec::new(),
            samples: Vec::new(),
            findings: Vec::new(),
            kills: 0,
            slowest: Duration::ZERO,
        }
    }

    fn without_sender(mut self) -> Self {
        self.ask = None;
        self
    }

    /// From the first start to the last end of the server.
    fn run(&mut self) -> Result<()> {
        let mut server = Server::start(self.setup)?;
        self.load.prepare(server.address)?;
        self.began = Instant::now();
        while !self.events.is_empty() {
            server = match self.stretch(server)? {
                Some(server) => {
                    self.check(&server)?;
                    self.sample(&server)?;
                    server
                }
                None => self.start_again()?,
            };
        }
        server.stop()
    }

    /// Everything at once, until the next check or kill. Returns the server unless it was killed.
    fn stretch(&mut self, server: Server) -> Result<Option<Server>> {
        let (address, admin, stop) = (server.address, server.admin_client()?, &AtomicBool::new(false));
        let (changer, walker, began) = (&mut self.changer, &mut self.walker, self.began);
        let conductor = Conductor {
            began,
            events: &mut self.events,
            ask: self.ask.as_ref().context("no backups can be asked for")?,
            windows: &mut self.windows,
        };
        let ended = self.load.run_while(address, || {
            thread::scope(|scope| {
                scope.spawn(|| changer.run(&admin, began, stop));
                scope.spawn(|| walker.run(address, stop));
                let ended = conductor.conduct(server);
                stop.store(true, Ordering::Relaxed);
                ended
            })
        });
        for writer in &mut self.load.writers {
            self.refused.extend(writer.refused.iter_mut().flat_map(|refused| refused.drain(..)));
        }
        ended
    }

    /// Starts the server that was killed, and sometimes kills it in the middle of that first.
    fn start_again(&mut self) -> Result<Server> {
        let from = Instant::now();
        self.kills += 1;
        if self.rng.random_bool(0.3) {
            let life = Duration::from_millis(self.rng.random_range(0..START_MILLIS_MAX));
            Server::start_and_kill(self.setup, life)?;
        }
        let server =
            Server::start(self.setup).with_context(|| format!("starting after kill {}", self.kills))?;
        self.slowest = self.slowest.max(server.start_time);
        self.windows.push(Window { cause: Cause::Kill, from, to: Instant::now() });
        self.check(&server)?;
        Ok(server)
    }

    /// Compares the service with what it acknowledged; asks again when it is refused.
    fn check(&mut self, server: &Server) -> Result<()> {
        let at = self.began.elapsed().as_secs();
        for _ in 0..COMPARE_AGAIN_MAX {
            let from = Instant::now();
            let error = match compare(&mut self.load, server) {
                Ok(found) => {
                    let named = |finding: Finding| {
                        let what = format!("at {}:{:02}: {}", at / 60, at % 60, finding.what);
                        Finding::new(finding.kind, what)
                    };
                    self.findings.extend(found.into_iter().map(named));
                    return Ok(());
                }
                Err(error) => error,
            };
            let what = format!("{error:#}");
            if !what.contains(" was answered 503") {
                return Err(error);
            }
            self.refused.push(Refused { status: 503, what, from, to: Instant::now() });
            thread::sleep(COMPARE_AGAIN_AFTER);
        }
        anyhow::bail!("everything was to be read {COMPARE_AGAIN_MAX} times, and each time a part was refused")
    }

    fn sample(&mut self, server: &Server) -> Result<()> {
        let rows = self.load.writers.iter().map(|writer| writer.state.rows.len()).sum();
        let sample = Sample::take(server, &self.setup.data, self.began.elapsed(), rows)?;
        println!("{sample}");
        self.samples.push(sample);
        Ok(())
    }

    /// Prints all that happened; an error if a promise was broken.
    fn judge(mut self, ended: Result<()>, backups: Backups, length: Duration) -> Result<()> {
        let Changer { asked, made, broken_off, refused, refusals, windows, findings, .. } = &self.changer;
        println!(
            "{} kills, the slowest start took {} ms; {asked} changes asked for: {made} made, {broken_off} cut off, \
             {refused} refused; {} were not asked for in time",
            self.kills,
            self.slowest.as_millis(),
            self.changer.left()
        );
        refusals.iter().for_each(|what| println!("  refused: {what}"));
        println!(
            "{} walks of {} pages, {} pages without an answer; {} backups compared, with {} entities that had to be there",
            self.walker.walks, self.walker.pages, self.walker.broken, backups.compared, backups.entities
        );
        self.windows.extend(windows);
        self.refused.append(&mut self.walker.refused);
        let (counts, wrong) = refusals::judge(&self.refused, &self.windows);
        println!("refusals: {}", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") });
        let growth = growth::judge(&self.samples, length);
        println!("medians of the second and of the last quarter:");
        growth.lines.iter().for_each(|line| println!("  {line}"));
        let panics = text(&self.setup.log);
        let panics = panics.lines().filter(|line| line.contains("panicked at"));
        let panics = panics.map(|line| Finding::new(Kind::Wrong, format!("the server's log: {line}")));
        let mut all = self.findings;
        all.extend(findings.iter().cloned().chain(self.walker.findings).chain(backups.findings));
        all.extend(wrong.into_iter().chain(growth.findings).chain(panics));
        let concluded = conclude("hour", &self.load.counts(), &all);
        ended.and(concluded)
    }
}

/// Does what the schedule says while the clients work.
struct Conductor<'a> {
    began: Instant,
    events: &'a mut VecDeque<(Duration, Event)>,
    ask: &'a Sender<()>,
    windows: &'a mut Vec<Window>,
}

impl Conductor<'_> {
    /// Goes on until the next check or kill. Returns the server unless it was killed.
    fn conduct(self, server: Server) -> Result<Option<Server>> {
        while let Some((at, event)) = self.events.pop_front() {
            thread::sleep(at.saturating_sub(self.began.elapsed()));
            match event {
                // After a long stop several checks may be due, of which one is enough.
                Event::Check if self.is_check_due() => {}
                Event::Check => break,
                Event::Kill => return server.kill().map(|()| None),
                Event::Stop(length) => {
                    let from = Instant::now();
                    server.pause()?;
                    thread::sleep(length);
                    server.resume()?;
                    self.windows.push(Window { cause: Cause::Stop, from, to: Instant::now() });
                }
                Event::Backup => self.ask.send(()).context("no backup can be made any more")?,
            }
        }
        Ok(Some(server))
    }

    /// Whether the next event is a check that should have been made already.
    fn is_check_due(&self) -> bool {
        let now = self.began.elapsed();
        self.events.front().is_some_and(|(at, event)| *event == Event::Check && *at <= now)
    }
}
