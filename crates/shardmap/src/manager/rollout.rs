//! A script for all shards: a change of the users' schema, which is rolled out shard by shard.
//!
//! Each shard has a table of its roll-outs. The row of a roll-out is written in the transaction of its script. So
//! after an error or a crash, any process can simply start the roll-out again: shards that have it are skipped. The
//! first shard is done alone. If it fails, no other shard is touched.

use futures::StreamExt;

use super::ShardMapManager;
use crate::error::{Category, Code, Error};
use crate::limits::ROLLOUT_SHARDS_AT_ONCE;
use crate::location::Location;
use crate::store::{Failure, For, StoreError};

/// A script with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    /// The name, which must not be used again for another script.
    pub name: String,
    /// Statements, without `BEGIN` and `COMMIT`: they are one transaction in each shard.
    pub script: String,
}

/// The state of a roll-out in one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutState {
    /// The shard does not have it yet.
    Waiting,
    /// The shard has it.
    Done {
        /// The time at which it was done, in microseconds since 1970 by the shard's clock.
        at: i64,
    },
    /// The shard has another script of this name.
    OtherScript,
    /// It failed, and the shard is as it was.
    Failed {
        /// The message of the shard.
        message: String,
    },
}

impl ShardMapManager {
    /// The state of a roll-out in each of these shards.
    pub async fn rollout_states(
        &self,
        rollout: &Rollout,
        shards: &[Location],
    ) -> Vec<(Location, RolloutState)> {
        let states =
            shards.iter().map(|place| async move { (place.clone(), self.state(rollout, place).await) });
        futures::stream::iter(states).buffered(ROLLOUT_SHARDS_AT_ONCE).collect().await
    }

    /// Rolls a script out: to the first shard alone, and then to the others, a few at a time. After a failure no more
    /// shards are begun. Returns the state of each shard. A second call continues where the first one stopped.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidArgument`] if a shard has another script of this name. In this case nothing was done.
    pub async fn roll_out(
        &self,
        rollout: &Rollout,
        shards: &[Location],
    ) -> Result<Vec<(Location, RolloutState)>, Error> {
        self.roll_out_watched(rollout, shards, |_, _| {}).await
    }

    /// The same, and tells how far it is. Calls `watch` once for each shard that had the script before, and once for each on
    /// which it then ran or failed. Shards that are not begun are not told.
    ///
    /// # Errors
    ///
    /// As [`ShardMapManager::roll_out`].
    pub async fn roll_out_watched(
        &self,
        rollout: &Rollout,
        shards: &[Location],
        watch: impl Fn(&Location, &RolloutState) + Send + Sync,
    ) -> Result<Vec<(Location, RolloutState)>, Error> {
        let watch = &watch;
        let mut states = self.rollout_states(rollout, shards).await;
        if let Some((place, _)) = states.iter().find(|(_, state)| *state == RolloutState::OtherScript) {
            return Err(other_script(rollout, place));
        }
        for (place, state) in states.iter().filter(|(_, state)| matches!(state, RolloutState::Done { .. })) {
            watch(place, state);
        }
        let mut left: Vec<&mut (Location, RolloutState)> =
            states.iter_mut().filter(|(_, state)| !matches!(state, RolloutState::Done { .. })).collect();
        let rest = left.split_off(left.len().min(1));
        for entry in left {
            entry.1 = self.roll_out_at(rollout, &entry.0).await;
            watch(&entry.0, &entry.1);
            if matches!(entry.1, RolloutState::Failed { .. }) {
                return Ok(states);
            }
        }
        for chunk in rest.into_iter().collect::<Vec<_>>().chunks_mut(ROLLOUT_SHARDS_AT_ONCE) {
            let work = chunk.iter_mut().map(|entry| async move {
                entry.1 = self.roll_out_at(rollout, &entry.0).await;
                watch(&entry.0, &entry.1);
                matches!(entry.1, RolloutState::Failed { .. })
            });
            if futures::future::join_all(work).await.contains(&true) {
                break;
            }
        }
        Ok(states)
    }

    async fn state(&self, rollout: &Rollout, place: &Location) -> RolloutState {
        match self.read_state(rollout, place).await {
            Ok(state) => state,
            Err(error) if error.failure == Failure::NoSchema => RolloutState::Waiting,
            Err(error) => RolloutState::Failed { message: error.message },
        }
    }

    async fn read_state(&self, rollout: &Rollout, place: &Location) -> Result<RolloutState, StoreError> {
        let mut tx = self.0.operations.databases.at(place)?.begin(For::Reading).await?;
        let sql = "select script, done_at from __shard_management.local_rollouts where name = $1";
        let Some(mut row) = tx.query_one(sql, &[rollout.name.as_str().into()]).await? else {
            tx.commit().await?;
            return Ok(RolloutState::Waiting);
        };
        tx.commit().await?;
        let (script, at) = (row.text()?, row.int()?);
        Ok(if script == rollout.script { RolloutState::Done { at } } else { RolloutState::OtherScript })
    }

    async fn roll_out_at(&self, rollout: &Rollout, place: &Location) -> RolloutState {
        match self.try_roll_out(rollout, place).await {
            Ok(at) => RolloutState::Done { at },
            Err(error) => RolloutState::Failed { message: error.message },
        }
    }

    async fn try_roll_out(&self, rollout: &Rollout, place: &Location) -> Result<i64, StoreError> {
        let mut tx = self.0.operations.databases.at(place)?.begin(For::Writing).await?;
        let sql = "create table if not exists __shard_management.local_rollouts
            (name text primary key, script text not null, done_at bigint not null)";
        tx.execute(sql, &[]).await?;
        let at = tx.now().await?;
        // This comes before the script. If two processes roll out at the same time, the second waits here and is
        // refused.
        let sql = "insert into __shard_management.local_rollouts (name, script, done_at) values ($1, $2, $3)";
        tx.execute(sql, &[rollout.name.as_str().into(), rollout.script.as_str().into(), at.into()]).await?;
        tx.script(&rollout.script).await?;
        tx.commit().await?;
        Ok(at)
    }
}

fn other_script(rollout: &Rollout, place: &Location) -> Error {
    let text = format!(
        "{place} has another script of the name {:?}: a script that was rolled out is not changed, so give this one another \
        name",
        rollout.name
    );
    Error::new(Category::General, Code::InvalidArgument, text)
}
