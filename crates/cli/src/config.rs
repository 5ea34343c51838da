//! Settings: flags before environment before file before defaults.
//!
//! A setting has one name in four dresses: the flag `--table-port`, the variable
//! `RANGEHOLD_TABLE_PORT`, the key `table-port` in the TOML file, and the field `table_port`. Clap
//! reads flags and environment; what neither gives comes from the file. An unknown key in the
//! file is an error that names it.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use rangehold_engine::Step;
use rangehold_server::accounts::Accounts;
use rangehold_server::profile::Profile;
use rangehold_server::tls::TlsFiles;
use serde::Deserialize;

/// Flags of `rangehold dev`; each is a variable of the environment and a key of the file too.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct DevFlags {
    /// TOML file with any of these settings, by their flags' names.
    #[arg(long, env = "RANGEHOLD_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,
    /// Directory of the data; made if it is not there [default: ./rangehold-data]
    #[arg(long, env = "RANGEHOLD_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Keep everything in memory, and nothing afterwards.
    #[arg(long, env = "RANGEHOLD_IN_MEMORY", num_args = 0..=1, default_missing_value = "true")]
    in_memory: Option<bool>,
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, env = "RANGEHOLD_HOST", value_name = "ADDR")]
    host: Option<IpAddr>,
    /// Address of health, metrics and status, which are never encrypted [default: 127.0.0.1]
    #[arg(long, env = "RANGEHOLD_ADMIN_HOST", value_name = "ADDR")]
    admin_host: Option<IpAddr>,
    /// Port of the table service; 0 takes a free one [default: 10002]
    #[arg(long, env = "RANGEHOLD_TABLE_PORT", value_name = "N")]
    table_port: Option<u16>,
    /// Port of health, metrics and status; 0 takes a free one [default: 10080]
    #[arg(long, env = "RANGEHOLD_ADMIN_PORT", value_name = "N")]
    admin_port: Option<u16>,
    /// Memory for caches and buffers, such as 512MiB or 2GiB [default: 512MiB]
    #[arg(long, env = "RANGEHOLD_MEMORY", value_name = "SIZE")]
    memory: Option<String>,
    /// Partition servers in this process, each with ranges of its own [default: 1]
    #[arg(long, env = "RANGEHOLD_SERVERS", value_name = "N")]
    servers: Option<u64>,
    /// Whether ranges are split, merged and moved as their load asks for; `off` leaves that to
    /// `rangehold map` [default: on]
    #[arg(long, env = "RANGEHOLD_MANAGER", value_name = "on|off")]
    manager: Option<Switch>,
    /// Accounts as `name:key1[:key2];...` instead of the well-known development account.
    #[arg(long, env = "RANGEHOLD_ACCOUNTS", value_name = "LIST", hide_env_values = true)]
    accounts: Option<String>,
    /// Listen beyond loopback although the well-known key lets anybody in.
    #[arg(long, env = "RANGEHOLD_ALLOW_PUBLIC_WELL_KNOWN_KEY", num_args = 0..=1, default_missing_value = "true")]
    allow_public_well_known_key: Option<bool>,
    /// PEM file with the TLS certificate chain; with --tls-key.
    #[arg(long, env = "RANGEHOLD_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the certificate's private key.
    #[arg(long, env = "RANGEHOLD_TLS_KEY", value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// `self-signed` serves TLS with a development certificate, kept in DATA/tls/.
    #[arg(long, env = "RANGEHOLD_TLS", value_name = "MODE")]
    tls: Option<TlsMode>,
    /// Accept bearer tokens: `claims-only` (development: anybody can make one), or a JSON file with
    /// the issuers' "keys", "issuers" and "audiences".
    #[arg(long, env = "RANGEHOLD_OAUTH", value_name = "FILE|claims-only")]
    oauth: Option<String>,
    /// Refuse writes when less than this is free on the disk [default: 1 % of it, 64MiB at least]
    #[arg(long, env = "RANGEHOLD_DISK_RESERVE", value_name = "SIZE")]
    disk_reserve: Option<String>,
    /// `fast` serves as well as it can; `cloud` behaves as the cloud's documents say: budgets, busy
    /// answers, short pages, so that retry code can be rehearsed [default: fast]
    #[arg(long, env = "RANGEHOLD_PROFILE", value_name = "PROFILE")]
    profile: Option<ProfileName>,
    /// Disk space for the history of load, which `rangehold history` shows; 0 keeps none [default: 256MiB]
    #[arg(long, env = "RANGEHOLD_HISTORY_BUDGET", value_name = "SIZE")]
    history_budget: Option<String>,
    /// Store keys in the history, so that it is as fine after a restart as it was before. Without it there
    /// are hashes alone.
    #[arg(long, env = "RANGEHOLD_HISTORY_KEYS", num_args = 0..=1, default_missing_value = "true")]
    history_keys: Option<bool>,
    /// How log lines look [default: text]
    #[arg(long, env = "RANGEHOLD_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// Do not wait for the disk: a power failure then loses acknowledged writes. For tests alone.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
    unsafe_no_fsync: Option<bool>,
    /// End the process without a warning after the N-th such step of a change of ranges (default: the
    /// first), such as `cloned:2`. For tests alone.
    #[arg(long, env = "RANGEHOLD_CRASH_AFTER_STEP", value_name = "STEP[:N]", hide = true)]
    crash_after_step: Option<String>,
}

