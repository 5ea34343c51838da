//! Logs go to standard error, as text or JSON, at the level that `RANGEHOLD_LOG` sets.
//!
//! A log line never has an account key, a signature or a token: of a request only the method and the path are
//! logged, without query and headers.
//!
//! When a range changes hands, its next owner shuts the database of the owner before out, and SlateDB there logs errors of which each
//! says `Fenced`. This is how it should be, and the engine tells of the cases that are not. So such lines are left
//! out, unless `RANGEHOLD_LOG` names a level for `slatedb`.

use std::fmt;

use anyhow::{Context as _, Result};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Filter, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt as lines, registry};

use crate::config::LogFormat;

/// The levels when nothing is said.
const USUAL: &str = "warn,rangehold=info,rangehold_server=info,rangehold_engine=info";

/// Starts logging. Fails if `RANGEHOLD_LOG` names a level that does not exist.
pub(crate) fn start(format: LogFormat) -> Result<()> {
    let levels = std::env::var("RANGEHOLD_LOG").unwrap_or_default();
    let filter = if levels.trim().is_empty() { EnvFilter::new(USUAL) } else { filter(&levels)? };
    let usual = Usual { shows_fenced: levels.contains(SLATEDB) };
    let lines = lines::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(false).with_filter(usual).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(usual).boxed(),
    };
    registry().with(filter).with(lines).init();
    Ok(())
}

/// Where the lines of the engine below come from.
const SLATEDB: &str = "slatedb";

/// Leaves out what SlateDB logs when another owner has opened a database; see the module.
struct Usual {
    shows_fenced: bool,
}

impl<S: Subscriber> Filter<S> for Usual {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let target = event.metadata().target();
        if self.shows_fenced || !(target == OF_CRATE_LOG || target.starts_with(SLATEDB)) {
            return true;
        }
        let mut seen = Seen { is_of_slatedb: target.starts_with(SLATEDB), tells_of_fenced: false };
        event.record(&mut seen);
        !(seen.is_of_slatedb && seen.tells_of_fenced)
    }
}

/// The target of every event that comes by the crate `log`. Its own target is a field then.
const OF_CRATE_LOG: &str = "log";

/// What the fields of an event say.
struct Seen {
    is_of_slatedb: bool,
    tells_of_fenced: bool,
}

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.is_of_slatedb |= field.name() == "log.target" && value.starts_with(SLATEDB);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.tells_of_fenced |= field.name() == "message" && format!("{value:?}").contains("error=Fenced");
    }
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
    use std::io;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// Where a test's lines go.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines of a move, and one of a disk that fails, in the words of SlateDB.
    fn lines_with(usual: Usual) -> String {
        let written = Written::default();
        let writer = written.clone();
        let lines = lines::layer().with_ansi(false).with_writer(move || writer.clone()).with_filter(usual);
        tracing::subscriber::with_default(registry().with(lines), || {
            tracing::error!(target: "slatedb::dispatcher", "background task failed [name=l0, error=Fenced, panic=None]");
            tracing::error!(target: "slatedb::dispatcher", "background task failed [name=l0, error=IoError, panic=None]");
            // As it comes by the crate `log`.
            tracing::error!(target: "log", { log.target = "slatedb::dispatcher" }, "background task failed [error=Fenced]");
            tracing::warn!(target: "rangehold_engine::range", "another server has opened the range, error=Fenced");
        });
        String::from_utf8(written.0.lock().clone()).unwrap()
    }

    #[test]
    fn what_slatedb_says_of_a_database_that_was_handed_over_is_left_out_and_nothing_else() {
        let lines = lines_with(Usual { shows_fenced: false });
        assert_eq!(lines.lines().count(), 2, "{lines}");
        assert!(lines.contains("IoError") && lines.contains("another server"), "{lines}");
        assert_eq!(lines_with(Usual { shows_fenced: true }).lines().count(), 4);
    }

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
