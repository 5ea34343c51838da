//! Curves over time.

use super::escape;
use crate::balance::outcome::Curve;

const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 260.0;
/// Left of the axis, and below it.
const LEFT: f64 = 60.0;
const BELOW: f64 = 40.0;
const COLOURS: [&str; 6] = ["#1f5fbf", "#d1495b", "#3a9d5d", "#e08e1b", "#7b4fa3", "#444444"];

pub(crate) fn draw(unit: &str, limit: Option<f64>, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let last = points().map(|(time, _)| *time).fold(1.0, f64::max);
    let highest = points().map(|(_, value)| *value).fold(limit.unwrap_or(0.0), f64::max) * 1.05;
    let highest = if highest > 0.0 { highest } else { 1.0 };
    let x = |time: f64| LEFT + time / last * (WIDTH - LEFT - 10.0);
    let y = |value: f64| (HEIGHT - BELOW) * (1.0 - value / highest) + 5.0;
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {}\">", HEIGHT + 20.0);
    for part in 0..=4 {
        let value = highest * f64::from(part) / 4.0;
        let (at, text) = (y(value), number(value));
        svg += &format!(
            "<path d=\"M{LEFT} {at:.1}H{WIDTH}\" stroke=\"#e5e5e5\"/>\
             <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for part in 0..=6 {
        let time = last * f64::from(part) / 6.0;
        svg += &format!(
            "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{time:.0} s</text>",
            x(time),
            HEIGHT - BELOW + 22.0
        );
    }
    if let Some(limit) = limit {
        let at = y(limit);
        svg += &format!("<path d=\"M{LEFT} {at:.1}H{WIDTH}\" stroke=\"#999\" stroke-dasharray=\"5 4\"/>");
    }
    for (index, curve) in curves.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let path: String = (curve.points.iter())
            .enumerate()
            .map(|(at, (time, value))| {
                format!("{}{:.1} {:.1}", if at == 0 { 'M' } else { 'L' }, x(*time), y(*value))
            })
            .collect();
        svg += &format!("<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>");
        let left = LEFT + 150.0 * index as f64 * 1.2;
        svg += &format!(
            "<rect x=\"{left:.0}\" y=\"{:.0}\" width=\"12\" height=\"3\" fill=\"{colour}\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\">{}</text>",
            HEIGHT + 6.0,
            left + 16.0,
            HEIGHT + 11.0,
            escape(&curve.name)
        );
    }
    svg + &format!("<text x=\"{LEFT}\" y=\"{:.0}\">{}</text></svg>", HEIGHT - BELOW + 38.0, escape(unit))
}

/// A number on an axis.
fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
