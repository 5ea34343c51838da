//! One flight: the fence leaves together with the statement that it guards.
//!
//! A transaction has to enter its key before its first statement ([`fence.sql`](crate::store::postgres::FENCE_SQL)).
//! If that is a request of its own, it costs one more round trip. If it is sent ahead without waiting, the statement
//! behind it must not run if the entering failed, or if even `BEGIN` failed. This can happen: a cancel that comes a
//! moment late hits just one of these. If the statement ran then, it would run outside of any transaction, without a
//! fence.
//!
//! PostgreSQL's protocol has a unit in which an error skips everything that follows, up to the next `Sync`. But the
//! client library ends each of its requests with a `Sync`. So this layer lies between the library and the socket, and
//! puts what goes ahead into the request that the library sends anyway:
//!
//! ```text
//!   library:                                                  Parse Bind Execute         Sync
//!   socket:   Parse Bind Execute   Parse Bind Execute         Parse Bind Execute         Sync
//!             `BEGIN ...`          `SELECT enter(...)`        the statement
//!
//!   socket:   ParseComplete .. CommandComplete   .. CommandComplete   ParseComplete .. CommandComplete  Ready
//!   library:  (kept back)                        (kept back)          ParseComplete .. CommandComplete  Ready
//! ```
//!
//! If an answer is an error, the library sees it as the answer to its own request, and the server has skipped the
//! rest. For a single statement, `COMMIT` goes behind it in the same way.
//!
//! The layer also takes the names off the library's statements ([`statements`]). Through a pooler in transaction mode
//! many programs share a session, and the names of two of them would collide.
//!
//! [`Frames`] cuts the stream of bytes into messages, in whatever pieces it comes. [`Flight`] decides. [`stream`]
//! reads and writes. The others decide what runs, and they do no IO.

mod envelope;
mod frames;
mod statements;
mod stream;

use std::collections::VecDeque;

pub(super) use envelope::Envelope;
use frames::{Frames, Piece};
use statements::{Gathering, Named, Statements};
pub(super) use stream::{Control, FlightStream};

/// No transaction is open on the connection: the server has closed it, or there was none.
pub(super) const IDLE: u8 = b'I';
/// A transaction is open and can go on.
pub(super) const OPEN: u8 = b'T';

/// The most bytes of a tag that are looked at, with the zero at its end.
const TAG_BYTES_MAX: usize = b"ROLLBACK\0".len();

/// Both directions of one connection.
#[derive(Debug)]
pub(super) struct Flight {
    sending: Frames,
    receiving: Frames,
    statements: Statements,
    /// The message with the name of a statement that is being sent, as far as it has come.
    gathering: Option<Gathering>,
    /// Requests whose end was sent, and requests whose end was answered. The server answers the start of a connection
    /// as it answers a request.
    sent: i64,
    answered: i64,
    /// Envelopes under way: the number of their request, and the part of the answer that comes next.
    envelopes: VecDeque<(i64, Expect)>,
    /// What must be sent before the end of the request that is being sent.
    before_sync: Option<Vec<u8>>,
    /// Whether the message that is being received is kept back.
    kept_back: bool,
    /// Whether that message is the one that ends an answer. Its body is the new `status`.
    ends_answer: bool,
    status: u8,
    /// The beginning of the name that the library's last command had when it was done.
    command: Tag,
}

/// The name that a command gives itself, as far as it matters.
#[derive(Debug, Default)]
struct Tag {
    text: Vec<u8>,
    open: bool,
}

/// What the next answers belong to, in a request with an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// To this many commands that went ahead. `parse` says whether a statement was parsed again after them, and
    /// `behind` whether another command comes behind.
    Ahead { commands: usize, parse: bool, behind: bool },
    /// To the statement that was parsed again.
    Parse { behind: bool },
    /// To the library's own command.
    Own { behind: bool },
    /// To the command that was sent behind.
    Behind,
    /// To nothing: the server failed, and skips the rest.
    Skipped,
}

