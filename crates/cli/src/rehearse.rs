//! `rehearse`: a range of a running server misbehaves for a while, so that retry code can be tried.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rangehold_server::admin::rehearsals::{Order, Part};
use serde_json::{Value, json};

use crate::ask::{ANSWER_WITHIN, Asking};
use crate::map;

const PATH: &str = "/v1/rehearsals";

/// What is rehearsed.
#[derive(Debug, Subcommand)]
pub(crate) enum Rehearse {
    /// The range moves to another server now. With the profile `cloud` some requests for it get 503 and
    /// some a late 500 meanwhile; with `fast` nothing is to be seen of it but a short wait.
    Move {
        /// The range, such as r7, or a key that it holds, such as marathon/Half.
        range: String,
        /// The server, such as s2; if it is not given, the one with the least load.
        #[arg(long, value_name = "SERVER")]
        to: Option<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Every request for the range gets 503 ServerBusy, and queries end before it.
    Offline(Lasting),
    /// A share of the requests for the range gets 503 ServerBusy.
    Busy {
        #[command(flatten)]
        lasting: Lasting,
        /// Which share, above 0 and 1 at most.
        #[arg(long, default_value_t = 0.5)]
        rate: f64,
    },
    /// A share of the requests for the range gets a late 500 OperationTimedOut; of those that write,
    /// half are done all the same.
    Timeout {
        #[command(flatten)]
        lasting: Lasting,
        /// Which share, above 0 and 1 at most.
        #[arg(long, default_value_t = 0.5)]
        rate: f64,
        /// How late.
        #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
        late: Duration,
        /// Answer 504, as a gateway on the way would.
        #[arg(long)]
        gateway: bool,
    },
    /// Print what is rehearsed, as JSON.
    List(Asking),
    /// End all rehearsals.
    Stop(Asking),
}

/// Which range, for how long, and of which server.
#[derive(Debug, Args)]
pub(crate) struct Lasting {
    /// The range, such as r7, or a key that it holds, such as marathon/Half.
    range: String,
    /// For how long, such as 500ms, 10s or 2m.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    lasting: Duration,
    #[command(flatten)]
    asking: Asking,
}

/// Gives the order to the server, and prints what is rehearsed then.
pub(crate) fn run(rehearse: &Rehearse) -> Result<()> {
    let (asking, order) = match rehearse {
        Rehearse::Move { range, to, asking } => {
            return print(&map::move_away(asking, range, to.as_deref())?);
        }
        Rehearse::List(asking) => return print(&asking.get(PATH, ANSWER_WITHIN)?),
        Rehearse::Stop(asking) => return print(&asking.delete(PATH)?),
        Rehearse::Offline(lasting) => (&lasting.asking, order(lasting, Part::Offline)),
        Rehearse::Busy { lasting, rate } => {
            (&lasting.asking, Order { rate: Some(*rate), ..order(lasting, Part::Busy) })
        }
        Rehearse::Timeout { lasting, rate, late, gateway } => {
            let (rate, late_seconds) = (Some(*rate), Some(late.as_secs_f64()));
            let gateway = *gateway;
            (&lasting.asking, Order { rate, late_seconds, gateway, ..order(lasting, Part::Timeout) })
        }
    };
    print(&asking.post(PATH, &json!(order), ANSWER_WITHIN)?)
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
    Duration::try_from_secs_f64(number * unit).with_context(|| format!("{text:?} is no time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(parse_time("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(parse_time("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(parse_time("2m").unwrap(), Duration::from_secs(120));
        for wrong in ["", "10", "s", "-1s", "1h", "infs"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
