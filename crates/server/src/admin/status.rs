//! `/v1/status`: what a process is, where it listens, what it holds, and what its ranges have counted.

use std::net::SocketAddr;

use rangehold_engine::{RangeStatistics, Statistics};
use rangehold_map::RangeId;
use serde_json::{Value, json};

use super::counts::{Count, Tables};

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) tables: SocketAddr,
    /// `None` if it serves no objects.
    pub(crate) objects: Option<SocketAddr>,
    /// The admin endpoint, which is never encrypted.
    pub(crate) admin: SocketAddr,
    /// Whether tables and objects are encrypted.
    pub(crate) tls: bool,
}

/// What a status tells.
pub(super) struct Seen<'a> {
    /// `None` before it listens.
    pub(super) addresses: Option<Addresses>,
    /// Whole seconds since the start.
    pub(super) uptime_s: i64,
    /// Memory that caches and buffers may take.
    pub(super) budget_bytes: u64,
    /// Memory that the process holds; `None` if the system does not tell it.
    pub(super) resident_bytes: Option<u64>,
    /// The names of the accounts that are configured.
    pub(super) accounts: Vec<&'a str>,
    /// `None` if the catalogues could not be read.
    pub(super) tables: Option<Tables>,
    /// `None` if the buckets could not be read.
    pub(super) buckets: Option<Count>,
    pub(super) engine: Statistics,
}

/// The answer as JSON.
pub(super) fn answer(seen: &Seen<'_>) -> Value {
    let tables = seen.tables.as_ref();
    let account =
        |name: &&str| json!({ "name": name, "tables": tables.map(|tables| count(tables.of(name))) });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": seen.uptime_s,
        "addresses": seen.addresses.map(addresses),
        "memory": { "budget_bytes": seen.budget_bytes, "resident_bytes": seen.resident_bytes },
        "accounts": seen.accounts.iter().map(account).collect::<Vec<_>>(),
        "tables": tables.map(|tables| count(tables.all())),
        "buckets": seen.buckets.map(count),
        "map_version": seen.engine.map_version,
        "ranges": ranges(&seen.engine),
        // A store in memory has no disk, and says so by this number.
        "disk_free_bytes": Some(seen.engine.disk_free_bytes).filter(|bytes| *bytes != u64::MAX),
        "disk_low": seen.engine.disk_low,
        "damaged_files": seen.engine.damaged_files,
    })
}

fn addresses(addresses: Addresses) -> Value {
    let scheme = if addresses.tls { "https" } else { "http" };
    json!({
        "tables": format!("{scheme}://{}", addresses.tables),
        "objects": addresses.objects.map(|address| format!("{scheme}://{address}")),
        "admin": format!("http://{}", addresses.admin),
    })
}

fn count(count: Count) -> Value {
    json!({ "number": count.number, "at_least": count.at_least })
}

fn ranges(engine: &Statistics) -> Vec<Value> {
    let range = |(id, range): &(RangeId, RangeStatistics)| {
        json!({
            "range": id.to_string(),
            "reads": range.reads,
            "scans": range.scans,
            "writes": range.writes,
            "refusals": range.refusals,
            "flushes": range.flushes,
            "unflushed_bytes": range.unflushed_bytes,
            "dropped_tables_pending": range.dropped_tables_pending,
            "reopenings": range.reopenings,
        })
    };
    engine.ranges.iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(tls: bool) -> Value {
        let engine = Statistics {
            map_version: 3,
            ranges: Vec::new(),
            disk_free_bytes: 7,
            disk_low: false,
            log_marks: 0,
            damaged_files: Vec::new(),
            troubles: Vec::new(),
        };
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let addresses =
            Addresses { tables: at(10_002), objects: tls.then(|| at(4_443)), admin: at(10_080), tls };
        answer(&Seen {
            addresses: Some(addresses),
            uptime_s: 61,
            budget_bytes: 512,
            resident_bytes: None,
            accounts: vec!["one"],
            tables: None,
            buckets: Some(Count { number: 10, at_least: true }),
            engine,
        })
    }

    #[test]
    fn what_is_not_known_is_null() {
        let status = seen(false);
        assert_eq!(status["memory"], json!({ "budget_bytes": 512, "resident_bytes": null }));
        assert_eq!(status["accounts"], json!([{ "name": "one", "tables": null }]));
        assert_eq!(status["tables"], Value::Null);
        assert_eq!(status["buckets"], json!({ "number": 10, "at_least": true }));
    }

    #[test]
    fn the_admin_endpoint_is_never_encrypted() {
        let plain =
            json!({ "tables": "http://127.0.0.1:10002", "objects": null, "admin": "http://127.0.0.1:10080" });
        assert_eq!(seen(false)["addresses"], plain);
        let secret = json!({
            "tables": "https://127.0.0.1:10002", "objects": "https://127.0.0.1:4443", "admin": "http://127.0.0.1:10080",
        });
        assert_eq!(seen(true)["addresses"], secret);
    }
}
