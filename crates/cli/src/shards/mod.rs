//! `rangehold shards`: makes, changes, shows and repairs shard maps of SQL databases.
//!
//! Each command opens the global map, does one thing, and prints the result: as text for people, or as JSON for
//! programs (`--output json`). The library makes all decisions; this module reads the arguments and writes the
//! texts.

mod access;
mod answer;
mod any_map;
mod exec;
mod import;
mod limits;
mod map;
mod mapping;
mod metrics;
mod query;
mod rebuild;
mod recovery;
mod retries;
mod schema;
mod shard;
mod tenants;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use rangehold_shardmap::{Code, CreateMode, Location, ManagerOptions, Metrics, ShardMapManager};
use serde_json::json;

use self::answer::Answer;
use self::retries::Retries;
use crate::progress::Progress;

/// `rangehold shards`
#[derive(Debug, Args)]
pub(crate) struct Shards {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// The arguments of all commands.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Location of the global map: sqlite:PATH or postgres://USER@SERVER:PORT/DATABASE[?sslmode=verify-full].
    /// The password comes from PGPASSWORD, or from the file that PGPASSFILE names (~/.pgpass). The user comes
    /// from PGUSER if the location has none. The same user connects to the shards.
    #[arg(long, env = "RANGEHOLD_SHARDS_GLOBAL", value_name = "URL", global = true)]
    global: Option<String>,
    /// Name of the shard map [default: the only one]
    #[arg(long, value_name = "NAME", global = true)]
    map: Option<String>,
    /// The form of the output: text for people, json for programs.
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true)]
    output: Output,
    #[command(flatten)]
    retries: Retries,
    /// When the command has ended, also if it failed, write what it has counted to this file, as text for Prometheus.
    #[arg(long, value_name = "FILE", global = true)]
    metrics: Option<PathBuf>,
}

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Tables and sentences.
    Text,
    /// JSON.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a global map.
    Init {
        /// Drop the global map that exists. Its shards are detached first, and keep their local maps, closed.
        #[arg(long)]
        replace: bool,
    },
    /// Make your database the first shard of a map. No row is copied.
    Adopt(tenants::Adopt),
    /// Make, delete and list shard maps.
    #[command(subcommand)]
    Map(map::MapCommand),
    /// Add, remove, change and list the shards of a map.
    #[command(subcommand)]
    Shard(shard::ShardCommand),
    /// Change which keys are mapped to which shard. No row is moved.
    #[command(subcommand)]
    Mapping(mapping::MappingCommand),
    /// Show the shard of a key.
    Locate {
        /// The key.
        key: String,
    },
    /// Show the mappings of a map.
    List(mapping::List),
    /// Read all shards of a map by one statement, and show the rows with their shards.
    Query(query::Query),
    /// Print the statement that makes a view of the rows whose keys are in the shard, for `exec`.
    View(query::Table),
    /// Print the statement that makes a table refuse rows whose keys are not in the shard, for `exec`.
    Guard(query::Table),
    /// Show and change notes on which tables are sharded.
    #[command(subcommand)]
    Schema(schema::SchemaCommand),
    /// Compare the global map with the local map of each shard. Fails if they differ.
    Check,
    /// Show the operations that are under way, or were abandoned.
    Pending,
    /// End abandoned operations; or repair what differs between the global map and a shard.
    Recover(recovery::Recover),
    /// Bring the global map and the shards to the tables and functions of this version.
    Upgrade,
    /// Give a new tenant, or the next ranges, a shard.
    Provision(tenants::Provision),
    /// Run a script in every shard: first in one alone, then in the others. After a failure, run the command
    /// again to continue.
    Exec(exec::Exec),
    /// Show how many tenants and bytes each shard has.
    Sizes,
}

/// Runs a command.
pub(crate) fn run(Shards { common, command }: &Shards) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    let (answer, counted) = match runtime.block_on(common.manager_for(command)) {
        Ok(manager) => {
            let answer = runtime.block_on(run_command(&manager, common, command));
            (answer, manager.metrics().prometheus())
        }
        // No manager has counted anything. Zeros replace the counts of an earlier command.
        Err(error) => (Err(error), Metrics::default().prometheus()),
    };
    let written = common.metrics.as_deref().map_or(Ok(()), |file| metrics::write(file, &counted));
    match (answer.and_then(|answer| tell(answer, common.output)), written) {
        (Err(failed), Err(also)) => {
            eprintln!("rangehold: {also:#}");
            Err(failed)
        }
        (done, written) => done.and(written),
    }
}