/// Which set of numbers; see [`Profile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProfileName {
    /// As good as we can.
    Fast,
    /// As the cloud's documents say.
    Cloud,
}

impl ProfileName {
    fn profile(self) -> Profile {
        match self {
            Self::Fast => Profile::fast(),
            Self::Cloud => Profile::cloud(),
        }
    }
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Switch {
    /// It works.
    On,
    /// It does nothing.
    Off,
}

/// Where the certificate comes from, when no files are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TlsMode {
    /// A development certificate made on the first start.
    SelfSigned,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Where TLS takes its certificate from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tls {
    /// No TLS.
    Off,
    /// These files.
    Files(TlsFiles),
    /// A development certificate in the data directory.
    SelfSigned,
}

/// How bearer tokens are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OAuth {
    /// They are refused.
    Off,
    /// Claims only.
    ClaimsOnly,
    /// Claims, and the signature against the keys in this file.
    Issuers(PathBuf),
}

/// Every setting, decided.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Where the data is; `None` for in memory.
    pub(crate) data: Option<PathBuf>,
    pub(crate) host: IpAddr,
    pub(crate) admin_host: IpAddr,
    pub(crate) table_port: u16,
    pub(crate) admin_port: u16,
    pub(crate) memory_bytes: u64,
    pub(crate) servers: u64,
    pub(crate) manager: Switch,
    pub(crate) accounts: Accounts,
    pub(crate) tls: Tls,
    pub(crate) oauth: OAuth,
    pub(crate) disk_reserve_bytes: Option<u64>,
    /// 0 for no history.
    pub(crate) history_budget_bytes: u64,
    pub(crate) history_keys: bool,
    pub(crate) profile: Profile,
    pub(crate) log_format: LogFormat,
    pub(crate) fsync: bool,
    pub(crate) crash: Option<Crash>,
}

/// When the process ends itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crash {
    /// After this step of a change.
    pub(crate) after: Step,
    /// The how manieth such step, from 1.
    pub(crate) occurrence: u64,
}

/// The least memory that caches and buffers can work in.
const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// What the history takes on the disk where nothing is said.
const HISTORY_BUDGET_BYTES: u64 = 256 << 20;
/// The least that it can be of use with: some hours of a few keys.
const HISTORY_BUDGET_BYTES_MIN: u64 = 1 << 20;
/// Partition servers of one process: each has a lease to keep.
const SERVERS_MAX: u64 = 64;

