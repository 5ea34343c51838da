//! Progress of long commands, for the person in front of a terminal.

use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

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

    /// Begins the line of a step that tells itself how far it is, by [`Self::show`].
    pub(crate) fn telling(is_hidden: bool, step: &'static str) -> Self {
        Self::of_form(is_hidden, step, "{spinner} {msg}, {elapsed}{left}", None)
    }

    /// Shows this text. With the part that is done and the whole, also about how long the rest takes.
    pub(crate) fn show(&self, text: String, part: Option<(u64, u64)>) {
        self.0.set_message(text);
        match part {
            Some((done, whole)) => {
                self.0.set_length(whole);
                self.0.set_position(done);
            }
            None => self.0.unset_length(),
        }
    }

    /// How long it has been shown.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn of_form(is_hidden: bool, step: &'static str, form: &str, total: Option<u64>) -> Self {
        let target = if is_hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(total, target).with_message(step);
        let style = ProgressStyle::with_template(form).expect("the template is well formed");
        bar.set_style(style.with_key("left", write_time_left));
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

/// Writes about how long the rest takes, if the whole is known and something of it is done.
fn write_time_left(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    if state.len().is_some_and(|whole| state.pos() > 0 && state.pos() < whole) {
        // If this fails, the line is shown without it.
        let _ = write!(out, ", about {:#} left", HumanDuration(state.eta()));
    }
}
