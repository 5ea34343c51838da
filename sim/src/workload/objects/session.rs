//! Uploads by sessions: what the service says is stored stays stored, whatever ends meanwhile.

use std::time::Duration;

use super::known::bytes_of;
use super::{Heard, Return};
use super::{Objects, heard, with_value};
use crate::check::register::Call;
use crate::client::http::Reply;
use crate::client::objects::{Described, begin, cancel, send_bytes, shown, told_bytes};
use crate::client::{Asked, Client, NoAnswer};

/// All pieces but the last have a multiple of so many bytes.
const UNIT: usize = 256 << 10;
/// The most units of an upload.
const UNITS_MAX: u64 = 3;

/// An upload that a client has begun.
struct Session {
    name: usize,
    call: Call,
    upload: String,
    bytes: Vec<u8>,
    /// What the service has told to be stored.
    told: usize,
    /// The end of what was sent.
    sent: usize,
    /// When the first request was sent that may have ended the upload, and had no answer.
    in_doubt_since: Option<Duration>,
}

/// What the client does next.
enum Next {
    /// Asks how much is stored.
    Ask,
    /// Sends bytes up to here.
    Send(usize),
}

impl Objects {
    /// Uploads an object by a session, in some pieces.
    pub(super) async fn session(&self, client: &mut Client, name: usize, end: Duration) {
        let Some(mut session) = self.begun(client, name).await else { return };
        let mut unsure = false;
        while client.world().now() < end {
            if client.dice().happens(0.04) {
                return self.abandon(client, &session).await;
            }
            let next = session.next(client, unsure);
            let begun = client.world().now();
            let Some(reply) = self.sent(client, &mut session, &next).await else {
                unsure = true;
                client.think(50, 400).await;
                continue;
            };
            unsure = false;
            match reply.status {
                308 => self.learn(client, &mut session, &reply),
                _ => return self.ended(client, &session, begun, &reply),
            }
            client.think(20, 600).await;
        }
        self.leave(client, &session);
    }

    async fn begun(&self, client: &mut Client, name: usize) -> Option<Session> {
        let call = self.some_write(client.dice(), name);
        let units = usize::try_from(client.dice().below(UNITS_MAX + 1)).unwrap_or(0);
        let size = units * UNIT + usize::try_from(client.dice().below(100_000)).unwrap_or(0);
        let value = self.next_value();
        let content = vec![(value, size)];
        let bytes = bytes_of(&content);
        self.known().brings(name, value, content);
        let described = Described { to: &self.names[name], value, if_generation: self.condition(name, call) };
        let reply = client.ask(begin(described)).await.answer.ok().filter(|reply| reply.status == 200)?;
        let Some(upload) = reply.header("x-guploader-uploadid").map(str::to_owned) else {
            client.world().found("an upload was begun without an id");
            return None;
        };
        let call = with_value(call, value);
        Some(Session { name, call, upload, bytes, told: 0, sent: 0, in_doubt_since: None })
    }

    /// Sends what comes next; `None` without an answer that says something.
    async fn sent(&self, client: &mut Client, session: &mut Session, next: &Next) -> Option<Reply> {
        let bucket = &self.names[session.name].bucket;
        let all = session.bytes.len();
        let request = match next {
            Next::Ask => send_bytes(bucket, &session.upload, "*/*", &[]),
            Next::Send(to) if *to == session.told => {
                send_bytes(bucket, &session.upload, &format!("*/{all}"), &[])
            }
            Next::Send(to) => {
                let total = if *to == all { all.to_string() } else { "*".to_owned() };
                let range = format!("{}-{}/{total}", session.told, to - 1);
                send_bytes(bucket, &session.upload, &range, &session.bytes[session.told..*to])
            }
        };
        let ends = matches!(next, Next::Send(to) if *to == all);
        if let Next::Send(to) = next {
            session.sent = session.sent.max(*to);
        }
        let begun = client.world().now();
        let Asked { answer, twice } = client.ask(request).await;
        let unknown = match &answer {
            Ok(reply) => reply.status == 408 || reply.status >= 500,
            Err(NoAnswer::Unknown) => true,
            Err(NoAnswer::Unsent) => false,
        };
        if ends && (unknown || twice) {
            session.in_doubt_since.get_or_insert(begun);
        }
        answer.ok().filter(|reply| reply.status != 408 && reply.status < 500)
    }

    /// Takes note of how much is stored: never less than was told before, and never more than was sent.
    fn learn(&self, client: &Client, session: &mut Session, reply: &Reply) {
        let told = told_bytes(reply).and_then(|told| usize::try_from(told).ok());
        match told {
            Some(told) if (session.told..=session.sent).contains(&told) => session.told = told,
            _ => client.world().found(format_args!(
                "upload {} was told to have {told:?} bytes, after {} and with {} sent",
                session.upload, session.told, session.sent
            )),
        }
    }

    /// The upload became an object, or cannot become one.
    fn ended(&self, client: &Client, session: &Session, begun: Duration, reply: &Reply) {
        match heard(session.call, reply, false) {
            Some(Heard::Told(told)) => {
                let since = session.in_doubt_since.filter(|_| told == Return::Done).unwrap_or(begun);
                self.known().note(client, session.name, session.call, since, told);
                if told == Return::Done {
                    self.saw(client, session.name, since, shown(reply));
                } else {
                    self.leave(client, session);
                }
            }
            _ => self.found_answer(client, session.call, reply),
        }
    }

    /// The client goes away. A request without an answer may still make the object.
    fn leave(&self, client: &Client, session: &Session) {
        if let Some(since) = session.in_doubt_since {
            self.known().note(client, session.name, session.call, since, Return::Unknown);
        }
    }

    async fn abandon(&self, client: &mut Client, session: &Session) {
        self.leave(client, session);
        if client.dice().happens(0.5) {
            let answer = client.ask(cancel(&self.names[session.name].bucket, &session.upload)).await.answer;
            let fits = |status| {
                matches!(status, 499 | 408 | 500..) || (status == 404 && session.in_doubt_since.is_some())
            };
            if let Ok(reply) = answer
                && !fits(reply.status)
            {
                self.found_answer(client, session.call, &reply);
            }
        }
    }
}

impl Session {
    fn next(&self, client: &mut Client, unsure: bool) -> Next {
        if client.dice().happens(if unsure { 0.8 } else { 0.1 }) {
            return Next::Ask;
        }
        let left = self.bytes.len() - self.told;
        let units = client.dice().between(1, 2) as usize;
        // What is stored need not be a multiple of a unit: a request may have broken off.
        let piece = units * UNIT;
        Next::Send(if left <= piece { self.bytes.len() } else { self.told + piece })
    }
}
