//! What is counted, in Prometheus' text format.
//!
//! Labels are operations, statuses and the like, never a table's name or a key: those are the
//! users' data, and unbounded.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use rangehold_engine::Statistics;

/// Azure's own words for how a request ended, which its metrics use too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
enum ResponseType {
    Success,
    ClientError,
    AuthenticationError,
    ServerBusyError,
    ServerTimeoutError,
    ServerError,
}

impl ResponseType {
    fn of(status: u16) -> Self {
        match status {
            401 | 403 => Self::AuthenticationError,
            503 => Self::ServerBusyError,
            500 | 504 => Self::ServerTimeoutError,
            501..=599 => Self::ServerError,
            400..=499 => Self::ClientError,
            _ => Self::Success,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    operation: &'static str,
    response_type: ResponseType,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
}

/// The metrics of one process.
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    seconds: Family<Operation, Histogram, fn() -> Histogram>,
    under_way: Gauge,
    engine: EngineGauges,
}

/// Counts a request as under way until it is dropped.
pub(crate) struct UnderWay<'a>(&'a Gauge);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn seconds_histogram() -> Histogram {
    Histogram::new([
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    ])
}

impl Metrics {
    /// Registers every metric.
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("rangehold");
        let requests = Family::<Request, Counter>::default();
        let seconds = Family::new_with_constructor(seconds_histogram as fn() -> Histogram);
        let under_way = Gauge::default();
        registry.register("build", "What is running", Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]));
        registry.register("requests", "Requests answered", requests.clone());
        registry.register("request_duration_seconds", "Time from head to reply", seconds.clone());
        registry.register("requests_under_way", "Requests being answered", under_way.clone());
        let engine = EngineGauges::register(&mut registry);
        Arc::new(Self { registry, requests, seconds, under_way, engine })
    }

    pub(crate) fn begin(&self) -> UnderWay<'_> {
        self.under_way.inc();
        UnderWay(&self.under_way)
    }

    pub(crate) fn finish(&self, operation: &'static str, status: u16, elapsed: Duration) {
        let response_type = ResponseType::of(status);
        self.requests.get_or_create(&Request { operation, response_type }).inc();
        self.seconds.get_or_create(&Operation { operation }).observe(elapsed.as_secs_f64());
    }

    /// All metrics as text, with the engine's as they are now.
    pub fn render(&self, engine: &Statistics) -> String {
        self.engine.set(engine);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}
