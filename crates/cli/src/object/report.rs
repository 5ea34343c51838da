//! What a command with many jobs tells: a bar while it works, and a summary at its end.

use anyhow::{Error, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::limits::FAILURES_NAMED;
use super::service::Form;

/// What became of one job.
#[derive(Debug)]
pub(super) enum Ended {
    /// It was done; so many bytes moved.
    Done(u64),
    /// Its target has these bytes already, or was to be left alone.
    Skipped,
    /// It was not begun, because another one failed before.
    NotBegun,
    /// The file or object that it was about, and why it failed.
    Failed(String, Error),
}

/// The counts of a command, and its bar. The bar is shown on a terminal only.
pub(super) struct Report {
    form: Form,
    /// What is done, such as `copied`.
    verb: &'static str,
    bar: ProgressBar,
    done: u64,
    skipped: u64,
    not_begun: u64,
    bytes: u64,
    failed: u64,
    named: Vec<(String, String)>,
}

impl Report {
    pub(super) fn new(form: Form, verb: &'static str) -> Self {
        // Draws to standard error, and not at all if that is not a terminal.
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {pos} {msg}, {per_sec}, {elapsed}");
        bar.set_style(style.expect("the template is right"));
        bar.set_message(verb);
        Self { form, verb, bar, done: 0, skipped: 0, not_begun: 0, bytes: 0, failed: 0, named: Vec::new() }
    }

    /// Counts a job that has ended.
    pub(super) fn count(&mut self, ended: Ended) {
        match ended {
            Ended::Done(bytes) => {
                self.done += 1;
                self.bytes += bytes;
                self.bar.inc(1);
            }
            Ended::Skipped => self.skipped += 1,
            Ended::NotBegun => self.not_begun += 1,
            Ended::Failed(what, error) => {
                self.failed += 1;
                if self.named.len() < FAILURES_NAMED {
                    self.named.push((what, rangehold_engine::with_causes(error.as_ref())));
                }
            }
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed > 0
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
        let Self { form, verb, done, skipped, not_begun, bytes, failed, named, .. } = self;
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
