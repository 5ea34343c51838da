//! The service that the tests of this crate speak to: a server of their own, or the one that [`OTHER_SERVICE`] names, for
//! example Azurite.

pub(crate) mod way;

use rand::TryRng;
use rand::rngs::SysRng;
use rangehold_client::{Guid, Service, Table};
use rangehold_testkit::needs::OTHER_SERVICE;
use rangehold_testkit::server::{Server, Setup};
use rangehold_testkit::workspace::{Profile, program};
use tempfile::TempDir;

/// A running service.
pub(crate) struct Home {
    pub(crate) service: Service,
    pub(crate) connection: String,
    /// The server and its directory, if it is ours.
    server: Option<(Server, TempDir)>,
}

impl Home {
    pub(crate) fn open() -> Self {
        Self::open_with(&[])
    }

    /// The same; a server of ours gets more arguments.
    pub(crate) fn open_with(arguments: &[&str]) -> Self {
        match std::env::var(OTHER_SERVICE) {
            Ok(connection) => Self::at(connection, None),
            Err(_) => {
                let directory = tempfile::tempdir().expect("there is room for a directory");
                let program = program(Profile::Dev).expect("the program can be built");
                let mut setup =
                    Setup::new(&program, &directory.path().join("data"), &directory.path().join("log"));
                setup.arguments = arguments.iter().map(|&word| word.to_owned()).collect();
                let server = Server::start(&setup).expect("the server starts");
                let connection = format!(
                    "AccountName={};AccountKey={};TableEndpoint=http://{}/{}",
                    rangehold_testkit::sign::ACCOUNT,
                    rangehold_testkit::sign::KEY,
                    server.address,
                    rangehold_testkit::sign::ACCOUNT
                );
                Self::at(connection, Some((server, directory)))
            }
        }
    }

    fn at(connection: String, server: Option<(Server, TempDir)>) -> Self {
        let service =
            Service::from_connection_string(&connection).expect("the connection string is complete");
        Self { service, connection, server }
    }

    /// Where objects are served; `None` at a service that is not ours.
    pub(crate) fn objects(&self) -> Option<String> {
        self.server.as_ref().map(|(server, _)| format!("http://{}", server.objects))
    }

    /// A table that no other test uses.
    pub(crate) async fn table(&self, test: &str) -> Table {
        let mut bytes = [0; 16];
        SysRng.try_fill_bytes(&mut bytes).expect("the system has random bytes");
        let unique = Guid(bytes).to_string().replace('-', "");
        let table = self.service.table(&format!("{test}{unique}")).expect("it is a name");
        table.create().await.expect("the name is new");
        table
    }
}
