//! What tests of several crates share: everything outside the program under test.
//!
//! - [`allowed`]: lists of what may break a rule for now;
//! - [`http`]: requests and answers by hand, and one connection;
//! - [`sign`]: signatures of requests, written from the documentation and not from our code;
//! - [`client`]: a small client of the table service and of the admin API;
//! - [`server`]: the program as a process that is started, killed and stopped;
//! - [`load`]: writers that know what must be true afterwards, and a judge of what is found;
//! - [`object_load`]: the same for objects;
//! - [`google_store`]: Rust's crate `object_store` as a client;
//! - [`gate`]: a store that can be stopped;
//! - [`azurite`]: the emulator of the cloud's vendor, as a process;
//! - [`postgres`], [`roles`], [`pooler`]: real PostgreSQL servers with plain roles, and pgbouncer in front of one;
//! - [`ports`]: ports for servers that must know theirs before they start;
//! - [`python`]: Python with packages of PyPI;
//! - [`mod@needs`]: what a test needs of the machine, and what happens where it is missing;
//! - [`workspace`]: the repository, its build directory, the program under test.
//!
//! A library for tests, `xtask` and `lab`; no product crate depends on it.

#![expect(clippy::disallowed_methods, reason = "real processes are driven from outside, in real time")]

pub mod allowed;
pub mod azurite;
pub mod client;
pub mod folder_load;
pub mod gate;
pub mod google_store;
pub mod http;
pub mod load;
pub mod needs;
pub mod object_load;
pub mod pooler;
pub mod ports;
pub mod postgres;
pub mod python;
pub mod roles;
pub mod server;
pub mod sign;
pub mod workspace;

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Compresses bytes with gzip, as clients do before they send or store them.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("a buffer takes all");
    encoder.finish().expect("a buffer takes all")
}

/// The time of this machine, as requests are dated with it.
pub fn seconds_since_1970() -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp()
}

/// The same in microseconds: times of several processes of this machine are compared by it.
pub fn microseconds_since_1970() -> i64 {
    let nanoseconds = time::OffsetDateTime::now_utc().unix_timestamp_nanos();
    i64::try_from(nanoseconds / 1000).expect("a time of our days")
}
