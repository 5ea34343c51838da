//! Settings. A flag counts before the environment, the environment before the file, and the file before the
//! default.
//!
//! A setting has the same name everywhere: the flag `--table-port`, the variable `RANGEHOLD_TABLE_PORT`, the
//! key `table-port` in the TOML file, and the field `table_port`. Clap reads flags and environment ([`flags`]);
//! the file gives what is still absent. An unknown key in the file is an error that names it.

mod flags;
mod rates;
mod values;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rangehold_server::accounts::Accounts;
use rangehold_server::profile::Profile;
use rangehold_server::tls::TlsFiles;

use self::flags::TlsMode;
pub(crate) use self::flags::{DevFlags, LogFormat, Switch};
pub(crate) use self::values::Crash;
use self::values::{parse_crash, parse_host, parse_size};

/// Whether TLS is used, and with which certificate.
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
    /// Bearer tokens are refused.
    Off,
    /// Only the claims are checked.
    ClaimsOnly,
    /// The claims are checked, and the signature with the keys in this file.
    Issuers(PathBuf),
}

/// How objects are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Objects {
    pub(crate) port: u16,
    /// Whether the port was given. If it was not, and the default is in use, no objects are served.
    pub(crate) port_is_chosen: bool,
    /// Names of this server, besides those of the loopback.
    pub(crate) hosts: Vec<String>,
    /// Whether tokens and policies are checked.
    pub(crate) auth: bool,
    /// The file with the accounts that are known; `None` knows the account of development.
    pub(crate) keys: Option<PathBuf>,
    pub(crate) retry_tests: bool,
    /// The time between two walks over the buckets, and between two audits of blobs, if it is not the usual one.
    pub(crate) tidied_every: Option<Duration>,
}

/// All settings, with their final values.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The directory of the data; `None` keeps it in memory.
    pub(crate) data: Option<PathBuf>,
    pub(crate) host: IpAddr,
    pub(crate) admin_host: IpAddr,
    /// Names of the admin endpoint, besides those of the loopback.
    pub(crate) admin_hosts: Vec<String>,
    pub(crate) table_port: u16,
    /// `None` serves no objects.
    pub(crate) objects: Option<Objects>,
    pub(crate) admin_port: u16,
    /// The admin token; `None` takes the one of the data directory.
    pub(crate) admin_token: Option<String>,
    pub(crate) memory_bytes: u64,
    pub(crate) servers: u64,
    pub(crate) manager: Switch,
    pub(crate) accounts: Accounts,
    pub(crate) tls: Tls,
    pub(crate) oauth: OAuth,
    pub(crate) disk_reserve_bytes: Option<u64>,
    /// Disk space for the history of load; 0 keeps no history.
    pub(crate) history_budget_bytes: u64,
    pub(crate) history_keys: bool,
    pub(crate) profile: Profile,
    pub(crate) log_format: LogFormat,
    pub(crate) fsync: bool,
    pub(crate) crash: Option<Crash>,
}

/// The default port of objects, which Google's emulators have too.
const OBJECT_PORT: u16 = 4443;
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The least characters of an admin token that a user chooses.
const ADMIN_TOKEN_MIN: usize = 16;
/// The least memory with which caches and buffers work.
const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// The default disk space of the history.
const HISTORY_BUDGET_BYTES: u64 = 256 << 20;
/// The least disk space with which the history is useful: some hours for a few keys.
const HISTORY_BUDGET_BYTES_MIN: u64 = 1 << 20;
/// The greatest number of partition servers in one process. Each must renew a lease.
const SERVERS_MAX: u64 = 64;
/// The default memory for caches and buffers.
const MEMORY_BYTES: u64 = 512 << 20;
/// The value of --oauth with which only claims are checked.
const CLAIMS_ONLY: &str = "claims-only";

