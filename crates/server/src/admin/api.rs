//! The JSON API about ranges: reading and changing. `docs/admin-api.md` describes it.
//!
//! Requests and replies write keys as commands do ([`rangehold_map::script::KeyName`]).

use std::sync::Arc;

use http::StatusCode;
use rangehold_engine::ChangeError;
use rangehold_map::key::{KIND_BUCKET, KIND_CATALOGUE};
use rangehold_map::load::HotState;
use rangehold_map::script::{Asked, CommandRefused, KeyName, Names, Target};
use rangehold_map::{Change, Intent, KeyRange, RangeEntry, RangeMap, ServerId};
use rangehold_protocol::time::iso;
use rangehold_protocol::uri::Query;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::manager::{self, Event, Manager, NotDone, Planned, ServerSeen};

/// A refusal, as a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    /// The code, for programs.
    code: &'static str,
    /// The sentence, for people.
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Split {
    range: Option<String>,
    at: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Merge {
    left: String,
    right: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Move {
    range: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    range: String,
}

impl Refused {
    pub(super) fn malformed(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: "malformed", message: message.into() }
    }

    /// A refusal with any status and code.
    pub(super) fn with(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    fn conflict(message: impl Into<String>) -> Self {
        Self::with(StatusCode::CONFLICT, "refused", message)
    }

    pub(super) fn json(&self) -> Value {
        json!({ "error": { "code": self.code, "message": self.message } })
    }
}

/// The change that `POST /v1/map/{verb}` asks for; `None` if there is no such verb.
pub(super) fn asked(verb: &str, body: &[u8]) -> Option<Result<Asked, Refused>> {
    Some(match verb {
        "split" => body_of(body).and_then(|Split { range, at }| {
            let at: KeyName = word("at", &at)?;
            let range = range.map_or_else(|| Ok(Target::Holding(at.clone())), |range| target(&range))?;
            Ok(Asked::Split { range, at })
        }),
        "merge" => body_of(body).and_then(|Merge { left, right }| {
            Ok(Asked::Merge { left: target(&left)?, right: target(&right)? })
        }),
        "move" => body_of(body).and_then(|Move { range, to }| {
            let to: ServerId = word("to", &to)?;
            Ok(Asked::Move { range: target(&range)?, to })
        }),
        "offline" => body_of(body).and_then(|One { range }| Ok(Asked::Offline(target(&range)?))),
        "online" => body_of(body).and_then(|One { range }| Ok(Asked::Online(target(&range)?))),
        _ => return None,
    })
}

/// The body of a request, in JSON.
pub(super) fn body_of<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body)
        .map_err(|error| Refused::malformed(format!("the body is not what this takes: {error}")))
}

/// Reads the name of a range in a request.
pub(super) fn target(text: &str) -> Result<Target, Refused> {
    word("range", text)
}

/// The range with this name.
pub(super) fn found<'a>(range: &Target, map: &'a RangeMap, names: &Names) -> Result<&'a RangeEntry, Refused> {
    range.find(map, names).map_err(|refused| not_meant(&refused, names))
}

fn not_meant(refused: &CommandRefused, names: &Names) -> Refused {
    let message = refused.sentence(names);
    match refused {
        CommandRefused::Change(_) => Refused::conflict(message),
        CommandRefused::Table(_) | CommandRefused::Outside { .. } => Refused::malformed(message),
    }
}

fn word<T: std::str::FromStr>(field: &str, text: &str) -> Result<T, Refused>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| Refused::malformed(format!("{field}: {error}")))
}

/// Carries a change out through the manager.
pub(super) async fn change(manager: &Manager, map: &RangeMap, asked: &Asked) -> Result<Value, Refused> {
    let names = Arc::new(manager.names().await);
    let change = asked.change(map, &names).map_err(|refused| not_meant(&refused, &names))?;
    let warning = match &change {
        Change::Offline { range, .. } => map.get(*range).map(offline_warning),
        _ => None,
    };
    let changed = manager.carry_out(change, Arc::clone(&names)).await;
    let changed = changed.map_err(|error| not_done(&error, &names))?;
    let ranges: Vec<String> = changed.ranges.iter().map(ToString::to_string).collect();
    let mut answer = json!({
        "map_version": changed.map_version,
        "ranges": ranges,
        "held_for_ms": milliseconds(changed.held_for),
    });
    if let Some(warning) = warning {
        answer["warning"] = warning.into();
    }
    Ok(answer)
}

