//! Which service the commands speak to, and at which pace.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use futures::FutureExt;
use futures::future::BoxFuture;
use rangehold_client::bulk::{Gate, Pace};
use rangehold_client::limits::BULK_RETRY;
use rangehold_client::object::{Access, GOOGLE, Storage};
use rangehold_client::{Options, Tokens};

/// The service, and how a command proves its user.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServiceFlags {
    /// The service [default: Google's].
    #[arg(long, env = "STORAGE_EMULATOR_HOST", value_name = "URL", default_value = GOOGLE, hide_default_value = true, global = true)]
    endpoint: String,
    /// A bearer token, such as `gcloud auth print-access-token` prints. Without one requests are anonymous.
    #[arg(
        long,
        env = "GOOGLE_OAUTH_ACCESS_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true,
        global = true
    )]
    access_token: Option<String>,
    /// Whether the request rate begins low and doubles every 20 minutes, as Google's guideline for buckets asks. auto: at
    /// Google's endpoint yes, elsewhere no. A service that answers 408, 429 or 5xx, or slower than before, is given time in
    /// any case.
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    ramp: When,
    /// The form of the output: tables and sentences, or JSON.
    #[arg(long, value_name = "FORMAT", default_value = "table", global = true)]
    pub(crate) output: Form,
}

/// When a job begins slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// At Google's endpoint.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Tables and sentences.
    #[value(alias = "text")]
    Table,
    /// JSON.
    Json,
}

/// What most of the requests of a command do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Reads,
    Writes,
}

/// A token that does not change while the command runs.
struct Fixed(String);

impl Tokens for Fixed {
    fn token(&self) -> BoxFuture<'_, Result<String, Box<dyn std::error::Error + Send + Sync>>> {
        async { Ok(self.0.clone()) }.boxed()
    }
}

impl ServiceFlags {
    /// The service, and the gate that its jobs have to pass.
    pub(crate) fn open(&self, kind: Kind) -> Result<(Storage, Gate)> {
        let gate = Gate::new(self.pace(kind));
        let options = Options { retry: BULK_RETRY, watch: Some(gate.watch()), ..Options::default() };
        let access = match self.access_token.as_deref().map(str::trim).filter(|token| !token.is_empty()) {
            Some(token) => Access::Tokens(Arc::new(Fixed(token.to_owned()))),
            None => Access::Anonymous,
        };
        let storage = Storage::new(&self.endpoint, access, options);
        Ok((storage.with_context(|| format!("--endpoint {}", self.endpoint))?, gate))
    }

    fn pace(&self, kind: Kind) -> Pace {
        match (self.has_ramp(), kind) {
            (false, _) => Pace::FREE,
            (true, Kind::Reads) => Pace::OBJECT_READS,
            (true, Kind::Writes) => Pace::OBJECT_WRITES,
        }
    }

    fn has_ramp(&self) -> bool {
        match self.ramp {
            When::On => true,
            When::Off => false,
            When::Auto => Storage::is_google(&self.endpoint),
        }
    }

    /// The project of buckets. Only the real service needs a true one.
    pub(crate) fn project(&self, given: Option<&str>) -> Result<String> {
        match given {
            Some(project) => Ok(project.to_owned()),
            None if Storage::is_google(&self.endpoint) => {
                bail!("name the project of the buckets by --project or GOOGLE_CLOUD_PROJECT")
            }
            None => Ok("rangehold".to_owned()),
        }
    }
}

/// Runs a command to its end.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(command)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        service: ServiceFlags,
    }

    #[test]
    fn the_ramp_is_that_of_googles_guideline_there_and_where_it_is_asked_for() {
        let pace = |endpoint: &str, ramp: &str, kind| {
            let line = Line::parse_from(["rangehold", "--endpoint", endpoint, "--ramp", ramp]);
            line.service.pace(kind)
        };
        const OURS: &str = "http://127.0.0.1:4443";
        for (endpoint, ramp, writes, reads) in [
            (GOOGLE, "auto", Pace::OBJECT_WRITES, Pace::OBJECT_READS),
            (GOOGLE, "off", Pace::FREE, Pace::FREE),
            (OURS, "auto", Pace::FREE, Pace::FREE),
            (OURS, "on", Pace::OBJECT_WRITES, Pace::OBJECT_READS),
        ] {
            let found = (pace(endpoint, ramp, Kind::Writes), pace(endpoint, ramp, Kind::Reads));
            assert_eq!(found, (writes, reads), "{endpoint} {ramp}");
        }
    }
}