impl DevFlags {
    /// Decides all settings. Reads the file again on each call, and so sees its changes.
    ///
    /// Fails if the file cannot be read, if a value is malformed or out of its limits, if two settings
    /// contradict each other, or if strangers on other machines could use the service.
    pub(crate) fn resolve(&self) -> Result<Config> {
        let flags = match &self.config {
            Some(path) => self.clone().or(Self::from_file(path)?),
            None => self.clone(),
        };
        let host = flags.host.as_deref().map_or(Ok(LOOPBACK), |host| parse_host(host).context("--host"))?;
        let admin_host = flags
            .admin_host
            .as_deref()
            .map_or(Ok(LOOPBACK), |host| parse_host(host).context("--admin-host"))?;
        let accounts = flags.accounts()?;
        flags.refuse_strangers(host, &accounts)?;
        let tls = flags.tls()?;
        flags.refuse_eavesdroppers(host, admin_host, &tls)?;
        let memory_bytes = flags.memory_bytes()?;
        let servers = flags.servers.unwrap_or(1);
        if !(1..=SERVERS_MAX).contains(&servers) {
            bail!("--servers {servers}: choose from 1 to {SERVERS_MAX}");
        }
        let in_memory = flags.in_memory.unwrap_or(false);
        if in_memory && flags.data.is_some() {
            bail!("--in-memory stores nothing in a directory: give either --in-memory or --data");
        }
        let disk_reserve_bytes =
            flags.disk_reserve.as_deref().map(parse_size).transpose().context("--disk-reserve")?;
        Ok(Config {
            data: (!in_memory).then(|| flags.data.clone().unwrap_or_else(|| "./rangehold-data".into())),
            host,
            admin_host,
            admin_hosts: names(flags.admin_hosts.as_deref()),
            table_port: flags.table_port.unwrap_or(10002),
            objects: flags.objects(host)?,
            admin_port: flags.admin_port.unwrap_or(10080),
            admin_token: flags.admin_token()?,
            memory_bytes,
            servers,
            manager: flags.manager.unwrap_or(Switch::On),
            accounts,
            tls,
            oauth: match flags.oauth.as_deref() {
                None => OAuth::Off,
                Some(CLAIMS_ONLY) => OAuth::ClaimsOnly,
                Some(path) => OAuth::Issuers(path.into()),
            },
            disk_reserve_bytes,
            history_budget_bytes: flags.history_budget_bytes()?,
            history_keys: flags.history_keys.unwrap_or(false),
            profile: flags.profile()?,
            log_format: flags.log_format.unwrap_or(LogFormat::Text),
            fsync: !flags.unsafe_no_fsync.unwrap_or(false),
            crash: flags.crash_after_step.as_deref().map(parse_crash).transpose()?,
        })
    }

    fn admin_token(&self) -> Result<Option<String>> {
        let token = self.admin_token.clone();
        // It is sent in a header.
        let usable =
            |token: &String| token.len() >= ADMIN_TOKEN_MIN && token.bytes().all(|b| b.is_ascii_graphic());
        if token.as_ref().is_some_and(|token| !usable(token)) {
            bail!(
                "--admin-token: give at least {ADMIN_TOKEN_MIN} visible characters of ASCII, without spaces"
            );
        }
        Ok(token)
    }

    /// Refuses an address that other machines can reach, if anybody there could prove to be an owner.
    fn refuse_strangers(&self, host: IpAddr, accounts: &Accounts) -> Result<()> {
        if host.is_loopback() {
            return Ok(());
        }
        if self.oauth.as_deref() == Some(CLAIMS_ONLY) {
            bail!(
                "other machines can reach {host}, and with --oauth claims-only anybody can make a token: give a file \
                 with the issuers' keys"
            );
        }
        if accounts.have_well_known_key() && self.allow_public_well_known_key != Some(true) {
            bail!(
                "other machines can reach {host}, and everybody knows the well-known key: give --accounts name:key, \
                 or --allow-public-well-known-key if that is what you want"
            );
        }
        Ok(())
    }

    /// Refuses an address on which everybody between a client and this machine could read and change what is sent,
    /// unless that is wanted.
    fn refuse_eavesdroppers(&self, host: IpAddr, admin_host: IpAddr, tls: &Tls) -> Result<()> {
        if self.allow_public_plain_http == Some(true) {
            return Ok(());
        }
        if *tls == Tls::Off && !host.is_loopback() {
            bail!(
                "other machines can reach {host}, and without TLS everybody on the way can read and change what is sent: \
                 give --tls-cert and --tls-key, or --allow-public-plain-http if nobody else is on the way"
            );
        }
        if !admin_host.is_loopback() {
            bail!(
                "other machines can reach {admin_host}, and the admin endpoint is never encrypted, so everybody on the way \
                 can read its token: give --allow-public-plain-http if nobody else is on the way"
            );
        }
        Ok(())
    }

    /// How objects are served. Beyond loopback they are served only with --objects-auth: without it everybody may do
    /// everything. If a port is named all the same, that is an error.
    fn objects(&self, host: IpAddr) -> Result<Option<Objects>> {
        let auth = self.objects_auth.unwrap_or(false);
        if !auth && !host.is_loopback() {
            if self.object_port.is_some() {
                bail!(
                    "other machines can reach {host}, and without --objects-auth everybody may read and write objects: \
                     give --objects-auth, or leave --object-port out"
                );
            }
            return Ok(None);
        }
        if auth && self.oauth.is_none() && self.object_keys.is_none() {
            bail!("--objects-auth needs --oauth or --object-keys: otherwise no token is good");
        }
        Ok(Some(Objects {
            port: self.object_port.unwrap_or(OBJECT_PORT),
            port_is_chosen: self.object_port.is_some(),
            hosts: names(self.object_hosts.as_deref()),
            auth,
            keys: self.object_keys.clone(),
            retry_tests: self.retry_tests.unwrap_or(false),
            tidied_every: self.tidy_objects_every.map(Duration::from_millis),
        }))
    }

    fn memory_bytes(&self) -> Result<u64> {
        let bytes = self.memory.as_deref().map_or(Ok(MEMORY_BYTES), parse_size).context("--memory")?;
        if bytes < MEMORY_BYTES_MIN {
            bail!("--memory {bytes}: at least 64MiB is needed");
        }
        Ok(bytes)
    }

