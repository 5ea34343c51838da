//! Servers over time: how much of its capacity each uses.

/// The number of servers that share a row of the picture. The row shows the busiest of them, unless one is away.
const SERVERS_PER_ROW: usize = 8;
const CELL: usize = 8;
const ROW: usize = 3;
/// From unused to full; the colour is the share of the capacity, not relative to the picture.
const COLOURS: [&str; 10] = [
    "#f7fbff", "#e3eef9", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#fdae61", "#f46d43", "#d73027",
    "#7f0000",
];
const AWAY: &str = "#222";

pub(super) fn draw(columns: &[Vec<f32>]) -> String {
    let rows = columns.first().map_or(0, |column| column.len().div_ceil(SERVERS_PER_ROW));
    // One path for each colour keeps the page small.
    let mut paths = vec![String::new(); COLOURS.len() + 1];
    for (x, column) in columns.iter().enumerate() {
        for (y, servers) in column.chunks(SERVERS_PER_ROW).enumerate() {
            let cell = format!("M{} {}h{CELL}v{ROW}h-{CELL}z", x * CELL, y * ROW);
            paths[colour(servers)] += &cell;
        }
    }
    let (width, height) = (columns.len() * CELL, rows * ROW);
    let mut svg = format!("<svg viewBox=\"0 0 {width} {}\">", height + 30);
    for (path, colour) in paths.iter().zip(COLOURS.iter().chain([&AWAY])) {
        svg += &format!("<path d=\"{path}\" fill=\"{colour}\"/>");
    }
    for (index, colour) in COLOURS.iter().enumerate() {
        let x = index * 60;
        svg += &format!(
            "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\">{}%</text>",
            height + 10,
            x + 15,
            height + 19,
            (index + 1) * 100 / COLOURS.len()
        );
    }
    svg + &format!(
        "<text x=\"{}\" y=\"{}\">time from left to right, a column a minute; {SERVERS_PER_ROW} servers a row, \
         black: away</text></svg>",
        COLOURS.len() * 60 + 10,
        height + 19
    )
}

/// The place of a row's colour.
fn colour(servers: &[f32]) -> usize {
    if servers.iter().any(|used| *used < 0.0) {
        return COLOURS.len();
    }
    let used = servers.iter().copied().fold(0.0, f32::max);
    ((used * COLOURS.len() as f32) as usize).min(COLOURS.len() - 1)
}