impl DevFlags {
    /// Decides every setting. Reads the file, so calling it again sees a file that changed.
    pub(crate) fn resolve(&self) -> Result<Config> {
        let flags = match &self.config {
            Some(path) => self.clone().or(Self::from_file(path)?),
            None => self.clone(),
        };
        let host = flags.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let accounts = flags.accounts()?;
        let claims_only = flags.oauth.as_deref() == Some("claims-only");
        if !host.is_loopback() && claims_only {
            bail!(
                "{host} can be reached from other machines, and --oauth claims-only lets anybody in who can write a \
                 token: give a file with the issuers' keys"
            );
        }
        if !host.is_loopback()
            && accounts.have_well_known_key()
            && flags.allow_public_well_known_key != Some(true)
        {
            bail!(
                "{host} can be reached from other machines, and the well-known key lets anybody in: \
                 give --accounts name:key, or --allow-public-well-known-key if that is what you want"
            );
        }
        let memory_bytes = flags.memory.as_deref().map_or(Ok(512 << 20), parse_size).context("--memory")?;
        if memory_bytes < MEMORY_BYTES_MIN {
            bail!("--memory: at least 64MiB is needed");
        }
        let servers = flags.servers.unwrap_or(1);
        if !(1..=SERVERS_MAX).contains(&servers) {
            bail!("--servers {servers}: choose from 1 to {SERVERS_MAX}");
        }
        let in_memory = flags.in_memory.unwrap_or(false);
        if in_memory && flags.data.is_some() {
            bail!("--in-memory keeps nothing, so --data has no use: give one of them");
        }
        let disk_reserve_bytes =
            flags.disk_reserve.as_deref().map(parse_size).transpose().context("--disk-reserve")?;
        let history_budget_bytes = flags
            .history_budget
            .as_deref()
            .map_or(Ok(HISTORY_BUDGET_BYTES), parse_size)
            .context("--history-budget")?;
        if (1..HISTORY_BUDGET_BYTES_MIN).contains(&history_budget_bytes) {
            bail!("--history-budget: give at least 1MiB, or 0 for no history");
        }
        Ok(Config {
            data: (!in_memory).then(|| flags.data.clone().unwrap_or_else(|| "./rangehold-data".into())),
            host,
            admin_host: flags.admin_host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            table_port: flags.table_port.unwrap_or(10002),
            admin_port: flags.admin_port.unwrap_or(10080),
            memory_bytes,
            servers,
            manager: flags.manager.unwrap_or(Switch::On),
            accounts,
            tls: flags.tls()?,
            oauth: match flags.oauth.as_deref() {
                None => OAuth::Off,
                Some("claims-only") => OAuth::ClaimsOnly,
                Some(path) => OAuth::Issuers(path.into()),
            },
            disk_reserve_bytes,
            history_budget_bytes,
            history_keys: flags.history_keys.unwrap_or(false),
            profile: flags.profile.unwrap_or(ProfileName::Fast).profile(),
            log_format: flags.log_format.unwrap_or(LogFormat::Text),
            fsync: !flags.unsafe_no_fsync.unwrap_or(false),
            crash: flags.crash_after_step.as_deref().map(parse_crash).transpose()?,
        })
    }

