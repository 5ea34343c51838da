//! Pictures of the report in a browser: SVG in the page itself, without a script.

use std::fmt::Write as _;

use super::Curves;
use crate::stress::seen::Seen;
use crate::stress::words::count;

/// Width and height of a picture, and its margins.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 12.0;
/// Columns of a picture.
const COLUMNS: usize = 300;

/// From values to places.
struct Scale {
    seconds: f64,
    top: f64,
}

impl Scale {
    fn x(&self, second: f64) -> f64 {
        LEFT + (WIDTH - LEFT - 10.0) * (second / self.seconds).clamp(0.0, 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value / self.top).clamp(0.0, 1.0)
    }

    /// The axes, with three numbers at each.
    fn axes(&self) -> String {
        let mut svg = String::new();
        for part in [0.0, 0.5, 1.0] {
            let (x, y) = (self.x(self.seconds * part), self.y(self.top * part));
            let (second, value) = (count(self.seconds * part), count(self.top * part));
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{second} s</text>",
                self.x(self.seconds),
                LEFT - 6.0,
                y + 4.0,
                HEIGHT - 6.0
            );
        }
        svg
    }
}

/// What was asked, written and read; `limit` is a line.
pub(super) fn curves(curves: &Curves<'_>, limit: Option<f64>, name: &str) -> String {
    let columns = curves.columns(COLUMNS);
    let highest = columns.iter().map(|[asked, written, read]| asked.max(written + read)).fold(1.0, f64::max);
    let scale =
        Scale { seconds: curves.asked.len().max(1) as f64, top: highest.max(limit.unwrap_or(0.0)) * 1.1 };
    let at = |column: usize| (column as f64 + 0.5) * scale.seconds / columns.len().max(1) as f64;
    let points = |value: &dyn Fn(&[f64; 3]) -> f64| -> String {
        let point = |(column, values): (usize, &[f64; 3])| {
            format!("{:.1},{:.1} ", scale.x(at(column)), scale.y(value(values)))
        };
        columns.iter().enumerate().map(point).collect()
    };
    let area = |class: &str, value: &dyn Fn(&[f64; 3]) -> f64| {
        let (begin, end) = (scale.x(at(0)), scale.x(at(columns.len().saturating_sub(1))));
        let floor = scale.y(0.0);
        format!(
            "<polygon class=\"{class}\" points=\"{begin:.1},{floor:.1} {}{end:.1},{floor:.1}\"/>",
            points(value)
        )
    };
    let mut svg = scale.axes();
    svg += &area("read", &|[_, written, read]| written + read);
    svg += &area("written", &|[_, written, _]| *written);
    svg += &format!("<polyline class=\"asked\" points=\"{}\"/>", points(&|[asked, _, _]| *asked));
    if let Some(limit) = limit {
        let (y, end) = (scale.y(limit), scale.x(scale.seconds));
        svg += &format!(
            "<line class=\"limit\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{end:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"limit\" x=\"{end:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} entities/s, what a partition serves</text>",
            y - 4.0,
            count(limit)
        );
    }
    picture(&svg, name)
}

/// How many ranges and servers the table had, with a line at each change of ranges.
pub(super) fn ranges(seen: &Seen, seconds: f64, name: &str) -> String {
    let most = seen.looks.iter().map(|look| look.ranges.max(look.servers)).max().unwrap_or(1);
    let scale = Scale { seconds: seconds.max(1.0), top: most as f64 + 1.0 };
    let mut svg = scale.axes();
    for event in seen.events.iter().filter(|event| event.kind == "done") {
        let x = scale.x(event.at_s);
        let _ = write!(
            svg,
            "<line class=\"change\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{TOP}\"><title>{}</title></line>",
            scale.y(0.0),
            escaped(&event.text)
        );
    }
    for (class, is_servers) in [("ranges", false), ("servers", true)] {
        let mut points = String::new();
        let mut before = None;
        for look in &seen.looks {
            let (x, number) = (scale.x(look.at_s), if is_servers { look.servers } else { look.ranges });
            let y = scale.y(number as f64);
            if let Some(before) = before.replace(y) {
                let _ = write!(points, "{x:.1},{before:.1} ");
            }
            let _ = write!(points, "{x:.1},{y:.1} ");
        }
        svg += &format!("<polyline class=\"{class}\" points=\"{points}\"/>");
    }
    picture(&svg, name)
}

fn picture(svg: &str, name: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">{svg}</svg>",
        escaped(name)
    )
}

/// A text in HTML, also between quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}
