//! What a command with many jobs tells: a line while it works, and a summary at its end.

use std::sync::Arc;

use anyhow::{Result, bail};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, future, stream};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use parking_lot::Mutex;
use serde_json::json;

use super::limits::{FAILURES_NAMED, LINE_EVERY};
use super::moving::Flow;
use super::service::Form;
pub(super) use super::tally::Ended;
use super::tally::Tally;

/// The counts of a command, and the line that shows them. The line is shown on a terminal only.
pub(super) struct Report {
    form: Form,
    /// What is done, such as `copied`.
    verb: &'static str,
    bar: ProgressBar,
    tally: Arc<Mutex<Tally>>,
    flow: Flow,
    named: Vec<(String, String)>,
}

impl Report {
    /// The report of a command that has so many listings, each to be [`listed`](Self::listed).
    pub(super) fn new(form: Form, verb: &'static str, listings: usize) -> Self {
        let (tally, flow) = (Arc::new(Mutex::new(Tally::default())), Flow::default());
        tally.lock().expects(listings);
        let (counted, moving) = (Arc::clone(&tally), flow.clone());
        let line = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            // A line that cannot be written is not seen.
            let _unseen = write!(out, "{}", counted.lock().line(verb, moving.bytes(), state.elapsed()));
        };
        let style = ProgressStyle::with_template("{spinner} {line}").expect("the template is well formed");
        // Draws to standard error, and not at all if that is not a terminal.
        let bar = ProgressBar::new_spinner().with_style(style.with_key("line", line));
        bar.enable_steady_tick(LINE_EVERY);
        Self { form, verb, bar, tally, flow, named: Vec::new() }
    }

    /// The bytes that move, which jobs add to.
    pub(super) fn flow(&self) -> Flow {
        self.flow.clone()
    }

    /// The jobs of a listing. They are counted as they come, each with the bytes that `size` says.
    pub(super) fn listed<T: Send + 'static>(
        &self,
        jobs: BoxStream<'static, Result<T>>,
        size: impl Fn(&T) -> u64 + Send + 'static,
    ) -> BoxStream<'static, Result<T>> {
        let (tally, ended) = (Arc::clone(&self.tally), Arc::clone(&self.tally));
        let jobs = jobs.inspect_ok(move |job| tally.lock().found(size(job))).map(Some);
        let end = stream::once(async move {
            ended.lock().listing_ended();
            None
        });
        jobs.chain(end).filter_map(future::ready).boxed()
    }

    /// Counts a job of a listing, about so many bytes, that has ended.
    pub(super) fn ended(&mut self, size: u64, ended: Ended) {
        self.tally.lock().ended(size, &ended);
        if let Ended::Failed(what, error) = ended
            && self.named.len() < FAILURES_NAMED
        {
            self.named.push((what, rangehold_engine::with_causes(error.as_ref())));
        }
    }

    /// One of the listings is not needed.
    pub(super) fn needs_no_listing(&self) {
        self.tally.lock().listing_ended();
    }

    /// Counts a job that no listing gave.
    pub(super) fn count(&mut self, ended: Ended) {
        self.tally.lock().found(0);
        self.ended(0, ended);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.tally.lock().failed > 0
    }

    /// Says a line while the work goes on.
    pub(super) fn say(&self, line: &str) {
        if self.form == Form::Table {
            self.bar.suspend(|| println!("{line}"));
        }
    }

    /// Prints the summary. Fails if a job failed, or if there was none.
    pub(super) fn end(self, nothing: &str) -> Result<()> {
        self.bar.finish_and_clear();
        let Self { form, verb, tally, named, .. } = self;
        let Tally { bytes, done, skipped, not_begun, failed, .. } = tally.lock().clone();
        match form {
            Form::Json => {
                let failures: Vec<_> =
                    named.iter().map(|(what, why)| json!({ "what": what, "why": why })).collect();
                println!(
                    "{}",
                    json!({ verb: done, "bytes": bytes, "skipped": skipped, "failed": failed,
                            "not_begun": not_begun, "failures": failures })
                );
            }
            Form::Table => println!("{verb} {done}, {bytes} bytes; skipped {skipped}; failed {failed}"),
        }
        for (what, why) in &named {
            eprintln!("rangehold: {what}: {why}");
        }
        if failed > 0 {
            let rest = if not_begun > 0 { ", and the rest was not begun (--continue-on-error)" } else { "" };
            bail!("{failed} failed{rest}; run the command again to go on");
        }
        if done + skipped == 0 && !nothing.is_empty() {
            bail!("{nothing}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_listing_gives_is_counted_and_its_end_is_noted() {
        let report = Report::new(Form::Table, "copied", 1);
        let jobs = stream::iter([Ok(3_u64), Ok(4), Err(anyhow::anyhow!("the folder is gone"))]).boxed();
        let mut jobs = report.listed(jobs, |size| *size);
        let line = || report.tally.lock().line("copied", report.flow.bytes(), std::time::Duration::ZERO);
        jobs.next().await.expect("a job").expect("it was found");
        assert_eq!(line(), "copied 0 of at least 1, 0 B of at least 3 B");
        let moving = report.flow().begin();
        moving.add(2);
        assert_eq!(line(), "copied 0 of at least 1, 2 B of at least 3 B");
        assert_eq!(jobs.next().await.expect("a job").expect("it was found"), 4);
        assert!(jobs.next().await.expect("an error").is_err());
        assert!(jobs.next().await.is_none());
        drop(moving);
        assert_eq!(line(), "copied 0 of 2, 0 B of 7 B");
    }
}
