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

pub(crate) use self::calls::move_away;
use self::script::Script;
use crate::ranges::Showing;

/// `rangehold map ...`. Ranges are named r2, or r2@3 (refused unless it is in generation 3), or by a key
/// that they hold; keys are written as table/PartitionKey or table/"Partition Key".
#[derive(Debug, Subcommand)]
pub(crate) enum MapCommand {
    /// Show which range is where.
    Show(Showing),
    /// List the rules of the map that are broken; fails if there are any.
    Check(Showing),
    /// Cut a range in two, before the partition at KEY.
    Split {
        /// Where to cut, such as marathon/Full.
        key: KeyName,
        /// Only if this range holds the key.
        #[arg(long)]
        range: Option<Target>,
        #[command(flatten)]
        showing: Showing,
    },
    /// Make two neighbours one range.
    Merge {
        /// The range with the lower keys.
        left: Target,
        /// The other.
        right: Target,
        #[command(flatten)]
        showing: Showing,
    },
    /// Give a range to another server of the process.
    Move {
        /// The range.
        range: Target,
        /// The server, such as s2.
        to: ServerId,
        #[command(flatten)]
        showing: Showing,
    },
    /// Let a range refuse every request.
    Offline {
        /// The range.
        range: Target,
        #[command(flatten)]
        showing: Showing,
    },
    /// Let a range that is offline serve again.
    Online {
        /// The range.
        range: Target,
        #[command(flatten)]
        showing: Showing,
    },
    /// Run a file of commands, one a line, up to the first that fails: split, merge, move, offline,
    /// online, map, check, find, table, wait. With --dry-run all of the language, and no server.
    Script(Script),
}

/// Shows the map, or changes it.
pub(crate) fn run(command: MapCommand) -> Result<()> {
    let (showing, asked) = match command {
        MapCommand::Show(showing) => return calls::show(&showing),
        MapCommand::Check(showing) => return calls::check(&showing),
        MapCommand::Script(script) => return script.run(),
        MapCommand::Split { key, range, showing } => {
            let range = range.unwrap_or_else(|| Target::Holding(key.clone()));
            (showing, Asked::Split { range, at: key })
        }
        MapCommand::Merge { left, right, showing } => (showing, Asked::Merge { left, right }),
        MapCommand::Move { range, to, showing } => (showing, Asked::Move { range, to }),
        MapCommand::Offline { range, showing } => (showing, Asked::Offline(range)),
        MapCommand::Online { range, showing } => (showing, Asked::Online(range)),
    };
    calls::change(&showing, &asked)
}
