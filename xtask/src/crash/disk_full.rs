//! The disk fills up, and has room again.
//!
//! The server works on a small tmpfs of its own. First the writers fill it until writes are refused with 503 and a
//! text that names the disk; reads go on. Then space is freed, and writes must resume. Then the disk is filled from
//! outside to the last byte, including the reserve, under load: writes that the server has already begun may end with
//! 500, outcome unknown. Space is freed again, and writes resume. Then the server has to end by SIGTERM while the disk is
//! full, and to start on it again: all is read, and a table is dropped. After that, and after `kill -9`, nothing
//! acknowledged is missing.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::conclude;
use rangehold_testkit::client::{self, Client, Credential, Step, must};
use rangehold_testkit::load::{Finding, Load};
use rangehold_testkit::server::{self, Server, Setup};
use rangehold_testkit::workspace::{self, Profile};

/// Size of the disk. The engine keeps what it has replaced for a minute or two, so data takes a few times its size.
/// The space that this test frees must be more than that.
const DISK: u64 = 640 << 20;
/// Free space below which the server refuses writes.
const RESERVE: u64 = 32 << 20;
/// File that takes space away; it is removed to free the space.
const BALLAST: u64 = 560 << 20;
/// Size of one entity of the filling: its text, in bytes.
const FILLING: usize = 60_000;
/// What the server logs when it begins to end.
const STOPPING: &str = "stopping: finishing the requests under way";
/// What the engine logs when a database has had all its time for saving what it holds, which is 35 s.
const GAVE_UP: &str = "could not save its memory in time";
/// Longest wait until writes are accepted again once there is space: above the server's own deadline.
const RESUME_WAIT: Duration = Duration::from_secs(60);

/// Runs the test, or says why it cannot.
pub(super) fn run(seed: u64) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        println!("disk full: skipped, mounting a small disk needs root");
        return Ok(());
    }
    let mut setup = Setup::fresh(Profile::Dev, "crash-disk-full", &["--disk-reserve", &RESERVE.to_string()])?;
    let disk = Disk::mount(&setup.beside("disk"))?;
    setup.data = disk.0.join("data");
    let server = Server::start(&setup)?;
    let mut load = Load::new(seed, false);
    load.prepare(server.address)?;
    disk.ballast(BALLAST)?;

    let refusal = fill_until_refused(server.address)?;
    println!("full: refused with {refusal}");
    reads_go_on(server.address)?;
    disk.release()?;
    println!("room again: the first write was taken after {} ms", resumes(server.address)?.as_millis());

    under_load(&mut load, server.address, &disk)?;
    println!(
        "filled to the last byte under load and freed: resumed after {} ms",
        resumes(server.address)?.as_millis()
    );
    let mut findings = check(&mut load, server.address)?;

    let stopped = stops_while_full(server, &mut load, &disk)?;
    waited_for_no_database(&setup.log)?;
    println!("filled to the last byte: ended {} ms after SIGTERM", stopped.as_millis());
    let full = Setup { started: "/livez", ..setup.clone() };
    let server = Server::start(&full).context("on a full disk")?;
    println!("with no byte free: ready {} ms after the start", server.start_time.as_millis());
    findings.extend(check(&mut load, server.address)?);
    reads_go_on(server.address)?;
    must(&mut Client::new(server.address, Credential::SharedKey), client::delete_table("filling"), 204)
        .context("on a full disk")?;
    server.kill()?;
    disk.release()?;
    let server = Server::start(&setup).context("after the end on a full disk")?;
    findings.extend(check(&mut load, server.address)?);
    server.kill()?;
    let server = Server::start(&setup).context("after the disk was full")?;
    findings.extend(check(&mut load, server.address)?);
    server.stop()?;
    conclude("disk full", &load.counts(), &findings)
}