    fn from_file(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        // The error's own text would show the line, and a key that stands in it.
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            anyhow!("cannot use {}, line {line}: {}", path.display(), error.message())
        })
    }

    /// These settings, and where they say nothing, those of `file`.
    fn or(self, file: Self) -> Self {
        // In memory by flag beats a directory by file, and a certificate by flag one by file.
        let in_memory = self.in_memory == Some(true);
        let own_tls = self.tls.is_some() || self.tls_cert.is_some();
        let file = Self {
            data: file.data.filter(|_| !in_memory),
            tls: file.tls.filter(|_| !own_tls),
            tls_cert: file.tls_cert.filter(|_| !own_tls),
            tls_key: file.tls_key.filter(|_| !own_tls),
            ..file
        };
        Self {
            config: self.config,
            data: self.data.or(file.data),
            in_memory: self.in_memory.or(file.in_memory),
            host: self.host.or(file.host),
            admin_host: self.admin_host.or(file.admin_host),
            table_port: self.table_port.or(file.table_port),
            admin_port: self.admin_port.or(file.admin_port),
            memory: self.memory.or(file.memory),
            servers: self.servers.or(file.servers),
            manager: self.manager.or(file.manager),
            accounts: self.accounts.or(file.accounts),
            allow_public_well_known_key: self
                .allow_public_well_known_key
                .or(file.allow_public_well_known_key),
            tls_cert: self.tls_cert.or(file.tls_cert),
            tls_key: self.tls_key.or(file.tls_key),
            tls: self.tls.or(file.tls),
            oauth: self.oauth.or(file.oauth),
            disk_reserve: self.disk_reserve.or(file.disk_reserve),
            history_budget: self.history_budget.or(file.history_budget),
            history_keys: self.history_keys.or(file.history_keys),
            profile: self.profile.or(file.profile),
            log_format: self.log_format.or(file.log_format),
            unsafe_no_fsync: self.unsafe_no_fsync.or(file.unsafe_no_fsync),
            crash_after_step: self.crash_after_step.or(file.crash_after_step),
        }
    }

    /// The accounts: as set, else as an Azurite user has set them, else the well-known one.
    fn accounts(&self) -> Result<Accounts> {
        if let Some(list) = &self.accounts {
            return Accounts::parse(list).context("--accounts");
        }
        match std::env::var_os("AZURITE_ACCOUNTS") {
            Some(list) if !list.is_empty() => {
                let list = list.to_str().context("AZURITE_ACCOUNTS is not text")?;
                Accounts::parse(list).context("AZURITE_ACCOUNTS")
            }
            _ => Ok(Accounts::well_known()),
        }
    }

    fn tls(&self) -> Result<Tls> {
        match (&self.tls_cert, &self.tls_key, self.tls) {
            (None, None, None) => Ok(Tls::Off),
            (None, None, Some(TlsMode::SelfSigned)) => Ok(Tls::SelfSigned),
            (Some(certificate), Some(key), None) => {
                Ok(Tls::Files(TlsFiles { certificate: certificate.clone(), key: key.clone() }))
            }
            (Some(_), Some(_), Some(_)) => bail!("--tls self-signed and --tls-cert exclude each other"),
            _ => bail!("--tls-cert and --tls-key are given together or not at all"),
        }
    }
}

/// Bytes of a size such as `512MiB`, `2GiB`, `1048576`.
fn parse_size(text: &str) -> Result<u64> {
    let digits = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.trim()[digits.len()..].to_ascii_lowercase();
    let factor: u64 = match unit.as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => bail!("{text:?}: write a size as 512MiB, 2GiB or a number of bytes"),
    };
    let number: u64 = digits
        .trim()
        .parse()
        .with_context(|| format!("{text:?}: write a size as 512MiB, 2GiB or a number of bytes"))?;
    number.checked_mul(factor).with_context(|| format!("{text:?} is too large"))
}

