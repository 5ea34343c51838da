//! Service properties of an account: logging, metrics and CORS rules.
//!
//! Clients read and change them as XML. The settings for logging and metrics are stored and returned, but
//! have no effect: this service does not write Azure's kind of logs and metrics. The CORS rules are obeyed
//! ([`super::cors`]).
//!
//! A change replaces the parts that it names, and leaves the other parts as they are.

use rangehold_map::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::xml::Writer;
use crate::time::http_date;

mod read;

pub use read::parse_update;

/// The service properties of an account, as they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceProperties {
    /// The number of the stored form. A reader refuses a number that it does not know.
    format: u32,
    /// What is logged.
    pub logging: Logging,
    /// What is counted by the hour.
    pub hour_metrics: Metrics,
    /// What is counted by the minute.
    pub minute_metrics: Metrics,
    /// Which pages of other origins may use the account. The first rule that fits counts.
    pub cors: Vec<CorsRule>,
}

/// The number of the stored form that this release writes.
const FORMAT: u32 = 1;

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logging {
    /// Version of the log's form, `1.0`.
    pub version: String,
    /// Whether reads are logged.
    pub read: bool,
    /// Whether writes are logged.
    pub write: bool,
    /// Whether deletes are logged.
    pub delete: bool,
    /// The number of days for which they are kept, 1 to 365; `None` keeps them forever.
    pub retention_days: Option<u32>,
}

/// What is counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Version of the metrics' form, `1.0`.
    pub version: String,
    /// Whether anything is counted; and if so, whether by operation too.
    pub enabled: Option<IncludeApis>,
    /// The number of days for which they are kept, 1 to 365; `None` keeps them forever.
    pub retention_days: Option<u32>,
}

/// Whether there are metrics for each operation, beside those for the whole service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncludeApis(pub bool);

/// Which pages of other origins may send what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorsRule {
    /// Origins as browsers send them, with their case, or `*` for all.
    pub allowed_origins: Vec<String>,
    /// Methods, in upper case.
    pub allowed_methods: Vec<String>,
    /// Names of request headers. A name that ends with `*` is a prefix; prefixes stand last.
    pub allowed_headers: Vec<String>,
    /// Names of response headers that the page may see, in the same form.
    pub exposed_headers: Vec<String>,
    /// For how many seconds a browser may keep the answer to a preflight.
    pub max_age_seconds: u32,
}

/// A change of service properties. Each part that is `Some` is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PropertiesUpdate {
    /// What is logged.
    pub logging: Option<Logging>,
    /// What is counted by the hour.
    pub hour_metrics: Option<Metrics>,
    /// What is counted by the minute.
    pub minute_metrics: Option<Metrics>,
    /// All CORS rules.
    pub cors: Option<Vec<CorsRule>>,
}

/// Stored bytes that are not service properties: the store is damaged, or a later release wrote them.
#[derive(Debug, Error)]
pub enum DamagedProperties {
    /// The JSON cannot be read.
    #[error("stored service properties cannot be read")]
    Json(#[from] serde_json::Error),
    /// A later release wrote another form.
    #[error("stored service properties have the unknown format {0}")]
    Format(u32),
}

impl Default for ServiceProperties {
    /// The properties of a new account: no logging, no metrics, no rules.
    fn default() -> Self {
        let metrics = Metrics { version: "1.0".to_owned(), enabled: None, retention_days: None };
        Self {
            format: FORMAT,
            logging: Logging {
                version: "1.0".to_owned(),
                read: false,
                write: false,
                delete: false,
                retention_days: None,
            },
            hour_metrics: metrics.clone(),
            minute_metrics: metrics,
            cors: Vec::new(),
        }
    }
}

impl ServiceProperties {
    /// The bytes to store.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("JSON can hold all these fields")
    }

    /// Reads stored bytes.
    pub fn decode(stored: &[u8]) -> Result<Self, DamagedProperties> {
        let properties: Self = serde_json::from_slice(stored)?;
        if properties.format == FORMAT {
            Ok(properties)
        } else {
            Err(DamagedProperties::Format(properties.format))
        }
    }

    /// The properties after a change.
    pub fn apply(self, update: PropertiesUpdate) -> Self {
        Self {
            format: self.format,
            logging: update.logging.unwrap_or(self.logging),
            hour_metrics: update.hour_metrics.unwrap_or(self.hour_metrics),
            minute_metrics: update.minute_metrics.unwrap_or(self.minute_metrics),
            cors: update.cors.unwrap_or(self.cors),
        }
    }

    /// The body of the reply to a request for the properties.
    pub fn write(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.element("StorageServiceProperties", |writer| {
            writer.element("Logging", |writer| write_logging(writer, &self.logging));
            writer.element("HourMetrics", |writer| write_metrics(writer, &self.hour_metrics));
            writer.element("MinuteMetrics", |writer| write_metrics(writer, &self.minute_metrics));
            writer.element("Cors", |writer| {
                for rule in &self.cors {
                    writer.element("CorsRule", |writer| write_rule(writer, rule));
                }
            });
        });
        writer.finish()
    }
}

fn write_logging(writer: &mut Writer, logging: &Logging) {
    writer.text("Version", &logging.version);
    for (name, logged) in [("Read", logging.read), ("Write", logging.write), ("Delete", logging.delete)] {
        writer.text(name, truth(logged));
    }
    write_retention(writer, logging.retention_days);
}

fn write_metrics(writer: &mut Writer, metrics: &Metrics) {
    writer.text("Version", &metrics.version);
    writer.text("Enabled", truth(metrics.enabled.is_some()));
    if let Some(IncludeApis(included)) = metrics.enabled {
        writer.text("IncludeAPIs", truth(included));
    }
    write_retention(writer, metrics.retention_days);
}

fn write_retention(writer: &mut Writer, days: Option<u32>) {
    writer.element("RetentionPolicy", |writer| {
        writer.text("Enabled", truth(days.is_some()));
        if let Some(days) = days {
            writer.text("Days", &days.to_string());
        }
    });
}

fn write_rule(writer: &mut Writer, rule: &CorsRule) {
    writer.text("AllowedMethods", &rule.allowed_methods.join(","));
    writer.text("AllowedOrigins", &rule.allowed_origins.join(","));
    writer.text("AllowedHeaders", &rule.allowed_headers.join(","));
    writer.text("ExposedHeaders", &rule.exposed_headers.join(","));
    writer.text("MaxAgeInSeconds", &rule.max_age_seconds.to_string());
}

const fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// The body of the reply to a request for the state of replication. It says that replication is live, and
/// that the last synchronisation was at `synced`.
pub fn stats(synced: Timestamp) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.element("StorageServiceStats", |writer| {
        writer.element("GeoReplication", |writer| {
            writer.text("Status", "live");
            writer.text("LastSyncTime", &http_date(synced));
        });
    });
    writer.finish()
}
