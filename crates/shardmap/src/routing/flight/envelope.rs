//! What is sent along with a request: `BEGIN` and the entering of the key ahead of it, and perhaps `COMMIT` behind
//! it.
//!
//! All statements are unnamed. Named statements do not work through a pooler that gives each transaction another
//! session.

use super::super::Isolation;

/// Types of the parameters of `enter`, by their numbers in PostgreSQL's catalogue.
const UUID: u32 = 2950;
const BYTEA: u32 = 17;
/// Without the prefix of the schema, a search path could lead to another function.
const ENTER: &str = "SELECT __shard_management.enter($1, $2)";

/// Messages of the protocol that go into a request of the library.
#[derive(Debug, Clone)]
pub(in super::super) struct Envelope {
    pub(super) ahead: Vec<u8>,
    pub(super) commands_ahead: usize,
    pub(super) behind: Vec<u8>,
}

impl Envelope {
    /// Begins a transaction and enters a key.
    pub(in super::super) fn begin(
        isolation: Isolation,
        read_only: bool,
        map: uuid::Uuid,
        key: &[u8],
    ) -> Self {
        let access = if read_only { "READ ONLY" } else { "READ WRITE" };
        let begin = format!("BEGIN ISOLATION LEVEL {}, {access}", isolation.sql());
        let mut ahead = Vec::with_capacity(256);
        command(&mut ahead, &begin, &[]);
        let Self { ahead: enter, .. } = Self::enter(map, key);
        ahead.extend_from_slice(&enter);
        Self { ahead, commands_ahead: 2, behind: Vec::new() }
    }

    /// Enters a key in a transaction that is open.
    pub(in super::super) fn enter(map: uuid::Uuid, key: &[u8]) -> Self {
        let mut ahead = Vec::new();
        command(&mut ahead, ENTER, &[(UUID, map.as_bytes()), (BYTEA, key)]);
        Self { ahead, commands_ahead: 1, behind: Vec::new() }
    }

    /// Nothing ahead, for a transaction that is open and has entered its key.
    pub(in super::super) fn none() -> Self {
        Self { ahead: Vec::new(), commands_ahead: 0, behind: Vec::new() }
    }

    /// Whether nothing is sent along.
    pub(super) fn is_empty(&self) -> bool {
        self.ahead.is_empty() && self.behind.is_empty()
    }

    /// The same, with a commit behind.
    pub(in super::super) fn and_commit(mut self) -> Self {
        command(&mut self.behind, "COMMIT", &[]);
        self
    }
}

/// One command with binary parameters: parse, bind, execute.
fn command(to: &mut Vec<u8>, sql: &str, parameters: &[(u32, &[u8])]) {
    let count = u16::try_from(parameters.len()).expect("a handful of parameters");
    message(to, b'P', |body| {
        body.push(0); // the unnamed statement
        body.extend_from_slice(sql.as_bytes());
        body.push(0);
        body.extend_from_slice(&count.to_be_bytes());
        for (kind, _) in parameters {
            body.extend_from_slice(&kind.to_be_bytes());
        }
    });
    message(to, b'B', |body| {
        body.extend_from_slice(&[0, 0]); // the unnamed portal of the unnamed statement
        body.extend_from_slice(&[0, 1, 0, 1]); // all parameters are binary
        body.extend_from_slice(&count.to_be_bytes());
        for (_, value) in parameters {
            let length = u32::try_from(value.len()).expect("keys are short");
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(value);
        }
        body.extend_from_slice(&[0, 1, 0, 1]); // all results are binary
    });
    message(to, b'E', |body| body.extend_from_slice(&[0, 0, 0, 0, 0])); // all rows
}

fn message(to: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    to.push(tag);
    let start = to.len();
    to.extend_from_slice(&[0; 4]);
    body(to);
    let length = u32::try_from(to.len() - start).expect("a short message");
    to[start..start + 4].copy_from_slice(&length.to_be_bytes());
}
