//! Logs go to standard error, as text or JSON, at the level that `RANGEHOLD_LOG` sets.
//!
//! A log line never has an account key, a signature or a token: of a request only the method and the path are
//! logged, without query and headers.

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Starts logging.
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
