//! `rangehold object`: files and objects, at Rangehold or at Google.
//!
//! The commands are those of `gcloud storage`, with its names and its flags. `place` reads the arguments, `find` looks patterns up,
//! `walk` finds files, `service` opens the client, `folders` and `rename` know buckets with a hierarchical
//! namespace. `cp` has the engine of copies, on which `mv` and `sync` stand.
//! `report` tells how far a command is and what came of it, by the counts of `tally`.

mod cat;
mod cp;
mod find;
mod folders;
mod limits;
mod ls;
mod moving;
mod mv;
mod place;
mod rename;
mod report;
mod rm;
pub(crate) mod service;
mod stat;
mod sync;
mod tally;
mod walk;

pub(crate) use place::cloud;
pub(crate) use stat::fields;

use anyhow::Result;
use clap::{Args, Subcommand};

use self::service::{ServiceFlags, block_on};

/// `rangehold object`
#[derive(Debug, Args)]
pub(crate) struct ObjectCommands {
    #[command(flatten)]
    service: ServiceFlags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List objects and folders, or buckets.
    Ls(ls::Ls),
    /// Copy files to objects, objects to files, or objects to objects. What has the same bytes at its target is skipped.
    Cp(cp::Cp),
    /// Print objects.
    Cat(cat::Cat),
    /// Delete objects.
    Rm(rm::Rm),
    /// Move objects, folders and files: in a bucket by renaming, elsewhere by copying and deleting.
    Mv(mv::Mv),
    /// Show what the service knows of an object.
    Stat(stat::Stat),
    /// Make the content of a folder or bucket equal to that of another one.
    Sync(sync::Sync),
}

/// Runs a command.
pub(crate) fn run(ObjectCommands { service, command }: ObjectCommands) -> Result<()> {
    match command {
        Command::Ls(ls) => block_on(ls::run(&service, &ls)),
        Command::Cp(cp) => block_on(cp::run(&service, &cp)),
        Command::Cat(cat) => block_on(cat::run(&service, &cat)),
        Command::Rm(rm) => block_on(rm::run(&service, &rm)),
        Command::Mv(mv) => block_on(mv::run(&service, &mv)),
        Command::Stat(stat) => block_on(stat::run(&service, &stat)),
        Command::Sync(sync) => block_on(sync::run(&service, &sync)),
    }
}
