//! The page: a table, and pictures as SVG, all in one file.

mod chart;
mod heat;

pub(crate) use chart::draw as draw_curves;

use super::outcome::{Outcome, Picture};

const STYLE: &str = "
body{font:14px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3em .6em;border-bottom:1px solid #ddd;vertical-align:top}
.pass{color:#17692c;font-weight:600}.miss{color:#b3261e;font-weight:600}.with{color:#666}
figure{margin:2em 0}figcaption{font-weight:600;margin-bottom:.3em}svg{width:100%;height:auto}
text{font:11px system-ui,sans-serif;fill:#444}";

/// The whole page.
pub(super) fn page(outcomes: &[Outcome]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Rangehold: balance at scale</title>\
         <style>{STYLE}</style><h1>Balance at scale</h1><p>The real planner on a virtual clock. Lines without a \
         verdict are there to be compared with: another rule, or one of ours switched off.</p><table>\
         <tr><th>Scenario<th>Asked for<th>Seen<th></tr>"
    );
    for line in outcomes.iter().flat_map(|outcome| &outcome.lines) {
        let verdict = line.verdict().to_lowercase();
        let class = if verdict.is_empty() { "with" } else { &verdict };
        page += &format!(
            "<tr><td>{}<td>{}<td>{}<td class=\"{class}\">{verdict}</tr>",
            escape(line.scenario),
            escape(&line.asked),
            escape(&line.seen)
        );
    }
    page += "</table>";
    for picture in outcomes.iter().flat_map(|outcome| &outcome.pictures) {
        let (title, drawn) = match picture {
            Picture::Curves { title, unit, limit, curves } => (title, chart::draw(unit, *limit, curves)),
            Picture::Heat { title, columns } => (title, heat::draw(columns)),
        };
        page += &format!("<figure><figcaption>{}</figcaption>{drawn}</figure>", escape(title));
    }
    page + "</html>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
