//! `rangehold map`: shows which server has which range, and changes that by hand.
//!
//! A change is an [`Asked`] of the command language of maps, whether the user types it as a command or
//! writes it into a script ([`Script`]). One parser reads both, and [`calls`] sends both.

mod calls;
mod script;

use anyhow::Result;
use clap::Subcommand;
use rangehold_map::ServerId;
use rangehold_map::script::{Asked, KeyName, Target};

pub(crate) use self::calls::{changed_text, move_away};
use self::script::Script;
use crate::output::View;

/// `rangehold map ...`. A range is named r2; or r2@3, which is refused if the range is not in generation 3;
/// or by a key that it holds. A key is written as table/PartitionKey or table/"Partition Key".
#[derive(Debug, Subcommand)]
pub(crate) enum MapCommand {
    /// Show the ranges, and the server of each.
    Show(View),
    /// List the rules that the map breaks. Fails if it breaks any.
    Check(View),
    /// Split a range in two, before the partition at KEY.
    Split {
        /// The first key of the right half, such as marathon/Full.
        key: KeyName,
        /// Split only if this range holds the key.
        #[arg(long)]
        range: Option<Target>,
        #[command(flatten)]
        view: View,
    },
    /// Merge two neighbouring ranges into one.
    Merge {
        /// The range with the lower keys.
        left: Target,
        /// The range with the higher keys.
        right: Target,
        #[command(flatten)]
        view: View,
    },
    /// Move a range to another server of the process.
    Move {
        /// The range.
        range: Target,
        /// The server, such as s2.
        to: ServerId,
        #[command(flatten)]
        view: View,
    },
    /// Take a range offline: it refuses every request.
    Offline {
        /// The range.
        range: Target,
        #[command(flatten)]
        view: View,
    },
    /// Set a range online: it serves requests again.
    Online {
        /// The range.
        range: Target,
        #[command(flatten)]
        view: View,
    },
    /// Run a file of commands, one on each line: split, merge, move, offline, online, map, check, find, table
    /// and wait. The first command that fails ends the run. With --dry-run there is no server, and the file
    /// may use all commands of the language.
    Script(Script),
}

/// Shows the map, or changes it.
pub(crate) fn run(command: MapCommand) -> Result<()> {
    let (view, asked) = match command {
        MapCommand::Show(view) => return calls::show(&view),
        MapCommand::Check(view) => return calls::check(&view),
        MapCommand::Script(script) => return script.run(),
        MapCommand::Split { key, range, view } => {
            let range = range.unwrap_or_else(|| Target::Holding(key.clone()));
            (view, Asked::Split { range, at: key })
        }
        MapCommand::Merge { left, right, view } => (view, Asked::Merge { left, right }),
        MapCommand::Move { range, to, view } => (view, Asked::Move { range, to }),
        MapCommand::Offline { range, view } => (view, Asked::Offline(range)),
        MapCommand::Online { range, view } => (view, Asked::Online(range)),
    };
    calls::change(&view, &asked)
}
