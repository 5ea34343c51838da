//! `rangehold rehearse`: makes a range of a running server misbehave for a while, so that users can test their
//! retry code.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rangehold_server::admin::rehearsals::{Order, Part};
use serde_json::{Value, json};

use crate::admin::ANSWER_WITHIN;
use crate::map;
use crate::output::{View, cell, list};
use crate::text_table::text_table;

const PATH: &str = "/v1/rehearsals";

/// `rangehold rehearse ...`
#[derive(Debug, Subcommand)]
pub(crate) enum Rehearse {
    /// Move the range to another server now. With the profile `cloud`, some requests for it get 503 or a late
    /// 500 during the move; with `fast`, clients see only a short wait.
    Move {
        /// The range, such as r7, or a key that it holds, such as marathon/Half.
        range: String,
        /// The server, such as s2 [default: the other server with the least load]
        #[arg(long, value_name = "SERVER")]
        to: Option<String>,
        #[command(flatten)]
        view: View,
    },
    /// Answer every request for the range with 503 ServerBusy. Queries end before it.
    Offline(Lasting),
    /// Answer a share of the requests for the range with 503 ServerBusy.
    Busy {
        #[command(flatten)]
        lasting: Lasting,
        /// The share of requests: above 0, and at most 1.
        #[arg(long, default_value_t = 0.5)]
        rate: f64,
    },
    /// Answer a share of the requests for the range with a late 500 OperationTimedOut. Half of the writes
    /// among them are done nevertheless.
    Timeout {
        #[command(flatten)]
        lasting: Lasting,
        /// The share of requests: above 0, and at most 1.
        #[arg(long, default_value_t = 0.5)]
        rate: f64,
        /// How long the answer takes, such as 500ms, 10s or 2m.
        #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
        late: Duration,
        /// Answer 504 in place of 500, as a gateway on the way would.
        #[arg(long)]
        gateway: bool,
    },
    /// Show the rehearsals that run now.
    List(View),
    /// End all rehearsals.
    Stop(View),
}

/// The range, how long it misbehaves, the server, and the form of its answer.
#[derive(Debug, Args)]
pub(crate) struct Lasting {
    /// The range, such as r7, or a key that it holds, such as marathon/Half.
    range: String,
    /// For how long, such as 500ms, 10s or 2m.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    lasting: Duration,
    #[command(flatten)]
    view: View,
}

/// Starts or ends a rehearsal, and shows the rehearsals that run then.
pub(crate) fn run(rehearse: &Rehearse) -> Result<()> {
    let (view, answer) = match rehearse {
        Rehearse::Move { range, to, view } => {
            view.print(&map::move_away(&view.admin, range, to.as_deref())?, map::changed_text);
            return Ok(());
        }
        Rehearse::List(view) => (view, view.admin.get(PATH, ANSWER_WITHIN)?),
        Rehearse::Stop(view) => (view, view.admin.delete(PATH)?),
        Rehearse::Offline(lasting) => begin(lasting, &order(lasting, Part::Offline))?,
        Rehearse::Busy { lasting, rate } => {
            begin(lasting, &Order { rate: Some(*rate), ..order(lasting, Part::Busy) })?
        }
        Rehearse::Timeout { lasting, rate, late, gateway } => {
            let (rate, late_seconds) = (Some(*rate), Some(late.as_secs_f64()));
            let gateway = *gateway;
            begin(lasting, &Order { rate, late_seconds, gateway, ..order(lasting, Part::Timeout) })?
        }
    };
    view.print(&answer, text);
    Ok(())
}

/// Begins a rehearsal, and returns the rehearsals that run then.
fn begin<'a>(lasting: &'a Lasting, order: &Order) -> Result<(&'a View, Value)> {
    Ok((&lasting.view, lasting.view.admin.post(PATH, &json!(order), ANSWER_WITHIN)?))
}

fn order(lasting: &Lasting, act: Part) -> Order {
    let (range, seconds) = (lasting.range.clone(), lasting.lasting.as_secs_f64());
    Order { range, act, seconds, rate: None, late_seconds: None, gateway: false }
}

/// The rehearsals that run, for people.
fn text(answer: &Value) -> String {
    let row = |rehearsal: &Value| {
        [
            cell(&rehearsal["range"]),
            cell(&rehearsal["act"]),
            status(rehearsal).to_owned(),
            cell(&rehearsal["rate"]),
            seconds(&rehearsal["late_seconds"]),
            seconds(&rehearsal["seconds"]),
        ]
    };
    let rows: Vec<[String; 6]> = list(answer).iter().map(row).collect();
    match rows.is_empty() {
        true => "no range misbehaves\n".to_owned(),
        false => text_table(["range", "act", "answer", "rate", "late", "left"], &rows),
    }
}

/// The status that clients get.
fn status(rehearsal: &Value) -> &'static str {
    match (rehearsal["act"] == "timeout", rehearsal["gateway"] == true) {
        (false, _) => "503",
        (true, false) => "500",
        (true, true) => "504",
    }
}

/// So many seconds; nothing if there is no number.
fn seconds(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, |seconds| format!("{seconds} s"))
}

/// A time such as `500ms`, `10s`, `2m`.
fn parse_time(text: &str) -> Result<Duration> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        _ => bail!("{text:?}: write a time as 500ms, 10s or 2m"),
    };
    let number: f64 =
        number.parse().with_context(|| format!("{text:?}: write a time as 500ms, 10s or 2m"))?;
    Duration::try_from_secs_f64(number * unit)
        .with_context(|| format!("{text:?} is too long: write a time as 500ms, 10s or 2m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_what_each_range_plays() {
        let listed = json!([
            { "range": "r3", "act": "timeout", "seconds": 9.5, "rate": 0.5, "late_seconds": 2.0, "gateway": true },
            { "range": "r4", "act": "timeout", "seconds": 10.0, "rate": 1.0, "late_seconds": 0.2 },
            { "range": "r7", "act": "offline", "seconds": 60.0 },
        ]);
        let expected = "\
range  act      answer  rate  late   left
r3     timeout  504     0.5   2 s    9.5 s
r4     timeout  500     1.0   0.2 s  10 s
r7     offline  503                  60 s
";
        assert_eq!(text(&listed), expected);
        assert_eq!(text(&json!([])), "no range misbehaves\n");
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(parse_time("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(parse_time("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(parse_time("2m").unwrap(), Duration::from_secs(120));
        for wrong in ["", "10", "s", "-1s", "1h", "infs"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
