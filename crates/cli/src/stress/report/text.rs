//! The report in the terminal.

use std::fmt;

use super::plot::{LEGEND, plot};
use super::{KindPart, Report};
use crate::stress::judge::Finding;
use crate::stress::words::{count, percent};
use crate::text_table::text_table;

/// Columns of a line of prose.
const WIDTH: usize = 100;
/// Events that are shown; the other reports have all.
const EVENTS_SHOWN: usize = 12;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", wrapped(&self.judgement.headline, ""))?;
        let end = if self.is_cut_short { " (ended early)" } else { "" };
        let about = format!(
            "plan {}: {}. Table {} at {}, {} entities loaded, {:.0} s{end}, seed {}",
            self.plan,
            self.about,
            self.table,
            self.service,
            count(self.loaded as f64),
            self.seconds,
            self.seed
        );
        writeln!(f, "{}\n", wrapped(&about, ""))?;
        for finding in &self.judgement.findings {
            put_finding(f, finding)?;
        }
        writeln!(
            f,
            "\nthe whole table, entities/s: asked {}, answered {}   {LEGEND}",
            count(self.asked_entities_per_s),
            count(self.done_entities_per_s)
        )?;
        write!(f, "{}", plot(&self.series.whole(), None))?;
        if self.target.stands_out {
            writeln!(
                f,
                "\nthe target partition {:?}, entities/s: asked {}, answered {}, against {}",
                self.target.partition,
                count(self.target.asked_per_s),
                count(self.target.done_per_s),
                count(self.target.limit_per_s)
            )?;
            write!(f, "{}", plot(&self.series.target(), Some(self.target.limit_per_s)))?;
        }
        writeln!(f, "\n{}", kinds(&self.kinds))?;
        self.put_events(f)?;
        for advice in &self.advice {
            writeln!(f, "{}", wrapped(advice, ""))?;
        }
        Ok(())
    }
}

impl Report {
    fn put_events(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(seen) = self.ranges.as_ref().filter(|seen| !seen.events.is_empty()) else { return Ok(()) };
        writeln!(f, "what happened to the ranges of the table:")?;
        for event in seen.events.iter().take(EVENTS_SHOWN) {
            writeln!(
                f,
                "{}",
                wrapped(&format!("{:>5.0} s  {:8} {}", event.at_s, event.kind, event.text), "         ")
            )?;
        }
        let more = seen.events.len().saturating_sub(EVENTS_SHOWN);
        if more > 0 {
            writeln!(f, "         and {more} more, in the reports as HTML and JSON")?;
        }
        writeln!(f)
    }
}

fn put_finding(f: &mut fmt::Formatter<'_>, finding: &Finding) -> fmt::Result {
    writeln!(f, "{}", wrapped(&format!("* {}", finding.text), "  "))?;
    match &finding.remedy {
        Some(remedy) => writeln!(f, "{}", wrapped(&format!("  -> {remedy}"), "     ")),
        None => Ok(()),
    }
}

fn kinds(kinds: &[KindPart]) -> String {
    let rows: Vec<[String; 9]> = kinds
        .iter()
        .map(|kind| {
            let ms = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
            [
                kind.name.clone(),
                count(kind.asked as f64),
                count(kind.in_time as f64),
                count(kind.late as f64),
                count(kind.refused() as f64),
                count((kind.lost + kind.failed) as f64),
                ms(kind.p50_ms),
                ms(kind.p99_ms),
                format!(
                    "{} of {:.0} ms: {}",
                    percent(kind.share()),
                    kind.within_ms,
                    if kind.is_met { "met" } else { "MISSED" }
                ),
            ]
        })
        .collect();
    let head = ["requests", "asked", "in time", "late", "refused", "failed", "p50 ms", "p99 ms", "wanted"];
    text_table(head, &rows)
}

/// The text in lines; all but the first begin with `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if line.chars().count() + 1 + word.chars().count() > WIDTH && !line.trim().is_empty() {
            lines.push(format!("{indent}{word}"));
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}
