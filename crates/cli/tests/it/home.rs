//! Commands for tables and entities, at a service that they find by the variable of `az`.

use std::path::Path;

use rangehold_testkit::needs::{OTHER_SERVICE, given};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ended, Program, ended, rangehold};

/// A service, and a folder in which commands run.
pub(crate) struct Home {
    pub(crate) connection: String,
    directory: TempDir,
    /// The server, if it is ours; it is killed when this is dropped.
    server: Option<Program>,
}

impl Home {
    /// A server of ours.
    pub(crate) fn open() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let server = Program::start(&directory.path().join("data"), &[]);
        Self { connection: server.connection(), directory, server: Some(server) }
    }

    /// A service that is not ours, if the test was given one.
    pub(crate) fn other() -> Option<Self> {
        let connection = given(OTHER_SERVICE)?;
        let directory = tempfile::tempdir().expect("a directory");
        Some(Self { connection, directory, server: None })
    }

    /// The server of ours.
    pub(crate) fn server(&self) -> &Program {
        self.server.as_ref().expect("the service is ours")
    }

    /// The folder in which commands run.
    pub(crate) fn folder(&self) -> &Path {
        self.directory.path()
    }

    /// The path of a file in that folder.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder().join(name).to_str().expect("it is text").to_owned()
    }

    /// The name of a table that no other test uses: the system has given the folder a name by chance.
    pub(crate) fn unique(&self, name: &str) -> String {
        let folder = self.folder().file_name().expect("it has a name").to_string_lossy();
        format!("{name}{}", folder.replace(|c: char| !c.is_ascii_alphanumeric(), ""))
    }

    pub(crate) fn run(&self, line: &[&str]) -> Ended {
        let mut command = rangehold();
        command.args(line).env("AZURE_STORAGE_CONNECTION_STRING", &self.connection);
        command.current_dir(self.folder());
        ended(command, "")
    }

    /// What a command says that succeeds.
    pub(crate) fn says(&self, line: &[&str]) -> String {
        let ended = self.run(line);
        assert_eq!(ended.code, Some(0), "{line:?}: {ended:?}");
        ended.said
    }

    /// The same as JSON.
    pub(crate) fn answers(&self, line: &[&str]) -> Value {
        let line: Vec<&str> = line.iter().chain(&["--output", "json"]).copied().collect();
        serde_json::from_str(&self.says(&line)).expect("JSON")
    }

    /// Why a command failed.
    pub(crate) fn refuses(&self, line: &[&str]) -> String {
        let ended = self.run(line);
        assert_eq!((ended.code, ended.said.as_str()), (Some(1), ""), "{line:?}: {ended:?}");
        ended.complained
    }
}
