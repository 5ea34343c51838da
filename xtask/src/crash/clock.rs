//! The wall clock steps back by an hour, under load.
//!
//! libfaketime stands between the server and the system's wall clock and reads the offset from a file;
//! the monotonic clock is left alone, as a real correction of the time leaves it. The server's clock
//! begins an hour ahead and is then set right. Requests carry a SAS instead of a dated signature, since
//! the service rightly refuses a signature an hour off.
//!
//! Besides, one name is created and deleted 1,000 times right after the clock stepped back, and again right after the
//! server was killed and opened again with the clock behind.
//!
//! Expected: no error at all; the ETags of each entity keep growing ([`rangehold_testkit::load`] checks each), and so
//! do the generations of the name. A client with the right time is refused while the server is ahead, and is accepted when it is not ahead any more.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::conclude;
use rangehold_testkit::client::{self, ACCOUNT, Client, Credential};
use rangehold_testkit::load::{Finding, Load};
use rangehold_testkit::object_load::{ObjectLoad, churn};
use rangehold_testkit::server::{Server, Setup};
use rangehold_testkit::workspace::Profile;

/// Where Debian's package `faketime` puts the library, below the machine's library directory.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
/// Time under load before, between and after the steps.
const STRETCH: Duration = Duration::from_secs(3);

/// How often one name is created and deleted after each step back and after the kill.
const CHURNED: u32 = 1_000;
/// ... and before the step.
const CHURNED_BEFORE: u32 = 50;

/// Runs the test, or says what is missing.
pub(super) fn run(seed: u64) -> Result<()> {
    let Some(library) = library() else {
        println!("clock: skipped, libfaketime is not here; install the package faketime");
        return Ok(());
    };
    // No change of ranges holds a request up, so that each error comes from the clock.
    let mut setup = Setup::fresh(Profile::Dev, "crash-clock", &["--manager", "off"])?;
    let offset = setup.beside("offset");
    set(&offset, "+3600")?;
    setup.environment = [
        ("LD_PRELOAD", library.into_os_string()),
        ("FAKETIME_TIMESTAMP_FILE", offset.clone().into()),
        ("FAKETIME_NO_CACHE", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
    ]
    .map(|(name, value): (&str, OsString)| (name.to_owned(), value))
    .into();
    let server = Server::start(&setup)?;
    let mut load = Load { credential: Credential::Sas, ..Load::new(seed, false) };
    load.prepare(server.address)?;
    ObjectLoad::new(0, seed).prepare(server.objects)?;
    let mut churned = Churned::default();
    let stepped = step_under_load(&mut load, &server, &offset, &mut churned);
    let mut findings = load.check(server.address)?;
    set(&offset, "+3600")?;
    churned.go_on(server.objects, CHURNED_BEFORE)?;
    // It is opened again while the clock is an hour behind what it was: times must go on from the highest.
    server.kill()?;
    set(&offset, "+0")?;
    let server = Server::start(&setup).context("with the clock set back")?;
    churned.go_on(server.objects, CHURNED)?;
    findings.extend(churned.findings);
    findings.extend(load.check(server.address)?);
    load.run(server.address, 50);
    findings.extend(load.check(server.address)?);
    server.stop()?;
    let counts = load.counts();
    conclude("clock", &counts, &findings)?;
    if counts.busy + counts.failed > 0 {
        bail!("clock: {} answers 503 and {} answers 500 while the clock stepped", counts.busy, counts.failed);
    }
    stepped
}

/// The generations of a name that is created and deleted again and again.
#[derive(Default)]
struct Churned {
    greatest: u64,
    findings: Vec<Finding>,
}

impl Churned {
    fn go_on(&mut self, objects: SocketAddr, times: u32) -> Result<()> {
        let (greatest, findings) = churn(objects, times, self.greatest)?;
        self.greatest = greatest;
        self.findings.extend(findings);
        Ok(())
    }
}

/// Loads the server while its clock, an hour ahead, is set right, then forward and back again.
fn step_under_load(load: &mut Load, server: &Server, offset: &Path, churned: &mut Churned) -> Result<()> {
    let address = server.address;
    load.run_while(address, || {
        thread::sleep(STRETCH);
        churned.go_on(server.objects, CHURNED_BEFORE)?;
        if dated_request(address)? != 403 {
            bail!("a signature an hour old is taken: the server's clock is not an hour ahead");
        }
        for (step, times) in [("+0", CHURNED), ("+3600", CHURNED_BEFORE), ("+0", 0)] {
            set(offset, step)?;
            churned.go_on(server.objects, times)?;
            thread::sleep(STRETCH);
        }
        match dated_request(address)? {
            200 => Ok(()),
            status => {
                bail!("after the clock was set right, a signature with the right date is answered {status}")
            }
        }
    })
}

/// The status of the answer to a request that is signed with the right date.
fn dated_request(address: SocketAddr) -> Result<u16> {
    let mut client = Client::new(address, Credential::SharedKey);
    Ok(client.send(client::get(format!("/{ACCOUNT}/Tables?$top=1")), "dated")?.status)
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
