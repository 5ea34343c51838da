//! Statements without names.
//!
//! The library prepares a statement under a name (`s0`, `s1`, ...), and later sends its parameters to this name.
//! Through a pooler in transaction mode that fails: the sessions of the server are shared, so two programs give the
//! same name (42P05), or the session of the next transaction does not have the statement (26000). So the server gets
//! no names. It sees only its *unnamed* statement, which the next `Parse` replaces:
//!
//! ```text
//!   library:  Parse s0   Describe s0   Sync        Bind s0   Execute   Sync
//!   socket:   Parse ""   Describe ""   Sync        Bind ""   Execute   Sync             in the same transaction
//!                                         Parse "" Bind ""   Execute   Sync             else: it is parsed again
//! ```
//!
//! A statement is kept here until the library closes it. Then it can be parsed again at any time, and a statement
//! that was prepared in one transaction works in the next one.

use std::collections::HashMap;

use super::Broken;
use super::frames::Header;

/// The statements that the library has prepared, and the one that the server has.
#[derive(Debug, Default)]
pub(super) struct Statements {
    /// By its name, what was parsed: the text of the statement and the types of its parameters.
    parsed: HashMap<Vec<u8>, Vec<u8>>,
    /// The statement that is the server's unnamed one.
    present: Option<Vec<u8>>,
    /// Whether it was parsed in the request that is being sent.
    is_new: bool,
}

impl Statements {
    /// The server may have another unnamed statement now, or none.
    pub(super) fn forget_present(&mut self) {
        self.present = None;
    }

    /// A request was sent to its end. A simple query replaces the unnamed statement.
    pub(super) fn request_ends(&mut self, tag: u8) {
        self.is_new = false;
        if tag == b'Q' {
            self.forget_present();
        }
    }

    /// The message that must go ahead, so that the server has the statement of `message`. `is_settled` says whether
    /// the server has answered everything and a transaction is open, so that the session is still the same.
    pub(super) fn parse_again(
        &mut self,
        message: &Named,
        is_settled: bool,
    ) -> Result<Option<Vec<u8>>, Broken> {
        match message.kind {
            Kind::Parse => {
                self.present = (!message.name.is_empty()).then(|| message.name.clone());
                self.is_new = true;
                if let Some(name) = &self.present {
                    self.parsed.insert(name.clone(), message.rest.clone());
                }
                Ok(None)
            }
            Kind::Close => {
                self.parsed.remove(&message.name);
                self.forget_present();
                Ok(None)
            }
            Kind::Other => Ok(None),
            Kind::Bind | Kind::Describe if message.name.is_empty() => Ok(None),
            Kind::Bind | Kind::Describe => {
                if self.present.as_ref() == Some(&message.name) && (self.is_new || is_settled) {
                    return Ok(None);
                }
                let rest = self.parsed.get(&message.name);
                let rest = rest.ok_or(Broken("the library sent a statement that it has not prepared"))?;
                let mut parse = Vec::with_capacity(rest.len() + 6);
                write(&mut parse, b'P', rest.len() + 1, &[&[0], rest]);
                self.present = Some(message.name.clone());
                self.is_new = true;
                Ok(Some(parse))
            }
        }
    }
}

/// What a message does with a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Parse,
    Bind,
    Describe,
    Close,
    /// It describes or closes a portal, and names no statement.
    Other,
}

/// A message of the library whose statement has a name, or could have one.
#[derive(Debug)]
pub(super) struct Named {
    header: Header,
    kind: Kind,
    /// What stands before the name.
    before: Vec<u8>,
    name: Vec<u8>,
    /// What came after the name so far. If the message binds values, more may come.
    rest: Vec<u8>,
}

impl Named {
    /// Whether the message begins a statement, so that an envelope goes ahead of it.
    pub(super) fn takes_envelope(&self) -> bool {
        matches!(self.kind, Kind::Parse | Kind::Bind)
    }

    /// Writes the message without the name.
    pub(super) fn write(&self, socket: &mut Vec<u8>) {
        let end: &[u8] = if self.kind == Kind::Other { &[] } else { &[0] };
        let body_bytes = self.header.body_bytes() - self.name.len();
        write(socket, self.header.tag(), body_bytes, &[&self.before, end, &self.rest]);
    }
}

/// Collects the beginning of a message, until the name of its statement is complete. All of a `Parse` is collected.
#[derive(Debug)]
pub(super) struct Gathering {
    header: Header,
    body: Vec<u8>,
}

impl Gathering {
    /// Whether messages of this kind name a statement.
    pub(super) fn is_for(header: Header) -> bool {
        matches!(header.tag(), b'P' | b'B' | b'D' | b'C') && header.body_bytes() > 0
    }

    pub(super) fn new(header: Header) -> Self {
        Self { header, body: Vec::new() }
    }

    /// Takes a part of the body. Returns the message when enough of it has come.
    pub(super) fn take(&mut self, part: &[u8]) -> Result<Option<Named>, Broken> {
        self.body.extend_from_slice(part);
        let is_whole = self.body.len() == self.header.body_bytes();
        let ends = || self.body.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| at);
        let (kind, begin, end) = match (self.header.tag(), self.body.first()) {
            (b'B', _) => {
                let mut ends = ends();
                (Kind::Bind, ends.next().map(|at| at + 1), ends.next())
            }
            _ if !is_whole => return Ok(None),
            (b'P', _) => (Kind::Parse, Some(0), ends().next()),
            (b'D', Some(b'S')) => (Kind::Describe, Some(1), ends().next()),
            (b'C', Some(b'S')) => (Kind::Close, Some(1), ends().next()),
            _ => {
                let before = std::mem::take(&mut self.body);
                let (name, rest) = (Vec::new(), Vec::new());
                return Ok(Some(Named { header: self.header, kind: Kind::Other, before, name, rest }));
            }
        };
        let (Some(begin), Some(end)) = (begin, end) else {
            return if is_whole { Err(Broken("the library sent a name without an end")) } else { Ok(None) };
        };
        let rest = self.body[end + 1..].to_vec();
        let name = self.body[begin..end].to_vec();
        self.body.truncate(begin);
        Ok(Some(Named { header: self.header, kind, before: std::mem::take(&mut self.body), name, rest }))
    }
}

fn write(to: &mut Vec<u8>, tag: u8, body_bytes: usize, parts: &[&[u8]]) {
    to.push(tag);
    let length = u32::try_from(body_bytes + 4).expect("the library's message was as long");
    to.extend_from_slice(&length.to_be_bytes());
    parts.iter().for_each(|part| to.extend_from_slice(part));
}
