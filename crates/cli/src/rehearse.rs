//! `rangehold rehearse`: makes a range of a running server misbehave for a while, so that users can test their
//! retry code.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rangehold_server::admin::rehearsals::{Order, Part};
use serde_json::{Value, json};

use crate::admin::{ANSWER_WITHIN, AdminClient};
use crate::map;

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
        admin: AdminClient,
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
    /// Print the rehearsals that run now, as JSON.
    List(AdminClient),
    /// End all rehearsals.
    Stop(AdminClient),
}

/// The range, how long it misbehaves, and the server.
#[derive(Debug, Args)]
pub(crate) struct Lasting {
    /// The range, such as r7, or a key that it holds, such as marathon/Half.
    range: String,
    /// For how long, such as 500ms, 10s or 2m.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    lasting: Duration,
    #[command(flatten)]
    admin: AdminClient,
}

/// Starts or ends a rehearsal, and prints the rehearsals that run then.
pub(crate) fn run(rehearse: &Rehearse) -> Result<()> {
    let (admin, order) = match rehearse {
        Rehearse::Move { range, to, admin } => {
            return print(&map::move_away(admin, range, to.as_deref())?);
        }
        Rehearse::List(admin) => return print(&admin.get(PATH, ANSWER_WITHIN)?),
        Rehearse::Stop(admin) => return print(&admin.delete(PATH)?),
        Rehearse::Offline(lasting) => (&lasting.admin, order(lasting, Part::Offline)),
        Rehearse::Busy { lasting, rate } => {
            (&lasting.admin, Order { rate: Some(*rate), ..order(lasting, Part::Busy) })
        }
        Rehearse::Timeout { lasting, rate, late, gateway } => {
            let (rate, late_seconds) = (Some(*rate), Some(late.as_secs_f64()));
            let gateway = *gateway;
            (&lasting.admin, Order { rate, late_seconds, gateway, ..order(lasting, Part::Timeout) })
        }
    };
    print(&admin.post(PATH, &json!(order), ANSWER_WITHIN)?)
}

fn order(lasting: &Lasting, act: Part) -> Order {
    let (range, seconds) = (lasting.range.clone(), lasting.lasting.as_secs_f64());
    Order { range, act, seconds, rate: None, late_seconds: None, gateway: false }
}

fn print(answer: &Value) -> Result<()> {
    println!("{answer:#}");
    Ok(())
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
    fn times_have_a_unit() {
        assert_eq!(parse_time("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(parse_time("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(parse_time("2m").unwrap(), Duration::from_secs(120));
        for wrong in ["", "10", "s", "-1s", "1h", "infs"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
