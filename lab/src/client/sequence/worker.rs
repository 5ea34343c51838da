//! Many processes that take numbers from one sequence.

use std::io::{BufRead, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rangehold_client::sequence::{Sequence, SequenceOptions, StrictSequence};

use super::Taken;
use super::callers::service;

/// The sequences of endless processes.
pub(super) const SCOPE: &str = "shop";
pub(super) const PLAIN: &str = "killed";
pub(super) const STRICT: &str = "killed-strict";
/// The pause of an endless process after an error.
const AFTER_ERROR: Duration = Duration::from_millis(10);

/// One process.
#[derive(clap::Args, Debug)]
pub(crate) struct Worker {
    /// How it reaches the service.
    #[arg(long)]
    connection: String,
    /// Numbers of a block.
    #[arg(long, default_value_t = 1)]
    block: u32,
    /// For so long.
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// Print each number at once, and go on until somebody ends the process.
    #[arg(long)]
    endless: bool,
    /// Of the strict sequence, whose claims it finishes.
    #[arg(long)]
    strict: bool,
}

impl Worker {
    /// Waits for a line on standard input, takes numbers, and prints them. If it is endless, it takes and prints without
    /// waiting.
    pub(crate) fn run(&self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        if self.endless {
            return runtime.block_on(self.take_on());
        }
        let taken = runtime.block_on(async {
            let service = service(&self.connection)?;
            let options = SequenceOptions { block: self.block, ..SequenceOptions::default() };
            let name = format!("blocks-of-{}", self.block);
            let sequence = Sequence::open(&service, "shop", &name, options).await?;
            println!("ready");
            let _begin = std::io::stdin().lock().read_line(&mut String::new())?;
            let begun = Instant::now();
            let mut taken = Taken::default();
            while begun.elapsed() < Duration::from_secs(self.seconds) {
                let asked = Instant::now();
                match sequence.next().await {
                    Ok(number) => {
                        taken.numbers.push(number);
                        taken.micros.push(asked.elapsed().as_micros() as u64);
                    }
                    Err(_) => taken.failed += 1,
                }
            }
            anyhow::Ok(taken)
        })?;
        println!("{}", serde_json::to_string(&taken)?);
        Ok(())
    }

    /// Takes numbers and prints each before it uses it, that is, before it finishes its claim.
    async fn take_on(&self) -> Result<()> {
        let service = service(&self.connection)?;
        if self.strict {
            let sequence = StrictSequence::open(&service, SCOPE, STRICT, SequenceOptions::default()).await?;
            loop {
                match sequence.next().await {
                    Ok(claim) => {
                        print_now(claim.number())?;
                        // A claim that cannot be finished stays, as that of a killed process does.
                        let _ = claim.finish().await;
                    }
                    Err(_) => tokio::time::sleep(AFTER_ERROR).await,
                }
            }
        }
        let sequence = Sequence::open(&service, SCOPE, PLAIN, SequenceOptions::default()).await?;
        loop {
            match sequence.next().await {
                Ok(number) => print_now(number)?,
                Err(_) => tokio::time::sleep(AFTER_ERROR).await,
            }
        }
    }
}

/// Prints a number on a line of its own, which has left this process when this returns.
fn print_now(number: i64) -> Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(format!("{number}\n").as_bytes())?;
    Ok(output.flush()?)
}

/// Starts so many processes, has them begin together, and returns what each got.
pub(super) fn processes(connection: &str, count: usize, block: u32, time: Duration) -> Result<Vec<Taken>> {
    let (block, seconds) = (block.to_string(), time.as_secs().to_string());
    let start = || -> Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            "sequence-worker",
            "--connection",
            connection,
            "--block",
            &block,
            "--seconds",
            &seconds,
        ]);
        Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
    };
    let mut children: Vec<Child> = (0..count).map(|_| start()).collect::<Result<_>>()?;
    let mut outputs = Vec::new();
    for child in &mut children {
        let mut output = std::io::BufReader::new(child.stdout.take().context("its output is piped")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        ensure!(line == "ready\n", "a worker said {line:?}");
        outputs.push(output);
    }
    for child in &mut children {
        child.stdin.take().context("its input is piped")?.write_all(b"go\n")?;
    }
    let mut taken = Vec::new();
    for (mut child, mut output) in children.into_iter().zip(outputs) {
        let mut line = String::new();
        output.read_line(&mut line)?;
        ensure!(child.wait()?.success(), "a worker failed");
        taken.push(serde_json::from_str(&line)?);
    }
    Ok(taken)
}