/// Such as `cloned`, `cloned:2`.
fn parse_crash(text: &str) -> Result<Crash> {
    let (name, occurrence) = text.split_once(':').unwrap_or((text, "1"));
    let step = Step::ALL.into_iter().find(|step| step.name() == name);
    let occurrence = occurrence.parse().ok().filter(|occurrence| *occurrence > 0);
    let (Some(after), Some(occurrence)) = (step, occurrence) else {
        let names: Vec<&str> = Step::ALL.iter().map(|step| step.name()).collect();
        bail!(
            "--crash-after-step {text:?}: write STEP or STEP:N with N from 1, and a step out of {}",
            names.join(", ")
        );
    };
    Ok(Crash { after, occurrence })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("512MiB").unwrap(), 512 << 20);
        assert_eq!(parse_size("2g").unwrap(), 2 << 30);
        assert_eq!(parse_size("4096").unwrap(), 4096);
        for wrong in ["", "MiB", "12 apples", "99999999999999999999", "18446744073709551615GiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_flag_beats_the_file_and_the_file_beats_the_default() {
        let file = "table-port = 1\nadmin-port = 2\nin-memory = true\nprofile = \"cloud\"";
        let file: DevFlags = toml::from_str(file).unwrap();
        let flags = DevFlags { table_port: Some(3), ..DevFlags::default() };
        let config = flags.or(file).resolve().unwrap();
        assert_eq!((config.table_port, config.admin_port, config.data), (3, 2, None));
        assert_eq!((config.memory_bytes, config.profile), (512 << 20, Profile::cloud()));
    }

    #[test]
    fn a_process_has_one_server_at_least() {
        let servers = |count| DevFlags { servers: Some(count), ..DevFlags::default() }.resolve();
        assert_eq!(servers(4).unwrap().servers, 4);
        assert_eq!(DevFlags::default().resolve().unwrap().servers, 1);
        for wrong in [0, SERVERS_MAX + 1] {
            assert!(servers(wrong).unwrap_err().to_string().contains("--servers"), "{wrong}");
        }
        let file: DevFlags = toml::from_str("servers = 3\nmanager = \"off\"").unwrap();
        let config = DevFlags { servers: Some(2), ..DevFlags::default() }.or(file).resolve().unwrap();
        assert_eq!((config.servers, config.manager), (2, Switch::Off));
    }

    #[test]
    fn a_history_has_a_budget_or_there_is_none() {
        let budget =
            |text: &str| DevFlags { history_budget: Some(text.to_owned()), ..DevFlags::default() }.resolve();
        assert_eq!(DevFlags::default().resolve().unwrap().history_budget_bytes, 256 << 20);
        assert_eq!(budget("0").unwrap().history_budget_bytes, 0);
        assert_eq!(budget("8MiB").unwrap().history_budget_bytes, 8 << 20);
        assert!(budget("1023KiB").unwrap_err().to_string().contains("--history-budget"));
    }

    #[test]
    fn a_crash_is_after_a_step() {
        let crash = |text| parse_crash(text).ok().map(|crash| (crash.after, crash.occurrence));
        assert_eq!(crash("heirs-open"), Some((Step::HeirsOpen, 1)));
        assert_eq!(crash("begun:3"), Some((Step::Begun, 3)));
        for wrong in ["", "begun:", "begun:0", "begin", "begun:-1"] {
            assert!(parse_crash(wrong).unwrap_err().to_string().contains("heirs-open"), "{wrong}");
        }
    }

    #[test]
    fn unknown_keys_are_named() {
        let error = toml::from_str::<DevFlags>("table-prot = 1").unwrap_err().to_string();
        assert!(error.contains("table-prot"), "{error}");
    }

    #[test]
    fn a_broken_file_does_not_show_its_lines() {
        let directory = std::env::temp_dir().join(format!("rangehold-config-{}", std::process::id()));
        std::fs::write(&directory, "host = \"127.0.0.1\"\nacounts = \"prod:c2VjcmV0\"\n").unwrap();
        let flags = DevFlags { config: Some(directory.clone()), ..DevFlags::default() };
        let error = format!("{:#}", flags.resolve().unwrap_err());
        std::fs::remove_file(&directory).unwrap();
        assert!(
            error.contains("line 2") && error.contains("acounts") && !error.contains("c2VjcmV0"),
            "{error}"
        );
    }

    #[test]
    fn the_well_known_key_stays_on_loopback() {
        let flags = DevFlags { host: Some("0.0.0.0".parse().unwrap()), ..DevFlags::default() };
        assert!(flags.resolve().unwrap_err().to_string().contains("--allow-public-well-known-key"));
        let allowed = DevFlags { allow_public_well_known_key: Some(true), ..flags.clone() };
        assert!(allowed.resolve().is_ok());
        let own = DevFlags { accounts: Some("mine:c2VjcmV0".into()), ..flags };
        assert!(own.resolve().is_ok());
        let open = DevFlags { oauth: Some("claims-only".into()), ..own };
        assert!(open.resolve().unwrap_err().to_string().contains("claims-only"));
    }
}