/// What an operator should know when a range goes offline.
fn offline_warning(entry: &RangeEntry) -> String {
    let range = entry.id;
    let mut text = format!("{range} answers no request until it is set online: rangehold map online {range}");
    let holds = |kind| !entry.keys.intersect(&KeyRange::prefix(&[kind])).is_empty();
    for (kind, what) in [(KIND_CATALOGUE, "tables"), (KIND_BUCKET, "buckets")] {
        if holds(kind) {
            text +=
                &format!("; it holds the list of {what}, so requests for {what} in other ranges fail too");
        }
    }
    text
}

fn not_done(error: &NotDone, names: &Names) -> Refused {
    let (status, code) = match error {
        NotDone::Change(
            ChangeError::Refused(_)
            | ChangeError::NotHeld(_)
            | ChangeError::NoServer(_)
            | ChangeError::Overtaken { .. },
        ) => (StatusCode::CONFLICT, "refused"),
        NotDone::Change(ChangeError::NotYet { .. } | ChangeError::NoLease(_)) | NotDone::Stopping => {
            (StatusCode::SERVICE_UNAVAILABLE, "not-yet")
        }
        NotDone::Change(ChangeError::Undone { .. }) => (StatusCode::SERVICE_UNAVAILABLE, "undone"),
        NotDone::Change(
            ChangeError::BrokenOff { .. }
            | ChangeError::Map(_)
            | ChangeError::MapTooOld(..)
            | ChangeError::Database(_)
            | ChangeError::Lease(_)
            | ChangeError::Catalogue(_),
        )
        | NotDone::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "broken-off"),
    };
    let message = match error {
        NotDone::Change(error) => manager::sentence(error, names),
        other => other.to_string(),
    };
    Refused { status, code, message }
}

/// The range that `GET /v1/map?range=` asks for; `None` if it asks for all.
pub(super) fn only(query: Option<&str>) -> Result<Option<Target>, Refused> {
    let query = Query::parse(query.unwrap_or_default())
        .map_err(|_| Refused::malformed("the query of the URI is not percent-encoded as it should be"))?;
    let mut only = None;
    for (name, text) in query.iter() {
        match name {
            "range" => only = Some(target(text)?),
            _ => return Err(Refused::malformed(format!("{name:?} is not understood: there is range"))),
        }
    }
    Ok(only)
}

/// `GET /v1/map`, for all ranges or for one.
pub(super) fn map(map: &RangeMap, names: &Names, only: Option<&Target>) -> Result<Value, Refused> {
    let entries = match only {
        Some(range) => std::slice::from_ref(found(range, map, names)?),
        None => map.entries(),
    };
    let ranges: Vec<Value> = entries.iter().map(|entry| entry_json(entry, names)).collect();
    Ok(json!({ "version": map.version(), "next_range": map.next_range().to_string(), "ranges": ranges }))
}

/// `GET /v1/map/check`
pub(super) fn check(map: &RangeMap) -> Value {
    let findings: Vec<String> = map.check_homes().iter().map(ToString::to_string).collect();
    json!({ "version": map.version(), "findings": findings })
}

fn entry_json(entry: &RangeEntry, names: &Names) -> Value {
    json!({
        "range": entry.id.to_string(),
        "generation": entry.generation.0,
        "server": entry.place.server.to_string(),
        "database": entry.place.database.to_string(),
        "low": names.name(entry.keys.low()).to_string(),
        "high": entry.keys.high().map(|high| names.name(high).to_string()),
        "online": entry.online,
        "doing": entry.intent.as_ref().map(Intent::doing),
    })
}

