//! Commands to a running service: which there are, and why the others are none.
//!
//! A script on the map alone may invent what it likes: servers, loads, the time of day. A running service
//! has all of that itself, so of the language it takes what asks and what changes. `table` states
//! that there is a table: on a map in memory that makes one, of a service it is found out. So one script
//! may tell a story in memory first, and then be carried out.

use std::time::Duration;

use thiserror::Error;

use super::command::{Asked, Command, Step};
use super::key_name::{KeyName, TableName, TableRef};

/// A command that a running service can be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// Fail unless there is this table.
    Table(KeyName),
    /// Show the map.
    Map,
    /// List the broken rules of the map, and fail if there are any.
    Check,
    /// Show the range that holds a key.
    Find(KeyName),
    /// Change the map, from beginning to end.
    Change(Asked),
    /// Do nothing for so long.
    Wait(Duration),
}

/// A command that no running service can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{command} works on a map in memory alone: {why}")]
pub struct OnlyInMemory {
    /// Its first word.
    pub command: &'static str,
    /// What is so different about a running service.
    pub why: &'static str,
}

impl Command {
    /// This command to a running service.
    pub fn live(self) -> Result<Live, OnlyInMemory> {
        let not = |command, why| Err(OnlyInMemory { command, why });
        const WHOLE: &str = "a running service carries a change out, or undoes it, by itself";
        const PLANS: &str =
            "a running service plans by the load it has, and 'rangehold ranges' shows its last plan";
        Ok(match self {
            Self::Table { account, name } => {
                Live::Table(KeyName::Table(TableName { account, table: TableRef::Name(name) }))
            }
            Self::Map => Live::Map,
            Self::Check => Live::Check,
            Self::Find(key) => Live::Find(key),
            Self::Change { step: Step::Whole, asked } => Live::Change(asked),
            Self::Wait(time) => Live::Wait(time),
            Self::Server { .. } => {
                return not("server", "a running service has the servers it was started with");
            }
            Self::Change { step: Step::Begin, .. } => return not("begin", WHOLE),
            Self::Done(_) => return not("done", WHOLE),
            Self::Undo(_) => return not("undo", WHOLE),
            Self::Observe { .. } => {
                return not("observe", "a running service sees the load that its clients make");
            }
            Self::Plan(_) => return not("plan", PLANS),
            Self::Execute(_) => return not("execute", PLANS),
        })
    }
}
