//! How PostgreSQL servers are reached: credentials and TLS.
//!
//! The location of a database comes from the global map. Credentials come from here and are never stored.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::Error;
use crate::limits::{
    CONNECT_TIMEOUT, KEEPALIVE_AFTER, KEEPALIVE_EVERY, KEEPALIVE_PROBES_MAX, UNACKNOWLEDGED_MAX,
};
use crate::location::Location;

/// The user, and perhaps the password, for a server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// The role.
    pub user: String,
    /// Its password, if the server asks for one.
    pub password: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({:?}, ...)", self.user)
    }
}

/// The protection of a connection to a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Tls {
    /// No protection: for one machine, or a trusted network.
    #[default]
    Off,
    /// TLS, which verifies the server's certificate and name: `sslmode=verify-full`.
    VerifyFull(Roots),
}

/// The certificates that are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Roots {
    /// The certificates that the system trusts: `sslrootcert=system`.
    #[default]
    System,
    /// The certificates in a PEM file: `sslrootcert=FILE`.
    File(PathBuf),
}

impl Tls {
    /// The settings for PostgreSQL's `sslmode` and `sslrootcert`: `disable`, or `verify-full` with these roots. Roots
    /// without a mode mean `verify-full`. Without both, the result is [`Tls::Off`].
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`] for the modes between these two. They do not verify the server, or encrypt
    /// only if the server wants to.
    pub fn of_settings(mode: Option<&str>, roots: Option<Roots>) -> Result<Self, Error> {
        match (mode, roots) {
            (Some("disable"), _) | (None, None) => Ok(Self::Off),
            (Some("verify-full"), roots) => Ok(Self::VerifyFull(roots.unwrap_or_default())),
            (None, Some(roots)) => Ok(Self::VerifyFull(roots)),
            (Some(mode), _) => {
                Err(Error::argument(format!("sslmode={mode} proves nothing: use verify-full, or disable")))
            }
        }
    }
}

impl Roots {
    /// The roots that PostgreSQL's `sslrootcert` names: `system`, or a file.
    pub fn named(name: &str) -> Self {
        if name == "system" { Self::System } else { Self::File(name.into()) }
    }
}

/// How PostgreSQL servers are reached.
#[derive(Clone)]
pub struct PostgresAccess {
    credentials: Arc<dyn Fn(&Location) -> Credentials + Send + Sync>,
    connector: Option<MakeRustlsConnect>,
    application: String,
}

impl fmt::Debug for PostgresAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresAccess({:?}, tls: {})", self.application, self.connector.is_some())
    }
}

impl PostgresAccess {
    /// Uses the same credentials for all servers.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`] if trusted certificates cannot be read.
    pub fn new(credentials: Credentials, tls: &Tls) -> Result<Self, Error> {
        Self::by_location(move |_| credentials.clone(), tls)
    }

    /// Credentials that are asked for with each new connection, such as tokens, or credentials that differ by
    /// location.
    ///
    /// # Errors
    ///
    /// As [`PostgresAccess::new`].
    pub fn by_location(
        credentials: impl Fn(&Location) -> Credentials + Send + Sync + 'static,
        tls: &Tls,
    ) -> Result<Self, Error> {
        let connector = match tls {
            Tls::Off => None,
            Tls::VerifyFull(roots) => Some(connector(roots)?),
        };
        Ok(Self { credentials: Arc::new(credentials), connector, application: "rangehold".to_owned() })
    }

    /// The same TLS settings, with other credentials.
    pub fn with_credentials(
        self,
        credentials: impl Fn(&Location) -> Credentials + Send + Sync + 'static,
    ) -> Self {
        Self { credentials: Arc::new(credentials), ..self }
    }

    /// The user, and perhaps the password, for a location.
    pub fn credentials(&self, location: &Location) -> Credentials {
        (self.credentials)(location)
    }

    /// Sets the name that the servers show for these connections. PostgreSQL cuts it to 63 bytes.
    pub fn named(mut self, application: &str) -> Self {
        self.application = application.to_owned();
        self
    }

    /// Reads `postgres://USER[:PASSWORD]@SERVER[:PORT]/DATABASE[?sslmode=..&sslrootcert=..]`.
    /// `sslmode` is `disable` or `verify-full`, `sslrootcert` is `system` or a file: see [`Tls::of_settings`].
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`].
    pub fn from_url(url: &str) -> Result<(Location, Self), Error> {
        Self::from_url_or(url, None, None)
    }

    /// The same, with a mode and roots that apply if the address does not name any.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`].
    pub fn from_url_or(
        url: &str,
        mode: Option<&str>,
        roots: Option<Roots>,
    ) -> Result<(Location, Self), Error> {
        let (plain, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots) = (mode, roots);
        for setting in query.split('&').filter(|setting| !setting.is_empty()) {
            match setting.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", name)) => roots = Some(Roots::named(name)),
                // The text is not shown, because it may hold the end of a password.
                _ => {
                    return Err(Error::argument(
                        "after the ? of an address stand sslmode=.. and sslrootcert=.. alone; a ? in a password \
                         is written %3F",
                    ));
                }
            }
        }
        let config: Config = plain.parse().map_err(|error: tokio_postgres::Error| {
            Error::argument("the address does not read: write postgres://USER:PASSWORD@SERVER:PORT/DATABASE")
                .because(error)
        })?;
        let (Some(user), Some(database)) = (config.get_user(), config.get_dbname()) else {
            return Err(Error::argument("the address names no user or no database"));
        };
        let Some(tokio_postgres::config::Host::Tcp(server)) = config.get_hosts().first() else {
            return Err(Error::argument("the address names no server"));
        };
        if server.contains('@') {
            return Err(Error::argument("the address has two @: one in a password is written %40"));
        }
        let location =
            Location::postgres(server, config.get_ports().first().copied().unwrap_or(5432), database)?;
        let password = config.get_password().map(|password| String::from_utf8_lossy(password).into_owned());
        let credentials = Credentials { user: user.to_owned(), password };
        Ok((location, Self::new(credentials, &Tls::of_settings(mode, roots)?)?))
    }

    /// The driver's settings for a place; `None` for a place that is not a PostgreSQL database.
    pub fn config(&self, location: &Location) -> Option<Config> {
        let Location::Postgres { server, port, database } = location else {
            return None;
        };
        let credentials = (self.credentials)(location);
        let mut config = Config::new();
        config.host(server.as_ref()).port(*port).dbname(database.as_ref()).user(&credentials.user);
        config.application_name(&self.application).connect_timeout(CONNECT_TIMEOUT);
        config.keepalives_idle(KEEPALIVE_AFTER).keepalives_interval(KEEPALIVE_EVERY);
        config.keepalives_retries(KEEPALIVE_PROBES_MAX).tcp_user_timeout(UNACKNOWLEDGED_MAX);
        config.ssl_mode(if self.connector.is_some() { SslMode::Require } else { SslMode::Disable });
        if let Some(password) = &credentials.password {
            config.password(password);
        }
        Some(config)
    }

    /// The TLS part of a connection; `None` for a connection without TLS.
    pub fn connector(&self) -> Option<MakeRustlsConnect> {
        self.connector.clone()
    }
}

