//! Keeps the history of load: the shell around [`rangehold_map::history`].
//!
//! ```text
//!   each second   take what ranges counted -> a column of the axis -> memory
//!   when ten seconds, or a minute, are over    -> a coarser column -> DIR/history/
//!   asked         columns of one tier -> rows and columns as they are shown
//! ```
//!
//! One task does this ([`History::run`]). Files are written and read on threads that may block. Requests never wait
//! for it. If the disk is nearly full or fails, columns are lost, and the number of lost columns is
//! counted. `docs/design/0008-history.md` has the reasons.

mod archive;
mod names;
mod question;
mod segment;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rangehold_engine::Node;
use rangehold_engine::store::DiskWatch;
use rangehold_map::history::{Cells, Column, RollUp, Survey, Tier, View};
use rangehold_map::load::Tally;
use rangehold_map::{KeyRange, Timestamp};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::limits::{HISTORY_EVERY, HISTORY_MEMORY_BYTES_MAX};
use crate::manager::names::table_prefixes;
use archive::{Archive, Left};
use names::Hasher;
use question::Window;

pub use question::{Answer, Question};

/// Name of the directory, in the data directory.
pub const HISTORY_DIRECTORY: &str = "history";

/// How much of the history is kept, and where.
#[derive(Debug, Clone)]
pub struct HistoryOptions {
    /// The directory of the segments, which is created if needed; `None` keeps everything in memory.
    pub directory: Option<PathBuf>,
    /// The most bytes that the segments take. In memory they also take no more than [`HISTORY_MEMORY_BYTES_MAX`].
    pub budget_bytes: u64,
    /// Whether boundaries are stored with their keys.
    pub with_keys: bool,
    /// The salt for the hashes of boundaries, if the directory has none yet.
    pub salt: [u8; 16],
}

/// The history of a process; see the module. Clones are the same history.
#[derive(Clone)]
pub struct History(Arc<Inner>);

struct Inner {
    node: Node,
    disk: DiskWatch,
    hasher: Hasher,
    counting: Mutex<Counting>,
    /// Columns of ten seconds and of minutes. Locked only on threads that may block.
    archive: Mutex<Archive>,
    /// Columns that could not be kept since the process began, and why the last one could not.
    lost: AtomicU64,
    trouble: Mutex<Option<String>>,
}

/// The columns that are being filled, and their axis.
struct Counting {
    survey: Survey,
    roll_up: RollUp,
    /// Columns of seconds.
    fresh: Archive,
}

impl History {
    /// Opens the history that earlier processes left, and continues it. If it cannot be read, or the disk has no
    /// room, logs a warning and keeps the history in memory.
    pub fn open(node: &Node, options: &HistoryOptions) -> Self {
        let (hasher, archive, left) = options.directory.as_ref().map_or_else(
            || in_memory(options),
            |directory| {
                in_directory(directory, options).unwrap_or_else(|error| {
                    let directory = directory.display();
                    warn!(%directory, %error, "the history of load cannot be opened there, and is kept in memory");
                    in_memory(options)
                })
            },
        );
        let ranges = range_begins(node);
        let survey = Survey::new(ranges, left.axis.as_deref(), |key| hasher.name(key));
        let history = Self(Arc::new(Inner {
            node: node.clone(),
            disk: node.host().store().disk().clone(),
            hasher,
            counting: Mutex::new(Counting {
                survey,
                roll_up: RollUp::default(),
                fresh: Archive::in_memory(HISTORY_MEMORY_BYTES_MAX),
            }),
            archive: Mutex::new(archive),
            lost: AtomicU64::new(0),
            trouble: Mutex::default(),
        }));
        history.resume(&left);
        history
    }

    /// Adds up the columns of ten seconds whose minute was not written yet.
    fn resume(&self, left: &Left) {
        let mut minutes = Vec::new();
        let mut counting = self.counting();
        let mut archive = self.archive();
        let roll_up = &mut counting.roll_up;
        archive.read(Tier::Ten, left.minutes_until, i64::MAX, |ten| minutes.extend(roll_up.resume(ten)));
        drop(counting);
        self.keep(&mut archive, &minutes);
    }

