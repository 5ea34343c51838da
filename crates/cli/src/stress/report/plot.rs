//! A picture in the terminal: what was asked, and what was answered, over time.

use super::Curves;
use crate::stress::words::count;

/// Columns and rows of a picture.
const WIDTH: usize = 72;
const HEIGHT: usize = 10;
/// Characters before the picture.
const MARGIN: usize = 9;

/// The picture of some curves. `limit` is a line in it, such as the target of a partition.
pub(super) fn plot(curves: &Curves<'_>, limit: Option<f64>) -> String {
    let columns = curves.columns(WIDTH);
    let highest = columns.iter().map(|[asked, written, read]| asked.max(written + read)).fold(0.0, f64::max);
    let top = highest.max(limit.unwrap_or(0.0)).max(1.0) * 1.05;
    let step = top / HEIGHT as f64;
    let mut text = String::new();
    for row in (0..HEIGHT).rev() {
        let (low, high) = (row as f64 * step, (row + 1) as f64 * step);
        let is_limit = limit.is_some_and(|limit| limit >= low && limit < high);
        let label = match (is_limit, row + 1 == HEIGHT) {
            (true, _) => count(limit.unwrap_or_default()),
            (false, true) => count(top),
            _ => String::new(),
        };
        text.push_str(&format!("{label:>width$} {}", if is_limit { '┼' } else { '│' }, width = MARGIN - 2));
        for [asked, written, read] in &columns {
            text.push(cell((low + high) / 2.0, *asked, *written, *read, is_limit));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text.push_str(&format!("{:>width$} └{}\n", 0, "─".repeat(columns.len()), width = MARGIN - 2));
    let (margin, seconds) = (" ".repeat(MARGIN), curves.asked.len());
    let end = format!("{seconds} s");
    text.push_str(&format!("{margin}0 s{end:>width$}\n", width = columns.len().saturating_sub(3)));
    text
}

/// What the signs mean.
pub(super) const LEGEND: &str = "█ written (PUT)  ▒ read (GET)  · asked and not met";

fn cell(at: f64, asked: f64, written: f64, read: f64, is_limit: bool) -> char {
    match at {
        _ if at <= written => '█',
        _ if at <= written + read => '▒',
        _ if at <= asked => '·',
        _ if is_limit => '─',
        _ => ' ',
    }
}