/// A mounted tmpfs; unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Result<Self> {
        fs::create_dir_all(at)?;
        let options = format!("size={DISK}");
        workspace::run(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at))?;
        Ok(Self(at.to_owned()))
    }

    fn ballast_path(&self) -> PathBuf {
        self.0.join("ballast")
    }

    /// Takes `size` bytes of the disk, or all that is left.
    fn ballast(&self, size: u64) -> Result<()> {
        let mut file = fs::File::options().create(true).append(true).open(self.ballast_path())?;
        let block = vec![0_u8; 1 << 20];
        for _ in 0..size >> 20 {
            if file.write_all(&block).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn release(&self) -> Result<()> {
        fs::remove_file(self.ballast_path()).context("cannot remove the ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A lazy unmount: a server that is shutting down may hold it for a moment.
        let _unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Writes large entities into a table of their own until one is refused; returns how.
fn fill_until_refused(address: SocketAddr) -> Result<String> {
    let mut client = Client::new(address, Credential::SharedKey);
    must(&mut client, client::create_table("filling"), 204)?;
    let text: String = (0..FILLING).map(|index| (b'a' + (index * index % 251 % 26) as u8) as char).collect();
    for number in 0..DISK / FILLING as u64 * 2 {
        let row = client::row([("s", format!("{number}{}", &text[..FILLING / 2 - 8]).into())]);
        let key = format!("{number:06}");
        let request = client::change(Step::Insert, "filling", ("f", &key), &row, "*");
        let answer = client.send(request, "fill")?;
        let text = answer.body;
        match answer.status {
            204 => {}
            503 if text.contains("ServerBusy") && text.to_lowercase().contains("disk") => {
                return Ok(format!("503 after {number} entities: {text}"));
            }
            status => bail!("with the disk full a write was answered {status}: {text}"),
        }
    }
    bail!("more was written than the disk holds, and nothing was refused")
}

fn reads_go_on(address: SocketAddr) -> Result<()> {
    let mut client = Client::new(address, Credential::SharedKey);
    for number in 0..100 {
        let path = client::entity_path("filling", "f", &format!("{number:06}"));
        must(&mut client, client::get(path), 200).context("a read with the disk full")?;
    }
    Ok(())
}

/// How long it takes until a write is accepted.
fn resumes(address: SocketAddr) -> Result<Duration> {
    let begin = Instant::now();
    let mut client = Client::new(address, Credential::SharedKey);
    loop {
        let row = client::row([("n", 1.into())]);
        let request = client::change(Step::Upsert, "filling", ("f", "after"), &row, "*");
        let answer = client.send(request, "resume")?;
        if answer.status == 204 {
            return Ok(begin.elapsed());
        }
        if begin.elapsed() > RESUME_WAIT {
            bail!("with room again a write was still answered {}: {}", answer.status, answer.body);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Fills the disk completely while all writers work, waits, and frees the space again.
fn under_load(load: &mut Load, address: SocketAddr, disk: &Disk) -> Result<()> {
    load.run_while(address, || {
        thread::sleep(Duration::from_secs(2));
        disk.ballast(DISK)?;
        // Long enough to reach the server's own disk check and go beyond it, but shorter than its deadline for a
        // write.
        thread::sleep(Duration::from_secs(8));
        disk.release()?;
        thread::sleep(Duration::from_secs(3));
        Ok(())
    })
}

/// Writes, fills the disk completely before what was written can be flushed, and ends the server by SIGTERM. Returns how
/// long that took; the disk stays full.
fn stops_while_full(server: Server, load: &mut Load, disk: &Disk) -> Result<Duration> {
    load.run_while(server.address, || {
        thread::sleep(Duration::from_secs(1));
        disk.ballast(DISK)
    })?;
    let begin = Instant::now();
    server.stop().context("with the disk full")?;
    let took = begin.elapsed();
    // What the end itself gave back.
    disk.ballast(DISK)?;
    Ok(took)
}

/// A process that is told to end has five seconds. Here this is not measured, since a slow machine may take longer: if the
/// process had waited for its databases, which cannot save anything now, its log would say that their time was over.
fn waited_for_no_database(log: &Path) -> Result<()> {
    let text = server::text(log);
    let (_, end) = text.rsplit_once(STOPPING).context("the log does not say that the server ends")?;
    if end.contains(GAVE_UP) {
        bail!("after SIGTERM with the disk full the server waited for its databases: {}", server::tail(log));
    }
    Ok(())
}

/// Compares with what was acknowledged, without the filling.
fn check(load: &mut Load, address: SocketAddr) -> Result<Vec<Finding>> {
    let mut observed = load.observe(address)?;
    observed.strangers.retain(|what| what != "table filling" && !what.starts_with("filling("));
    Ok(load.settle(&observed))
}
