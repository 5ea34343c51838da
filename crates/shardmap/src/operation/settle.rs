//! Deals with an operation of another process that is in the way. It waits for the owner, or takes the operation over
//! and ends it.

use std::time::Duration;

use futures::future::BoxFuture;
use uuid::Uuid;

use super::hook::Step;
use super::numbers::take;
use super::plan::{Direction, OperationKind, Plan};
use super::{Met, Operations, Owned, Trouble};
use crate::error::{Category, Code, Error};
use crate::limits::{OPERATIONS_PER_ROUND_MAX, PENDING_PAUSE_MAX, PENDING_PAUSE_MIN};
use crate::store::{Database, Failure, For, Mark, Row, StoreError, Tx};

/// An operation in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingOperation {
    /// Its id.
    pub id: Uuid,
    /// What it does.
    pub kind: OperationKind,
    /// The shard map that it changes.
    pub map: String,
    /// The owner that carries it out.
    pub owner: String,
    /// When others may take it over, in microseconds since 1970 by the global map's clock.
    pub lease_until: i64,
    /// When it began, by the same clock.
    pub began_at: i64,
    /// Whether the lease is over, so that the next process that finds the operation ends it.
    pub abandoned: bool,
    /// Whether it is being undone.
    pub undoing: bool,
}

/// What a look at an operation shows.
enum Look {
    /// The operation is at its end.
    Ended,
    /// Its owner still has a lease: when it ends, and how long that is from now.
    Lives { until: i64, left: Duration },
    /// This role only reads the global map, and cannot end the operation.
    ReadOnly,
    /// It is ours now.
    Taken(Box<Owned>),
}

