//! The unit in which times of what must be durable are given: what one durable file costs on this disk now.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Bytes of the file: as many as a record of a change has.
const BYTES: usize = 512;
/// Pause between two files, so that the measurement itself adds little load.
const PAUSE: Duration = Duration::from_millis(100);

/// Makes files in `directory`, one after the other, and returns how long each took, until `stop`, or until this many
/// are made.
pub(crate) fn creates(directory: &Path, stop: &AtomicBool, most: usize) -> Result<Vec<Duration>> {
    fs::create_dir_all(directory)?;
    let mut times = Vec::new();
    while times.len() < most && !stop.load(Ordering::Relaxed) {
        let begin = Instant::now();
        create(directory, times.len()).context("cannot make a file to measure the disk by")?;
        times.push(begin.elapsed());
        thread::sleep(PAUSE);
    }
    Ok(times)
}

/// One file, durable under its name: written aside, synced, linked, and its directory synced.
fn create(directory: &Path, number: usize) -> Result<()> {
    let (aside, name) = (directory.join("aside"), directory.join(number.to_string()));
    let mut file = File::create(&aside)?;
    file.write_all(&[b'x'; BYTES])?;
    file.sync_all()?;
    fs::hard_link(&aside, name)?;
    fs::remove_file(&aside)?;
    File::open(directory)?.sync_all()?;
    Ok(())
}
