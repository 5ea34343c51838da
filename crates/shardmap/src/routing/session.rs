//! A session with one shard: the driver's client, and the layer below it that sends the fence along.
//!
//! Sessions go from key to key. What the transactions of one key left in a session (settings, temporary tables, cursors,
//! locks of the session) is removed before the next key gets it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{MakeTlsConnect, NoTls, TlsConnect};
use tokio_postgres::{Client, Config};

use super::error::RoutingError;
use super::flight::{Control, Envelope, FlightStream, IDLE, OPEN};
use crate::limits::CONNECT_TIMEOUT;
use crate::location::Location;
use crate::store::postgres::PostgresAccess;

/// One session.
pub(super) struct Session {
    location: Location,
    client: Arc<Client>,
    control: Arc<Control>,
    /// Whether a request was sent whose answer was not read to its end, or whether the client was lent out.
    unsettled: bool,
    /// Whether the client was lent out, so that the settings of the session are not known.
    lent: bool,
    /// Whether a request was sent since the session was made or cleaned.
    used: bool,
    /// The cleaning of the session, which was sent when its key gave it back.
    cleaning: Option<Cleaning>,
}

type Cleaning = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

/// Removes what a key left in a session. It is `DISCARD ALL` without the parts that do no harm to the next key: the plans
/// of functions, which are costly to make again, and prepared statements, which may belong to other clients of a pooler.
const CLEAN: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
     SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES";

impl Session {
    /// Connects to the shard.
    pub(super) async fn open(location: &Location, access: &PostgresAccess) -> Result<Self, RoutingError> {
        let connecting = async {
            let config = access.config(location).ok_or("it is not a PostgreSQL database")?;
            let (client, control) = connect(&config, access).await?;
            let client = Arc::new(client);
            let (location, unsettled, lent, used) = (location.clone(), false, false, false);
            Ok(Self { location, client, control, unsettled, lent, used, cleaning: None })
        };
        let timed = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        let opened = timed.unwrap_or_else(|_| Err(format!("no answer within {CONNECT_TIMEOUT:?}").into()));
        opened.map_err(|source| RoutingError::Unreachable { location: location.clone(), source })
    }

    /// The shard to which the session leads.
    pub(super) fn location(&self) -> &Location {
        &self.location
    }

    /// The driver's client, for requests between [`Session::depart`] and [`Session::arrived`].
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The driver's client, for any use.
    pub(super) fn lend(&mut self) -> &Client {
        self.unsettled = true;
        self.lent = true;
        self.used = true;
        &self.client
    }

    /// Announces a request, with its envelope. No other request may be under way.
    pub(super) fn depart(&mut self, envelope: Envelope) {
        debug_assert!(!self.unsettled, "a request is under way");
        self.unsettled = true;
        self.used = true;
        self.control.send_along(envelope);
    }

    /// Says that the answer was read to its end.
    pub(super) fn arrived(&mut self) {
        self.unsettled = false;
    }

    /// If some requests may not be answered, waits until they are. Then the state is known.
    pub(super) async fn catch_up(&mut self) -> Result<(), tokio_postgres::Error> {
        if self.unsettled {
            // Requests are answered in order, and an empty one works in a failed transaction too.
            self.client.batch_execute("").await?;
            self.unsettled = false;
        }
        Ok(())
    }

    /// Whether a transaction is open and can go on. Call this when everything is answered.
    pub(super) fn is_open(&self) -> bool {
        self.control.status() == OPEN
    }

    /// Whether the last command may have ended the transaction and begun another. Call this when everything is
    /// answered.
    pub(super) fn may_have_left(&self) -> bool {
        self.control.may_have_left()
    }

    /// Whether no transaction is open. Call this when everything is answered.
    pub(super) fn is_idle(&self) -> bool {
        self.control.status() == IDLE
    }

    /// Undoes what is open, and does not wait for it. [`Session::settle`] waits for the answer.
    pub(super) fn abandon(&mut self) {
        self.control.take_back();
        if self.unsettled || self.control.status() != IDLE {
            self.unsettled = true;
            // One poll sends it. Locks are released as soon as the server reads it.
            let mut rollback = std::pin::pin!(self.client.batch_execute("ROLLBACK"));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let _ = rollback.as_mut().poll(&mut context);
        }
    }

