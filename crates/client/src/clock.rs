//! The time, which a request is dated with. A program can pass its own.

use std::fmt;
use std::sync::Arc;

use crate::entity::Timestamp;

/// Tells the time. Waits are not its business: they are tokio's.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that asks `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The clock of this machine.
    pub fn system() -> Self {
        Self::new(|| {
            #[expect(
                clippy::disallowed_methods,
                reason = "the one place where this crate reads the machine's clock"
            )]
            let now = std::time::SystemTime::now();
            let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let ticks = i64::try_from(since.as_nanos() / 100).unwrap_or(i64::MAX);
            Timestamp::from_ticks(ticks)
        })
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now().ticks())
    }
}
