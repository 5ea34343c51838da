//! The program against itself: a server that was started, and the commands that speak to it.

#![expect(clippy::disallowed_methods, reason = "a real process is driven from outside")]

mod history;
mod program;
mod ranges;
mod rehearse;
mod script;
