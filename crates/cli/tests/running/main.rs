//! The program as a server, and its commands as clients of that server.

#![expect(clippy::disallowed_methods, reason = "a real process is driven from outside")]

mod history;
mod program;
mod ranges;
mod rehearse;
mod script;
