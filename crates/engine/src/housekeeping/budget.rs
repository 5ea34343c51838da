//! A budget of bytes a second, which all compactions that rewrite whole databases of the process share.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// The bytes that may be spent each second. What is not spent is not saved for later.
#[derive(Debug)]
pub(super) struct Budget {
    bytes_per_second: u64,
    /// The time when all bytes spent so far are paid for.
    paid_at: Mutex<Instant>,
}

impl Budget {
    pub(super) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, paid_at: Mutex::new(Instant::now()) }
    }

    /// Waits until the bytes that others spent before are paid for, and spends `bytes`. Callers are served
    /// in the order in which they come.
    pub(super) async fn spend(&self, bytes: u64) {
        let begins = {
            // The code that holds this lock cannot panic halfway.
            let mut paid_at = self.paid_at.lock();
            let begins = Instant::now().max(*paid_at);
            *paid_at = begins + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
            begins
        };
        sleep_until(begins).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_together_spend_no_more_than_the_budget() {
        let budget = Budget::new(1_000);
        let began = Instant::now();
        join_all((0..10).map(|_| async {
            for _ in 0..20 {
                budget.spend(100).await;
            }
        }))
        .await;
        // No caller waits until the last bytes are paid for.
        assert_eq!(began.elapsed().as_millis(), 19_900);
        tokio::time::advance(Duration::from_secs(60)).await;
        let began = Instant::now();
        budget.spend(5_000).await;
        budget.spend(1).await;
        assert_eq!(began.elapsed().as_secs(), 5, "nothing was saved up");
    }
}
