//! `shards`: shard maps of SQL databases, made, changed, looked at and put right.
//!
//! Each command opens the global map, does one thing, and says what came of it: in a table for people, in JSON
//! for programs (`--output json`). What is decided is decided in the library; here it gets its words.

mod access;
mod living;
mod maps;
mod recovery;
mod show;

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use rangehold_shardmap::{CreateMode, ManagerOptions, ShardMapManager};
use serde_json::json;

use crate::shards::show::Shown;

/// `rangehold shards`
#[derive(Debug, Args)]
pub(crate) struct Shards {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Where the global map is: sqlite:PATH or postgres://USER@SERVER:PORT/DATABASE[?sslmode=verify-full].
    /// Passwords come from PGPASSWORD or the file that PGPASSFILE names (~/.pgpass); the user from PGUSER where
    /// the address has none. Shards are reached as the same user.
    #[arg(long, env = "RANGEHOLD_SHARDS_GLOBAL", value_name = "URL", global = true)]
    global: Option<String>,
    /// Which shard map; may be left out where there is only one.
    #[arg(long, value_name = "NAME", global = true)]
    map: Option<String>,
    /// For people or for programs.
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true)]
    output: Output,
}

/// How things are printed.
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
        /// Drop the one that is there. Shards keep their local maps.
        #[arg(long)]
        replace: bool,
    },
    /// Make the database that you have the first shard; no row is copied.
    Adopt(living::Adopt),
    /// Make, delete and list shard maps.
    #[command(subcommand)]
    Map(maps::MapCommand),
    /// Add, remove and change shards of a map.
    #[command(subcommand)]
    Shard(maps::ShardCommand),
    /// Change which keys are on which shard. No row is moved.
    #[command(subcommand)]
    Mapping(maps::MappingCommand),
    /// Show where a key is.
    Locate {
        /// The key.
        key: String,
    },
    /// Show all mappings of a map.
    List,
    /// Compare the global map with what each shard says; fails if they differ.
    Check,
    /// Show the operations that are under way or were abandoned.
    Pending,
    /// End abandoned operations; or make the global map and a shard say the same.
    Recover(recovery::Recover),
    /// Give a new tenant, or the next ranges, a shard.
    Provision(living::Provision),
    /// Run a script in every shard, the first one alone; run it again to go on after a failure.
    Exec(living::Exec),
    /// Show how many tenants and bytes each shard has.
    Sizes,
}

/// Runs a command.
pub(crate) fn run(shards: &Shards) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    let shown = runtime.block_on(answer(shards))?;
    match shards.common.output {
        Output::Json => println!("{:#}", shown.json),
        Output::Text => print!("{}", shown.text),
    }
    match shown.failed {
        None => Ok(()),
        Some(why) => anyhow::bail!(why),
    }
}

async fn answer(Shards { common, command }: &Shards) -> Result<Shown> {
    if let Command::Init { replace } = command {
        return init(common, *replace).await;
    }
    if let Command::Adopt(adopt) = command {
        return living::adopt(common, adopt).await;
    }
    let manager = common.open().await?;
    match command {
        Command::Init { .. } | Command::Adopt(_) => unreachable!("answered above"),
        Command::Map(command) => maps::map(&manager, command).await,
        Command::Shard(command) => maps::shard(&maps::any(&manager, common).await?, command).await,
        Command::Mapping(command) => maps::mapping(&maps::any(&manager, common).await?, command).await,
        Command::Locate { key } => maps::locate(&maps::any(&manager, common).await?, key).await,
        Command::List => maps::list(&maps::any(&manager, common).await?).await,
        Command::Check => recovery::check(&manager).await,
        Command::Pending => recovery::pending(&manager).await,
        Command::Recover(recover) => recovery::recover(&manager, common, recover).await,
        Command::Provision(provision) => {
            living::provision(&maps::any(&manager, common).await?, provision).await
        }
        Command::Exec(exec) => living::exec(&manager, exec).await,
        Command::Sizes => living::sizes(&maps::any(&manager, common).await?).await,
    }
}

async fn init(common: &Common, replace: bool) -> Result<Shown> {
    let mode = if replace { CreateMode::ReplaceExisting } else { CreateMode::KeepExisting };
    let (location, options) = common.reach()?;
    let manager = ShardMapManager::create(location, mode, options).await?;
    let text = format!("the global map is at {}\n", manager.location());
    Ok(Shown::new(json!({ "global": manager.location().to_string() }), text))
}

impl Common {
    /// The global map's place, and how databases are reached.
    fn reach(&self) -> Result<(rangehold_shardmap::Location, ManagerOptions)> {
        let url = self.global.as_deref().context(
            "where is the global map? give --global sqlite:PATH or postgres://..., or set RANGEHOLD_SHARDS_GLOBAL",
        )?;
        let (location, postgres) = access::reach(url)?;
        let owner = format!("rangehold shards, process {}", std::process::id());
        Ok((location, ManagerOptions { postgres: Some(postgres), owner, ..ManagerOptions::default() }))
    }

    async fn open(&self) -> Result<ShardMapManager> {
        let (location, options) = self.reach()?;
        let hint = "the global map does not open; 'rangehold shards init' makes one";
        ShardMapManager::open(location, options).await.context(hint)
    }
}