/// A message that the protocol does not allow.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the protocol was broken: {0}")]
pub(super) struct Broken(pub(super) &'static str);

impl Flight {
    /// A flight for a connection over which nothing was sent yet.
    pub(super) fn new() -> Self {
        Self {
            sending: Frames::after_startup_message(),
            receiving: Frames::new(),
            statements: Statements::default(),
            gathering: None,
            sent: 1,
            answered: 0,
            envelopes: VecDeque::new(),
            before_sync: None,
            kept_back: false,
            ends_answer: false,
            status: IDLE,
            command: Tag::default(),
        }
    }

    /// Takes what the library sends, and writes to `socket` what must go out. The first statement takes the envelope
    /// from `waiting`.
    pub(super) fn send(
        &mut self,
        mut bytes: &[u8],
        waiting: &mut Option<Envelope>,
        socket: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        while let Some(piece) = self.sending.next(&mut bytes)? {
            match piece {
                Piece::Begin(header) if Gathering::is_for(header) => {
                    self.gathering = Some(Gathering::new(header));
                }
                Piece::Begin(header) if matches!(header.tag(), b'S' | b'Q') => {
                    socket.extend_from_slice(&self.before_sync.take().unwrap_or_default());
                    socket.extend_from_slice(header.bytes());
                    self.sent += 1;
                    self.statements.request_ends(header.tag());
                }
                Piece::Begin(header) => socket.extend_from_slice(header.bytes()),
                Piece::Body(body) => match &mut self.gathering {
                    None => socket.extend_from_slice(body),
                    Some(gathering) => {
                        if let Some(message) = gathering.take(body)? {
                            self.gathering = None;
                            self.send_named(message, waiting, socket)?;
                        }
                    }
                },
            }
        }
        Ok(())
    }

    /// Sends a message without the name that the library gave its statement. If the server no longer has this
    /// statement, it is parsed again ahead of the message.
    fn send_named(
        &mut self,
        message: Named,
        waiting: &mut Option<Envelope>,
        socket: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let envelope = if message.takes_envelope() { waiting.take() } else { None };
        if envelope.as_ref().is_some_and(|envelope| envelope.commands_ahead > 0) {
            self.statements.forget_present();
        }
        // The answers to earlier requests tell whether the server still has the statement.
        let is_settled = self.sent == self.answered && self.status == OPEN;
        let again = self.statements.parse_again(&message, is_settled)?;
        let (parse, enveloped) = (again.is_some(), envelope.is_some());
        let envelope = envelope.unwrap_or_else(Envelope::none);
        socket.extend_from_slice(&envelope.ahead);
        socket.extend_from_slice(&again.unwrap_or_default());
        if enveloped || parse {
            if self.envelopes.back().is_some_and(|(request, _)| *request == self.sent) {
                return Err(Broken("the library sent two statements in one request"));
            }
            let behind = !envelope.behind.is_empty();
            self.envelopes.push_back((self.sent, Expect::first(envelope.commands_ahead, parse, behind)));
            self.before_sync = behind.then_some(envelope.behind);
        }
        message.write(socket);
        Ok(())
    }

    /// Takes what the server sends, and writes to `library` what the library must see.
    pub(super) fn receive(&mut self, mut bytes: &[u8], library: &mut Vec<u8>) -> Result<(), Broken> {
        while let Some(piece) = self.receiving.next(&mut bytes)? {
            match piece {
                Piece::Begin(header) => {
                    self.kept_back = self.keeps_back(header.tag())?;
                    if !self.kept_back {
                        library.extend_from_slice(header.bytes());
                    }
                    self.ends_answer = header.tag() == b'Z';
                    self.command.open = header.tag() == b'C' && !self.kept_back;
                    if self.command.open {
                        self.command.text.clear();
                    }
                }
                Piece::Body(body) => {
                    if !self.kept_back {
                        library.extend_from_slice(body);
                    }
                    if self.ends_answer {
                        self.status = body[0];
                        if self.status != OPEN {
                            self.statements.forget_present();
                        }
                    } else if self.command.open {
                        let room = TAG_BYTES_MAX - self.command.text.len();
                        self.command.text.extend_from_slice(&body[..body.len().min(room)]);
                    }
                }
            }
        }
        Ok(())
    }

    /// The state of the server's transaction at the end of the last answer.
    pub(super) fn status(&self) -> u8 {
        self.status
    }

    /// Whether the library's last command was one that ends transactions. `COMMIT AND CHAIN` ends one and
    /// begins another, in which no key was entered, and the status does not show it.
    pub(super) fn may_have_left(&self) -> bool {
        matches!(self.command.text.as_slice(), b"COMMIT\0" | b"ROLLBACK\0")
    }

    /// Whether only we must see a message of the server. Also notes what comes after it.
    fn keeps_back(&mut self, tag: u8) -> Result<bool, Broken> {
        // The server may send these at any time: parameters, notices, notifications.
        if matches!(tag, b'S' | b'N' | b'A') {
            return Ok(false);
        }
        match tag {
            b'E' => self.statements.forget_present(),
            b'Z' => {
                self.answered += 1;
                if self.answered > self.sent {
                    return Err(Broken("the server answered more requests than there were"));
                }
            }
            // While the server takes in a COPY, it ignores the end of the request that began it. Another end comes
            // after the data.
            b'G' => self.sent -= 1,
            _ => {}
        }
        let Some((request, expect)) = self.envelopes.front_mut() else { return Ok(false) };
        if tag == b'Z' {
            if *request < self.answered {
                self.envelopes.pop_front();
            }
            return Ok(false);
        }
        if *request != self.answered {
            return Ok(false);
        }
        let kept_back =
            matches!(expect, Expect::Ahead { .. } | Expect::Parse { .. } | Expect::Behind) && tag != b'E';
        *expect = expect.after(tag);
        Ok(kept_back)
    }
}

impl Expect {
    /// What the first answer of a request belongs to.
    fn first(commands: usize, parse: bool, behind: bool) -> Self {
        match (commands, parse) {
            (0, false) => Self::Own { behind },
            (0, true) => Self::Parse { behind },
            (commands, parse) => Self::Ahead { commands, parse, behind },
        }
    }

    /// What comes after a message. `C`, `I` and `s` end one command, and `E` ends all of them.
    fn after(self, tag: u8) -> Self {
        match (self, tag) {
            (_, b'E') => Self::Skipped,
            (Self::Ahead { commands, parse, behind }, b'C') => Self::first(commands - 1, parse, behind),
            (Self::Parse { behind }, b'1') => Self::Own { behind },
            (Self::Own { behind: true }, b'C' | b'I' | b's') => Self::Behind,
            (expect, _) => expect,
        }
    }
}

#[cfg(test)]
mod tests;
