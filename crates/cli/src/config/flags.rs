//! The settings as users give them, each of which may be absent.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use rangehold_server::profile::Profile;
use serde::Deserialize;

/// The settings of `rangehold dev`, as flags, variables of the environment, and keys of the file.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct DevFlags {
    /// TOML file with settings; its keys are the names of the flags.
    #[arg(long, env = "RANGEHOLD_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub(super) config: Option<PathBuf>,
    /// Directory of the data; it is made if it does not exist [default: ./rangehold-data]
    #[arg(long, env = "RANGEHOLD_DATA", value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// Keep everything in memory. When the program ends, the data is lost.
    #[arg(long, env = "RANGEHOLD_IN_MEMORY", num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(super) in_memory: Option<bool>,
    /// Address or name to listen on [default: 127.0.0.1]
    #[arg(long, env = "RANGEHOLD_HOST", value_name = "ADDR")]
    pub(crate) host: Option<String>,
    /// Address of the admin endpoint (health, metrics, status), which is never encrypted [default: 127.0.0.1]
    #[arg(long, env = "RANGEHOLD_ADMIN_HOST", value_name = "ADDR")]
    pub(super) admin_host: Option<String>,
    /// More names by which the admin endpoint is called, such as the name of a container, with commas between them.
    /// Requests whose `Host` is neither one of them nor an address of it nor `localhost` are refused.
    #[arg(long, env = "RANGEHOLD_ADMIN_HOSTS", value_name = "NAMES")]
    pub(super) admin_hosts: Option<String>,
    /// Port of the table service; 0 chooses a free port [default: 10002]
    #[arg(long, env = "RANGEHOLD_TABLE_PORT", value_name = "N")]
    pub(super) table_port: Option<u16>,
    /// Port of the object service (Google Cloud Storage); 0 chooses a free port [default: 4443]
    #[arg(long, env = "RANGEHOLD_OBJECT_PORT", value_name = "N")]
    pub(super) object_port: Option<u16>,
    /// More names by which clients call the object service, such as `storage.example.com`, with commas between them.
    /// Requests whose `Host` is neither one of them nor an address nor `localhost` are refused.
    #[arg(long, env = "RANGEHOLD_OBJECT_HOSTS", value_name = "NAMES")]
    pub(super) object_hosts: Option<String>,
    /// Port of the admin endpoint; 0 chooses a free port [default: 10080]
    #[arg(long, env = "RANGEHOLD_ADMIN_PORT", value_name = "N")]
    pub(super) admin_port: Option<u16>,
    /// Token for the admin endpoint, in place of the one in the data directory.
    #[arg(long, env = "RANGEHOLD_ADMIN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub(super) admin_token: Option<String>,
    /// Memory for caches and buffers, such as 512MiB or 2GiB [default: 512MiB]
    #[arg(long, env = "RANGEHOLD_MEMORY", value_name = "SIZE")]
    pub(super) memory: Option<String>,
    /// Number of partition servers in this process; each has its own ranges [default: 1]
    #[arg(long, env = "RANGEHOLD_SERVERS", value_name = "N")]
    pub(super) servers: Option<u64>,
    /// Whether the manager splits, merges and moves ranges as their load requires; with `off`, only
    /// `rangehold map` does [default: on]
    #[arg(long, env = "RANGEHOLD_MANAGER", value_name = "on|off")]
    pub(super) manager: Option<Switch>,
    /// Accounts as `name:key1[:key2];...`, in place of the well-known development account.
    #[arg(long, env = "RANGEHOLD_ACCOUNTS", value_name = "LIST", hide_env_values = true)]
    pub(super) accounts: Option<String>,
    /// Allow an address that other machines can reach, although everybody knows the well-known key.
    #[arg(long, env = "RANGEHOLD_ALLOW_PUBLIC_WELL_KNOWN_KEY", num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(super) allow_public_well_known_key: Option<bool>,
    /// Allow addresses that other machines can reach without TLS: everybody on the way can read what is sent.
    #[arg(long, env = "RANGEHOLD_ALLOW_PUBLIC_PLAIN_HTTP", num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(super) allow_public_plain_http: Option<bool>,
    /// PEM file with the TLS certificate chain; needs --tls-key.
    #[arg(long, env = "RANGEHOLD_TLS_CERT", value_name = "FILE")]
    pub(super) tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate; needs --tls-cert.
    #[arg(long, env = "RANGEHOLD_TLS_KEY", value_name = "FILE")]
    pub(super) tls_key: Option<PathBuf>,
    /// `self-signed` uses TLS with a development certificate, which is kept in DATA/tls/.
    #[arg(long, env = "RANGEHOLD_TLS", value_name = "MODE")]
    pub(super) tls: Option<TlsMode>,
    /// Accept bearer tokens: a JSON file with "keys", "issuers" and "audiences", or `claims-only` for
    /// development, with which anybody can make a token.
    #[arg(long, env = "RANGEHOLD_OAUTH", value_name = "FILE|claims-only")]
    pub(super) oauth: Option<String>,
    /// Serve objects only to those who may: bearer tokens are checked by --oauth and --object-keys, and buckets by
    /// their policies. Without this flag everybody on this machine may do everything with objects.
    #[arg(long, env = "RANGEHOLD_OBJECTS_AUTH", num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(super) objects_auth: Option<bool>,
    /// JSON file with the service accounts that sign URLs or send tokens for objects
    #[arg(long, env = "RANGEHOLD_OBJECT_KEYS", value_name = "FILE")]
    pub(super) object_keys: Option<PathBuf>,
    /// Serve `/retry_test` on the port of objects, by which client libraries ask for errors to test their retries.
    #[arg(long, env = "RANGEHOLD_RETRY_TESTS", num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(super) retry_tests: Option<bool>,
    /// Refuse writes while less than this is free on the disk [default: 1 % of it, but at least 64MiB]
    #[arg(long, env = "RANGEHOLD_DISK_RESERVE", value_name = "SIZE")]
    pub(super) disk_reserve: Option<String>,
    /// `fast` serves as fast as it can; `cloud` behaves as the cloud's documentation says, with budgets, busy
    /// answers and short pages, to test retry code [default: fast]
    #[arg(long, env = "RANGEHOLD_PROFILE", value_name = "PROFILE")]
    pub(super) profile: Option<ProfileName>,
    /// All rates of buckets of objects, and --object-bandwidth, are multiplied by this, such as 0.01; needs --profile cloud
    /// [default: 1]
    #[arg(long, env = "RANGEHOLD_RATE_SCALE", value_name = "FACTOR")]
    pub(super) rate_scale: Option<f64>,
    /// The clock by which buckets of objects grow and fall back runs so many times as fast, 1 to 100; needs --profile cloud
    /// [default: 1]
    #[arg(long, env = "RANGEHOLD_TIME_SCALE", value_name = "FACTOR")]
    pub(super) time_scale: Option<f64>,
    /// Bytes each second, up and down, of the objects of one project in one location, such as 25GiB; needs --profile cloud
    /// [default: no limit]
    #[arg(long, env = "RANGEHOLD_OBJECT_BANDWIDTH", value_name = "SIZE")]
    pub(super) object_bandwidth: Option<String>,
    /// Buckets of objects begin again after so many hours of rest; needs --profile cloud [default: 72]
    #[arg(long, env = "RANGEHOLD_OBJECT_IDLE_HOURS", value_name = "HOURS")]
    pub(super) object_idle_hours: Option<u32>,
    /// Disk space for the history of load, which `rangehold history` shows; 0 keeps none [default: 256MiB]
    #[arg(long, env = "RANGEHOLD_HISTORY_BUDGET", value_name = "SIZE")]
    pub(super) history_budget: Option<String>,
    /// Store keys in the history, so that it shows the same detail after a restart. Without this flag only
    /// hashes of keys are stored.
    #[arg(long, env = "RANGEHOLD_HISTORY_KEYS", num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(super) history_keys: Option<bool>,
    /// Form of the log lines [default: text]
    #[arg(long, env = "RANGEHOLD_LOG_FORMAT", value_name = "FORMAT")]
    pub(super) log_format: Option<LogFormat>,
    /// Do not wait for the disk: a power failure then loses acknowledged writes. Only for tests.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(super) unsafe_no_fsync: Option<bool>,
    /// Kill the process after this step of a change of ranges was reached N times, such as `cloned:2`
    /// (default: once). Only for tests.
    #[arg(long, env = "RANGEHOLD_CRASH_AFTER_STEP", value_name = "STEP[:N]", hide = true)]
    pub(super) crash_after_step: Option<String>,
    /// Walk over the buckets and audit the blobs each time when so many milliseconds are over. Only for tests.
    #[arg(long, hide = true, value_name = "MILLISECONDS")]
    pub(super) tidy_objects_every: Option<u64>,
}

