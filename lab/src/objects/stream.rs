//! A large object up and down, beside a bare copy of the same bytes.
//!
//! The bare copy is what disk and loopback give to a program that does no more than it must: on the way up it receives
//! the bytes, takes CRC32C and MD5 over them, writes a file and syncs it; on the way down it reads the file, takes
//! CRC32C, and sends.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use md5::{Digest, Md5};
use rangehold_testkit::http::Request;
use rangehold_testkit::server::Server;
use rangehold_testkit::workspace::scratch;

use super::uploads::upload;
use crate::bench::median;

/// Bytes that the bare copy moves at once.
const STEP: usize = 256 << 10;

/// Prints the medians of both ways, as times and as parts of the bare copy's speed.
pub(super) fn compare(server: &Server, bytes: usize, rounds: usize) -> Result<()> {
    let body: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    let file = scratch("objects-stream")?.join("copy");
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        up.push((
            time(|| upload(server.objects, "large", bytes, &body))?,
            time(|| bare_upload(&body, &file))?,
        ));
        down.push((time(|| download(server, bytes))?, time(|| bare_download(&file, bytes))?));
    }
    for (way, times) in [("up", up), ("down", down)] {
        let (ours, bare): (Vec<Duration>, Vec<Duration>) = times.into_iter().unzip();
        let (ours, bare) = (median(ours), median(bare));
        let ratio = bare.as_secs_f64() / ours.as_secs_f64();
        println!(
            "{} MiB {way}: {ours:.0?}, bare copy {bare:.0?}: {ratio:.2} of its speed (0.5)",
            bytes >> 20
        );
    }
    Ok(())
}

fn time(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}

/// Reads the answer as bytes: it is not text.
fn download(server: &Server, bytes: usize) -> Result<()> {
    let mut stream = TcpStream::connect(server.objects)?;
    let request = Request::new("GET", "/storage/v1/b/bench/o/large?alt=media", &[], b"");
    stream.write_all(&request.head(server.objects))?;
    let mut left = vec![0; STEP];
    let mut total = 0;
    loop {
        match stream.read(&mut left)? {
            0 => break,
            read => total += read,
        }
    }
    ensure!(total > bytes, "the download had {total} bytes with its head, and the object has {bytes}");
    Ok(())
}

fn bare_upload(body: &[u8], to: &Path) -> Result<()> {
    through_loopback(
        |mut stream| stream.write_all(body),
        |mut stream| {
            let (mut file, mut crc, mut md5) = (File::create(to)?, 0, Md5::new());
            let mut step = vec![0; STEP];
            loop {
                let read = stream.read(&mut step)?;
                if read == 0 {
                    break;
                }
                crc = crc32c::crc32c_append(crc, &step[..read]);
                md5.update(&step[..read]);
                file.write_all(&step[..read])?;
            }
            std::hint::black_box((crc, md5.finalize()));
            file.sync_all()
        },
    )
}

fn bare_download(from: &Path, bytes: usize) -> Result<()> {
    through_loopback(
        |mut stream| {
            let (mut file, mut crc, mut step) = (File::open(from)?, 0, vec![0; STEP]);
            loop {
                let read = file.read(&mut step)?;
                if read == 0 {
                    break;
                }
                crc = crc32c::crc32c_append(crc, &step[..read]);
                stream.write_all(&step[..read])?;
            }
            std::hint::black_box(crc);
            Ok(())
        },
        |mut stream| {
            let copied = std::io::copy(&mut stream, &mut std::io::sink())?;
            if copied == bytes as u64 { Ok(()) } else { Err(std::io::Error::other("the copy is too short")) }
        },
    )
}

/// Runs a sender and a receiver at the two ends of a connection.
fn through_loopback(
    send: impl FnOnce(TcpStream) -> std::io::Result<()> + Send,
    receive: impl FnOnce(TcpStream) -> std::io::Result<()>,
) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    thread::scope(|scope| {
        let sender = scope.spawn(move || send(TcpStream::connect(address)?));
        receive(listener.accept()?.0)?;
        Ok(sender.join().expect("the sender does not panic")?)
    })
}
