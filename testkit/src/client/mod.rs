//! A small client of the table service, for tests that kill the server under it.
//!
//! It keeps one connection, signs with the development account, and tells apart the three things that
//! can happen to a request: it was never sent, it was answered, or its outcome is unknown.

mod admin;
mod table;

pub use admin::{Admin, Change, Entry as AdminEntry, Refusal, TOKEN_FILE};
pub use table::{Step, batch, change, create_table, delete_table, entity_path, etag_time, get, page, row};

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

pub use crate::http::{Answer, Connection, Request};
pub use crate::sign::{ACCOUNT, percent_encode};
use crate::sign::{Signer, VERSION};

/// How requests prove which account sends them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Credential {
    /// By SharedKey, with the date of this machine's clock.
    SharedKey,
    /// By an account SAS, which is valid at any time that a clock may show.
    Sas,
}

/// Why a request has no answer.
#[derive(Debug)]
pub enum Failure {
    /// No process accepted the connection: the request was certainly not carried out.
    Unsent(io::Error),
    /// The connection broke after the request was sent, or in the middle of it.
    Unknown(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsent(error) => write!(f, "the request could not be sent: {error}"),
            Self::Unknown(error) => write!(f, "the request has no answer: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// A client: an address, a credential, and a connection while there is one.
pub struct Client {
    address: SocketAddr,
    credential: Credential,
    connection: Option<Connection>,
}

impl Client {
    /// A client of the table service at `address`; connects with the first request.
    pub fn new(address: SocketAddr, credential: Credential) -> Self {
        Self { address, credential, connection: None }
    }

    /// Signs and sends a request, and reads its answer. `id` comes back in the answer's headers, so a recorded answer
    /// can be recognised later.
    pub fn send(&mut self, mut request: Request, id: &str) -> std::result::Result<Answer, Failure> {
        self.sign(&mut request, id);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address).map_err(Failure::Unsent)?,
        };
        let response = connection.send(&request).map_err(Failure::Unknown)?;
        if !response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.connection = Some(connection);
        }
        Ok(response)
    }

    fn sign(&self, request: &mut Request, id: &str) {
        request.set("x-ms-version", VERSION);
        request.set("x-ms-client-request-id", id);
        let signer = Signer::well_known();
        match self.credential {
            Credential::SharedKey => signer.sign(request, crate::seconds_since_1970()),
            Credential::Sas => {
                let join = if request.target.contains('?') { '&' } else { '?' };
                request.target = format!("{}{join}{}", request.target, signer.sas_for_everything());
            }
        }
    }
}

/// Sends requests by this many clients at once, each of which takes the next one when it is free. The answer to each
/// must be `expected`.
pub fn send_all(
    clients: usize,
    address: SocketAddr,
    requests: impl Iterator<Item = Request> + Send,
    expected: u16,
) -> Result<()> {
    let requests = Mutex::new(requests);
    let next = || requests.lock().expect("making a request does not panic").next();
    let work = || {
        let mut client = Client::new(address, Credential::SharedKey);
        std::iter::from_fn(next).try_for_each(|request| must(&mut client, request, expected).map(drop))
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..clients).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("workers do not panic"))
    })
}

/// Sends a request that may be answered with one status only.
pub fn must(client: &mut Client, request: Request, expected: u16) -> Result<Answer> {
    let line = format!("{} {}", request.method, request.target);
    let answer = client.send(request, "must").with_context(|| line.clone())?;
    if answer.status != expected {
        bail!("{line} was answered {}: {}", answer.status, answer.body);
    }
    Ok(answer)
}