/// The name of a [`Profile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProfileName {
    /// As fast as this program can.
    Fast,
    /// As the cloud's documentation says.
    Cloud,
}

impl ProfileName {
    pub(super) fn profile(self) -> Profile {
        match self {
            Self::Fast => Profile::fast(),
            Self::Cloud => Profile::cloud(),
        }
    }
}

/// Whether the manager changes ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Switch {
    /// Ranges are changed as their load requires.
    On,
    /// Ranges are changed only by command.
    Off,
}

/// The source of the TLS certificate, where no files are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TlsMode {
    /// A development certificate, which the first start makes.
    SelfSigned,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object on each line.
    Json,
}

impl DevFlags {
    /// Reads the settings in a TOML file.
    pub(super) fn from_file(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        // The error's own text would show the line, which may hold an account key.
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            anyhow!("cannot use {}, line {line}: {}", path.display(), error.message())
        })
    }

    /// The defaults with these accounts.
    #[cfg(test)]
    pub(crate) fn with_accounts(list: &str) -> Self {
        Self { accounts: Some(list.to_owned()), ..Self::default() }
    }

    /// The defaults with a certificate and issuers of tokens from these files.
    #[cfg(test)]
    pub(crate) fn with_files(certificate: &Path, key: &Path, issuers: &Path) -> Self {
        Self {
            accounts: Some("mine:c2VjcmV0".to_owned()),
            tls_cert: Some(certificate.to_owned()),
            tls_key: Some(key.to_owned()),
            oauth: Some(issuers.display().to_string()),
            ..Self::default()
        }
    }

    /// The defaults with this file of keys of objects.
    #[cfg(test)]
    pub(crate) fn with_object_keys(path: &std::path::Path) -> Self {
        Self { object_keys: Some(path.to_owned()), ..Self::default() }
    }

    /// The defaults with `--objects-auth` and tokens whose signatures are not checked.
    #[cfg(test)]
    pub(crate) fn with_object_tokens_checked() -> Self {
        Self { objects_auth: Some(true), oauth: Some("claims-only".to_owned()), ..Self::default() }
    }

    /// These settings; where one is absent, that of `file`.
    pub(super) fn or(self, file: Self) -> Self {
        // --in-memory as a flag counts more than a directory in the file, and a certificate as a flag more than
        // one in the file.
        let in_memory = self.in_memory == Some(true);
        let own_tls = self.tls.is_some() || self.tls_cert.is_some();
        let file = Self {
            data: file.data.filter(|_| !in_memory),
            tls: file.tls.filter(|_| !own_tls),
            tls_cert: file.tls_cert.filter(|_| !own_tls),
            tls_key: file.tls_key.filter(|_| !own_tls),
            ..file
        };
        /// Takes each field from `self`, or else from `file`. A field that is not listed does not compile.
        macro_rules! either {
            ($($field:ident),*) => { Self { config: self.config, $($field: self.$field.or(file.$field)),* } };
        }
        either!(
            data,
            in_memory,
            host,
            admin_host,
            admin_hosts,
            table_port,
            object_port,
            object_hosts,
            admin_port,
            admin_token,
            memory,
            servers,
            manager,
            accounts,
            allow_public_well_known_key,
            allow_public_plain_http,
            tls_cert,
            tls_key,
            tls,
            oauth,
            objects_auth,
            object_keys,
            retry_tests,
            disk_reserve,
            profile,
            rate_scale,
            time_scale,
            object_bandwidth,
            object_idle_hours,
            history_budget,
            history_keys,
            log_format,
            unsafe_no_fsync,
            crash_after_step,
            tidy_objects_every
        )
    }
}
