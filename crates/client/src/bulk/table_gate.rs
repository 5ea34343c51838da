//! Entities of many tasks at the pace that an account and its partitions bear.

use std::sync::Arc;

use parking_lot::Mutex;

use super::gate::Gate;
use super::lanes::Lanes;
use super::ramp::{Pace, Sign};
use crate::wire::{Ended, Watch};

/// Bytes of request and answer up to which the times of answers are compared. Batches of a hundred entities of a usual size lie below.
const COMPARABLE_BYTES: usize = 256 * 1024;

/// The rates of a job on tables, in entities a second; infinite without a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TablePace {
    /// All tables of the account together.
    pub account: f64,
    /// Each partition.
    pub partition: f64,
}

impl TablePace {
    /// The targets of Azure Table Storage: 20,000 entities a second in an account, and 2,000 in a partition. They hold from the first
    /// second on, so there is no ramp.
    pub const DOCUMENTED: Self =
        Self { account: Pace::TABLE_ACCOUNT.per_second, partition: Pace::TABLE_PARTITION.per_second };
    /// No limit, until there are signs of pressure.
    pub const FREE: Self = Self { account: f64::INFINITY, partition: f64::INFINITY };
}

/// A gate for entities. Cheap to clone; all clones are one gate.
///
/// Signs of pressure slow all partitions down, because an answer does not say which part of the service is busy.
#[derive(Debug, Clone)]
pub struct TableGate {
    account: Gate,
    /// `None` if partitions have no limit.
    lanes: Option<Arc<Mutex<Lanes>>>,
}

impl TableGate {
    /// A gate at this pace, from now on. A rate below 1 is taken as 1.
    pub fn new(pace: TablePace) -> Self {
        let account = Gate::new(Pace { per_second: pace.account.max(1.0), doubles_in: None });
        let lanes = pace.partition.is_finite().then(|| Lanes::new(pace.partition.max(1.0)));
        Self { account, lanes: lanes.map(|lanes| Arc::new(Mutex::new(lanes))) }
    }

    /// Returns when a batch of so many entities of a partition may be sent.
    pub async fn pass(&self, partition_key: &str, entities: u32) {
        while let Some(lanes) = &self.lanes {
            let passed = lanes.lock().pass(partition_key, entities, self.account.now());
            match passed {
                Ok(()) => break,
                Err(wait) => tokio::time::sleep(wait).await,
            }
        }
        self.account.pass_together(entities).await;
    }

    /// Entities a second that may pass now; infinite without a limit.
    pub fn rate(&self) -> f64 {
        self.account.rate()
    }

    /// What to put into [`Options::watch`](crate::Options), so that the gate hears of every answer, also of those that the client
    /// repeats by itself.
    pub fn watch(&self) -> Watch {
        let gate = self.account.clone();
        Arc::new(move |Ended { status, took, bytes, is_read }| {
            // Reads are quicker than batches: after many of them the first batches would look late.
            let comparable = if is_read { 0 } else { COMPARABLE_BYTES };
            gate.note(Sign::compared(status, took, bytes, comparable));
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn writes_are_compared_with_writes_and_not_with_the_reads_before_them() {
        let gate = TableGate::new(TablePace::FREE);
        let watch = gate.watch();
        let answers = |count: u32, millis: u64, is_read: bool| {
            for _ in 0..count {
                watch(Ended {
                    status: Some(202),
                    took: Duration::from_millis(millis),
                    bytes: 100_000,
                    is_read,
                });
            }
        };
        answers(1_000, 2, true);
        answers(300, 150, false);
        assert_eq!(gate.rate(), f64::INFINITY);
        answers(40, 900, false);
        assert!(gate.rate().is_finite(), "answers take six times as long");
    }
}
