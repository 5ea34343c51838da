//! Many small files go up and come down by `rangehold object cp`, which is killed on the way.
//!
//! 1. Files of 1 KiB are made, in 100 folders.
//! 2. `cp -r` copies them up. It is killed twice, after a fifth and after half of the files, and run again until it ends.
//! 3. Size and CRC32C of each object must be those of its file.
//! 4. `cp -r` copies them down into another folder, and is killed in the same way.
//! 5. Both folders must have the same files with the same bytes, and no others.
//! 6. A program in Python copies some of the files up and down, one after the other, by Google's client, at the same server.
//!
//! What the killed runs had copied must be skipped by the last one. The times are those of all runs of a command together,
//! the killed ones included. So the ratio to the loop in Python is of what a person waits for.
//!
//! Two judgements depend on the speed of the machine: that ratio, and that a command was killed before it ended. Without the loop
//! (`--python-files 0`) these are left out.

mod copy;
mod files;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};
use rangehold_testkit::python::environment;
use rangehold_testkit::server::Server;
use rangehold_testkit::workspace::same_tree;

use self::copy::{Copied, Service};
use super::Arguments;
use crate::bench::Missed;

/// Google's client, pinned; the same as in tests/gcs.
const CLIENT: &str = "google-cloud-storage==3.17.1";
/// The loop.
const LOOP: &str = include_str!("loop.py");
/// How many times as fast as the loop the copies have to be.
const RATIO_MIN: f64 = 5.0;
const BUCKET: &str = "ours";

/// Runs the steps, prints a table, and fails if anything differs or the ratio is missed.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let setup = arguments.build.setup("client-objects", &[])?;
    let (files, down) = (setup.beside("files"), setup.beside("down"));
    files::make(&files, arguments.files)?;
    let server = Server::start(&setup)?;
    let service = Service::new(&setup.program, &server, &setup.beside("state"));
    service.make_bucket(BUCKET)?;

    let up = service.copy_up(&files, BUCKET, arguments.files)?;
    files::compare_with_bucket(&files, server.objects, BUCKET)?;
    let came = service.copy_down(BUCKET, &down, arguments.files)?;
    same_tree(&files, &down.join("files"))?;
    println!("{} files are equal here, in the bucket and after their way back", arguments.files);

    println!(
        "{:<34} {:>7} {:>6} {:>8} {:>8} {:>26}",
        "", "files", "killed", "seconds", "files/s", "skipped by the last run"
    );
    for (what, copied) in [("cp -r up", &up), ("cp -r down", &came)] {
        print(what, arguments.files, copied);
    }
    let mut missed = Missed::default();
    if arguments.python_files > 0 {
        beside_python(arguments, &server, &files, [&up, &came], &mut missed)?;
    }
    server.stop()?;
    missed.conclude("objects")
}

fn print(what: &str, files: u64, Copied { kills, took, skipped }: &Copied) {
    let (seconds, rate) = (took.as_secs_f64(), files as f64 / took.as_secs_f64());
    println!("{what:<34} {files:>7} {kills:>6} {seconds:>8.1} {rate:>8.0} {skipped:>26}");
}

/// Runs the loop and notes a copy that is not fast enough beside it.
fn beside_python(
    arguments: &Arguments,
    server: &Server,
    files: &Path,
    copied: [&Copied; 2],
    missed: &mut Missed,
) -> Result<()> {
    let count = arguments.python_files.min(arguments.files);
    let seconds = python(server, files, count)?;
    let loops = [("Python, upload_from_filename", seconds[0]), ("Python, download_to_filename", seconds[1])];
    for (what, seconds) in loops {
        println!("{what:<34} {count:>7} {:>6} {seconds:>8.1} {:>8.0}", 0, count as f64 / seconds);
    }
    for ((way, copied), seconds) in ["up", "down"].into_iter().zip(copied).zip(seconds) {
        let ratio = arguments.files as f64 / copied.took.as_secs_f64() / (count as f64 / seconds);
        println!("{way}: {ratio:.1} times as fast as the loop (aim: {RATIO_MIN})");
        missed.note(ratio < RATIO_MIN, || format!("{way}: only {ratio:.1} times as fast as the loop"));
        missed.note(copied.kills < copy::KILLED_AFTER.len(), || {
            format!("{way}: the command ended before it was killed")
        });
    }
    Ok(())
}

/// The seconds of the loop on its way up and on its way down.
fn python(server: &Server, files: &Path, count: u64) -> Result<[f64; 2]> {
    let python = environment("google-cloud-storage", CLIENT)?;
    let output = Command::new(python)
        .args(["-c", LOOP])
        .arg(files)
        .arg(count.to_string())
        .env("STORAGE_EMULATOR_HOST", format!("http://{}", server.objects))
        .output()?;
    ensure!(output.status.success(), "the loop failed: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let seconds: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [up, down] = seconds[..] else {
        bail!("the loop in Python prints the seconds of both ways, and printed {text:?}");
    };
    Ok([up, down])
}
