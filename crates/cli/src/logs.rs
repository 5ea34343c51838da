//! Logs: to standard error, as text or JSON, at the level that `RANGEHOLD_LOG` sets.
//!
//! Nothing that is logged holds a key, a signature or a token: requests are logged by method and
//! path, never with their query or headers.

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Begins logging.
pub(crate) fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_env("RANGEHOLD_LOG").unwrap_or_else(|_| {
        EnvFilter::new("warn,rangehold=info,rangehold_server=info,rangehold_engine=info")
    });
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
