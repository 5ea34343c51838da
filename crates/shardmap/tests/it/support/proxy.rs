//! A proxy that counts round trips: how often the client spoke after it had heard the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Forwards connections to a server on 127.0.0.1, as long as it lives.
pub struct Proxy {
    port: u16,
    round_trips: Arc<AtomicU64>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Proxy {
    pub async fn start(server: u16) -> Proxy {
        Proxy::until(server, u64::MAX).await
    }

    /// The same, but a connection stands still, and stays open, when so many bytes of the server have come over it.
    pub async fn until(server: u16, bytes_max: u64) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("a bound listener").port();
        let round_trips = Arc::new(AtomicU64::new(0));
        let count = round_trips.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server, count.clone(), bytes_max));
            }
        });
        Proxy { port, round_trips, accepting }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many round trips there were so far, over all connections.
    pub fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn forward(client: TcpStream, server: u16, round_trips: Arc<AtomicU64>, bytes_max: u64) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    // Whether the server spoke last: then the next word of the client begins a round trip.
    let heard = Arc::new(AtomicBool::new(true));
    let asked = heard.clone();
    let there = pipe(client_reads, server_writes, u64::MAX, move || {
        if asked.swap(false, Ordering::SeqCst) {
            round_trips.fetch_add(1, Ordering::SeqCst);
        }
    });
    let back = pipe(server_reads, client_writes, bytes_max, move || heard.store(true, Ordering::SeqCst));
    tokio::join!(there, back);
}

async fn pipe(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    bytes_max: u64,
    each: impl Fn(),
) {
    let (mut buffer, mut bytes) = (vec![0; 64 << 10], 0);
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        each();
        if to.write_all(&buffer[..length]).await.is_err() {
            break;
        }
        bytes += length as u64;
        if bytes > bytes_max {
            // Both ends stay open, and nothing is read any more.
            std::future::pending::<()>().await;
        }
    }
    let _ = to.shutdown().await;
}
