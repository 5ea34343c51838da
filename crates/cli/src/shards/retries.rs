//! How often the commands try a step of a change again, and how long they wait before they do.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use rangehold_shardmap::RetryPolicy;
use rangehold_shardmap::limits::{STEP_PAUSE_MAX, STEP_PAUSE_MIN, STEP_RETRIES_MAX};

use super::limits::{RETRIES_MAX, RETRY_WAIT_MS_MAX};

/// The retry policy, as arguments. What is not given is as in the library.
#[derive(Debug, Args)]
pub(crate) struct Retries {
    /// How often a step of a change is tried again while its database cannot be reached, is busy, or breaks the connection;
    /// 0 to 1000. After that, the change is undone.
    #[arg(long, env = "RANGEHOLD_SHARDS_RETRIES", value_name = "N", default_value_t = STEP_RETRIES_MAX, global = true,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(RETRIES_MAX)))]
    retries: u32,
    /// The pause before the first retry, in milliseconds; 1 to 60000. Each pause is twice as long as the one before.
    #[arg(long, env = "RANGEHOLD_SHARDS_RETRY_WAIT_MS", value_name = "MS", default_value_t = millis(STEP_PAUSE_MIN),
        global = true, value_parser = clap::value_parser!(u64).range(1..=RETRY_WAIT_MS_MAX))]
    retry_wait_ms: u64,
    /// The longest pause, in milliseconds; 1 to 60000.
    #[arg(long, env = "RANGEHOLD_SHARDS_RETRY_WAIT_MAX_MS", value_name = "MS", default_value_t = millis(STEP_PAUSE_MAX),
        global = true, value_parser = clap::value_parser!(u64).range(1..=RETRY_WAIT_MS_MAX))]
    retry_wait_max_ms: u64,
}

impl Retries {
    /// The policy for the library. Fails if the first pause is longer than the longest.
    pub(super) fn policy(&self) -> Result<RetryPolicy> {
        let (first, longest) = (self.retry_wait_ms, self.retry_wait_max_ms);
        ensure!(
            first <= longest,
            "--retry-wait-ms {first} is longer than the longest pause: give at least {first} for --retry-wait-max-ms, \
            which is {longest}"
        );
        Ok(RetryPolicy {
            times_max: self.retries,
            pause_min: Duration::from_millis(first),
            pause_max: Duration::from_millis(longest),
        })
    }
}

/// A pause of the library in milliseconds.
fn millis(pause: Duration) -> u64 {
    pause.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        retries: Retries,
    }

    fn policy(line: &[&str]) -> Result<RetryPolicy> {
        Alone::try_parse_from([&["alone"][..], line].concat())?.retries.policy()
    }

    #[test]
    fn without_arguments_it_is_the_policy_of_the_library() {
        assert_eq!(policy(&[]).unwrap(), RetryPolicy::default());
    }

    #[test]
    fn pauses_have_limits_and_an_order() {
        let given = policy(&["--retries", "0", "--retry-wait-ms", "60000", "--retry-wait-max-ms", "60000"]);
        let minute = Duration::from_secs(60);
        assert_eq!(given.unwrap(), RetryPolicy { times_max: 0, pause_min: minute, pause_max: minute });
        let refused = policy(&["--retry-wait-ms", "1001"]).unwrap_err().to_string();
        assert!(refused.contains("at least 1001 for --retry-wait-max-ms, which is 1000"), "{refused}");
        for line in [["--retries", "1001"], ["--retry-wait-ms", "0"], ["--retry-wait-max-ms", "60001"]] {
            assert!(policy(&line).is_err(), "{line:?}");
        }
    }
}
