//! A server that runs for a test, its clients, and commands that are told where it is.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// A token that `--oauth claims-only` takes: `{"alg":"none"}`, then audience, issuer and an end in 2100.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJhdWQiOiJodHRwczovL3N0b3JhZ2UuYXp1cmUuY29tIiwiaXNzIjoiaHR0cHM6Ly9zdHMud2luZG93cy5uZXQvdC8iLCJleHAiOjQxMDI0NDQ4MDB9.AA";
/// What a client of tables says of its requests.
const TABLE_HEADERS: &str = "Content-Type: application/json\r\nx-ms-version: 2020-12-06\r\n";
/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(20);

/// A server, which ends without a word when it is dropped.
pub(crate) struct Program {
    child: Child,
    data: PathBuf,
    tables: String,
    admin: String,
}

/// What became of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
    pub(crate) complained: String,
}

impl Program {
    /// A server of `data`, with more settings.
    pub(crate) fn start(data: &Path, settings: &[&str]) -> Self {
        let mut child = rangehold()
            .args(["dev", "--table-port", "0", "--admin-port", "0", "--oauth", "claims-only"])
            .args(settings)
            .arg("--data")
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
        // If nobody reads its output, it fails to print.
        thread::spawn(move || lines.for_each(drop));
        Self { child, data: data.to_owned(), tables, admin }
    }

    pub(crate) fn create_table(&self, table: &str) {
        self.post("/devstoreaccount1/Tables", &format!(r#"{{"TableName":"{table}"}}"#));
    }

    /// Inserts into `marathon`.
    pub(crate) fn insert(&self, partition: &str, row: &str) {
        let body = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row}"}}"#);
        self.post("/devstoreaccount1/marathon", &body);
    }

    fn post(&self, path: &str, body: &str) {
        let (status, answer) = exchange(&self.tables, "POST", path, TOKEN, TABLE_HEADERS, body);
        assert_eq!(status, 201, "{answer}");
    }

    /// What a client gets who asks for an entity of `marathon`: status and body.
    pub(crate) fn entity(&self, partition: &str, row: &str) -> (u16, String) {
        let path = format!("/devstoreaccount1/marathon(PartitionKey='{partition}',RowKey='{row}')");
        exchange(&self.tables, "GET", &path, TOKEN, TABLE_HEADERS, "")
    }

    /// What the admin API says.
    pub(crate) fn admin(&self, path: &str) -> Value {
        let token = fs::read_to_string(self.data.join("admin-token")).expect("the admin token");
        let (status, answer) = exchange(&self.admin, "GET", path, &token, "", "");
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(&answer).expect("JSON")
    }

    /// A command to this server.
    pub(crate) fn run(&self, line: &[&str]) -> Ended {
        self.run_with(line, "")
    }

    /// The same, with standard input.
    pub(crate) fn run_with(&self, line: &[&str], input: &str) -> Ended {
        let mut command = rangehold();
        command.args(line).env("RANGEHOLD_ADMIN", &self.admin).env("RANGEHOLD_DATA", &self.data);
        ended(command, input)
    }

    /// What a command says that succeeds.
    pub(crate) fn says(&self, line: &[&str]) -> String {
        let ended = self.run(line);
        assert_eq!(ended.code, Some(0), "{line:?}: {ended:?}");
        ended.said
    }

    /// The same, of one that answers in JSON.
    pub(crate) fn answers(&self, line: &[&str]) -> Value {
        serde_json::from_str(&self.says(line)).expect("JSON")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SIGKILL: nothing is written any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, without any settings of whoever runs the test.
pub(crate) fn rangehold() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rangehold"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("RANGEHOLD_"))
    {
        command.env_remove(name);
    }
    command
}

/// Runs a command to its end.
pub(crate) fn ended(mut command: Command, input: &str) -> Ended {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // Dropped once it is written, which ends the input. A program that does not read its input may have ended before.
    let _ = child.stdin.take().expect("its input").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code(), said: text(&output.stdout), complained: text(&output.stderr) }
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
    stream.set_read_timeout(Some(WITHIN)).expect("a time-out");
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
