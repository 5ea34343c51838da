//! Rehearsals, through the admin endpoint.
//!
//! | request | what it does |
//! |---|---|
//! | `GET /v1/rehearsals` | lists those under way |
//! | `POST /v1/rehearsals` | begins one: the body is an [`Order`] in JSON |
//! | `DELETE /v1/rehearsals` | ends all |
//!
//! Ranges are named, and requests are refused, as in the rest of the API.

use std::time::Duration;

use http::Method;
use rangehold_map::script::{Names, Target};
use rangehold_map::{RangeId, RangeMap};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api::{self, Refused};
use crate::rehearsal::{Act, Rehearsals};

/// A rehearsal, as requests and replies write it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The range, such as `r7` or `r7@3`, or a key that it holds. In a list, its id.
    pub range: String,
    /// The act.
    pub act: Part,
    /// How many seconds it lasts. In a list, how many seconds are left.
    pub seconds: f64,
    /// The share of requests for `busy` and `timeout`, above 0 and at most 1. Without it, all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// By how many seconds a time-out is late; 2 if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_seconds: Option<f64>,
    /// Whether a time-out has status 504 instead of 500.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gateway: bool,
}

/// The acts that a range can play; see [`Act`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// 503 at once.
    Offline,
    /// 503 for a share of the requests.
    Busy,
    /// A late 500 or 504 for a share of the requests.
    Timeout,
}

/// The delay of a time-out if the order does not give one.
const LATE_SECONDS: f64 = 2.0;

impl Order {
    fn of((range, act, left): &(RangeId, Act, Duration)) -> Self {
        let order = |act| Self {
            range: range.to_string(),
            act,
            // Rounded to a tenth, for people.
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

    /// The range, the act and the time of the rehearsal to begin.
    fn read(&self) -> Result<(Target, Act, Duration), Refused> {
        let seconds = |name: &str, value: f64| {
            let why = |_| Refused::malformed(format!("{name}: {value} is not a number of seconds"));
            Duration::try_from_secs_f64(value).map_err(why)
        };
        let range = api::target(&self.range)?;
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

/// Does a GET, POST or DELETE, and answers with the rehearsals that are under way afterwards. `map` has the ranges,
/// and `names` has the names of the tables.
pub(super) fn answer(
    rehearsals: &Rehearsals,
    method: &Method,
    body: &[u8],
    map: &RangeMap,
    names: &Names,
) -> Result<Value, Refused> {
    match *method {
        Method::POST => begin(rehearsals, body, map, names)?,
        Method::DELETE => {
            rehearsals.end_all();
        }
        _ => {}
    }
    let orders: Vec<Order> = rehearsals.list().iter().map(Order::of).collect();
    Ok(json!(orders))
}

fn begin(rehearsals: &Rehearsals, body: &[u8], map: &RangeMap, names: &Names) -> Result<(), Refused> {
    let order: Order = api::body_of(body)?;
    let (range, act, lasting) = order.read()?;
    let range = api::found(&range, map, names)?.id;
    rehearsals.begin(range, act, lasting).map_err(|why| Refused::malformed(why.to_string()))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use rangehold_map::script::MapScript;
    use rangehold_map::{TableId, script};

    use super::*;
    use crate::profile::Profile;

    /// Two ranges: r2, and r3, which begins at `marathon/Half` and is in generation 2.
    fn halves() -> (RangeMap, Names) {
        let mut halves = MapScript::new();
        for command in script::parse("table marathon\nsplit marathon/Half\nmove r3 to s2").unwrap() {
            halves.run(&command).unwrap();
        }
        let mut names = Names::new("acct");
        names.add_table(None, "marathon", TableId(1));
        (halves.map().clone(), names)
    }

    fn post(rehearsals: &Rehearsals, body: &str) -> Result<Value, Refused> {
        let (map, names) = halves();
        answer(rehearsals, &Method::POST, body.as_bytes(), &map, &names)
    }

    fn delete(rehearsals: &Rehearsals) -> Result<Value, Refused> {
        let (map, names) = halves();
        answer(rehearsals, &Method::DELETE, b"", &map, &names)
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_is_begun_listed_and_ended() {
        let rehearsals = Rehearsals::new(Profile::fast().moving, 1);
        let order =
            r#"{"range":"r3","act":"timeout","seconds":10,"rate":0.5,"late_seconds":1.5,"gateway":true}"#;
        let listed: Vec<Order> = serde_json::from_value(post(&rehearsals, order).unwrap()).unwrap();
        assert_eq!(listed, [serde_json::from_str::<Order>(order).unwrap()]);
        assert_eq!(delete(&rehearsals), Ok(json!([])));
        assert!(!rehearsals.any());
    }

    #[tokio::test(start_paused = true)]
    async fn a_range_has_the_names_that_it_has_elsewhere() {
        let rehearsals = Rehearsals::new(Profile::fast().moving, 1);
        for (name, range) in [
            ("r3@2", "r3"),
            ("marathon/Half", "r3"),
            (r#"marathon/\"10 km\""#, "r2"),
            ("marathon/*", "r2"),
            ("start", "r2"),
        ] {
            let order = format!(r#"{{"range":"{name}","act":"offline","seconds":10}}"#);
            let listed = post(&rehearsals, &order).unwrap();
            assert_eq!(listed[0]["range"], range, "{name}: {listed}");
            delete(&rehearsals).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_name_what_was_wrong() {
        let rehearsals = Rehearsals::new(Profile::fast().moving, 1);
        let (malformed, refused) = (StatusCode::BAD_REQUEST, StatusCode::CONFLICT);
        for (order, status, word) in [
            (r#"{"range":"r8","act":"offline","seconds":10}"#, refused, "r8 is not in the map"),
            (r#"{"range":"r3@1","act":"offline","seconds":10}"#, refused, "generation 1"),
            (r#"{"range":"walk/Half","act":"offline","seconds":10}"#, malformed, "no table"),
            (r#"{"range":"seven","act":"offline","seconds":10}"#, malformed, "seven"),
            (r#"{"range":"r3","act":"slow","seconds":10}"#, malformed, "slow"),
            (r#"{"range":"r3","act":"offline","seconds":-1}"#, malformed, "-1"),
            (r#"{"range":"r3","act":"offline","seconds":10,"late":1}"#, malformed, "`late`"),
            (r#"{"range":"r3","act":"busy","seconds":10,"rate":2}"#, malformed, "2"),
        ] {
            let why = post(&rehearsals, order).unwrap_err();
            assert_eq!(why.status, status, "{order}");
            let why = why.json().to_string();
            assert!(why.contains(word), "{order}: {why}");
        }
        assert!(!rehearsals.any());
    }
}