    /// Makes sure that no request is under way and that no transaction is open. It costs a round trip only if there
    /// may be one.
    pub(super) async fn settle(&mut self) -> Result<(), tokio_postgres::Error> {
        self.control.take_back();
        if self.unsettled || self.control.status() != IDLE {
            self.unsettled = true;
            self.client.batch_execute("ROLLBACK").await?;
            if self.lent {
                self.client.batch_execute(CLEAN).await?;
                self.lent = false;
            }
            self.unsettled = false;
        }
        Ok(())
    }

    /// Cleans the session for the next key, and does not wait for it. [`Session::cleaned`] waits for the answer.
    pub(super) fn leave(&mut self) {
        self.abandon();
        if !std::mem::take(&mut self.used) {
            return;
        }
        let client = self.client.clone();
        let mut cleaning: Cleaning = Box::pin(async move { client.batch_execute(CLEAN).await });
        // One poll sends it.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        self.cleaning = match cleaning.as_mut().poll(&mut context) {
            std::task::Poll::Pending => Some(cleaning),
            std::task::Poll::Ready(cleaned) => Some(Box::pin(std::future::ready(cleaned))),
        };
        self.lent = false;
    }

    /// Waits until the session is as new.
    pub(super) async fn cleaned(&mut self) -> Result<(), tokio_postgres::Error> {
        if let Some(cleaning) = self.cleaning.take() {
            cleaning.await?;
            // Requests are answered in order, so all are answered now.
            self.unsettled = false;
        }
        self.settle().await
    }

    /// Whether the session is known to be broken.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The driver can connect by itself, but then nothing can lie between it and the socket.
async fn connect(config: &Config, access: &PostgresAccess) -> Result<(Client, Arc<Control>), Cause> {
    let Some(Host::Tcp(server)) = config.get_hosts().first() else {
        return Err("it names no server".into());
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let socket = TcpStream::connect((server.as_str(), port)).await?;
    socket.set_nodelay(true)?;
    keep_alive(&socket, config)?;
    match (config.get_ssl_mode(), access.connector()) {
        (SslMode::Disable, _) | (_, None) => {
            let (stream, control) = FlightStream::new(socket);
            let (client, connection) = config.connect_raw(stream, NoTls).await?;
            run(connection);
            Ok((client, control))
        }
        (_, Some(mut connector)) => {
            let tls = MakeTlsConnect::<TcpStream>::make_tls_connect(&mut connector, server)?;
            // The layer lies above TLS, where messages can be read. Its handle is made during the handshake.
            let (made, handle) = tokio::sync::oneshot::channel();
            let (client, connection) = config.connect_raw(socket, Above { tls, made }).await?;
            run(connection);
            Ok((client, handle.await?))
        }
    }
}

/// Probes the socket as the configuration says. The driver does the same to its own sockets.
fn keep_alive(socket: &TcpStream, config: &Config) -> std::io::Result<()> {
    sockopt::set_socket_keepalive(socket, config.get_keepalives())?;
    sockopt::set_tcp_keepidle(socket, config.get_keepalives_idle())?;
    if let Some(every) = config.get_keepalives_interval() {
        sockopt::set_tcp_keepintvl(socket, every)?;
    }
    if let Some(probes) = config.get_keepalives_retries() {
        sockopt::set_tcp_keepcnt(socket, probes)?;
    }
    // Other systems have no such setting, and the driver leaves it out there too.
    #[cfg(target_os = "linux")]
    if let Some(unacknowledged) = config.get_tcp_user_timeout() {
        let ms = u32::try_from(unacknowledged.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(socket, ms)?;
    }
    Ok(())
}

/// The half of a connection that reads and writes. It ends when its client is dropped. It also ends with an error,
/// which each request of the client gets too.
fn run<S, T>(connection: tokio_postgres::Connection<S, T>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %error, "a connection to a shard has ended");
        }
    });
}

/// TLS, with our layer above it.
struct Above<T> {
    tls: T,
    made: tokio::sync::oneshot::Sender<Arc<Control>>,
}

impl<S, T> TlsConnect<S> for Above<T>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: TlsConnect<S>,
    T::Stream: Send + 'static,
    T::Future: Send + 'static,
{
    type Stream = FlightStream<T::Stream>;
    type Error = Cause;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, Cause>> + Send>>;

    fn connect(self, socket: S) -> Self::Future {
        let handshake = self.tls.connect(socket);
        let made = self.made;
        Box::pin(async move {
            let (stream, control) = FlightStream::new(handshake.await.map_err(Into::into)?);
            made.send(control).map_err(|_| "the connection was given up")?;
            Ok(stream)
        })
    }
}
