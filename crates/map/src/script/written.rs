//! Writes commands as lines, as [`super::parse()`] reads them.

use std::fmt;

use super::command::{Asked, CauseName, Command, Observed, Step, Target};
use super::words::show_duration;
use crate::plan::Standing;

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table { account: Some(account), name } => write!(f, "table {account}:{name}"),
            Self::Table { account: None, name } => write!(f, "table {name}"),
            Self::Server { server, capacity, standing } => {
                write!(f, "server {server}")?;
                if let Some(capacity) = capacity {
                    write!(f, " capacity={capacity}")?;
                }
                f.write_str(match standing {
                    Standing::Serving => "",
                    Standing::Leaving => " leaving",
                    Standing::Dead => " dead",
                })
            }
            Self::Map => f.write_str("map"),
            Self::Check => f.write_str("check"),
            Self::Find(key) => write!(f, "find {key}"),
            Self::Change { step: Step::Whole, asked } => write!(f, "{asked}"),
            Self::Change { step: Step::Begin, asked } => write!(f, "begin {asked}"),
            Self::Done(range) => write!(f, "done {range}"),
            Self::Undo(range) => write!(f, "undo {range}"),
            Self::Observe { range, observed } => write!(f, "observe {range} {observed}"),
            Self::Wait(time) => write!(f, "wait {}", show_duration(*time)),
            Self::Plan(profile) => write!(f, "plan {profile}"),
            Self::Execute(profile) => write!(f, "execute {profile}"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range { id, generation: Some(generation) } => write!(f, "{id}@{generation}"),
            Self::Range { id, generation: None } => write!(f, "{id}"),
            Self::Holding(key) => write!(f, "{key}"),
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Split { range: Target::Holding(key), at } if key == at => write!(f, "split {at}"),
            Self::Split { range, at } => write!(f, "split {range} at {at}"),
            Self::Merge { left, right } => write!(f, "merge {left} {right}"),
            Self::Move { range, to } => write!(f, "move {range} to {to}"),
            Self::Offline(range) => write!(f, "offline {range}"),
            Self::Online(range) => write!(f, "online {range}"),
        }
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rate={}", self.rate)?;
        if let Some(peak) = self.peak {
            write!(f, " peak={peak}")?;
        }
        if self.bytes > 0 {
            write!(f, " bytes={}", self.bytes)?;
        }
        if self.crashes > 0 {
            write!(f, " crashes={}", self.crashes)?;
        }
        self.cause.as_ref().map_or(Ok(()), |cause| write!(f, " cause={cause}"))
    }
}

impl fmt::Display for CauseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Split(at) => write!(f, "split:{at}"),
            Self::HotKey(share, key) => write!(f, "hot-key:{share}:{key}"),
            Self::Append(share) => write!(f, "append:{share}"),
            Self::Prepend(share) => write!(f, "prepend:{share}"),
            Self::Scan(share) => write!(f, "scan:{share}"),
            Self::Unclear => f.write_str("unclear"),
        }
    }
}
