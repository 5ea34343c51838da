//! The wall clock steps back by an hour, under load.
//!
//! libfaketime stands between the server and the system's wall clock and reads the offset from a file;
//! the monotonic clock is left alone, as a real correction of the time leaves it. Requests carry a SAS
//! instead of a dated signature, since the service rightly refuses a signature an hour off. Expected:
//! not one error, and the ETags of each entity go on growing ([`crate::load`] checks each).

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::conclude;
use crate::client::{self, ACCOUNT, Client, Credential};
use crate::load::{Load, observe};
use crate::server::{Server, Setup};
use crate::workspace;

/// Where Debian's package `faketime` puts the library, below the machine's library directory.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
/// Minutes of a day.
const DAY_MINUTES: u32 = 1_440;
/// Time under load before, between and after the steps.
const STRETCH: Duration = Duration::from_secs(3);

/// Runs the test, or says what is missing.
pub(super) fn run(seed: u64) -> Result<()> {
    let Some(library) = library() else {
        println!("clock: skipped, libfaketime is not here; install the package faketime");
        return Ok(());
    };
    let program = workspace::program()?;
    let directory = workspace::scratch("crash-clock")?;
    let offset = directory.join("offset");
    set(&offset, "+0")?;
    let mut setup = Setup::new(&program, &directory.join("data"), &directory.join("server.log"));
    setup.environment = [
        ("LD_PRELOAD", library.into_os_string()),
        ("FAKETIME_TIMESTAMP_FILE", offset.clone().into()),
        ("FAKETIME_NO_CACHE", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
    ]
    .map(|(name, value): (&str, OsString)| (name.to_owned(), value))
    .into();
    let server = Server::start(&setup)?;
    let mut load = Load::new(seed, false);
    load.prepare(server.address, Credential::Sas)?;
    step_under_load(&mut load, server.address, &offset)?;
    let mut findings = load.settle(&observe(server.address, Credential::Sas)?);
    // Opened again by a clock that is still an hour behind: times must go on from the highest.
    server.kill()?;
    let server = Server::start(&setup).context("with the clock an hour back")?;
    findings.extend(load.settle(&observe(server.address, Credential::Sas)?));
    let stop = AtomicBool::new(false);
    load.run(server.address, Credential::Sas, &stop, 50);
    findings.extend(load.settle(&observe(server.address, Credential::Sas)?));
    server.stop()?;
    let counts = load.counts();
    conclude("clock", &counts, &findings)?;
    if counts.busy + counts.failed > 0 {
        bail!("clock: {} answers 503 and {} answers 500 while the clock stepped", counts.busy, counts.failed);
    }
    Ok(())
}

/// Loads the server while its clock goes back an hour, forward two, and back again.
fn step_under_load(load: &mut Load, address: SocketAddr, offset: &Path) -> Result<()> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers = scope.spawn(|| load.run(address, Credential::Sas, &stop, u64::MAX));
        let steps = || -> Result<()> {
            thread::sleep(STRETCH);
            let before = server_minute(address)?;
            set(offset, "-3600")?;
            thread::sleep(STRETCH);
            let back = (before + DAY_MINUTES - server_minute(address)?) % DAY_MINUTES;
            if !(58..=60).contains(&back) {
                bail!("the server's clock did not step back by an hour but by {back} minutes");
            }
            println!("the server's clock went back by {back} minutes");
            set(offset, "+3600")?;
            thread::sleep(STRETCH);
            set(offset, "-3600")?;
            thread::sleep(STRETCH);
            Ok(())
        };
        let stepped = steps();
        stop.store(true, Ordering::Relaxed);
        writers.join().expect("writers do not panic");
        stepped
    })
}

/// The minute of the day by the server's clock, from an answer.
fn server_minute(address: SocketAddr) -> Result<u32> {
    let mut client = Client::new(address, Credential::Sas);
    let answer = client.send(client::get(format!("/{ACCOUNT}/Tables?$top=1")), "date")?;
    let date = answer.header("date").context("an answer without a date")?;
    let number = |at: std::ops::Range<usize>| date.get(at).and_then(|text| text.parse::<u32>().ok());
    let (hour, minute) = number(17..19).zip(number(20..22)).with_context(|| format!("no date: {date:?}"))?;
    Ok(hour * 60 + minute)
}

/// Writes the offset in one step: the server must never read half of it.
fn set(file: &Path, offset: &str) -> Result<()> {
    let fresh = file.with_extension("new");
    fs::write(&fresh, format!("{offset}\n"))?;
    fs::rename(&fresh, file).context("cannot write the offset of the clock")
}

fn library() -> Option<PathBuf> {
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    ["/usr/lib".into(), format!("/usr/lib/{machine}")]
        .into_iter()
        .map(|directory| Path::new(&directory).join(LIBRARY))
        .find(|path| path.exists())
}