impl Operations {
    /// Waits until the operation is at its end, for at most the lease of its owner. If the lease is over, ends the
    /// operation.
    ///
    /// `hurry` is for a caller that has met too many operations. It does not wait any longer.
    ///
    /// # Errors
    ///
    /// [`Code::PendingOperation`], if the owner has renewed its lease meanwhile, or if the operation can
    /// be neither done nor undone now.
    pub(crate) fn settle<'a>(
        &'a self,
        met: &'a Met,
        category: Category,
        hurry: bool,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.wait_or_end(met, category, hurry, false))
    }

    /// The same for a caller that has an answer from before the operation. If its role only reads the global map, it does
    /// not wait.
    ///
    /// # Errors
    ///
    /// As [`Operations::settle`]; [`Failure::Denied`] for a role that only reads.
    pub(crate) fn settle_if_writer<'a>(
        &'a self,
        met: &'a Met,
        category: Category,
        hurry: bool,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.wait_or_end(met, category, hurry, true))
    }

    async fn wait_or_end(
        &self,
        met: &Met,
        category: Category,
        hurry: bool,
        if_writer: bool,
    ) -> Result<(), Error> {
        self.metrics.operations_met.one();
        let mut pause = PENDING_PAUSE_MIN;
        let mut first_end = None;
        loop {
            let look = self.look(met.operation, if_writer).await;
            match look.map_err(|trouble| trouble.seen_by(category))? {
                Look::Ended => return Ok(()),
                Look::ReadOnly => return Err(read_only(met, category)),
                Look::Lives { until, left } => {
                    let renewed = *first_end.get_or_insert(until) < until;
                    // A lease that is longer than ours comes from a process with other settings. We do not wait for
                    // its end.
                    let waited = renewed && first_end.is_some_and(|first| self.is_over(first, until, left));
                    if hurry || waited {
                        return Err(lives(met, category));
                    }
                    tokio::time::sleep(pause.min(left)).await;
                    pause = (pause * 2).min(PENDING_PAUSE_MAX);
                }
                Look::Taken(owned) => {
                    self.metrics.operations_taken_over.one();
                    match self.bring_to_end(*owned).await {
                        Ok(()) => return Ok(()),
                        Err(Trouble::Store(error)) if error.failure == Failure::Outrun => {}
                        Err(trouble) => return Err(stuck(met, category, trouble)),
                    }
                }
            }
        }
    }

    /// Whether the end of the lease that was seen first has passed. Now the lease ends at `until`, which is `left`
    /// away.
    fn is_over(&self, first: i64, until: i64, left: Duration) -> bool {
        let left = i64::try_from(left.as_micros()).unwrap_or(i64::MAX);
        until.saturating_sub(left) >= first
    }

    /// Looks at an operation, and takes it over if the lease of its owner is over. The first look only reads, so a role needs
    /// no other right to wait, and nothing is locked while the owner lives.
    async fn look(&self, id: Uuid, if_writer: bool) -> Result<Look, Trouble> {
        let lives = |until: i64, now: i64| {
            let left = Duration::from_micros(u64::try_from(until - now).unwrap_or(0));
            Ok(Look::Lives { until, left })
        };
        let mut tx = self.global.begin(For::Reading).await?;
        let now = tx.now().await?;
        let until = read_lease(&mut tx, id).await?.map(|(_, until)| until);
        let is_over = until.is_some_and(|until| until <= now);
        let may_end = !(is_over || if_writer) || tx.may_update("global_operations").await?;
        tx.commit().await?;
        match until {
            None => Ok(Look::Ended),
            Some(_) if !may_end => Ok(Look::ReadOnly),
            Some(_) if is_over => self.take_over(id, lives).await,
            Some(until) => lives(until, now),
        }
    }

    /// Takes an operation over if the lease of its owner is over. This is one transaction.
    async fn take_over(
        &self,
        id: Uuid,
        lives: impl Fn(i64, i64) -> Result<Look, Trouble>,
    ) -> Result<Look, Trouble> {
        let mut tx = self.global.begin(For::Writing).await?;
        let mut now = tx.now().await?;
        let mut found = read_owned(&mut tx, id, Rows::IfFree).await?;
        if found.is_none() {
            // The row is gone, or a process has locked it, perhaps its owner.
            let Some((owner, until)) = read_lease(&mut tx, id).await? else { return Ok(Look::Ended) };
            if until > now {
                return lives(until, now);
            }
            let left = tx.end_sessions(owner).await?;
            let locked = read_owned(&mut tx, id, Rows::Awaited).await;
            found = locked.map_err(|error| error.held_by(&left))?;
            now = tx.now().await?;
        }
        let Some((mut owned, until)) = found else { return Ok(Look::Ended) };
        if until > now {
            return lives(until, now);
        }
        owned.former = Some(Mark::new(id, owned.epoch));
        owned.epoch = take(&mut tx, 0, 1).await?;
        let sql = "update __shard_management.global_operations set epoch = $1, owner = $2, lease_until = $3
            where operation_id = $4";
        let values = [owned.epoch.into(), self.owner.as_str().into(), self.lease_end(now).into(), id.into()];
        tx.execute(sql, &values).await?;
        self.commit(tx, &owned, Step::TakeOver).await?;
        Ok(Look::Taken(Box::new(owned)))
    }

    /// Does the operation if possible; otherwise undoes it.
    async fn bring_to_end(&self, mut owned: Owned) -> Result<(), Trouble> {
        let done = self.renewing(owned.clone(), self.forward_else_back(&mut owned)).await;
        if done.is_err() {
            // The next process need not wait until this lease ends.
            let _ = self.set_lease(&owned, true).await;
        }
        done
    }

    async fn forward_else_back(&self, owned: &mut Owned) -> Result<(), Trouble> {
        let sides = owned.plan.sides.len();
        if owned.direction == Direction::Forward {
            match self.go_forward(owned, &mut ()).await {
                Err(Trouble::Store(error)) if error.failure != Failure::Outrun => {
                    tracing::warn!(operation = %owned.id, %error, "an abandoned operation is undone");
                    self.turn_back(owned).await?;
                }
                done => return done,
            }
        }
        self.undo(owned, sides).await
    }

    /// An operation of ours, as the log has it now.
    pub(super) async fn reload(&self, id: Uuid) -> Result<Option<Owned>, StoreError> {
        let mut tx = self.global.begin(For::Writing).await?;
        Ok(read_owned(&mut tx, id, Rows::Awaited).await?.map(|(owned, _)| owned))
    }
}