    /// Counts each second until it is told to stop, and then stores what was counted. Run it as a task, once.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        self.recognise_tables().await;
        loop {
            tokio::select! {
                () = sleep(self.until_next_second()) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            }
            let complete = self.end_second(false);
            self.write(complete).await;
        }
        let rest = self.end_second(true);
        self.write(rest).await;
    }

    /// The time to the next full second of the clock. A fixed pause of one second would drift: now and then two looks
    /// would fall into one second, and none into the next.
    fn until_next_second(&self) -> Duration {
        let ticks = self.0.node.host().clock().now().ticks().rem_euclid(Timestamp::TICKS_PER_SECOND);
        let past = Duration::from_micros(ticks.unsigned_abs() / 10);
        HISTORY_EVERY.saturating_sub(past)
    }

    /// Finds the keys of boundaries of which an earlier process stored only hashes. Many of these are the first keys
    /// of tables, so those keys are tried.
    async fn recognise_tables(&self) {
        let tables = table_prefixes(self.0.node.router()).await;
        let hasher = self.0.hasher;
        let survey = &mut self.counting().survey;
        survey.offer(tables.iter().map(Vec::as_slice), |key| hasher.name(key));
        // Nothing was counted yet, so this ends no column early.
        self.renew_axis(survey);
    }

    /// Takes the counts of the second that ends now. Returns the columns that are complete; if this second is the
    /// `last`, all columns.
    fn end_second(&self, last: bool) -> Vec<(Tier, Column)> {
        let tallies = self.0.node.host().take_tallies();
        // These counts began about a second ago.
        let now =
            self.0.node.host().clock().now().saturating_add(-Timestamp::TICKS_PER_SECOND).unix_seconds();
        let mut counting = self.counting();
        let mut complete = counting.roll_up.until(now);
        if complete.iter().any(|(tier, _)| *tier == Tier::Ten) {
            // The axis may change only between two columns.
            self.renew_axis(&mut counting.survey);
        }
        if !tallies.is_empty() {
            complete.extend(counting.add(now, &tallies, self.0.hasher));
        }
        if last {
            complete.extend(counting.roll_up.finish().into_iter().map(|ten| (Tier::Ten, ten)));
        }
        complete
    }

    fn renew_axis(&self, survey: &mut Survey) {
        let hasher = self.0.hasher;
        if let Some(axis) = survey.renew(&range_begins(&self.0.node), |key| hasher.name(key)) {
            info!(buckets = axis.buckets(), "the history counts by other boundaries from now on");
        }
    }

    async fn write(&self, complete: Vec<(Tier, Column)>) {
        if complete.is_empty() {
            return;
        }
        let history = self.clone();
        let written = spawn_blocking(move || {
            let mut archive = history.archive();
            history.keep(&mut archive, &complete);
        });
        // If the task panicked, these columns are lost.
        let _ = written.await;
    }

    /// Appends columns. If a column of a minute is among them, waits until all of them are on the disk.
    fn keep(&self, archive: &mut Archive, complete: &[(Tier, Column)]) {
        let mut result = Ok(());
        for (tier, column) in complete {
            let kept = match self.0.disk.is_low() {
                true => Err(io::Error::other("the disk is nearly full")),
                false => archive.append(*tier, column),
            };
            if kept.is_err() {
                self.0.lost.fetch_add(1, Ordering::Relaxed);
                result = kept;
            }
        }
        if complete.iter().any(|(tier, _)| *tier == Tier::Minute) {
            result = result.and(archive.sync());
        }
        self.note(result);
    }

    /// Notes whether the last columns were kept, and logs a warning at the first failure.
    fn note(&self, result: io::Result<()>) {
        let why = result.err().map(|error| error.to_string());
        let mut trouble = self.0.trouble.lock();
        if let (Some(why), None) = (&why, &*trouble) {
            warn!("the history of load is not being kept: {why}");
        }
        *trouble = why;
    }

    /// Answers a question. It reads files, so call it on a thread that may block.
    pub fn answer(&self, question: &Question) -> Answer {
        let now = self.0.node.host().clock().now().unix_seconds();
        let (axis, open, fresh) = {
            let counting = self.counting();
            let open = Tier::ALL.map(|tier| counting.roll_up.open(tier));
            (counting.survey.axis().clone(), open, counting.fresh.shelf().span(Tier::Second))
        };
        let window =
            Window::of(question, now, axis.buckets_of(question.keys.low(), question.keys.high()).len());
        let mut view = View::new(axis, &question.keys, window.from..window.to, window.step);
        let tier = Tier::within(window.step);
        let archive = self.archive();
        match tier {
            Tier::Second => {
                self.counting().fresh.read(tier, window.from, window.to, |column| view.add(column))
            }
            Tier::Ten | Tier::Minute => archive.read(tier, window.from, window.to, |column| view.add(column)),
        }
        open[tier as usize].iter().for_each(|column| view.add(column));
        let span = |tier| archive.shelf().span(tier).map(|(from, to)| (tier, from, to));
        let kept = fresh.map(|(from, to)| (Tier::Second, from, to));
        Answer {
            from: window.from,
            to: window.to,
            step: window.step,
            shown: view.show(question.rows_max),
            kept: kept.into_iter().chain(span(Tier::Ten)).chain(span(Tier::Minute)).collect(),
            bytes: archive.shelf().bytes(),
            budget_bytes: archive.shelf().budget_bytes(),
            lost_columns: self.0.lost.load(Ordering::Relaxed),
            trouble: self.trouble(),
        }
    }

    /// Why no columns are kept at present; `None` while they are.
    pub fn trouble(&self) -> Option<String> {
        self.0.trouble.lock().clone()
    }

    fn counting(&self) -> MutexGuard<'_, Counting> {
        self.0.counting.lock()
    }

    fn archive(&self) -> MutexGuard<'_, Archive> {
        self.0.archive.lock()
    }
}