    fn history_budget_bytes(&self) -> Result<u64> {
        let budget = self.history_budget.as_deref();
        let bytes = budget.map_or(Ok(HISTORY_BUDGET_BYTES), parse_size).context("--history-budget")?;
        if (1..HISTORY_BUDGET_BYTES_MIN).contains(&bytes) {
            bail!("--history-budget {bytes}: give at least 1MiB, or 0 for no history");
        }
        Ok(bytes)
    }

    /// The accounts of the settings; or those that Azurite would use; or else the well-known one.
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
            (Some(_), Some(_), Some(_)) => bail!("give either --tls self-signed or --tls-cert, not both"),
            _ => bail!("--tls-cert and --tls-key belong together: give both or none"),
        }
    }
}

/// The names of a list with commas between them.
fn names(list: Option<&str>) -> Vec<String> {
    let names = list.unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_settings_has_every_flag_and_no_other() {
        use clap::Args as _;
        let page = include_str!("../../../../docs/settings.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `--")?.split(['`', ' ']).next());
        let rows: std::collections::BTreeSet<&str> = rows.collect();
        let command = DevFlags::augment_args(clap::Command::new("dev"));
        let flags: Vec<_> = command.get_arguments().filter(|flag| !flag.is_hide_set()).collect();
        for flag in &flags {
            let variable = format!("RANGEHOLD_{}", flag.get_id().as_str().to_uppercase());
            assert_eq!(flag.get_env().and_then(|name| name.to_str()), Some(variable.as_str()));
        }
        assert_eq!(rows, flags.iter().filter_map(|flag| flag.get_long()).collect());
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
    fn a_process_has_at_least_one_server() {
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
    fn the_history_has_a_budget_of_zero_or_enough() {
        let budget =
            |text: &str| DevFlags { history_budget: Some(text.to_owned()), ..DevFlags::default() }.resolve();
        assert_eq!(DevFlags::default().resolve().unwrap().history_budget_bytes, 256 << 20);
        assert_eq!(budget("0").unwrap().history_budget_bytes, 0);
        assert_eq!(budget("8MiB").unwrap().history_budget_bytes, 8 << 20);
        assert!(budget("1023KiB").unwrap_err().to_string().contains("--history-budget"));
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
    fn objects_beyond_loopback_need_the_check_of_tokens() {
        let own = DevFlags { accounts: Some("mine:c2VjcmV0".into()), ..DevFlags::default() };
        assert_eq!(own.resolve().unwrap().objects.unwrap().port, 4443);
        let public =
            DevFlags { host: Some("0.0.0.0".to_owned()), allow_public_plain_http: Some(true), ..own };
        assert_eq!(public.resolve().unwrap().objects, None);
        let named = DevFlags { object_port: Some(4443), ..public.clone() };
        assert!(named.resolve().unwrap_err().to_string().contains("--objects-auth"));
        let checked = DevFlags { objects_auth: Some(true), ..named };
        assert!(checked.resolve().unwrap_err().to_string().contains("--object-keys"));
        let known =
            DevFlags { object_keys: Some("keys.json".into()), object_hosts: Some("a, b".into()), ..checked };
        let objects = known.resolve().unwrap().objects.unwrap();
        assert_eq!((objects.auth, objects.hosts), (true, vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn the_well_known_key_stays_on_loopback() {
        let flags = DevFlags {
            host: Some("0.0.0.0".to_owned()),
            allow_public_plain_http: Some(true),
            ..DevFlags::default()
        };
        assert!(flags.resolve().unwrap_err().to_string().contains("--allow-public-well-known-key"));
        let allowed = DevFlags { allow_public_well_known_key: Some(true), ..flags.clone() };
        assert!(allowed.resolve().is_ok());
        let own = DevFlags { accounts: Some("mine:c2VjcmV0".into()), ..flags };
        assert!(own.resolve().is_ok());
        let open = DevFlags { oauth: Some("claims-only".into()), ..own };
        assert!(open.resolve().unwrap_err().to_string().contains("claims-only"));
    }

    #[test]
    fn plain_text_stays_on_loopback_unless_that_is_allowed() {
        let own = DevFlags { accounts: Some("mine:c2VjcmV0".into()), ..DevFlags::default() };
        let public = DevFlags { host: Some("0.0.0.0".to_owned()), ..own.clone() };
        assert!(public.resolve().unwrap_err().to_string().contains("--tls-cert and --tls-key"));
        let allowed = DevFlags { allow_public_plain_http: Some(true), ..public.clone() };
        assert!(allowed.resolve().is_ok());
        let encrypted = DevFlags { tls: Some(TlsMode::SelfSigned), ..public };
        assert!(encrypted.resolve().is_ok());
        // The admin endpoint has no TLS.
        let admin = DevFlags {
            admin_host: Some("0.0.0.0".to_owned()),
            admin_hosts: Some("tables, tables.internal".to_owned()),
            ..encrypted
        };
        assert!(admin.resolve().unwrap_err().to_string().contains("never encrypted"));
        let allowed = DevFlags { allow_public_plain_http: Some(true), ..admin };
        assert_eq!(allowed.resolve().unwrap().admin_hosts, ["tables", "tables.internal"]);
    }
}
