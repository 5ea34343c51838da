//! The history of load survives `kill -9` of the program, but for its last seconds.

#![expect(clippy::disallowed_methods, reason = "a real process is driven from outside")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Pause between two writes, and how many of them are the last seconds.
const PACE: Duration = Duration::from_millis(20);
const LAST_SECONDS: u64 = 200;
/// A token that `--oauth claims-only` takes: `{"alg":"none"}`, then audience, issuer and an end in 2100.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJhdWQiOiJodHRwczovL3N0b3JhZ2UuYXp1cmUuY29tIiwiaXNzIjoiaHR0cHM6Ly9zdHMud2luZG93cy5uZXQvdC8iLCJleHAiOjQxMDI0NDQ4MDB9.AA";

/// The program, which ends without a word when it is dropped.
struct Program {
    child: Child,
    tables: String,
    admin: String,
}

impl Program {
    fn start(data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rangehold"))
            .args(["dev", "--table-port", "0", "--admin-port", "0", "--oauth", "claims-only", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut address = |before: &str| {
            let line = lines.by_ref().map(|line| line.expect("text")).find(|line| line.starts_with(before));
            line.expect("it says where it listens")[before.len()..].to_owned()
        };
        let tables = address("Table service is successfully listening at http://");
        let admin = address("Admin is listening at http://");
        // Whoever stops reading makes it fail to print.
        thread::spawn(move || lines.for_each(drop));
        Self { child, tables, admin }
    }

    fn insert(&self, row: u32) {
        let body = format!(r#"{{"PartitionKey":"Full","RowKey":"{row}"}}"#);
        self.post("/devstoreaccount1/marathon", &body);
    }

    fn post(&self, path: &str, body: &str) {
        let headers = "Content-Type: application/json\r\nx-ms-version: 2020-12-06\r\n";
        let (status, answer) = exchange(&self.tables, "POST", path, TOKEN, headers, body);
        assert_eq!(status, 201, "{answer}");
    }

    /// Writes that the history knows of, in columns of so many seconds.
    fn writes(&self, data: &Path, step: u32) -> u64 {
        let token = fs::read_to_string(data.join("admin-token")).expect("the admin token");
        let (status, answer) =
            exchange(&self.admin, "GET", &format!("/v1/history?step={step}"), &token, "", "");
        assert_eq!(status, 200, "{answer}");
        let told: Value = serde_json::from_str(&answer).expect("JSON");
        let columns = told["columns"].as_array().expect("columns").iter();
        let cells = columns.flat_map(|column| column["cells"].as_array().expect("cells"));
        cells.map(|cell| cell[2].as_u64().expect("a number")).sum()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SIGKILL: nothing is written any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn exchange(
    address: &str,
    method: &str,
    path: &str,
    token: &str,
    headers: &str,
    body: &str,
) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{headers}\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: {answer:?}"));
    (head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"), body.to_owned())
}

/// Bytes of the segments of ten seconds.
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
    let program = Program::start(&data);
    program.post("/devstoreaccount1/Tables", r#"{"TableName":"marathon"}"#);
    // One write after the other until a column of ten seconds was written, which every ten seconds one is.
    let mut rows = 0;
    let before = loop {
        program.insert(rows);
        rows += 1;
        thread::sleep(PACE);
        let told = program.writes(&data, 1);
        if bytes_of_tens(&data) > 0 {
            break told;
        }
        assert!(rows < 10_000, "nothing was written after {rows} writes");
    };
    drop(program);

    let program = Program::start(&data);
    let (seconds, tens, minutes) =
        (program.writes(&data, 1), program.writes(&data, 10), program.writes(&data, 60));
    assert_eq!(seconds, 0, "seconds are in memory");
    assert!(tens > 0 && tens <= u64::from(rows) + 1, "{tens} of {rows} writes");
    // The column had just ended.
    assert!(tens + LAST_SECONDS >= before, "{tens} of {before} writes that were told of");
    assert_eq!(minutes, tens, "minutes are added up again from tens");
}
