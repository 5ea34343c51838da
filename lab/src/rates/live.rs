//! A story with a real server and real clients: one hex digit in front of a time, at a hundredth of the rates and with a
//! clock of the ramp that runs twenty times as fast. So 20 minutes are one, and 16,000 writes a second are 160.
//!
//! Each client writes one object after the other, and paces itself so that all together ask for what the story says.
//! What is refused is not repeated.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rangehold_testkit::http::{Connection, Request};
use rangehold_testkit::server::Server;

use super::draw;
use crate::bench::Build;

const ARGUMENTS: [&str; 6] = ["--profile", "cloud", "--rate-scale", "0.01", "--time-scale", "20"];
/// Clients at once. A request waits for up to a second, so fewer could not ask for 160 a second.
const CLIENTS: u64 = 64;
/// Five stretches of a minute, in which 20 minutes of the ramp pass, and a little more than that for the first.
const STRETCH: Duration = Duration::from_secs(62);
const STRETCHES: u32 = 6;
const BUCKET: &str = "ramp";

/// What was answered, by the second.
struct Seen {
    let_in: Vec<AtomicU64>,
    refused: [AtomicU64; 2],
}

pub(super) fn run(pictures: Option<&Path>, build: &Build) -> Result<()> {
    let server = Server::start(&build.setup("rates", &ARGUMENTS)?)?;
    let bucket = format!("{{\"name\":\"{BUCKET}\"}}");
    let json = [("Content-Type", "application/json")];
    let made = Connection::open(server.objects)?.send(&Request::new(
        "POST",
        "/storage/v1/b?project=lab",
        &json,
        bucket.as_bytes(),
    ))?;
    ensure!(made.status == 200, "the bucket was answered {} {:.300}", made.status, made.body);
    let whole = STRETCH * STRETCHES;
    let seconds = whole.as_secs() as usize;
    let seen =
        Seen { let_in: (0..=seconds).map(|_| AtomicU64::new(0)).collect(), refused: Default::default() };
    let begun = Instant::now();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn({
                    let (server, seen) = (&server, &seen);
                    move || write(server, client, begun, whole, seen)
                })
            })
            .collect();
        clients.into_iter().try_for_each(|client| client.join().expect("clients do not panic"))
    })?;
    print(&seen, seconds, pictures)?;
    server.stop()?;
    Ok(())
}

/// Writes each second at a time: doubled in each stretch, up to 160, and once more.
fn asked(at: Duration) -> f64 {
    10.0 * f64::from(1_u32 << (at.as_secs() / STRETCH.as_secs()).min(5))
}

fn write(server: &Server, client: u64, begun: Instant, whole: Duration, seen: &Seen) -> Result<()> {
    let mut connection = Connection::open(server.objects)?;
    let mut due = Duration::from_secs_f64(client as f64 / CLIENTS as f64);
    for number in 0_u64.. {
        let now = begun.elapsed();
        if now >= whole {
            break;
        }
        if let Some(early) = due.checked_sub(now) {
            thread::sleep(early);
        }
        // A client that was held up asks for no more than its share from now on.
        due = due.max(now) + Duration::from_secs_f64(CLIENTS as f64 / asked(due.max(now)));
        let digit = (number * CLIENTS + client).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60;
        let name = format!("{digit:x}%2F{:08}-{client:02}", begun.elapsed().as_millis());
        let target = format!("/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}");
        let answer =
            connection.send(&Request::new("POST", &target, &[("Content-Type", "text/plain")], b"x"))?;
        let second = begun.elapsed().as_secs() as usize;
        match answer.status {
            200 => seen.let_in[second.min(seen.let_in.len() - 1)].fetch_add(1, Ordering::Relaxed),
            429 => seen.refused[0].fetch_add(1, Ordering::Relaxed),
            503 => seen.refused[1].fetch_add(1, Ordering::Relaxed),
            other => bail!("{target} was answered {other} {:.300}", answer.body),
        };
    }
    Ok(())
}

fn print(seen: &Seen, seconds: usize, pictures: Option<&Path>) -> Result<()> {
    /// Seconds of one point.
    const POINT: usize = 2;
    let counts: Vec<u64> = seen.let_in[..seconds].iter().map(|count| count.load(Ordering::Relaxed)).collect();
    let let_in: Vec<f64> =
        counts.chunks(POINT).map(|counts| counts.iter().sum::<u64>() as f64 / counts.len() as f64).collect();
    let asked: Vec<f64> =
        (0..let_in.len()).map(|at| asked(Duration::from_secs((at * POINT) as u64))).collect();
    let stretch = STRETCH.as_secs() as usize / POINT;
    for (number, (asked, let_in)) in asked.chunks(stretch).zip(let_in.chunks(stretch)).enumerate() {
        let mean = let_in.iter().sum::<f64>() / let_in.len() as f64;
        println!("minute {} of the ramp: asked {:.0} writes/s, let in {mean:.1}", 20 * number, asked[0]);
    }
    let [too_many, backend] = seen.refused.each_ref().map(|count| count.load(Ordering::Relaxed));
    println!("refused: {too_many} with 429, {backend} with 503");
    let times: Vec<f64> = (0..let_in.len()).map(|at| (at * POINT) as f64).collect();
    let curves = [("asked", &asked), ("let in", &let_in)];
    draw(
        pictures,
        "live-one-digit",
        curves.map(|(name, rates)| crate::balance::Curve::new(name, &times, rates)).into(),
    )
}
