//! Many large objects that go up at once: how much memory they need together.
//!
//! The bytes are sent as they are made, so that this process holds none of them. The memory of the server is looked at
//! before and every few milliseconds while they arrive.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rangehold_testkit::http::Request;
use rangehold_testkit::server::Server;

use crate::bench::mib;

/// Bytes that are sent at once.
const STEP: usize = 256 << 10;
/// How often the memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The memory that the project allows for all of them together, in MiB.
const ALLOWED_MIB: u64 = 64;

/// Sends `count` objects of `bytes` each, all at once, and prints how much the memory of the server grew.
pub(super) fn measure(server: &Server, count: usize, bytes: usize) -> Result<()> {
    let (address, before) = (server.objects, server.resident_bytes()?);
    let step: Vec<u8> = (0..STEP).map(|at| (at % 251) as u8).collect();
    let (mut most, begun) = (before, Instant::now());
    thread::scope(|scope| -> Result<()> {
        let send = |number| upload(address, &format!("upload-{number:03}"), bytes, &step);
        let uploads: Vec<_> = (0..count).map(|number| scope.spawn(move || send(number))).collect();
        while uploads.iter().any(|upload| !upload.is_finished()) {
            most = most.max(server.resident_bytes()?);
            thread::sleep(LOOK_EVERY);
        }
        uploads.into_iter().try_for_each(|upload| upload.join().expect("an upload does not panic"))
    })?;
    println!(
        "{count} uploads of {} MiB at once in {:.1?}: memory {} MiB before, {} MiB at its highest: +{} MiB ({ALLOWED_MIB})",
        bytes >> 20,
        begun.elapsed(),
        mib(before),
        mib(most),
        mib(most - before),
    );
    Ok(())
}

/// Sends an object of `bytes` bytes: those of `step`, again and again, from where they lie.
pub(super) fn upload(address: SocketAddr, name: &str, bytes: usize, step: &[u8]) -> Result<()> {
    let target = format!("/upload/storage/v1/b/bench/o?uploadType=media&name={name}");
    let length = bytes.to_string();
    let headers = [("Content-Type", "application/octet-stream"), ("Content-Length", length.as_str())];
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(&Request::new("POST", &target, &headers, b"").head(address))?;
    let mut left = bytes;
    while left > 0 {
        let now = left.min(step.len());
        stream.write_all(&step[..now])?;
        left -= now;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "the upload of {name} was answered {answer:.300}");
    Ok(())
}