/// Prints the output of a command. Fails if the command did.
fn tell(answer: Answer, output: Output) -> Result<()> {
    match output {
        Output::Json => println!("{:#}", answer.json),
        Output::Text => print!("{}", answer.text),
    }
    match answer.failed {
        None => Ok(()),
        Some(why) => bail!(why),
    }
}

async fn run_command(manager: &ShardMapManager, common: &Common, command: &Command) -> Result<Answer> {
    match command {
        Command::Init { .. } => {
            let text = format!("made the global map at {}\n", manager.location());
            Ok(Answer::new(json!({ "global": manager.location().to_string() }), text))
        }
        Command::Adopt(adopt) => tenants::adopt(manager, common, adopt).await,
        Command::Map(command) => map::run(manager, command).await,
        Command::Shard(command) => shard::run(&any_map::any(manager, common).await?, command).await,
        Command::Mapping(command) => {
            mapping::run(&any_map::any(manager, common).await?, common, command).await
        }
        Command::Locate { key } => mapping::locate(&any_map::any(manager, common).await?, key).await,
        Command::List(list) => mapping::list(&any_map::any(manager, common).await?, list).await,
        Command::Query(query) => query::query(&any_map::any(manager, common).await?, common, query).await,
        Command::View(table) => query::view(&any_map::any(manager, common).await?, table).await,
        Command::Guard(table) => query::guard(&any_map::any(manager, common).await?, table).await,
        Command::Schema(command) => schema::run(manager, command).await,
        Command::Check => recovery::check(manager, common).await,
        Command::Upgrade => recovery::upgrade(manager, common).await,
        Command::Pending => recovery::pending(manager).await,
        Command::Recover(recover) => recovery::recover(manager, common, recover).await,
        Command::Provision(provision) => {
            tenants::provision(&any_map::any(manager, common).await?, common, provision).await
        }
        Command::Exec(exec) => exec::exec(manager, common, exec).await,
        Command::Sizes => tenants::sizes(&any_map::any(manager, common).await?).await,
    }
}

impl Common {
    /// The location of the global map, how to connect to databases, and how often to try again.
    fn reach(&self) -> Result<(rangehold_shardmap::Location, ManagerOptions)> {
        let url = self.global.as_deref().context(
            "give the location of the global map by --global sqlite:PATH or --global postgres://..., or set RANGEHOLD_SHARDS_GLOBAL",
        )?;
        let (location, postgres) = access::reach(url)?;
        let owner = format!("rangehold shards, process {}", std::process::id());
        let retries = self.retries.policy()?;
        let postgres = Some(postgres);
        Ok((location, ManagerOptions { postgres, owner, retries, ..ManagerOptions::default() }))
    }

    /// The manager that carries a command out: of the global map that exists, or of one that the command makes.
    async fn manager_for(&self, command: &Command) -> Result<ShardMapManager> {
        let mode = match command {
            Command::Init { replace: true } => CreateMode::ReplaceExisting,
            Command::Init { replace: false } | Command::Adopt(_) => CreateMode::KeepExisting,
            _ => return self.open().await,
        };
        let (location, options) = self.reach()?;
        match (ShardMapManager::create(location, mode, options).await, command) {
            (Err(error), Command::Adopt(_)) if error.code() == Code::StoreAlreadyExists => self.open().await,
            (made, _) => Ok(made?),
        }
    }

    async fn open(&self) -> Result<ShardMapManager> {
        let (location, options) = self.reach()?;
        // A file that does not exist is a global map that was not made. A server that cannot be reached is not.
        let is_file = matches!(location, Location::Sqlite { .. });
        ShardMapManager::open(location, options).await.map_err(|error| {
            let hint = match error.code() {
                code if is_file || code == Code::StoreDoesNotExist => {
                    "cannot open the global map; 'rangehold shards init' makes one"
                }
                _ => "cannot open the global map",
            };
            anyhow::Error::from(error).context(hint)
        })
    }

    /// Begins the line that shows how many of all `things` are done. A caller that wants JSON is a program, and sees none.
    fn progress(&self, step: &'static str, things: &str, total: usize) -> Progress {
        Progress::begin(self.output == Output::Json, step, things, Some(total as u64))
    }

    /// Begins the line that shows that a step which is done as a whole is under way.
    fn waiting(&self, step: &'static str) -> Progress {
        Progress::waiting(self.output == Output::Json, step)
    }
}