/// `GET /v1/ranges`
pub(super) fn ranges(map: &RangeMap, manager: &Manager, names: &Names) -> Value {
    let seen = manager.observe();
    let ranges: Vec<Value> = map
        .entries()
        .iter()
        .map(|entry| {
            let mut range = entry_json(entry, names);
            range["load"] = load(entry, &seen, names);
            range
        })
        .collect();
    json!({
        "map_version": map.version(),
        "servers": seen.iter().map(server).collect::<Vec<_>>(),
        "ranges": ranges,
        "manager": {
            "plans": manager.options().plans,
            "planned": manager.planned().map(|planned| plan(&planned)),
        },
    })
}

fn server(seen: &ServerSeen) -> Value {
    let cost: f64 = seen.ranges.iter().map(|range| range.load.cost_rate).sum();
    json!({
        "server": seen.server.to_string(),
        "ended": seen.ended,
        "ranges": seen.ranges.len(),
        "requests_per_s": tenths(seen.ranges.iter().map(|range| range.load.rate).sum()),
        "cost_per_s": tenths(cost),
        "capacity_per_s": tenths(seen.capacity),
        "utilisation": (cost / seen.capacity * 1000.0).round() / 1000.0 + 0.0,
    })
}

/// The load of a range; null if the server that the map names does not hold it.
fn load(entry: &RangeEntry, seen: &[ServerSeen], names: &Names) -> Value {
    let owner = seen.iter().find(|server| server.server == entry.place.server);
    let range = owner.and_then(|owner| owner.ranges.iter().find(|range| range.range == entry.id));
    let Some(range) = range else { return Value::Null };
    let load = &range.load;
    let top_keys: Vec<Value> = load
        .top_keys
        .iter()
        .map(|key| json!({ "partition": names.name(&key.partition).to_string(), "share": key.share }))
        .collect();
    json!({
        "state": state(load.state),
        "requests_per_s": tenths(load.rate),
        "requests_per_s_slow": tenths(load.rate_slow),
        "cost_per_s": tenths(load.cost_rate),
        "writes_per_s": tenths(load.write_rate),
        "entities_per_s": tenths(load.entities_rate),
        "bytes_per_s": tenths(load.bytes_rate),
        "throttled_per_s": tenths(load.throttled_rate),
        "peak_cost_per_s": load.peak.map(tenths),
        "bytes": range.bytes,
        "borrowed_bytes": range.borrowed_bytes,
        "verdict": load.verdict.as_ref().map(|verdict| json!({
            "cause": verdict.cause.name(),
            "sentence": manager::names::told(verdict, names),
        })),
        "top_keys": top_keys,
    })
}

fn state(state: HotState) -> &'static str {
    match state {
        HotState::Cold => "cold",
        HotState::Warm => "warm",
        HotState::Candidate => "candidate",
        HotState::Judged => "judged",
    }
}

fn plan(planned: &Planned) -> Value {
    let Planned { at, plan } = planned;
    json!({
        "at": iso(*at),
        "map_version": plan.map_version,
        "changes": plan.changes.len(),
        "report": plan.report.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "balance": {
            "mean": plan.balance.mean,
            "max": plan.balance.max,
            "max_after": plan.balance.max_after,
            "floor": plan.balance.floor,
            "emergency": plan.balance.emergency,
        },
    })
}

/// `GET /v1/events`
pub(super) fn events(events: &[Arc<Event>]) -> Value {
    let events: Vec<Value> = events
        .iter()
        .map(|event| {
            let happened = &event.happened;
            json!({
                "number": event.number,
                "at": iso(event.at),
                "kind": happened.kind.name(),
                "ranges": happened.ranges.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "text": happened.text,
                "map_version": happened.map_version,
                "held_for_ms": happened.held_for.map(milliseconds),
            })
        })
        .collect();
    json!({ "events": events })
}

fn milliseconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn tenths(rate: f64) -> f64 {
    // The sum of an empty list is -0.0. Adding 0.0 makes it 0.0.
    (rate * 10.0).round() / 10.0 + 0.0
}
