//! The admin API: what is asked of ranges, and what happens to them. See `docs/admin-api.md`.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use super::{Connection, Request, percent_encode};

/// Longest wait for a change: two ranges get ready for it, one after the other, in a minute each.
const CHANGE_WAIT: Duration = Duration::from_secs(180);
/// How often a change is asked for again.
const AGAIN_MAX: u32 = 10;
/// The wait before a change is asked for again: what stands in its way, as another change, ends in the meantime.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// File with the token, in the data directory.
pub const TOKEN_FILE: &str = "admin-token";

/// A client of one server's admin endpoint.
pub struct Admin {
    address: SocketAddr,
    token: String,
}

/// A change of ranges. Ranges are named as the API names them: `r2`, or a key that they hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// Cuts the range that holds the key, just before that key.
    Split {
        /// The key that begins the second half.
        at: String,
    },
    /// Makes one range of two neighbours.
    Merge {
        /// The range with the lower keys.
        left: String,
        /// The range with the higher keys.
        right: String,
    },
    /// Gives a range to another server.
    Move {
        /// The range.
        range: String,
        /// The server that gets it, for example `2`.
        to: String,
    },
}

/// A change that was done.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The ranges that hold the keys now.
    pub ranges: Vec<String>,
    /// How long writes were held, as the server says.
    pub held_for: Duration,
}

/// Why a change was not done.
#[derive(Debug)]
pub enum Refusal {
    /// Nothing was begun, or what was begun was undone: it helps to ask again.
    Again(String),
    /// Anything else, for example the end of the server.
    Failed(anyhow::Error),
}

/// One range of the map.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name, for example `r2`.
    pub range: String,
    /// The partition server that owns it.
    pub server: String,
    /// Its database, which is the name of its directory.
    pub database: String,
    /// Its first key, as the API writes keys.
    pub low: String,
}

impl Admin {
    /// A client of the server that listens at `address` and keeps its data in `data`.
    pub fn new(address: SocketAddr, data: &Path) -> Result<Self> {
        let path = data.join(TOKEN_FILE);
        let token =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { address, token: token.trim().to_owned() })
    }

    /// Has a change carried out.
    pub fn change(&self, change: &Change) -> Result<Changed, Refusal> {
        let (verb, body) = match change {
            Change::Split { at } => ("split", json!({ "at": at })),
            Change::Merge { left, right } => ("merge", json!({ "left": left, "right": right })),
            Change::Move { range, to } => ("move", json!({ "range": range, "to": to })),
        };
        let (status, answer) =
            self.send("POST", &format!("/v1/map/{verb}"), &body.to_string()).map_err(Refusal::Failed)?;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        match (status, answer["held_for_ms"].as_f64()) {
            (200, Some(held_for)) => Ok(Changed {
                ranges: words(&answer["ranges"]),
                held_for: Duration::from_secs_f64(held_for / 1e3),
            }),
            (503, _) => Err(Refusal::Again(message.to_owned())),
            _ => Err(Refusal::Failed(anyhow!("{change:?} was answered {status}: {answer}"))),
        }
    }

    /// Has a change carried out, and asks again if nothing was done.
    pub fn change_patiently(&self, change: &Change) -> Result<Changed> {
        let mut last = String::new();
        for _ in 0..AGAIN_MAX {
            match self.change(change) {
                Ok(changed) => return Ok(changed),
                Err(Refusal::Again(why)) => {
                    last = why;
                    thread::sleep(AGAIN_AFTER);
                }
                Err(Refusal::Failed(error)) => return Err(error),
            }
        }
        bail!("{change:?} was asked for {AGAIN_MAX} times, the last answer was: {last}")
    }

    /// The ranges, in the order of their keys.
    pub fn map(&self) -> Result<Vec<Entry>> {
        self.entries("/v1/map")
    }

    /// The range that holds a key, named as the API names keys.
    pub fn holder(&self, key: &str) -> Result<Entry> {
        let mut entries = self.entries(&format!("/v1/map?range={}", percent_encode(key)))?;
        match (entries.pop(), entries.is_empty()) {
            (Some(entry), true) => Ok(entry),
            _ => bail!("the map does not tell the one range that holds {key}"),
        }
    }

    fn entries(&self, path: &str) -> Result<Vec<Entry>> {
        let map = self.get(path)?;
        let entry = |range: &Value| {
            let word = |name: &str| range[name].as_str().map(str::to_owned);
            Some(Entry {
                range: word("range")?,
                server: word("server")?,
                database: word("database")?,
                low: word("low")?,
            })
        };
        let ranges = map["ranges"].as_array().context("a map without ranges")?;
        ranges.iter().map(|range| entry(range).with_context(|| format!("not a range: {range}"))).collect()
    }

    /// What the API says about each range.
    pub fn ranges(&self) -> Result<Value> {
        self.get("/v1/ranges")
    }

    /// The rules that the map breaks.
    pub fn check(&self) -> Result<Vec<String>> {
        Ok(words(&self.get("/v1/map/check")?["findings"]))
    }

    /// The answer to a `GET`, which must succeed.
    pub fn get(&self, path: &str) -> Result<Value> {
        let (status, answer) = self.send("GET", path, "")?;
        if status != 200 {
            return Err(anyhow!("GET {path} was answered {status}: {answer}"));
        }
        Ok(answer)
    }

    fn send(&self, method: &str, path: &str, body: &str) -> Result<(u16, Value)> {
        let mut connection = Connection::open_patient(self.address, CHANGE_WAIT)?;
        let token = format!("Bearer {}", self.token);
        let request = Request::new(method, path, &[("Authorization", &token)], body.as_bytes());
        let answer = connection.send(&request)?;
        let value = serde_json::from_str(&answer.body).unwrap_or_else(|_| Value::String(answer.body.clone()));
        Ok((answer.status, value))
    }
}

fn words(list: &Value) -> Vec<String> {
    let words = list.as_array().into_iter().flatten();
    words.filter_map(Value::as_str).map(str::to_owned).collect()
}
