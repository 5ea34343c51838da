//! `rangehold stress`: drives a peak, and says whether the keys of a table bear it.
//!
//! The documents of the cloud describe a stress test in four steps, and this is all of them: make a table; load its target
//! partition; drive the peak that is expected, with each query at its frequency; compare what was written and read each second
//! with the 2,000 entities that a partition serves.
//!
//! ```text
//!   plan, designs     what is wanted: kinds of requests with rates and response times; keys      pure
//!   schedule          when each request is due: an open loop                                     pure
//!   known             entities that exist                                                        pure
//!   book              what became of each request                                                pure
//!   seen              what the service tells of its ranges                                       pure
//!   judge             the verdict and its words                                                  pure
//!   report            in the terminal, as HTML, as JSON                                          pure
//!   sender            one request
//!   drive, watch      the peak, and a look at the ranges meanwhile
//! ```
//!
//! The client repeats nothing here. A program that tries again hides refusals and adds load, and the question is what the demand
//! itself meets.

mod book;
mod designs;
mod drive;
mod judge;
mod known;
mod limits;
mod plan;
mod report;
mod schedule;
mod seen;
mod sender;
mod watch;
mod words;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::stream::{self, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use rangehold_client::{Options, Policy, Service};
use tokio::time::Instant;

use self::book::Book;
use self::designs::Design;
use self::drive::Peak;
use self::judge::Outcome;
use self::known::Known;
use self::limits::{LOAD_AT_ONCE, PEAK_MAX, PLAN_BYTES_MAX, REQUESTS_AT_ONCE, REQUESTS_AT_ONCE_MAX};
use self::plan::{Act, KeySource, Plan, PlanFile, Target};
use self::report::{Circumstances, Report};
use self::sender::Sender;
use self::watch::Watch;
use crate::account::{AccountFlags, Output};
use crate::admin::AdminClient;
use crate::chance;
use crate::progress::Progress;

/// The exit code if the peak is not borne.
pub(crate) const NOT_BORNE: u8 = 3;

/// `rangehold stress`
#[derive(Debug, Args)]
pub(crate) struct Stress {
    #[command(flatten)]
    account: AccountFlags,
    #[command(flatten)]
    admin: AdminClient,
    /// One of the four designs of the marathon example.
    #[arg(long, value_name = "NAME", required_unless_present = "plan", conflicts_with = "plan")]
    design: Option<Design>,
    /// The plan, a file of TOML. --design NAME --print-plan shows one to begin with.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Print the plan of a design, and do nothing.
    #[arg(long, requires = "design")]
    print_plan: bool,
    /// Entities a second, written and read together: all rates of the plan are made larger or smaller for it
    /// [default: as the plan says]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// How long the peak lasts.
    #[arg(long, value_name = "MINUTES", default_value_t = 15.0)]
    minutes: f64,
    /// The table, which must not exist [default: stress and a number by chance]
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// Keep the table afterwards.
    #[arg(long)]
    keep_table: bool,
    /// Requests at the same time. What does not fit is not sent, and counts as late.
    #[arg(long, value_name = "N", default_value_t = REQUESTS_AT_ONCE,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(REQUESTS_AT_ONCE_MAX)))]
    at_once: u32,
    /// The seed of the moments at which requests are due [default: by chance]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write the report as a page of HTML, too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the test and prints its report. `false` if the peak is not borne.
pub(crate) fn run(stress: &Stress) -> Result<bool> {
    if let Some(design) = stress.design.filter(|_| stress.print_plan) {
        print!("{}", design.text());
        return Ok(true);
    }
    let plan = stress.plan()?;
    let time = Duration::try_from_secs_f64(stress.minutes * 60.0).ok();
    let time = time.filter(|time| !time.is_zero() && *time <= PEAK_MAX);
    let time = time.with_context(|| {
        format!("--minutes {}: give more than 0, at most {}", stress.minutes, PEAK_MAX.as_secs() / 60)
    })?;
    if let Some(file) = &stress.html {
        // Before the peak, so that a wrong path does not cost its minutes.
        std::fs::write(file, "").with_context(|| format!("cannot write {}", file.display()))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    let report = runtime.block_on(stress.test(plan, time))?;
    match stress.account.output {
        Output::Json => println!("{:#}", serde_json::to_value(&report)?),
        Output::Table => println!("{report}"),
    }
    if let Some(file) = &stress.html {
        std::fs::write(file, report.html()).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(report.judgement.outcome == Outcome::Bears)
}

impl Stress {
    fn plan(&self) -> Result<Plan> {
        let plan = match (self.design, &self.plan) {
            (Some(design), _) => design.plan()?,
            (None, Some(path)) => plan_of(path).with_context(|| format!("in the plan {}", path.display()))?,
            (None, None) => bail!("give --design or --plan"),
        };
        match self.rate {
            Some(rate) => plan.scaled_to(rate),
            None => Ok(plan),
        }
    }

    async fn test(&self, plan: Plan, time: Duration) -> Result<Report> {
        let options = Options { retry: Policy::none(), ..Options::default() };
        let hasty = self.account.service_with(options)?;
        // Before and after the peak the client tries again as usual.
        let patient = self.account.service()?;
        let name = match &self.table {
            Some(name) => name.clone(),
            None => format!("stress{:08x}", chance::seed()? as u32),
        };
        patient.table(&name)?.create().await.with_context(|| {
            format!(
                "cannot make the table {name}; a test needs a table of its own, which is deleted afterwards"
            )
        })?;
        let report = self.in_table(plan, time, (&hasty, &patient), &name).await;
        if !self.keep_table {
            patient
                .table(&name)?
                .delete()
                .await
                .with_context(|| format!("cannot delete the table {name}"))?;
        }
        report
    }

    /// The test in a table that was made for it.
    async fn in_table(
        &self,
        plan: Plan,
        time: Duration,
        (hasty, patient): (&Service, &Service),
        name: &str,
    ) -> Result<Report> {
        let plan = Arc::new(plan);
        let is_hidden = self.account.output == Output::Json;
        let target = Target::of(&plan);
        let loader = Sender::new(patient.table(name)?, plan.clone());
        let (known, next, loaded) = load(&plan, &target, &loader, is_hidden).await?;
        let seed = self.seed.map_or_else(chance::seed, Ok)?;
        let book = Arc::new(Mutex::new(Book::new(&plan, &target)));
        let begun = Instant::now();
        let watch = Watch::begin(self.admin.clone(), name.to_owned(), begun).await;
        if let Err(why) = &watch {
            eprintln!("the ranges of the service are not shown: {why:#}");
        }
        let begun = Instant::now();
        let progress = Progress::begin(is_hidden, "the peak", "seconds", Some(time.as_secs()));
        let peak = Peak {
            plan: plan.clone(),
            sender: Sender::new(hasty.table(name)?, plan.clone()),
            book: book.clone(),
            known: Arc::new(Mutex::new(known)),
            next,
            at_once: self.at_once,
            seed,
        };
        let drove = peak.drive(time, begun, &progress).await;
        progress.end();
        let about = Circumstances {
            service: self.account.endpoint()?,
            table: name.to_owned(),
            seed,
            loaded,
            time: drove,
            is_cut_short: drove < time,
            seen: watch.ok().map(Watch::end),
        };
        let book = book.lock();
        Ok(Report::of(&plan, &target, &book, about))
    }
}

/// Reads a plan, and the keys that it names: their path is relative to the plan's.
fn plan_of(path: &Path) -> Result<Plan> {
    let mut text = String::new();
    let file = std::fs::File::open(path).context("cannot open it")?;
    file.take(PLAN_BYTES_MAX).read_to_string(&mut text).context("cannot read it")?;
    let file = PlanFile::parse(&text)?;
    let keys = file.key_file().map(|keys| {
        let keys = path.parent().unwrap_or(Path::new("")).join(keys);
        let text =
            std::fs::read_to_string(&keys).with_context(|| format!("cannot read {}", keys.display()))?;
        KeySource::read(&text)
    });
    file.plan(&path.display().to_string(), keys.transpose()?)
}

/// Loads the target partition. Returns the entities that exist then, the first number that is free, and how many entities were
/// loaded.
async fn load(plan: &Plan, target: &Target, sender: &Sender, is_hidden: bool) -> Result<(Known, u64, u64)> {
    let rows = plan.kinds.iter().map(|kind| match kind.act {
        Act::Batch { rows } => rows,
        _ => 1,
    });
    let rows = rows.max().unwrap_or(1);
    let (numbers, next) = target.loaded(plan, rows);
    let progress = Progress::begin(is_hidden, "loading", "entities", Some(plan.load));
    let batches = numbers.chunks(Sender::numbers_of_batch(rows)).map(|chunk| {
        let (chunk, sender, progress) = (chunk.to_vec(), sender.clone(), progress.clone());
        async move {
            let count = sender.load(&chunk, rows).await?;
            progress.add(u64::from(count));
            anyhow::Ok(u64::from(count))
        }
    });
    let sums = stream::iter(batches).buffer_unordered(LOAD_AT_ONCE);
    let loaded = sums.try_fold(0, |sum, count| async move { Ok(sum + count) }).await;
    progress.end();
    let loaded = loaded.context("the target partition could not be loaded")?;
    let mut known = Known::default();
    numbers.iter().for_each(|number| known.add(*number));
    Ok((known, next, loaded))
}
