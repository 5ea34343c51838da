//! `rangehold shards exec`: runs a script in every shard.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use rangehold_shardmap::tenants::{Rollout, RolloutState};
use rangehold_shardmap::{Location, ShardMapManager};
use serde_json::json;

use super::Common;
use super::answer::Answer;
use crate::text_table::text_table;

/// `rangehold shards exec`
#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// File with the SQL script. It runs in one transaction in each shard, so write no BEGIN and COMMIT.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// The name under which shards remember the script [default: the name of the file]
    #[arg(long)]
    name: Option<String>,
    /// Only show in which shards the script ran.
    #[arg(long)]
    plan: bool,
}

/// Runs a script in all shards, or shows where it ran.
pub(super) async fn exec(manager: &ShardMapManager, common: &Common, exec: &Exec) -> Result<Answer> {
    let script = std::fs::read_to_string(&exec.file)
        .with_context(|| format!("cannot read the script {}", exec.file.display()))?;
    let of_file =
        || exec.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let rollout = Rollout { name: exec.name.clone().unwrap_or_else(of_file), script };
    let shards = manager.shard_locations().await?;
    let states = match exec.plan {
        true => manager.rollout_states(&rollout, &shards).await,
        false => run_in_all(manager, common, &rollout, &shards).await?,
    };
    let failed = states.iter().filter(|(_, state)| matches!(state, RolloutState::Failed { .. })).count();
    let rows: Vec<[String; 3]> = states.iter().map(state_row).collect();
    let json = rows
        .iter()
        .map(|[shard, state, why]| json!({ "shard": shard, "state": state, "why": why }))
        .collect();
    let why = format!("{failed} shards failed: remove the cause, and run the same command again");
    Ok(Answer::new(json, text_table(["shard", "state", ""], &rows)).or_failed((failed > 0).then_some(why)))
}

async fn run_in_all(
    manager: &ShardMapManager,
    common: &Common,
    rollout: &Rollout,
    shards: &[Location],
) -> Result<Vec<(Location, RolloutState)>> {
    let progress = common.progress("running", "shards", shards.len());
    let states = manager.roll_out_watched(rollout, shards, |_, _| progress.add(1)).await?;
    progress.end();
    Ok(states)
}

fn state_row((location, state): &(Location, RolloutState)) -> [String; 3] {
    let (word, why) = match state {
        RolloutState::Waiting => ("waiting", String::new()),
        RolloutState::Done { .. } => ("done", String::new()),
        RolloutState::OtherScript => ("other", "ran another script with this name".to_owned()),
        RolloutState::Failed { message } => ("failed", message.clone()),
    };
    [location.to_string(), word.to_owned(), why]
}
