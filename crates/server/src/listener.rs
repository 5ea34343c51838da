//! Connections: accepting them, TLS, HTTP, and cutting off clients that are slow or too many.
//!
//! A listener serves one `handler`, an async function from a request to a reply, whose body may be whole or a stream.
//! On TLS connections ALPN chooses HTTP/2 or HTTP/1.1. A plain connection is HTTP/2 if it begins with the preface that RFC 9113 gives
//! to clients which know that the server speaks it, as those of gRPC do; otherwise it is HTTP/1.1.
//!
//! Every connection has an `Activity`: the number of requests that are open on it, from the arrival of the head to
//! the last byte of the reply, and the time at which something last happened. A handler that streams a body notes
//! each piece, so a long transfer may go on as long as it makes progress. Beside each connection runs a check
//! that ends it when nothing has happened for too long. The module `places` says which connections are kept when there are too many.

mod activity;
mod places;

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use self::activity::Activity;
pub use self::activity::{Connection, LongRequest, OpenRequest};
use self::places::Places;
use crate::limits;

/// The body of a reply: whole, or a stream that is asked for its next piece when the client has taken the last one.
pub trait ReplyBody:
    Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static
{
}

impl<B> ReplyBody for B where
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static
{
}

/// Accepts up to `connections_max` connections on `socket` and serves them until `stop` is set. Then it finishes the
/// requests under way, for at most [`limits::SHUTDOWN_WITHIN`], and closes what is still open.
pub async fn serve<H, F, B>(
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
    connections_max: usize,
    handler: H,
    mut stop: watch::Receiver<bool>,
) where
    H: Fn(Connection, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: ReplyBody,
{
    let graceful = GracefulShutdown::new();
    let places = Places::new(connections_max);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most likely there are no file descriptors left, so give open connections time to end.
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let connection = Connection::new(peer, tls.is_some());
        let Some(place) = places.enter(peer.ip(), &connection.activity) else { continue };
        let (tls, handler, watcher) = (tls.clone(), handler.clone(), graceful.watcher());
        connections.spawn(async move {
            serve_connection(stream, connection, tls, handler, watcher).await;
            drop(place);
        });
        // Connections that have ended are forgotten.
        while connections.try_join_next().is_some() {}
    }
    drop(socket);
    if timeout(limits::SHUTDOWN_WITHIN, graceful.shutdown()).await.is_err() {
        // They end when `connections` is dropped.
        warn!("some requests did not finish in time and were cut off");
    }
}

/// Serves one existing connection by HTTP/1.1 without TLS, until either side ends it. The simulation, which has no
/// sockets, uses it.
pub async fn serve_stream<S, H, F, B>(stream: S, peer: SocketAddr, handler: H)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(Connection, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: ReplyBody,
{
    let connection = Connection::new(peer, false);
    // Kept while the connection lives. Nothing tells this connection to stop.
    let graceful = GracefulShutdown::new();
    serve_http1(stream, connection, handler, graceful.watcher()).await;
}

async fn serve_connection<H, F, B>(
    stream: TcpStream,
    connection: Connection,
    tls: Option<TlsAcceptor>,
    handler: H,
    watcher: Watcher,
) where
    H: Fn(Connection, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: ReplyBody,
{
    // Each reply is written at once, so waiting to fill a segment would only delay it.
    let _ = stream.set_nodelay(true);
    let peer = connection.peer;
    let Some(acceptor) = tls else {
        return serve_plain(stream, connection, handler, watcher).await;
    };
    match timeout(limits::HANDSHAKE_WITHIN, acceptor.accept(stream)).await {
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
            serve_http2(stream, connection, handler, watcher).await;
        }
        Ok(Ok(stream)) => serve_http1(stream, connection, handler, watcher).await,
        Ok(Err(error)) => debug!(%peer, %error, "TLS handshake failed"),
        Err(_) => debug!(%peer, "TLS handshake took too long"),
    }
}

/// Serves a connection without TLS, by the protocol with which its client begins.
async fn serve_plain<S, H, F, B>(stream: S, connection: Connection, handler: H, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(Connection, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: ReplyBody,
{
    let (peer, activity) = (connection.peer, connection.activity.clone());
    let arrived = Arc::new(AtomicBool::new(false));
    let noted = arrived.clone();
    let service = service_fn(move |request| {
        noted.store(true, Ordering::Relaxed);
        let reply = handler(connection.clone(), request);
        async move { Ok::<_, Infallible>(reply.await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEADERS_WITHIN)
        .max_buf_size(limits::HEADER_BYTES_MAX)
        .max_headers(limits::HEADER_FIELDS_MAX)
        .auto_date_header(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::HTTP2_STREAMS_MAX)
        .max_pending_accept_reset_streams(limits::HTTP2_RESETS_MAX)
        .max_local_error_reset_streams(limits::HTTP2_RESETS_MAX)
        .max_header_list_size(limits::HEADER_BYTES_MAX as u32)
        .max_send_buf_size(limits::HTTP2_SEND_BYTES_MAX)
        .auto_date_header(false);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        () = end_or_quiet(peer, &activity, watcher.watch(serving)) => {}
        () = first_request_late(&arrived) => debug!(%peer, "no request came in time"),
    }
}

/// Ends when the first request of a connection has not come in time. While the protocol is not known, no other limit counts.
async fn first_request_late(arrived: &AtomicBool) {
    tokio::time::sleep(limits::HEADERS_WITHIN).await;
    if arrived.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

async fn serve_http1<S, H, F, B>(stream: S, connection: Connection, handler: H, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(Connection, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: ReplyBody,
{
    let (peer, activity) = (connection.peer, connection.activity.clone());
    let service = service_fn(move |request| {
        let reply = handler(connection.clone(), request);
        async move { Ok::<_, Infallible>(reply.await) }
    });
    let serving = http1::Builder::new()
        // Without a timer, the timeout of headers below would not work, and there would be no error.
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEADERS_WITHIN)
        .max_buf_size(limits::HEADER_BYTES_MAX)
        .max_headers(limits::HEADER_FIELDS_MAX)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    end_or_quiet(peer, &activity, watcher.watch(serving)).await;
}

async fn serve_http2<S, H, F, B>(stream: S, connection: Connection, handler: H, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(Connection, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: ReplyBody,
{
    let (peer, activity) = (connection.peer, connection.activity.clone());
    let service = service_fn(move |request| {
        let reply = handler(connection.clone(), request);
        async move { Ok::<_, Infallible>(reply.await) }
    });
    let serving = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::HTTP2_STREAMS_MAX)
        .max_pending_accept_reset_streams(limits::HTTP2_RESETS_MAX)
        .max_local_error_reset_streams(limits::HTTP2_RESETS_MAX)
        .max_header_list_size(limits::HEADER_BYTES_MAX as u32)
        .max_send_buf_size(limits::HTTP2_SEND_BYTES_MAX)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    end_or_quiet(peer, &activity, watcher.watch(serving)).await;
}

/// Runs a connection until it ends by itself or has been quiet for too long.
async fn end_or_quiet(
    peer: SocketAddr,
    activity: &Activity,
    connection: impl Future<Output = Result<(), impl Display>>,
) {
    tokio::select! {
        ended = connection => if let Err(error) = ended {
            debug!(%peer, %error, "connection ended");
        },
        () = activity.ended() => debug!(%peer, "connection was quiet for too long, or its place was needed"),
    }
}
