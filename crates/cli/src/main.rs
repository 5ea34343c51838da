//! The `rangehold` program.
//!
//! | command | what it does |
//! |---|---|
//! | `dev` | serves tables from a local directory, ready for the Azure SDKs |
//! | `status`, `health` | ask a running server |
//! | `ranges`, `map`, `events` | show and change the ranges of a running server |
//! | `map script` | runs a file of commands on the map of a running server, or on one in memory |
//! | `history` | shows how much was asked of which keys over time |
//! | `rehearse` | lets a range of a running server misbehave, to try retry code |
//! | `backup`, `restore`, `copy` | copy a store, a running one too |
//! | `shards` | shard maps of SQL databases |
//! | `connection-string` | prints what SDKs want |
//!
//! Exit codes: 0 done, 1 failed, 2 called wrongly.

mod ask;
mod chance;
mod config;
mod dev;
mod history;
mod logs;
mod map;
mod ranges;
mod rehearse;
mod shards;
mod stores;
mod text_table;

use clap::{Parser, Subcommand};

/// Fewer cycles per request than with the system's allocator; see the workspace's Cargo.toml.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A storage service that keeps its keys in order, and speaks Azure Table Storage.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve tables from a local directory, ready for the Azure SDKs.
    Dev(config::DevFlags),
    /// Print the connection string of a server with these settings.
    ConnectionString(config::DevFlags),
    /// Print what a running server says of itself, as JSON.
    Status(ask::Asking),
    /// Exit 0 if a server is ready, 1 if not: for container health checks.
    Health(ask::Asking),
    /// Show each range of a running server: where it is, its load, and what is found about that.
    Ranges(ranges::Ranges),
    /// Show and change the map of ranges of a running server.
    #[command(subcommand)]
    Map(map::MapCommand),
    /// Show what happened to the ranges of a running server.
    Events(ranges::Following),
    /// Show how much was asked of which keys of a running server over the last minutes, as a heat map.
    History(history::History),
    /// Let a range misbehave for a while, so that retry code can be tried.
    #[command(subcommand)]
    Rehearse(rehearse::Rehearse),
    /// Make, change and check shard maps: which tenant's rows are in which SQL database.
    Shards(shards::Shards),
    /// Copy a store, running or not, into a new directory.
    Backup(stores::FromTo),
    /// Make a new data directory from a backup.
    Restore(stores::FromTo),
    /// Copy any store to a new place.
    Copy(stores::FromTo),
}

fn main() -> std::process::ExitCode {
    let done = match Program::parse().command {
        Command::Dev(flags) => dev::run(flags),
        Command::ConnectionString(flags) => dev::print_connection_string(flags),
        Command::Status(asking) => ask::status(&asking),
        Command::Health(asking) => ask::health(&asking),
        Command::Ranges(ranges) => ranges::show(&ranges),
        Command::Map(command) => map::run(command),
        Command::Events(following) => ranges::events(&following),
        Command::History(history) => history::show(&history),
        Command::Rehearse(rehearse) => rehearse::run(&rehearse),
        Command::Shards(shards) => shards::run(&shards),
        Command::Backup(stores) => stores::run(&stores, "backed up"),
        Command::Restore(stores) => stores::run(&stores, "restored"),
        Command::Copy(stores) => stores::run(&stores, "copied"),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rangehold: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
