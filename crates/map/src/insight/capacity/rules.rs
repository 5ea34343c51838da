//! The numbers of the cloud's documents.

use std::time::Duration;

/// How a request uses an object's name. Each use has a budget of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// Upload, update or delete.
    Write,
    /// List, data or metadata.
    Read,
}

/// What a bucket bears, and how that changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Writes each second that a span bears: the threshold.
    pub writes: f64,
    /// Reads each second that a span bears.
    pub reads: f64,
    /// A span grows after so much use. Time of the ramp's clock.
    pub doubles_after: Duration,
    /// The part of its capacity that counts as use.
    pub used_share: f64,
    /// Spans fall back after so much rest. Time of the ramp's clock.
    pub idle_after: Duration,
    /// The longest time for which a request waits before requests are refused.
    pub delay_max: Duration,
}

/// The initial rates of a bucket with a hierarchical namespace are so many times those of others.
const HIERARCHICAL: f64 = 8.0;

impl Rules {
    /// "An initial IO capacity of around 1,000 object write requests and 5,000 object read requests per second", and "no
    /// faster than doubling over a period of 20 minutes". The time of rest is ours: the documents say "several days".
    pub fn documented() -> Self {
        Self {
            writes: 1_000.0,
            reads: 5_000.0,
            doubles_after: Duration::from_secs(20 * 60),
            used_share: 0.5,
            idle_after: Duration::from_secs(3 * 24 * 60 * 60),
            delay_max: Duration::from_secs(1),
        }
    }

    /// The rules of a bucket with a hierarchical namespace: "up to 8 times higher initial queries per second".
    pub fn hierarchical(self) -> Self {
        self.scaled(HIERARCHICAL)
    }

    /// The same with all rates multiplied by `scale`.
    pub fn scaled(self, scale: f64) -> Self {
        Self { writes: self.writes * scale, reads: self.reads * scale, ..self }
    }

    /// Requests each second that a span of one unit bears.
    pub fn threshold(&self, usage: Usage) -> f64 {
        match usage {
            Usage::Write => self.writes,
            Usage::Read => self.reads,
        }
    }
}

impl Usage {
    /// Both uses. Arrays by use are in this order.
    pub const BOTH: [Self; 2] = [Self::Write, Self::Read];

    /// The place in arrays by use.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Write => 0,
            Self::Read => 1,
        }
    }

    /// The requests of this use, in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "writes",
            Self::Read => "reads",
        }
    }
}
