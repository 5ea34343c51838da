//! What the tests share: real database servers, and what stands between them and their clients.

pub mod faults;
pub mod local;
pub mod mutants;
pub mod proxy;
pub mod routed;
#[macro_use]
pub mod stores;

pub use rangehold_testkit::{postgres, roles};

use rangehold_shardmap::postgres::{Credentials, PostgresAccess, Tls};

/// How PostgreSQL servers are reached as a role.
pub fn access(role: &str) -> PostgresAccess {
    let credentials = Credentials { user: role.to_owned(), password: None };
    PostgresAccess::new(credentials, &Tls::Off).expect("no certificates are needed")
}
