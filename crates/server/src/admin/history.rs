//! `GET /v1/history`: the history of load, by key and time.

use http::StatusCode;
use rangehold_map::history::{Row, ShownColumn};
use rangehold_map::load::Counts;
use rangehold_map::script::{KeyName, Names};
use rangehold_map::{KeyRange, Timestamp};
use rangehold_protocol::time::{iso, parse_iso};
use rangehold_protocol::uri::Query;
use serde_json::{Value, json};

use super::api::Refused;
use crate::history::{Answer, Question};
use crate::limits::{HISTORY_ROWS, HISTORY_ROWS_MAX};

/// The default time to show: the last ten minutes.
const SECONDS: i64 = 600;
/// The longest column, in seconds: a day.
const STEP_MAX: i64 = 86_400;

/// The question in the query of a URI. `now` is in seconds since 1970.
pub(super) fn question(query: Option<&str>, now: i64, names: &Names) -> Result<Question, Refused> {
    let query = Query::parse(query.unwrap_or_default())
        .map_err(|_| Refused::malformed("the query of the URI is not percent-encoded as it should be"))?;
    let (mut from, mut to, mut step) = (now - SECONDS, now + 1, None);
    let (mut low, mut high, mut rows_max) = (KeyRange::whole().low().to_vec(), None, HISTORY_ROWS);
    for (name, text) in query.iter() {
        match name {
            "from" => from = time(name, text, now)?,
            "to" => to = time(name, text, now)?,
            "step" => step = Some(number(name, text, STEP_MAX)?),
            "rows" => rows_max = number(name, text, HISTORY_ROWS_MAX as i64)? as usize,
            "low" => low = key(name, text, names)?,
            "high" => high = Some(key(name, text, names)?),
            _ => {
                return Err(Refused::malformed(format!(
                    "{name:?} is not understood: there is from, to, step, rows, low and high"
                )));
            }
        }
    }
    if high.as_ref().is_some_and(|high| *high <= low) {
        return Err(Refused::malformed("no key lies between low and high: give a high above low"));
    }
    Ok(Question { from, to, step, keys: KeyRange::new(low, high), rows_max })
}

/// Reads a time, or a negative number, which means so many seconds before now.
fn time(name: &str, text: &str, now: i64) -> Result<i64, Refused> {
    let ago = text.strip_prefix('-').and_then(|seconds| seconds.parse::<u32>().ok());
    let time = ago.map(|seconds| now - i64::from(seconds));
    time.or_else(|| parse_iso(text).map(Timestamp::unix_seconds)).ok_or_else(|| {
        Refused::malformed(format!(
            "{name}: {text:?} is not a time: write 2026-11-21T16:27:00Z, or -600 for 600 s before now"
        ))
    })
}

fn number(name: &str, text: &str, max: i64) -> Result<i64, Refused> {
    let number = text.parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| Refused::malformed(format!("{name}: {text:?} is not a number from 1 to {max}")))
}

fn key(name: &str, text: &str, names: &Names) -> Result<Vec<u8>, Refused> {
    let written: KeyName =
        text.parse().map_err(|malformed| Refused::malformed(format!("{name}: {malformed}")))?;
    names.key(&written).map_err(|unknown| Refused::malformed(format!("{name}: {unknown}")))
}

/// The answer if no history is kept.
pub(super) fn off() -> Refused {
    Refused::with(
        StatusCode::CONFLICT,
        "refused",
        "no history is kept: start the server without --history-budget 0",
    )
}

/// The answer as JSON. `asked_until` is the end of the time that was asked for.
pub(super) fn answer(answer: &Answer, asked_until: i64, names: &Names) -> Value {
    let goes_on = answer.to < asked_until;
    let kept: Vec<Value> = (answer.kept.iter())
        .map(|(tier, from, to)| json!({ "step_s": tier.step(), "from": at(*from), "to": at(*to) }))
        .collect();
    json!({
        "from": at(answer.from),
        "to": at(answer.to),
        "step_s": answer.step,
        "next": goes_on.then(|| at(answer.to)),
        "rows": answer.shown.rows.iter().map(|found| row(found, names)).collect::<Vec<_>>(),
        "columns": answer.shown.columns.iter().map(column).collect::<Vec<_>>(),
        "kept": kept,
        "bytes": answer.bytes,
        "budget_bytes": answer.budget_bytes,
        "lost_columns": answer.lost_columns,
        "trouble": answer.trouble,
    })
}

fn row(row: &Row, names: &Names) -> Value {
    json!({
        "low": names.name(row.keys.low()).to_string(),
        "high": row.keys.high().map(|high| names.name(high).to_string()),
        "buckets": row.buckets,
    })
}

fn column(column: &ShownColumn) -> Value {
    let cell = |(row, counts): &(usize, Counts)| {
        let numbers = counts.numbers().into_iter().map(Value::from);
        Value::Array(std::iter::once(Value::from(*row)).chain(numbers).collect())
    };
    json!({
        "at": at(column.at),
        "spread": column.spread,
        "cells": column.cells.iter().map(cell).collect::<Vec<_>>(),
    })
}

fn at(seconds: i64) -> String {
    iso(Timestamp::from_unix_seconds(seconds))
}
