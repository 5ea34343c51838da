//! Ports for servers that must know theirs before they start.
//!
//! A port that the system chose is not safe: from the moment it is given back until the server has it, the system may give
//! it to a client's connection or to another server. So these ports lie below those that the system chooses (on Linux from
//! 32,768 on, `ip_local_port_range`), and each test process has a few of its own.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// The first of these ports: above those at which our server and Azurite listen by default.
const FIRST: u16 = 12_000;
/// How many there are.
const COUNT: u16 = 20_000;
/// How many of them lie between the first ports of two processes with neighbouring ids.
const OF_A_PROCESS: u32 = 20;

/// How often another port is tried if another program has taken the port in the meantime.
const TRIALS_MAX: usize = 5;

/// How many ports this process has looked at.
static LOOKED_AT: AtomicU16 = AtomicU16::new(0);

/// Different ports of 127.0.0.1 at which nothing listens; later calls give others.
pub fn free_ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| free_port())
}

/// One such port.
pub fn free_port() -> u16 {
    let begin = std::process::id().wrapping_mul(OF_A_PROCESS) % u32::from(COUNT);
    for _ in 0..COUNT {
        let place = (begin + u32::from(LOOKED_AT.fetch_add(1, Ordering::Relaxed))) % u32::from(COUNT);
        let port = FIRST + u16::try_from(place).expect("it is less than the count");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("none of {COUNT} ports from {FIRST} on is free")
}

/// Starts a program at a port that was free just before. If it ends, another program may have taken the port; then it is
/// started at another one. What `start` returns then is what the program has noted.
pub(crate) fn start_at_free_port<T>(program: &str, mut start: impl FnMut(u16) -> Result<T, String>) -> T {
    let mut log = String::new();
    for _ in 0..TRIALS_MAX {
        match start(free_port()) {
            Ok(started) => return started,
            Err(noted) => log = noted,
        }
    }
    panic!("{program} did not start:\n{log}");
}
