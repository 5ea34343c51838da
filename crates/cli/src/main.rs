//! The `rangehold` program.
//!
//! | command | what it does |
//! |---|---|
//! | `dev` | serves tables from a local directory, ready for the Azure SDKs |
//! | `connection-string` | prints the connection strings that the SDKs need, one for each account |
//! | `status`, `health` | show the state of a running server |
//! | `ranges`, `map`, `events` | show and change the ranges of a running server |
//! | `map script` | runs a file of commands on the map of a running server, or on a map in memory |
//! | `history` | shows the load on keys over time |
//! | `rehearse` | makes a range of a running server misbehave, to test retry code |
//! | `object`, `bucket` | copy, list and delete objects and buckets, here or at Google |
//! | `shards` | makes, changes and checks shard maps of SQL databases |
//! | `table` | makes, deletes and lists tables; moves them between services and files |
//! | `entity` | reads and changes entities |
//! | `stress` | drives a peak that a plan describes, and says what limits the design of the keys |
//! | `backup`, `restore`, `copy` | copy a store, which may be in use; `restore --range` restores one range |
//! | `completions` | prints what a shell needs to complete commands |
//!
//! Exit codes: 0 if the command succeeded, 1 if it failed, 2 if its arguments are wrong, 3 if `stress` found that a peak is not borne.

mod account;
mod admin;
mod bucket;
mod chance;
mod config;
mod dev;
mod entity;
mod events;
mod health;
mod history;
mod logs;
mod map;
mod object;
mod output;
mod progress;
mod ranges;
mod rates;
mod rehearse;
mod shards;
mod status;
mod stores;
mod stress;
mod table;
mod text_table;
mod typed;

use clap::builder::Resettable;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Fewer cycles per request than with the system's allocator; see the workspace's Cargo.toml.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A storage service that keeps its keys in order, and speaks Azure Table Storage and Google Cloud Storage.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve tables and objects from a local directory, ready for the SDKs of Azure and Google.
    Dev(config::DevFlags),
    /// Print the connection strings of a server with these settings, one for each account.
    ConnectionString(dev::ConnectionStringFlags),
    /// Show the state of a running server at a glance.
    Status(output::View),
    /// Exit with 0 if a server is ready, and with 1 if not: for container health checks.
    Health(output::View),
    /// Show each range of a running server: its server, its load, and the verdict on that load.
    Ranges(ranges::RangesFlags),
    /// Show and change the map of ranges of a running server.
    #[command(subcommand)]
    Map(map::MapCommand),
    /// Show what happened to the ranges of a running server.
    Events(events::EventsFlags),
    /// Show the load on the keys of a running server over the last minutes, as a heat map.
    History(history::HistoryFlags),
    /// Make a range of a running server misbehave for a while, to test retry code.
    #[command(subcommand)]
    Rehearse(rehearse::Rehearse),
    /// Copy, list, move and delete objects, at a server of Rangehold or at Google.
    Object(object::ObjectCommands),
    /// Make, show, change and delete buckets of objects.
    Bucket(bucket::BucketCommands),
    /// Make, change and check shard maps, which say in which SQL database a tenant's rows are.
    Shards(shards::Shards),
    /// Make, delete and list tables; export, import and copy them, between services and files.
    #[command(subcommand)]
    Table(table::TableCommand),
    /// Read and change entities.
    #[command(subcommand)]
    Entity(entity::EntityCommand),
    /// Drive the peak that a plan describes, at Rangehold, Azure or Azurite, and say whether the keys bear it. Exits with 3
    /// if they do not.
    Stress(stress::Stress),
    /// Copy a store, which may be in use, into a new directory, all of it or what has changed since an earlier backup.
    Backup(stores::Backup),
    /// Make a new data directory from a backup, or restore one range of a directory.
    Restore(stores::Restore),
    /// Copy a store, which may be in use, to another place.
    Copy(stores::FromTo),
    /// Print the code with which a shell completes the commands and flags of this program.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// The commands. A variable of the environment that is set to nothing counts as not set: compose files and unit files
/// write it so.
fn commands() -> clap::Command {
    without_empty_variables(Program::command())
}

fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &std::ffi::OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = command.mut_args(|flag| match flag.get_env() {
        Some(name) if is_empty(name) => flag.env(Resettable::Reset),
        _ => flag,
    });
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, without_empty_variables))
}

fn main() -> std::process::ExitCode {
    let matches = commands().get_matches();
    let program = Program::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let done = match program.command {
        Command::Dev(flags) => dev::run(flags),
        Command::ConnectionString(flags) => dev::print_connection_strings(&flags),
        Command::Status(view) => status::show(&view),
        Command::Health(view) => health::show(&view),
        Command::Ranges(flags) => ranges::show(&flags),
        Command::Map(command) => map::run(command),
        Command::Events(flags) => events::show(&flags),
        Command::History(flags) => history::show(&flags),
        Command::Rehearse(rehearse) => rehearse::run(&rehearse),
        Command::Object(commands) => object::run(commands),
        Command::Bucket(commands) => bucket::run(commands),
        Command::Shards(shards) => shards::run(&shards),
        Command::Table(command) => table::run(&command),
        Command::Entity(command) => entity::run(&command),
        Command::Stress(stress) => match stress::run(&stress) {
            Ok(true) => Ok(()),
            Ok(false) => return std::process::ExitCode::from(stress::NOT_BORNE),
            Err(error) => Err(error),
        },
        Command::Backup(backup) => stores::backup(&backup),
        Command::Restore(restore) => stores::restore(&restore),
        Command::Copy(stores) => stores::run(&stores, None, "copied"),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut commands(), "rangehold", &mut std::io::stdout());
            Ok(())
        }
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rangehold: {}", rangehold_engine::with_causes(error.as_ref()));
            std::process::ExitCode::FAILURE
        }
    }
}
