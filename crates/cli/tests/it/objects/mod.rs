//! `object` and `bucket`, at a server that runs for the test.

mod bears;
mod copies;
mod folders;
mod rates;

use std::path::Path;
use std::process::Command;

use rangehold_testkit::server::{Server, Setup};
use tempfile::TempDir;

use crate::program::{Ended, ended, rangehold};

/// A server, and a folder in which commands run.
struct Home {
    server: Server,
    directory: TempDir,
}

impl Home {
    fn open() -> Self {
        Self::open_with(&[])
    }

    /// With more arguments for the server.
    fn open_with(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        let program = Path::new(env!("CARGO_BIN_EXE_rangehold"));
        let mut setup = Setup::new(program, &path.join("data"), &path.join("server.log"));
        setup.arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        let server = Server::start(&setup).expect("the server starts");
        std::fs::create_dir(path.join("work")).expect("a folder");
        Self { server, directory }
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = rangehold();
        command.args(line).current_dir(self.directory.path().join("work"));
        command.env("STORAGE_EMULATOR_HOST", format!("http://{}", self.server.objects));
        command.env("XDG_STATE_HOME", self.directory.path().join("state"));
        command.env("RANGEHOLD_ADMIN", self.server.admin.to_string());
        command.env("RANGEHOLD_DATA", self.directory.path().join("data"));
        command
    }

    fn run(&self, line: &[&str], input: &str) -> Ended {
        ended(self.command(line), input)
    }

    /// What a command says that succeeds.
    fn says(&self, line: &[&str]) -> String {
        let ended = self.run(line, "");
        assert_eq!(ended.code, Some(0), "{line:?}: {ended:?}");
        ended.said
    }

    /// What a command complains about that fails.
    fn fails(&self, line: &[&str]) -> String {
        let ended = self.run(line, "");
        assert_eq!(ended.code, Some(1), "{line:?}: {ended:?}");
        ended.complained
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.directory.path().join("work").join(name);
        std::fs::create_dir_all(path.parent().expect("it is below")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.directory.path().join("work").join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn exists(&self, name: &str) -> bool {
        self.directory.path().join("work").join(name).exists()
    }
}
