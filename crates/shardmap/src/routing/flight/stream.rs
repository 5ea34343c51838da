//! The layer between the library and a socket (or TLS over a socket). It reads and writes, and decides nothing.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsStream};

use super::{Broken, Envelope, Flight, IDLE};

/// How much is read from the socket at once.
const READ_BYTES: usize = 16 << 10;

/// What the owner of a connection tells the layer and learns from it, while the library owns the stream.
#[derive(Debug)]
pub(in super::super) struct Control {
    waiting: Mutex<Option<Envelope>>,
    status: AtomicU8,
    may_have_left: AtomicBool,
}

impl Control {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::new(None),
            status: AtomicU8::new(IDLE),
            may_have_left: AtomicBool::new(false),
        })
    }

    /// Sends an envelope with the next statement. Call this only while no request is under way, because otherwise that
    /// request might take the envelope.
    pub(in super::super) fn send_along(&self, envelope: Envelope) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) =
            (!envelope.is_empty()).then_some(envelope);
    }

    /// Takes an envelope back if no statement has taken it.
    pub(in super::super) fn take_back(&self) -> Option<Envelope> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The state of the transaction, as the server said it at the end of the last request.
    pub(in super::super) fn status(&self) -> u8 {
        self.status.load(Ordering::Acquire)
    }

    /// Whether the last command of the library was one that ends transactions.
    pub(in super::super) fn may_have_left(&self) -> bool {
        self.may_have_left.load(Ordering::Acquire)
    }
}

/// A stream with a [`Flight`] in it.
#[derive(Debug)]
pub(in super::super) struct FlightStream<S> {
    socket: S,
    flight: Flight,
    control: Arc<Control>,
    /// The bytes that the socket has not taken yet begin at `out_done`.
    out: Vec<u8>,
    out_done: usize,
    /// The bytes that the library has not taken yet begin at `received_done`.
    received: Vec<u8>,
    received_done: usize,
    scratch: Box<[u8]>,
}

impl<S> FlightStream<S> {
    /// A layer over a fresh stream, and the handle of the layer.
    pub(in super::super) fn new(socket: S) -> (Self, Arc<Control>) {
        let control = Control::new();
        let stream = Self {
            socket,
            flight: Flight::new(),
            control: control.clone(),
            out: Vec::new(),
            out_done: 0,
            received: Vec::new(),
            received_done: 0,
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
        };
        (stream, control)
    }
}

impl<S: AsyncWrite + Unpin> FlightStream<S> {
    /// Writes what is left to the socket.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.out_done < self.out.len() {
            let left = &self.out[self.out_done..];
            match ready!(Pin::new(&mut self.socket).poll_write(cx, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.out_done += written,
            }
        }
        self.out.clear();
        self.out_done = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FlightStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.poll_drain(cx))?;
        let mut waiting = this.control.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        this.flight.send(bytes, &mut waiting, &mut this.out).map_err(broken)?;
        drop(waiting);
        // The bytes are taken over, whether the socket has room for them or not. The next write or flush goes on.
        match this.poll_drain(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(bytes.len())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FlightStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.received_done == this.received.len() {
            this.received.clear();
            this.received_done = 0;
            let mut scratch = ReadBuf::new(&mut this.scratch);
            ready!(Pin::new(&mut this.socket).poll_read(cx, &mut scratch))?;
            if scratch.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.flight.receive(scratch.filled(), &mut this.received).map_err(broken)?;
            this.control.may_have_left.store(this.flight.may_have_left(), Ordering::Release);
            this.control.status.store(this.flight.status(), Ordering::Release);
        }
        let left = &this.received[this.received_done..];
        let taken = left.len().min(to.remaining());
        to.put_slice(&left[..taken]);
        this.received_done += taken;
        Poll::Ready(Ok(()))
    }
}

impl<S: TlsStream + Unpin> TlsStream for FlightStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.socket.channel_binding()
    }
}

fn broken(error: Broken) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
