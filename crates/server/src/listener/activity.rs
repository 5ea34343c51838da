//! The activity on a connection: which requests are open on it, and when something last happened.
//!
//! [`Activity::ended`] says when nothing has happened for too long. Then either no request came, or the client does not
//! read its reply.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits;

/// The connection of a request, as its handler sees it.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The client's address.
    pub peer: SocketAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
    pub(super) activity: Arc<Activity>,
}

/// The activity on a connection.
#[derive(Debug)]
pub(super) struct Activity {
    pub(super) open: AtomicUsize,
    /// Requests whose handler takes as long as it needs.
    long: AtomicUsize,
    last: Mutex<Instant>,
    /// Whether a request proved who sent it.
    known: AtomicBool,
    ended: Notify,
}

/// An open request. The code that answers it holds this until the reply is sent.
#[derive(Debug)]
pub struct OpenRequest(Arc<Activity>);

/// A request that may take long. The code that answers it holds this until the answer is known.
#[derive(Debug)]
pub struct LongRequest(Arc<Activity>);

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            open: AtomicUsize::new(0),
            long: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
            known: AtomicBool::new(false),
            ended: Notify::new(),
        })
    }

    fn note(&self) {
        *self.last.lock() = Instant::now();
    }

    pub(super) fn is_idle(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    pub(super) fn is_known(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }

    pub(super) fn prove(&self) {
        // Several requests may be open at once, so it is written only when it changes.
        if !self.is_known() {
            self.known.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the connection: its place is needed.
    pub(super) fn end(&self) {
        self.ended.notify_one();
    }

    /// Waits until the connection must end: nothing has happened for too long, or its place is needed.
    pub(super) async fn ended(&self) {
        loop {
            let look = tokio::time::sleep(limits::ACTIVITY_LOOKED_AT_EVERY);
            tokio::select! {
                biased;
                () = self.ended.notified() => return,
                () = look => {}
            }
            if self.long.load(Ordering::Acquire) > 0 {
                continue;
            }
            let quiet = self.last.lock().elapsed();
            let open = self.open.load(Ordering::Acquire) > 0;
            if quiet > if open { limits::OPEN_REQUEST_QUIET_MAX } else { limits::IDLE_MAX } {
                return;
            }
        }
    }
}

impl Connection {
    pub(super) fn new(peer: SocketAddr, tls: bool) -> Self {
        Self { peer, tls, activity: Activity::new() }
    }

    /// Whether nobody on the way can read what is sent: it is encrypted, or does not leave this machine.
    pub fn is_private(&self) -> bool {
        self.tls || self.peer.ip().to_canonical().is_loopback()
    }

    /// Counts a request as open from now on.
    pub fn open_request(&self) -> OpenRequest {
        self.activity.open.fetch_add(1, Ordering::AcqRel);
        self.activity.note();
        OpenRequest(self.activity.clone())
    }

    /// Keeps the connection while the handler works, however long that takes. For handlers that end by limits of their own.
    pub fn long_request(&self) -> LongRequest {
        self.activity.long.fetch_add(1, Ordering::AcqRel);
        LongRequest(self.activity.clone())
    }

    /// Notes that a request proved who sent it. Such a connection is kept longer when there are too many.
    pub fn prove(&self) {
        self.activity.prove();
    }
}

impl OpenRequest {
    /// Notes that a piece of the request or of its reply has passed. A connection with an open request ends when
    /// nothing has happened on it for too long.
    pub fn progressed(&self) {
        self.0.note();
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.note();
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for LongRequest {
    fn drop(&mut self) {
        self.0.note();
        self.0.long.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[test]
    fn what_is_sent_in_plain_text_from_another_machine_can_be_read_on_the_way() {
        let is_private =
            |peer: &str, tls| Connection::new(peer.parse().expect("an address"), tls).is_private();
        for (peer, tls, private) in [
            ("127.0.0.1:1", false, true),
            ("[::1]:1", false, true),
            ("[::ffff:127.0.0.1]:1", false, true),
            ("192.0.2.1:1", false, false),
            ("[2001:db8::1]:1", false, false),
            ("192.0.2.1:1", true, true),
        ] {
            assert_eq!(is_private(peer, tls), private, "{peer} {tls}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_stays_while_a_long_request_is_worked_on() {
        let connection = Connection::new(([127, 0, 0, 1], 1).into(), false);
        let long = connection.long_request();
        assert!(timeout(Duration::from_secs(3_600), connection.activity.ended()).await.is_err());
        drop(long);
        let rest = limits::IDLE_MAX + 2 * limits::ACTIVITY_LOOKED_AT_EVERY;
        assert!(timeout(rest, connection.activity.ended()).await.is_ok());
    }
}
