//! The log of a run: every call of the store, every answer to a client, everything that was done to
//! the cluster, each with its simulated time.
//!
//! Two runs of one seed must have the same log. If they differ, something in the code takes its time or its chance from
//! elsewhere. The log is hashed as it is written; its lines are printed only on request.

use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The log of one run. Clones are the same log.
#[derive(Debug, Clone)]
pub struct Events(Arc<Log>);

#[derive(Debug)]
struct Log {
    begun: Instant,
    written: Mutex<Written>,
}

struct Written {
    hash: DefaultHasher,
    count: u64,
    print: bool,
}

impl Events {
    /// An empty log that begins now, and is printed if `print` says so.
    pub fn begin(print: bool) -> Self {
        let written = Mutex::new(Written { hash: DefaultHasher::new(), count: 0, print });
        Self(Arc::new(Log { begun: Instant::now(), written }))
    }

    /// Time since the run began.
    pub fn now(&self) -> Duration {
        self.0.begun.elapsed()
    }

    /// Adds an event of `who`.
    pub fn add(&self, who: impl fmt::Display, what: fmt::Arguments<'_>) {
        let micros = self.now().as_micros();
        let mut written = self.written();
        written.count += 1;
        let event = format_args!("{:>5}.{:06} {who:<8} {what}\n", micros / 1_000_000, micros % 1_000_000);
        // Writing to a hasher never fails.
        let _ = written.write_fmt(event);
    }

    /// Events so far, and the hash of them all.
    pub fn digest(&self) -> (u64, u64) {
        let written = self.written();
        (written.count, written.hash.finish())
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        // There is one thread, and a log is also useful after a panic.
        self.0.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Write for Written {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.hash.write(text.as_bytes());
        if self.print {
            print!("{text}");
        }
        Ok(())
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events", self.count)
    }
}

/// A hash of bytes, which is written in place of the bytes.
pub fn hash(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in parts {
        hasher.write(part.as_ref());
    }
    hasher.finish()
}
