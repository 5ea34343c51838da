//! A server that runs for a test, its clients, and commands that are told where it is.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use rangehold_testkit::client::{
    Admin, Client, Credential, Step, change, create_table, entity_path, get, must,
};
use rangehold_testkit::server::{Server, Setup, command};
use rangehold_testkit::sign::{ACCOUNT, KEY};
use serde_json::{Map, Value};

/// The table of these tests.
const TABLE: &str = "marathon";

/// A server, which is killed when it is dropped.
pub(crate) struct Program {
    server: Server,
    setup: Setup,
    _log: tempfile::TempDir,
}

/// How clients reach the development account at an address.
pub(crate) fn connection(address: SocketAddr) -> String {
    format!(
        "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{address}/{ACCOUNT};"
    )
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
        let log = tempfile::tempdir().expect("a directory");
        let mut setup =
            Setup::new(Path::new(env!("CARGO_BIN_EXE_rangehold")), data, &log.path().join("server.log"));
        setup.arguments = settings.iter().map(|&word| word.to_owned()).collect();
        let server = Server::start(&setup).expect("the server starts");
        Self { server, setup, _log: log }
    }

    /// How clients reach the table service.
    pub(crate) fn connection(&self) -> String {
        connection(self.server.address)
    }

    fn client(&self) -> Client {
        Client::new(self.server.address, Credential::SharedKey)
    }

    pub(crate) fn create_table(&self, table: &str) {
        must(&mut self.client(), create_table(table), 204).expect("a table");
    }

    /// Inserts into `marathon`.
    pub(crate) fn insert(&self, partition: &str, row: &str) {
        let insert = change(Step::Insert, TABLE, (partition, row), &Map::new(), "*");
        must(&mut self.client(), insert, 204).expect("an entity");
    }

    /// What a client gets that asks for an entity of `marathon`: status and body.
    pub(crate) fn entity(&self, partition: &str, row: &str) -> (u16, String) {
        let answer = self.client().send(get(entity_path(TABLE, partition, row)), "entity");
        let answer = answer.expect("an answer");
        (answer.status, answer.body)
    }

    /// What the admin API says.
    pub(crate) fn admin(&self, path: &str) -> Value {
        let admin = Admin::new(self.server.admin, &self.setup.data).expect("the admin token");
        admin.get(path).expect("an answer")
    }

    /// A command to this server.
    pub(crate) fn run(&self, line: &[&str]) -> Ended {
        self.run_with(line, "")
    }

    /// The same, with standard input.
    pub(crate) fn run_with(&self, line: &[&str], input: &str) -> Ended {
        let mut command = rangehold();
        command.args(line);
        command.env("RANGEHOLD_ADMIN", self.server.admin.to_string()).env("RANGEHOLD_DATA", &self.setup.data);
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

/// The program, without any settings of the person or process that runs the test.
pub(crate) fn rangehold() -> Command {
    command(env!("CARGO_BIN_EXE_rangehold"))
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
