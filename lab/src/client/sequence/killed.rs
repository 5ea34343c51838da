//! Processes that take numbers are killed, and so is the server.
//!
//! In each round a server starts on the same data, and processes take numbers and print each of them before they use it. A few of
//! them are killed at random moments, and others take their places. Then the server is killed under the rest, and these
//! are killed too. At the end no number may have been printed twice, and of the strict sequence each number up to the last
//! must have been printed, or have a claim that is still open: it is listed, so that somebody can take it up.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_client::sequence::{Sequence, SequenceOptions, StrictSequence};
use rangehold_testkit::server::Server;

use super::super::Arguments;
use super::super::command::connection;
use super::callers::service;
use super::worker::{PLAIN, SCOPE, STRICT};

/// Processes of each sequence.
const PROCESSES: usize = 6;
/// Processes that are killed in each round before the server is.
const KILLED_MIN: u32 = 4;
/// Milliseconds between two kills.
const BETWEEN_MS: std::ops::Range<u64> = 100..500;
/// The seed of the moments. They depend on the machine all the same.
const SEED: u64 = 24;

/// A process that takes numbers, and the thread that reads them.
struct Taker {
    is_strict: bool,
    child: Child,
    numbers: JoinHandle<Vec<i64>>,
}

/// What all processes printed.
#[derive(Default)]
struct Printed {
    plain: Vec<i64>,
    strict: Vec<i64>,
    kills: usize,
}

/// Runs the rounds, prints a line, and fails if a number came twice or is lost.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let setup = arguments.build.setup("client-killed", &[])?;
    let (mut chance, mut printed) = (StdRng::seed_from_u64(SEED), Printed::default());
    for _ in 0..arguments.kills {
        let server = Server::start(&setup)?;
        let text = connection(&server);
        let start = |at: usize| Taker::start(&text, at.is_multiple_of(2));
        let mut takers = (0..2 * PROCESSES).map(start).collect::<Result<Vec<_>>>()?;
        for _ in 0..KILLED_MIN {
            thread::sleep(Duration::from_millis(chance.random_range(BETWEEN_MS)));
            let taker = takers.swap_remove(chance.random_range(0..takers.len()));
            takers.push(Taker::start(&text, taker.is_strict)?);
            printed.kill(taker)?;
        }
        thread::sleep(Duration::from_millis(chance.random_range(BETWEEN_MS)));
        server.kill()?;
        takers.into_iter().try_for_each(|taker| printed.kill(taker))?;
    }
    let server = Server::start(&setup)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let open = runtime.block_on(printed.take_the_last(&connection(&server)))?;
    server.stop()?;
    let strict = distinct("strict", &printed.strict)?;
    distinct("plain", &printed.plain)?;
    let last = strict.last().copied().unwrap_or_default();
    let lost = (1..=last).filter(|number| !strict.contains(number) && !open.contains(number)).count();
    ensure!(lost == 0, "{lost} numbers up to {last} were not printed and have no open claim");
    println!(
        "kill -9 of {} processes and {} servers: {} numbers, {} strict ones; 0 came twice; {} claims are open, no number is lost",
        printed.kills,
        arguments.kills,
        printed.plain.len(),
        printed.strict.len(),
        open.len()
    );
    Ok(())
}

/// The numbers in their order. Fails if one came twice.
fn distinct(what: &str, numbers: &[i64]) -> Result<BTreeSet<i64>> {
    let set: BTreeSet<i64> = numbers.iter().copied().collect();
    let doubles = numbers.len() - set.len();
    ensure!(doubles == 0, "{doubles} {what} numbers came twice");
    ensure!(set.len() > 1, "no process got a {what} number");
    Ok(set)
}

impl Taker {
    fn start(connection: &str, is_strict: bool) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["sequence-worker", "--endless", "--connection", connection]);
        if is_strict {
            command.arg("--strict");
        }
        // It complains when the server is killed.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let output = child.stdout.take().context("its output is piped")?;
        Ok(Self { is_strict, child, numbers: thread::spawn(|| whole_lines(output)) })
    }
}

/// The numbers on lines that are complete: a process may be killed in the middle of one.
fn whole_lines(output: impl Read) -> Vec<i64> {
    let (mut output, mut numbers, mut line) = (BufReader::new(output), Vec::new(), String::new());
    while output.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        let number = line.strip_suffix('\n').and_then(|number| number.parse::<i64>().ok());
        numbers.extend(number);
        line.clear();
    }
    numbers
}

impl Printed {
    fn kill(&mut self, mut taker: Taker) -> Result<()> {
        taker.child.kill()?;
        taker.child.wait()?;
        self.kills += 1;
        let numbers = taker.numbers.join().expect("the reader does not panic");
        if taker.is_strict {
            self.strict.extend(numbers)
        } else {
            self.plain.extend(numbers)
        }
        Ok(())
    }

    /// Takes one more number of each sequence. Returns those whose claims are open after that.
    async fn take_the_last(&mut self, connection: &str) -> Result<BTreeSet<i64>> {
        let (service, options) = (service(connection)?, SequenceOptions::default());
        let plain = Sequence::open(&service, SCOPE, PLAIN, options.clone()).await?;
        self.plain.push(plain.next().await?);
        let strict = StrictSequence::open(&service, SCOPE, STRICT, options).await?;
        let claim = strict.next().await?;
        self.strict.push(claim.number());
        claim.finish().await?;
        Ok(strict.open_claims().await?.into_iter().map(|claim| claim.number).collect())
    }
}