impl Counting {
    /// Adds what ranges counted in the second that began at `at`.
    fn add(&mut self, at: i64, tallies: &[(KeyRange, Tally)], hasher: Hasher) -> Vec<(Tier, Column)> {
        self.survey.see(tallies.iter().map(|(_, tally)| tally), |key| hasher.name(key));
        let axis = self.survey.axis();
        let mut cells = Cells::new();
        for (keys, tally) in tallies {
            axis.place(keys, tally, &mut cells);
        }
        let second = Column { at, axis: Arc::clone(axis.boundaries()), cells };
        // In memory this fails only for a column that is larger than the whole budget. No column is so large.
        if let Err(error) = self.fresh.append(Tier::Second, &second) {
            warn!(%error, "a second of the history was lost");
        }
        self.roll_up.add(&second)
    }
}

fn in_memory(options: &HistoryOptions) -> (Hasher, Archive, Left) {
    let budget_bytes = options.budget_bytes.min(HISTORY_MEMORY_BYTES_MAX);
    (Hasher::new(options.salt), Archive::in_memory(budget_bytes), Left::default())
}

fn in_directory(directory: &Path, options: &HistoryOptions) -> io::Result<(Hasher, Archive, Left)> {
    fs::create_dir_all(directory)?;
    let hasher = Hasher::in_directory(directory, options.salt)?;
    let (archive, left) = Archive::open(directory, options.budget_bytes, options.with_keys)?;
    Ok((hasher, archive, left))
}

/// The first key of each range in the current map.
fn range_begins(node: &Node) -> Vec<Vec<u8>> {
    let map = node.executor().maps().current();
    map.entries().iter().map(|entry| entry.keys.low().to_vec()).collect()
}
