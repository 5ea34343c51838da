//! The commands that a running service accepts, and why it refuses the others.
//!
//! On a map in memory, a script can invent servers, loads and the time. A running service has its own. So it
//! accepts only the commands that ask something or change ranges. `table` makes a table on a map in memory;
//! on a service it checks that the table exists. So the same script can be tried in memory first and then be
//! carried out.

use std::time::Duration;

use thiserror::Error;

use super::command::{Asked, Command, Step};
use super::key_name::{KeyName, TableName, TableRef};

/// A command that a running service accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// Fail unless this table exists.
    Table(KeyName),
    /// Show the map.
    Map,
    /// List the broken rules of the map; fail if there are any.
    Check,
    /// Show the range that holds a key.
    Find(KeyName),
    /// Carry out a change.
    Change(Asked),
    /// Do nothing for this long.
    Wait(Duration),
}

/// A command that a running service does not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{command} works only on a map in memory: {why}")]
pub struct OnlyInMemory {
    /// The first word of the command.
    pub command: &'static str,
    /// Why a running service does not accept it.
    pub why: &'static str,
}

impl Command {
    /// This command for a running service, or why there is none.
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
