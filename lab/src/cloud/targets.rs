//! A hot partition at its target, and a quiet client at the same time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::jobs::{self, Answers};
use crate::bench::Missed;
use rangehold_testkit::client::{self, Admin, Client, Credential, Step, create_table, entity_path, must};
use rangehold_testkit::server::Server;

const HOT: &str = "hot";
const QUIET: &str = "quiet";
/// The one partition of each table.
const PARTITION: &str = "p";
/// Writers of the hot partition, and entities of a batch.
const WRITERS: u64 = 8;
const BATCH: u64 = 100;
/// What a partition gets, in entities a second, and how far off the mean may be.
const TARGET: f64 = 2_000.0;
const OFF_MAX: f64 = 0.1;
/// The quiet client sends one request in this time.
const QUIET_PACE: Duration = Duration::from_millis(50);
/// Longest time until the hot partition's credit is spent.
const CREDIT_SPENT_WITHIN: Duration = Duration::from_secs(600);

/// How much slower the quiet client may be next to the hot partition than alone: a factor, and a time on top of it.
///
/// Timing decides no test, because a machine is busy with other things as well. Here it is what is measured:
/// that the quiet one keeps its latency is the claim. So it is judged, and generously: the hot partition's 2,000
/// entities a second are work that the same disk and processors do, which may double what a request takes at
/// the middle, and one request in a hundred meets a flush or a compaction of them. One that had to queue behind
/// the hot one's writers, eight batches of a hundred entities, would be far above both.
struct Slower {
    percent: usize,
    times: f64,
    more_ms: f64,
}

const SLOWER_MAX: [Slower; 2] =
    [Slower { percent: 50, times: 2.0, more_ms: 2.0 }, Slower { percent: 99, times: 3.0, more_ms: 50.0 }];

/// What the quiet client met.
struct Quiet {
    /// How long each answered request took, sorted.
    took: Vec<Duration>,
    /// Requests that were answered 503.
    refused: u64,
}

/// What the hot partition got, each a second.
struct Hot {
    entities: f64,
    busy: f64,
}

pub(super) fn run(server: &Server, seconds: u64) -> Result<()> {
    let mut client = server.client();
    for table in [HOT, QUIET] {
        must(&mut client, create_table(table), 204)?;
    }
    let admin = server.admin_client()?;
    let within = Duration::from_secs(seconds);
    let alone = quiet(server.address, within)?;
    let before = on_one_server(&admin)?;
    let (beside, hot) = beside_hot(server.address, within)?;
    let after = on_one_server(&admin)?;
    println!("both partitions were on {before}, and then on {after}");
    report(&alone, &beside, &hot);
    judge(&alone, &beside, &hot)
}

/// The partition server that has both partitions; an error if there are two of them, since the quiet one's
/// latency would then say nothing of the hot one's server.
fn on_one_server(admin: &Admin) -> Result<String> {
    let server = |table| Ok::<_, anyhow::Error>(admin.holder(&format!("{table}/{PARTITION}"))?.server);
    let (hot, quiet) = (server(HOT)?, server(QUIET)?);
    if hot != quiet {
        bail!("targets: the hot partition is on {hot} and the quiet one on {quiet}, not on one server");
    }
    Ok(hot)
}

/// What the quiet client meets while the hot partition is written to, and what that one gets meanwhile.
fn beside_hot(address: SocketAddr, within: Duration) -> Result<(Quiet, Hot)> {
    let (answers, stop) = (Answers::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (answers, stop) = (&answers, &stop);
                let next = move |number: u64| {
                    let first = (number * WRITERS + writer) * BATCH;
                    jobs::inserts(HOT, PARTITION, first..first + BATCH)
                };
                scope.spawn(move || jobs::write(address, (BATCH, Duration::ZERO), answers, stop, next))
            })
            .collect();
        let measured = spend_credit(&answers).and_then(|()| measure(address, within, &answers));
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().try_for_each(|writer| writer.join().expect("writers do not panic"))?;
        measured
    })
}

