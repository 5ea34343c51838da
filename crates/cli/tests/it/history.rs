//! The history of load survives `kill -9` of the program, except for the last seconds.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::program::Program;

/// The pause between two writes, and how many writes fall into the last seconds.
const PACE: Duration = Duration::from_millis(20);
const LAST_SECONDS: u64 = 200;

/// The number of writes in the history, in columns of `step` seconds.
fn writes(program: &Program, step: u32) -> u64 {
    let told = program.admin(&format!("/v1/history?step={step}"));
    let columns = told["columns"].as_array().expect("columns").iter();
    let cells = columns.flat_map(|column| column["cells"].as_array().expect("cells"));
    cells.map(|cell| cell[2].as_u64().expect("a number")).sum()
}

/// The size of the segments with columns of ten seconds, in bytes.
fn bytes_of_tens(data: &Path) -> u64 {
    let Ok(files) = fs::read_dir(data.join("history")) else { return 0 };
    let files = files.map(|file| file.expect("a file"));
    let tens = files.filter(|file| file.file_name().to_string_lossy().starts_with("10s-"));
    tens.map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum()
}

#[test]
fn kill_9_takes_no_more_than_the_last_seconds() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let program = Program::start(&data, &[]);
    program.create_table("marathon");
    // Writes one row after another, until the history has stored a column of ten seconds.
    let mut rows: u32 = 0;
    let before = loop {
        program.insert("Full", &rows.to_string());
        rows += 1;
        thread::sleep(PACE);
        let told = writes(&program, 1);
        if bytes_of_tens(&data) > 0 {
            break told;
        }
        assert!(rows < 10_000, "nothing was written after {rows} writes");
    };
    drop(program);

    let program = Program::start(&data, &[]);
    let (seconds, tens, minutes) = (writes(&program, 1), writes(&program, 10), writes(&program, 60));
    assert_eq!(seconds, 0, "seconds are in memory");
    assert!(tens > 0 && tens <= u64::from(rows) + 1, "{tens} of {rows} writes");
    // The column had just ended.
    assert!(tens + LAST_SECONDS >= before, "{tens} of {before} writes that were told of");
    assert_eq!(minutes, tens, "minutes are added up again from tens");
}