/// A connector that verifies the chain of certificates and the name.
fn connector(roots: &Roots) -> Result<MakeRustlsConnect, Error> {
    let mut store = rustls::RootCertStore::empty();
    match roots {
        Roots::System => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Roots::File(file) => add_file(&mut store, file)?,
    }
    if store.is_empty() {
        return Err(Error::argument("no trusted certificates were found: name a file with sslrootcert"));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::argument("TLS cannot be set up").because(error))?;
    Ok(MakeRustlsConnect::new(builder.with_root_certificates(store).with_no_client_auth()))
}

fn add_file(store: &mut rustls::RootCertStore, file: &Path) -> Result<(), Error> {
    let unreadable = || Error::argument(format!("{} holds no certificates in PEM that read", file.display()));
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unreadable().because(error))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unreadable().because(error))?;
        store.add(certificate).map_err(|error| unreadable().because(error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_alone_ask_for_verification() {
        let roots = || Some(Roots::File("roots.pem".into()));
        let verified = Tls::VerifyFull(roots().unwrap_or_default());
        assert_eq!(Tls::of_settings(None, None).unwrap(), Tls::Off);
        assert_eq!(Tls::of_settings(None, roots()).unwrap(), verified);
        assert_eq!(Tls::of_settings(Some("verify-full"), roots()).unwrap(), verified);
        assert_eq!(Tls::of_settings(Some("disable"), roots()).unwrap(), Tls::Off);
        Tls::of_settings(Some("require"), roots()).unwrap_err();
    }

    /// If the file is missing, only access that needs the file is refused.
    #[test]
    fn what_is_given_beside_an_address_counts_where_the_address_says_nothing() {
        let read = |url: &str| {
            let roots = Some(Roots::File("/no/such/file".into()));
            PostgresAccess::from_url_or(url, Some("verify-full"), roots).map(|(place, _)| place.to_string())
        };
        assert_eq!(read("postgres://me@db1/maps?sslmode=disable").unwrap(), "postgres://db1:5432/maps");
        for url in ["postgres://me@db1/maps", "postgres://me:sslmode=x@db1/maps"] {
            assert!(read(url).unwrap_err().to_string().contains("/no/such/file"));
        }
    }

    #[test]
    fn a_mistake_in_an_address_does_not_show_the_password() {
        for url in ["postgres://me:s3cr?t@db1/maps", "postgres://me:s3@cret@db1/maps"] {
            let error = PostgresAccess::from_url(url).map(drop).unwrap_err().to_string();
            assert!(!error.contains("t@db1"), "{error}");
        }
        for place in
            ["postgres://me:s3cret@db1", "postgres://me:s3cr/et@db1/maps", "Postgres://me:s3cret@db1/x"]
        {
            let error = Location::parse(place).unwrap_err().to_string();
            assert!(!error.contains("s3cr"), "{error}");
        }
    }
}