/// Measures both, while the writers write.
fn measure(address: SocketAddr, within: Duration, answers: &Answers) -> Result<(Quiet, Hot)> {
    let count = || [&answers.entities, &answers.busy].map(|count| count.load(Ordering::Relaxed));
    let (begin, before) = (Instant::now(), count());
    let quiet = quiet(address, within)?;
    let (took, after) = (begin.elapsed().as_secs_f64(), count());
    let rate = |index: usize| (after[index] - before[index]) as f64 / took;
    Ok((quiet, Hot { entities: rate(0), busy: rate(1) }))
}

/// Waits until the hot partition is refused: what it had not used before is spent.
fn spend_credit(answers: &Answers) -> Result<()> {
    let begin = Instant::now();
    while answers.busy.load(Ordering::Relaxed) == 0 {
        if begin.elapsed() > CREDIT_SPENT_WITHIN {
            let written = answers.entities.load(Ordering::Relaxed);
            bail!("targets: {written} entities in {CREDIT_SPENT_WITHIN:?}, and no 503");
        }
        thread::sleep(Duration::from_millis(100));
    }
    let written = answers.entities.load(Ordering::Relaxed);
    println!(
        "credit: {written} entities before the first 503, {:.0} s after the first",
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Writes and reads single entities at a slow pace, and tries nothing twice.
fn quiet(address: SocketAddr, within: Duration) -> Result<Quiet> {
    let mut client = Client::new(address, Credential::SharedKey);
    let row = client::row([("s", "x".into())]);
    let mut quiet = Quiet { took: Vec::new(), refused: 0 };
    let begin = Instant::now();
    for number in 0.. {
        if begin.elapsed() >= within {
            break;
        }
        // Each entity is written, and then read.
        let (key, write) = (format!("{:06}", number / 2), number % 2 == 0);
        let request = if write {
            client::change(Step::Upsert, QUIET, (PARTITION, &key), &row, "*")
        } else {
            client::get(entity_path(QUIET, PARTITION, &key))
        };
        let asked = Instant::now();
        let answer = client.send(request, "quiet")?;
        match (answer.status, write) {
            (204, true) | (200, false) => quiet.took.push(asked.elapsed()),
            (503, _) => quiet.refused += 1,
            // Its write was refused.
            (404, false) if quiet.refused > 0 => {}
            (status, _) => bail!("targets: the quiet client was answered {status}: {}", answer.body),
        }
        thread::sleep(QUIET_PACE.saturating_sub(asked.elapsed()));
    }
    quiet.took.sort_unstable();
    Ok(quiet)
}

impl Quiet {
    /// The given percentile of the requests, in milliseconds; infinite if none was answered.
    fn at(&self, percent: usize) -> f64 {
        let index = self.took.len().saturating_sub(1) * percent / 100;
        self.took.get(index).map_or(f64::INFINITY, |took| took.as_secs_f64() * 1e3)
    }
}

fn report(alone: &Quiet, beside: &Quiet, hot: &Hot) {
    for (name, quiet) in [("quiet alone", alone), ("quiet beside hot", beside)] {
        println!(
            "{name:<17} {} requests, {} refused: p50 {:.2} ms, p99 {:.2} ms",
            quiet.took.len() as u64 + quiet.refused,
            quiet.refused,
            quiet.at(50),
            quiet.at(99)
        );
    }
    let Hot { entities, busy } = hot;
    println!(
        "hot: {entities:.0} entities a second of a target of {TARGET}, {busy:.1} requests a second refused"
    );
}

/// An error that names all that is not as it must be.
fn judge(alone: &Quiet, beside: &Quiet, hot: &Hot) -> Result<()> {
    let mut missed = Missed::default();
    let Hot { entities, busy } = hot;
    missed.note((entities - TARGET).abs() > TARGET * OFF_MAX || *busy == 0.0, || {
        format!("the hot partition got {entities:.0} entities a second, and {busy:.1} refusals")
    });
    let refused = alone.refused + beside.refused;
    missed.note(refused > 0, || format!("{refused} requests of the quiet client were refused"));
    for Slower { percent, times, more_ms } in SLOWER_MAX {
        let (most, is) = (alone.at(percent) * times + more_ms, beside.at(percent));
        missed.note(is > most, || {
            format!(
                "the quiet client's p{percent} is {is:.2} ms beside the hot partition, more than {most:.2} ms"
            )
        });
    }
    missed.conclude("targets")
}
