//! The report as one file of HTML that needs nothing else: no script, no font, no other file.

use super::chart::{curves, escaped, ranges};
use super::{KindPart, Report};
use crate::stress::judge::{Finding, Grade, Outcome};
use crate::stress::seen::Seen;
use crate::stress::words::{count, percent};

/// How the page looks. All colours can be told apart without seeing red and green.
const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#222;background:#fff}\
h1{font-size:1.3em}h2{font-size:1.05em;margin:1.6em 0 .3em}\
.verdict{padding:.7em 1em;border-left:6px solid #0072b2;background:#eef5fb;font-weight:600}\
.verdict.limited,.verdict.missed{border-color:#d55e00;background:#fdf1e8}\
li{margin:.4em 0}li.limit,li.miss{list-style:'\\25b2  '}.remedy{color:#0b5a86}\
table{border-collapse:collapse;width:100%;font-size:13px}th,td{text-align:right;padding:3px 7px;border-bottom:1px solid #ddd}\
th:first-child,td:first-child{text-align:left}td.missed{color:#b34700;font-weight:600}\
svg{width:100%;height:auto;font:11px system-ui,sans-serif;fill:#444}\
.grid{stroke:#ddd}.written{fill:#0072b2}.read{fill:#56b4e9}.asked{fill:none;stroke:#222;stroke-dasharray:4 3}\
line.limit{stroke:#d55e00;stroke-width:1.5}text.limit{fill:#b34700}.change{stroke:#bbb}\
.ranges{fill:none;stroke:#0072b2;stroke-width:2}.servers{fill:none;stroke:#d55e00;stroke-width:2}\
.legend span{margin-right:1.5em}.small{color:#555;font-size:13px}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}.verdict{background:#1d2a33}\
.verdict.limited,.verdict.missed{background:#33261d}svg{fill:#bbb}.grid,th,td{stroke:#444;border-color:#444}.asked{stroke:#ddd}\
.remedy{color:#7fc4ef}.small{color:#aaa}}";

impl Report {
    /// The page.
    pub(crate) fn html(&self) -> String {
        let title = escaped(&format!("Stress test: {}", self.plan));
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head>\
             <body>\n<h1>{title}</h1>\n{}\n{}\n{}\n{}\n</body></html>\n",
            self.head(),
            self.pictures(),
            self.table(),
            self.service_part()
        )
    }

    fn head(&self) -> String {
        let class = match self.judgement.outcome {
            Outcome::Bears => "bears",
            Outcome::Limited => "limited",
            Outcome::Missed => "missed",
        };
        let findings: String = self.judgement.findings.iter().map(finding).collect();
        let end = if self.is_cut_short { ", ended early" } else { "" };
        let circumstances = format!(
            "{}. Table {} at {}; {} entities were loaded before; {:.0} s{end}; seed {}.",
            self.about,
            self.table,
            self.service,
            count(self.loaded as f64),
            self.seconds,
            self.seed
        );
        let advice: String = self.advice.iter().map(|text| format!("<p>{}</p>", escaped(text))).collect();
        format!(
            "<p class=\"verdict {class}\">{}</p>\n<p class=\"small\">{}</p>\n<h2>Why</h2>\n<ul>{findings}</ul>\n\
             <h2>What helps, and what does not</h2>\n{advice}",
            escaped(&self.judgement.headline),
            escaped(&circumstances)
        )
    }

    fn pictures(&self) -> String {
        let legend = "<p class=\"legend small\"><span>dark: written (PUT)</span><span>light: read (GET)</span>\
                      <span>dashes: asked</span></p>";
        let whole = curves(&self.series.whole(), None, "entities a second of the whole table");
        let mut html = format!(
            "<h2>The whole table, entities/s: asked {}, answered {}</h2>{legend}\n{whole}",
            count(self.asked_entities_per_s),
            count(self.done_entities_per_s)
        );
        if self.target.stands_out {
            let limit = Some(self.target.limit_per_s);
            html += &format!(
                "\n<h2>The target partition {}, entities/s: asked {}, answered {}</h2>{legend}\n{}",
                escaped(&self.target.partition),
                count(self.target.asked_per_s),
                count(self.target.done_per_s),
                curves(&self.series.target(), limit, "entities a second of the target partition")
            );
        }
        html
    }

    fn table(&self) -> String {
        let rows: String = self.kinds.iter().map(row).collect();
        format!(
            "<h2>Each kind of requests</h2>\n<table><tr><th>requests</th><th>a second</th><th>asked</th><th>in time</th>\
             <th>late</th><th>of these not sent</th><th>ServerBusy</th><th>Timeout</th><th>failed</th><th>p50 ms</th>\
             <th>p99 ms</th><th>wanted ms</th><th>met</th></tr>{rows}</table>"
        )
    }

    fn service_part(&self) -> String {
        let Some(seen) = &self.ranges else {
            return "<p class=\"small\">The service told nothing of its ranges.</p>".to_owned();
        };
        let picture = ranges(seen, self.seconds, "ranges and servers of the table");
        format!(
            "<h2>The ranges of the table</h2>\n<p class=\"legend small\"><span>blue: ranges</span><span>orange: servers</span>\
             <span>grey lines: changes of ranges</span></p>\n{picture}\n{}",
            events(seen)
        )
    }
}

fn finding(finding: &Finding) -> String {
    let class = match finding.grade {
        Grade::Limit => "limit",
        Grade::Miss => "miss",
        Grade::Note => "note",
    };
    let remedy = finding.remedy.as_ref();
    let remedy = remedy
        .map_or_else(String::new, |text| format!("<br><span class=\"remedy\">{}</span>", escaped(text)));
    format!("<li class=\"{class}\">{}{remedy}</li>", escaped(&finding.text))
}

fn row(kind: &KindPart) -> String {
    let ms = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
    let counts = [
        kind.asked,
        kind.in_time,
        kind.late,
        kind.unsent,
        kind.busy,
        kind.timed_out,
        kind.lost + kind.failed,
    ];
    let counts: String = counts.iter().map(|number| format!("<td>{}</td>", count(*number as f64))).collect();
    let share = percent(kind.share());
    let class = if kind.is_met { "met" } else { "missed" };
    format!(
        "<tr><td>{}</td><td>{:.1}</td>{counts}<td>{}</td><td>{}</td><td>{:.0}</td><td class=\"{class}\">{share} {class}</td></tr>",
        escaped(&kind.name),
        kind.per_s,
        ms(kind.p50_ms),
        ms(kind.p99_ms),
        kind.within_ms
    )
}

fn events(seen: &Seen) -> String {
    if seen.events.is_empty() {
        return "<p class=\"small\">Nothing happened to them.</p>".to_owned();
    }
    let row = |event: &crate::stress::seen::Event| {
        format!(
            "<tr><td>{:.0} s</td><td>{}</td><td>{}</td></tr>",
            event.at_s,
            escaped(&event.kind),
            escaped(&event.text)
        )
    };
    let rows: String = seen.events.iter().map(row).collect();
    format!("<table><tr><th>at</th><th>event</th><th>what</th></tr>{rows}</table>")
}
