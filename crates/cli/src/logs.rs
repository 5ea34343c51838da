//! Logs go to standard error, as text or JSON, at the level that `RANGEHOLD_LOG` sets.
//!
//! A log line never has an account key, a signature or a token: of a request only the method and the path are
//! logged, without query and headers.

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::config::LogFormat;

/// The levels when nothing is said.
const USUAL: &str = "warn,rangehold=info,rangehold_server=info,rangehold_engine=info";

/// Starts logging. Fails if `RANGEHOLD_LOG` names a level that does not exist.
pub(crate) fn start(format: LogFormat) -> Result<()> {
    let filter = match std::env::var("RANGEHOLD_LOG") {
        Ok(text) if !text.trim().is_empty() => filter(&text)?,
        _ => EnvFilter::new(USUAL),
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
}

/// Reads levels such as `debug` or `warn,rangehold_engine=trace`. A single word that is not a level would be read as
/// the name of a module, and everything else would be silent.
fn filter(text: &str) -> Result<EnvFilter> {
    let refused = || {
        format!(
            "RANGEHOLD_LOG={text:?} is not understood: write off, error, warn, info, debug or trace, or module=level, with \
             commas between them"
        )
    };
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    for word in words {
        let level = word.rsplit_once('=').map_or(word, |(_, level)| level);
        level.parse::<LevelFilter>().with_context(refused)?;
    }
    EnvFilter::try_new(text).with_context(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_does_not_exist_is_refused() {
        for right in ["debug", "warn,rangehold_engine=trace", "off", "INFO"] {
            assert!(filter(right).is_ok(), "{right}");
        }
        for wrong in ["wran", "rangehold=loud", "debug,tarce", "rangehold_engine"] {
            assert!(filter(wrong).unwrap_err().to_string().contains("module=level"), "{wrong}");
        }
    }
}
