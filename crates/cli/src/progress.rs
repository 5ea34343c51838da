//! Progress of long commands, for the person in front of a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a bar moves while nothing happens, so that it is seen that the program lives.
const TICK: Duration = Duration::from_millis(200);

/// A line on standard error that shows how far a command is. It is hidden if standard error is not a terminal.
#[derive(Clone)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Begins the line of a step, such as `reading`, with the number of `things` if it is known.
    pub(crate) fn begin(is_hidden: bool, step: &'static str, things: &str, total: Option<u64>) -> Self {
        let form = match total {
            Some(_) => format!(
                "{{msg}} [{{bar:30}}] {{human_pos}}/{{human_len}} {things}, {{per_sec}}, {{eta}} left"
            ),
            None => format!("{{spinner}} {{msg}} {{human_pos}} {things}, {{per_sec}}, {{elapsed}}"),
        };
        Self::of_form(is_hidden, step, &form, total)
    }

    /// Begins the line of a step that is done as a whole.
    pub(crate) fn waiting(is_hidden: bool, step: &'static str) -> Self {
        Self::of_form(is_hidden, step, "{spinner} {msg}, {elapsed}", None)
    }

    fn of_form(is_hidden: bool, step: &'static str, form: &str, total: Option<u64>) -> Self {
        let target = if is_hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(total, target).with_message(step);
        bar.set_style(ProgressStyle::with_template(form).expect("the template is well formed"));
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// So many more are done.
    pub(crate) fn add(&self, count: u64) {
        self.0.inc(count);
    }

    /// Prints a line that stays, also if the line of progress is hidden.
    pub(crate) fn say(&self, line: &str) {
        self.0.suspend(|| eprintln!("{line}"));
    }

    /// Removes the line.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}