fn lives(met: &Met, category: Category) -> Error {
    let text = format!("operation {} is under way, and its owner works on it: try again", met.operation);
    Error::new(category, Code::PendingOperation, text)
}

fn read_only(met: &Met, category: Category) -> Error {
    let text = format!(
        "operation {} was abandoned, and this role cannot end it, because it only reads the global map: try again when a \
        manager has ended it (`rangehold shards recover`)",
        met.operation
    );
    Error::new(category, Code::PendingOperation, text).failed_by(Failure::Denied)
}

fn stuck(met: &Met, category: Category, trouble: Trouble) -> Error {
    let why = trouble.seen_by(category);
    let text = format!("operation {} was abandoned and cannot be ended now, {why}: try again", met.operation);
    Error::new(category, Code::PendingOperation, text).because(why)
}

/// Whether a row is read if another transaction has locked it.
enum Rows {
    /// It is passed over.
    IfFree,
    /// It is waited for.
    Awaited,
}

/// An operation with its epoch, and the end of its lease. Its row is locked from here on.
async fn read_owned(tx: &mut Tx, id: Uuid, rows: Rows) -> Result<Option<(Owned, i64)>, StoreError> {
    let sql = "select kind, epoch, direction, plan, lease_until from __shard_management.global_operations
        where operation_id = $1 for update";
    let sql = match rows {
        Rows::IfFree => format!("{sql} skip locked"),
        Rows::Awaited => sql.to_owned(),
    };
    let Some(mut row) = tx.query_one(&sql, &[id.into()]).await? else {
        return Ok(None);
    };
    let (kind, epoch) = (OperationKind::read(&mut row)?, row.int()?);
    let direction = if row.text()? == Direction::Back.name() { Direction::Back } else { Direction::Forward };
    let owned = Owned { direction, ..Owned::new(id, kind, epoch, Plan::read(&mut row)?) };
    Ok(Some((owned, row.int()?)))
}

/// The owner of an operation, and the end of its lease. The row may be locked.
async fn read_lease(tx: &mut Tx, id: Uuid) -> Result<Option<(Mark, i64)>, StoreError> {
    let sql = "select epoch, lease_until from __shard_management.global_operations where operation_id = $1";
    let row = tx.query_one(sql, &[id.into()]).await?;
    row.map(|mut row| Ok((Mark::new(id, row.int()?), row.int()?))).transpose()
}

/// The operations in the log, the oldest first; at most [`OPERATIONS_PER_ROUND_MAX`].
pub(crate) async fn operations(global: &Database) -> Result<Vec<PendingOperation>, StoreError> {
    let mut tx = global.begin(For::Reading).await?;
    let now = tx.now().await?;
    let sql = "select o.operation_id, o.kind, m.name, o.owner, o.lease_until, o.began_at, o.direction
        from __shard_management.global_operations o
        left join __shard_management.global_maps m on m.map_id = o.map_id
        order by o.began_at limit $1";
    let limit = i64::try_from(OPERATIONS_PER_ROUND_MAX).unwrap_or(i64::MAX);
    let rows = tx.query(sql, &[limit.into()]).await?;
    let read = |mut row: Row| {
        let (id, kind) = (row.uuid()?, OperationKind::read(&mut row)?);
        let (map, owner) = (row.optional(Row::text)?.unwrap_or_default(), row.text()?);
        let (lease_until, began_at) = (row.int()?, row.int()?);
        let undoing = row.text()? == Direction::Back.name();
        let abandoned = lease_until <= now;
        Ok(PendingOperation { id, kind, map, owner, lease_until, began_at, abandoned, undoing })
    };
    let all = rows.into_iter().map(read).collect::<Result<_, StoreError>>()?;
    tx.commit().await?;
    Ok(all)
}
