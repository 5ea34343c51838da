//! Rehearsals by the admin endpoint.
//!
//! | request | what it does |
//! |---|---|
//! | `GET /v1/rehearsals` | lists those under way |
//! | `POST /v1/rehearsals` | begins one: the body is an [`Order`] in JSON |
//! | `DELETE /v1/rehearsals` | ends all |
//!
//! Refusals are those of the whole API.

use std::time::Duration;

use http::Method;
use rangehold_map::RangeId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api::Refused;
use crate::rehearsal::{Act, Rehearsals};

/// What is rehearsed, in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Which range, such as `r7`.
    pub range: String,
    /// What it plays.
    pub act: Part,
    /// For how many seconds; in a list, how many are left.
    pub seconds: f64,
    /// The share of requests, of 1, for `busy` and `timeout`; all if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// How many seconds late a time-out is told; 2 if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_seconds: Option<f64>,
    /// Whether a time-out has the status 504 and not 500.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gateway: bool,
}

/// The parts that a range can play; see [`Act`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// 503 at once.
    Offline,
    /// 503 for a share.
    Busy,
    /// A late 500 or 504 for a share.
    Timeout,
}

/// How late a time-out is told, where the order does not say.
const LATE_SECONDS: f64 = 2.0;

impl Order {
    fn of((range, act, left): &(RangeId, Act, Duration)) -> Self {
        let order = |act| Self {
            range: range.to_string(),
            act,
            // To a tenth: it is for people.
            seconds: (left.as_secs_f64() * 10.0).ceil() / 10.0,
            rate: None,
            late_seconds: None,
            gateway: false,
        };
        match *act {
            Act::Offline => order(Part::Offline),
            Act::Busy { rate } => Self { rate: Some(rate), ..order(Part::Busy) },
            Act::Timeout { rate, late, gateway } => Self {
                rate: Some(rate),
                late_seconds: Some(late.as_secs_f64()),
                gateway,
                ..order(Part::Timeout)
            },
        }
    }

    /// Range, act and time, as they are begun with.
    fn read(&self) -> Result<(RangeId, Act, Duration), String> {
        let seconds = |name: &str, value: f64| {
            let why = |_| format!("{name}: {value} is no number of seconds");
            Duration::try_from_secs_f64(value).map_err(why)
        };
        let range = self.range.parse().map_err(|why| format!("range {:?}: {why}", self.range))?;
        let rate = self.rate.unwrap_or(1.0);
        let act = match self.act {
            Part::Offline => Act::Offline,
            Part::Busy => Act::Busy { rate },
            Part::Timeout => {
                let late = seconds("late_seconds", self.late_seconds.unwrap_or(LATE_SECONDS))?;
                Act::Timeout { rate, late, gateway: self.gateway }
            }
        };
        Ok((range, act, seconds("seconds", self.seconds)?))
    }
}

/// Answers a GET, POST or DELETE with what is rehearsed then. `known` says whether there is such a
/// range.
pub(super) fn answer(
    rehearsals: &Rehearsals,
    method: &Method,
    body: &[u8],
    known: impl FnOnce(RangeId) -> bool,
) -> Result<Value, Refused> {
    match *method {
        Method::POST => begin(rehearsals, body, known).map_err(Refused::malformed)?,
        Method::DELETE => {
            rehearsals.end_all();
        }
        _ => {}
    }
    let orders: Vec<Order> = rehearsals.list().iter().map(Order::of).collect();
    Ok(json!(orders))
}

fn begin(rehearsals: &Rehearsals, body: &[u8], known: impl FnOnce(RangeId) -> bool) -> Result<(), String> {
    let order: Order = serde_json::from_slice(body).map_err(|why| format!("the order is not one: {why}"))?;
    let (range, act, lasting) = order.read()?;
    if !known(range) {
        return Err(format!("there is no range {range}: see which there are with 'rangehold ranges'"));
    }
    rehearsals.begin(range, act, lasting).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::profile::Profile;

    fn post(rehearsals: &Rehearsals, body: &str) -> Result<Value, Refused> {
        answer(rehearsals, &Method::POST, body.as_bytes(), |range| range == RangeId(7))
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_is_begun_listed_and_ended() {
        let rehearsals = Rehearsals::new(Profile::fast().moving, 1);
        let order =
            r#"{"range":"r7","act":"timeout","seconds":10,"rate":0.5,"late_seconds":1.5,"gateway":true}"#;
        let listed: Vec<Order> = serde_json::from_value(post(&rehearsals, order).unwrap()).unwrap();
        assert_eq!(listed, [serde_json::from_str::<Order>(order).unwrap()]);
        assert_eq!(answer(&rehearsals, &Method::DELETE, b"", |_| true), Ok(json!([])));
        assert!(!rehearsals.any());
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_name_what_was_wrong() {
        let rehearsals = Rehearsals::new(Profile::fast().moving, 1);
        for (order, word) in [
            (r#"{"range":"r8","act":"offline","seconds":10}"#, "r8"),
            (r#"{"range":"seven","act":"offline","seconds":10}"#, "seven"),
            (r#"{"range":"r7","act":"slow","seconds":10}"#, "slow"),
            (r#"{"range":"r7","act":"offline","seconds":-1}"#, "-1"),
            (r#"{"range":"r7","act":"offline","seconds":10,"late":1}"#, "`late`"),
            (r#"{"range":"r7","act":"busy","seconds":10,"rate":2}"#, "2"),
        ] {
            let refused = post(&rehearsals, order).unwrap_err();
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{order}");
            let why = refused.json().to_string();
            assert!(why.contains(word), "{order}: {why}");
        }
        assert!(!rehearsals.any());
    }
}
