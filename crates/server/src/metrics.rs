//! The metrics of a process, in the text format of Prometheus.
//!
//! Labels are operations, statuses and the like. They are never names of tables or keys: these are the users' data,
//! and there is no limit to their number.

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
use rangehold_engine::{RangeStatistics, Statistics};

use crate::throttled::Cause;

/// How a request ended, in the words of Azure's own metrics.
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

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Throttled {
    cause: Cause,
}

/// The counters of the engine, as they were when the metrics were last read.
#[derive(Default)]
struct EngineGauges {
    map_version: Gauge,
    ranges: Gauge,
    reads: Gauge,
    scans: Gauge,
    writes: Gauge,
    refusals: Gauge,
    flushes: Gauge,
    reopenings: Gauge,
    unflushed_bytes: Gauge,
    dropped_tables: Gauge,
    damaged_files: Gauge,
    log_marks: Gauge,
    disk_free_bytes: Gauge,
    disk_low: Gauge,
}

impl EngineGauges {
    fn register(registry: &mut Registry) -> Self {
        let gauges = Self::default();
        let mut add = |name: &str, help: &str, gauge: &Gauge| registry.register(name, help, gauge.clone());
        add("map_version", "Version of the map of ranges", &gauges.map_version);
        add("ranges", "Ranges held by this process", &gauges.ranges);
        add("range_reads", "Reads of single rows since the start", &gauges.reads);
        add("range_scans", "Scans since the start", &gauges.scans);
        add("range_writes", "Writes acknowledged since the start", &gauges.writes);
        add("range_refusals", "Writes refused by their conditions since the start", &gauges.refusals);
        add("range_flushes", "Flushes of the log since the start", &gauges.flushes);
        add("range_reopenings", "Times a range had to be opened again", &gauges.reopenings);
        add("unflushed_bytes", "Bytes in memory and the log only", &gauges.unflushed_bytes);
        add("dropped_tables_pending", "Deleted tables whose space is not back yet", &gauges.dropped_tables);
        add("damaged_files", "Damaged files met since the start", &gauges.damaged_files);
        add(
            "log_marks",
            "Empty files in logs, one for each opening of a database since the start",
            &gauges.log_marks,
        );
        add("disk_free_bytes", "Free bytes on the disk of the data", &gauges.disk_free_bytes);
        add("disk_low", "1 while writes are refused because the disk is nearly full", &gauges.disk_low);
        gauges
    }

    fn set(&self, engine: &Statistics) {
        let sum =
            |of: fn(&RangeStatistics) -> u64| engine.ranges.iter().map(|(_, range)| of(range)).sum::<u64>();
        let put = |gauge: &Gauge, value: u64| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        put(&self.map_version, engine.map_version);
        put(&self.ranges, engine.ranges.len() as u64);
        put(&self.reads, sum(|range| range.reads));
        put(&self.scans, sum(|range| range.scans));
        put(&self.writes, sum(|range| range.writes));
        put(&self.refusals, sum(|range| range.refusals));
        put(&self.flushes, sum(|range| range.flushes));
        put(&self.reopenings, sum(|range| range.reopenings));
        put(&self.unflushed_bytes, sum(|range| range.unflushed_bytes));
        put(&self.dropped_tables, sum(|range| range.dropped_tables_pending));
        put(&self.damaged_files, engine.damaged_files.len() as u64);
        put(&self.log_marks, engine.log_marks);
        put(&self.disk_free_bytes, engine.disk_free_bytes);
        put(&self.disk_low, u64::from(engine.disk_low));
    }
}

/// The metrics of one process.
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    seconds: Family<Operation, Histogram, fn() -> Histogram>,
    under_way: Gauge,
    throttled: Family<Throttled, Counter>,
    late: Counter,
    late_seconds: Counter<f64, AtomicU64>,
    spans: Gauge,
    ready_delay: Gauge<f64, AtomicU64>,
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
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
        10.0, 30.0,
    ])
}

impl Metrics {
    /// Registers every metric.
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("rangehold");
        let requests = Family::<Request, Counter>::default();
        let seconds = Family::new_with_constructor(seconds_histogram as fn() -> Histogram);
        let under_way = Gauge::default();
        registry.register(
            "build",
            "What is running",
            Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]),
        );
        registry.register("requests", "Requests answered", requests.clone());
        registry.register("request_duration_seconds", "Time from head to reply", seconds.clone());
        registry.register("requests_under_way", "Requests being answered", under_way.clone());
        let throttled = Family::<Throttled, Counter>::default();
        registry.register("throttled", "Requests that were not let in, by the reason", throttled.clone());
        let late = Counter::default();
        registry.register("late", "Requests for objects that waited for their bucket's rate", late.clone());
        let late_seconds = Counter::<f64, AtomicU64>::default();
        registry.register("late_seconds", "Time that these requests waited", late_seconds.clone());
        let spans = Gauge::default();
        registry.register("bucket_spans", "Spans of names of the buckets in use", spans.clone());
        let ready_delay = Gauge::<f64, AtomicU64>::default();
        registry.register(
            "ready_delay_seconds",
            "Least time that a task ready to run waited, in the last seconds",
            ready_delay.clone(),
        );
        let engine = EngineGauges::register(&mut registry);
        Arc::new(Self {
            registry,
            requests,
            seconds,
            under_way,
            throttled,
            late,
            late_seconds,
            spans,
            ready_delay,
            engine,
        })
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

    pub(crate) fn throttled(&self, cause: Cause) {
        self.throttled.get_or_create(&Throttled { cause }).inc();
    }

    /// Counts a request that waits for so long for its bucket's rate.
    pub(crate) fn late(&self, delay: Duration) {
        self.late.inc();
        self.late_seconds.inc_by(delay.as_secs_f64());
    }

    pub(crate) fn spans(&self, spans: usize) {
        self.spans.set(i64::try_from(spans).unwrap_or(i64::MAX));
    }

    pub(crate) fn ready_delay(&self, least: Duration) {
        self.ready_delay.set(least.as_secs_f64());
    }

    /// All metrics as text, with the present counters of the engine.
    pub fn render(&self, engine: &Statistics) -> String {
        self.engine.set(engine);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}
