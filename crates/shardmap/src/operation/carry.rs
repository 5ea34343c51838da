//! Carries an operation out: makes its steps in order, and tries each again if that may help. If a step cannot be
//! done, the operation is undone.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use rangehold_map::shard::Effect;
use uuid::Uuid;

use super::begin::{Begun, ChangeRequest};
use super::closing::CHANGES_AGAIN;
use super::hook::{Moment, Step, StepFault, When};
use super::plan::{Direction, Role, Side};
use super::shards::ShardRequest;
use super::side::Applied;
use super::{Operations, Owned, Trouble, side};
use crate::error::{Category, Error};
use crate::limits::{CLOSING_TRANSACTIONS_MAX, PENDING_MET_MAX, RENEWALS_PER_LEASE};
use crate::store::{Database, Failure, StoreError, Tx};

/// How far an owner has gone: how many sides may have been written.
struct Reached(usize);

impl Operations {
    /// Makes a change of mappings. Returns what was removed and added; nothing if there was nothing to do.
    ///
    /// It is boxed, as all entrances to the protocol are. Callers are generic in their keys, and each of them would
    /// be compiled with the whole protocol inside.
    pub(crate) fn change<'a>(
        &'a self,
        request: &'a ChangeRequest<'a>,
    ) -> BoxFuture<'a, Result<Effect, Error>> {
        Box::pin(self.make_change(request))
    }

    async fn make_change(&self, request: &ChangeRequest<'_>) -> Result<Effect, Error> {
        let category = request.category();
        let id = self.chance.id();
        let begun = self.begin(id, category, || self.begin_change(id, request)).await?;
        match begun {
            Some(owned) => {
                let effect = owned.plan.effect().unwrap_or_default();
                self.carry(owned, category).await?;
                Ok(effect)
            }
            None => Ok(Effect::default()),
        }
    }

    /// Makes a change of shards.
    pub(crate) fn change_shard<'a>(
        &'a self,
        request: &'a ShardRequest<'a>,
    ) -> BoxFuture<'a, Result<Owned, Error>> {
        Box::pin(self.make_shard_change(request))
    }

    async fn make_shard_change(&self, request: &ShardRequest<'_>) -> Result<Owned, Error> {
        let category = request.category();
        let id = self.chance.id();
        let begun = self.begin(id, category, || self.begin_shard(id, request)).await?;
        let owned = begun.ok_or_else(|| Error::damaged("a change of a shard changes nothing"))?;
        self.carry(owned.clone(), category).await?;
        Ok(owned)
    }

    /// The first step, repeated until no operation of another process is in the way.
    pub(super) async fn begin<F>(
        &self,
        id: Uuid,
        category: Category,
        mut first: impl FnMut() -> F,
    ) -> Result<Option<Owned>, Error>
    where
        F: Future<Output = Result<Begun, Trouble>>,
    {
        let mut met_count = 0;
        let mut retries = 0;
        loop {
            match first().await {
                Ok(Begun::Nothing) => return Ok(None),
                Ok(Begun::Started(owned)) => return Ok(Some(*owned)),
                // This is our own operation. An earlier attempt began it, and the answer to that attempt was lost.
                Ok(Begun::Met(met)) if met.operation == id => {
                    if let Some(owned) =
                        self.reload(id).await.map_err(|error: StoreError| error.seen_by(category))?
                    {
                        return Ok(Some(owned));
                    }
                }
                Ok(Begun::Met(met)) => {
                    met_count += 1;
                    self.settle(&met, category, met_count >= PENDING_MET_MAX).await?;
                }
                Err(Trouble::Store(error)) if error.may_pass() && retries < self.retries.times_max => {
                    self.pause(&mut retries).await;
                    // The answer that was lost may have been that of a commit.
                    if error.failure == Failure::Lost
                        && let Ok(Some(owned)) = self.reload(id).await
                    {
                        return Ok(Some(owned));
                    }
                }
                Err(trouble) => {
                    if matches!(trouble, Trouble::Store(_)) {
                        self.forget(id).await;
                    }
                    return Err(trouble.seen_by(category));
                }
            }
        }
    }

    /// Undoes an operation that may have begun although its first step failed. If this fails too, the next process
    /// that finds the operation undoes it.
    async fn forget(&self, id: Uuid) {
        if let Ok(Some(mut owned)) = self.reload(id).await
            && self.go_back(&mut owned, &Reached(0)).await.is_err()
        {
            let _ = self.set_lease(&owned, true).await;
        }
    }

    /// Makes the steps after the first, to the end. If one fails, goes back and returns the failure.
    pub(super) async fn carry(&self, mut owned: Owned, category: Category) -> Result<(), Error> {
        let mut reached = Reached(0);
        let done = self.renewing(owned.clone(), self.go_forward(&owned, &mut reached)).await;
        let Err(trouble) = done else {
            self.metrics.operations_done.one();
            return Ok(());
        };
        if matches!(&trouble, Trouble::Store(error) if error.failure == Failure::Outrun) {
            // Another process believed that this one was dead, and took the operation over. That process knows how
            // the operation ended.
            return self.after_outrun(&owned, trouble, category).await;
        }
        let copy = owned.clone();
        match self.renewing(copy, self.go_back(&mut owned, &reached)).await {
            Ok(()) => self.metrics.operations_undone.one(),
            Err(_) => {
                // Other processes need not wait until our lease ends.
                let _ = self.set_lease(&owned, true).await;
            }
        }
        Err(trouble.seen_by(category))
    }

    /// Waits for the end of an operation that was taken over. Succeeds if the operation was done.
    async fn after_outrun(&self, owned: &Owned, trouble: Trouble, category: Category) -> Result<(), Error> {
        self.settle(&super::Met { operation: owned.id }, category, false).await?;
        match self.end(owned).await {
            Ok(()) => Ok(()),
            Err(_) => Err(trouble.seen_by(category)),
        }
    }

    /// Does every side, and the global end.
    pub(super) async fn go_forward(&self, owned: &Owned, reached: &mut impl Far) -> Result<(), Trouble> {
        for index in 0..owned.plan.sides.len() {
            let step = if index == 0 { Step::LocalSource } else { Step::LocalTarget };
            // An attempt whose answer was lost may have been done, and one that failed may have begun to close keys.
            let written = AtomicBool::new(false);
            let local = || async {
                let done = self.local(owned, index, Direction::Forward, step, &written).await;
                if matches!(&done, Err(Trouble::Store(error)) if error.failure == Failure::Lost) {
                    written.store(true, Ordering::Relaxed);
                }
                done
            };
            let done = self.retrying(local).await;
            if done.is_ok() || written.load(Ordering::Relaxed) {
                reached.side(index);
            }
            done?;
        }
        self.retrying(|| self.end(owned)).await
    }

    /// Undoes every side that may have been written, the last one first, and the global map.
    async fn go_back(&self, owned: &mut Owned, reached: &Reached) -> Result<(), Trouble> {
        if owned.direction == Direction::Forward {
            self.turn_back(owned).await?;
        }
        self.undo(owned, reached.0).await
    }

    /// Restores the first `sides` sides, and then the global map.
    pub(super) async fn undo(&self, owned: &Owned, sides: usize) -> Result<(), Trouble> {
        for index in (0..sides).rev() {
            let step = if index == 0 { Step::UndoSource } else { Step::UndoTarget };
            let written = AtomicBool::new(false);
            self.retrying(|| self.local(owned, index, Direction::Back, step, &written)).await?;
        }
        self.retrying(|| self.end(owned)).await
    }

    /// Does one side, in one transaction, or in two if it closes many keys. Notes before the first of the two that something
    /// is written.
    async fn local(
        &self,
        owned: &Owned,
        side: usize,
        direction: Direction,
        step: Step,
        written: &AtomicBool,
    ) -> Result<(), Trouble> {
        let of = &owned.plan.sides[side];
        for _ in 0..CLOSING_TRANSACTIONS_MAX {
            let (tx, applied) = self.apply(owned, of, direction).await?;
            match applied {
                Applied::Written => return self.commit(tx, owned, step).await,
                Applied::NotOurs => return Ok(()),
                Applied::Begun => {
                    written.store(true, Ordering::Relaxed);
                    self.commit(tx, owned, step).await?;
                }
            }
        }
        Err(StoreError::new(&of.at, Failure::Busy, CHANGES_AGAIN).into())
    }

    /// Applies one side in a transaction.
    async fn apply(
        &self,
        owned: &Owned,
        of: &Side,
        direction: Direction,
    ) -> Result<(Tx, Applied), StoreError> {
        let database = self.databases.at(&of.at)?;
        let mut tx = begin_local(&database, owned).await.map_err(|mut error| {
            if of.role == Role::Closes && error.failure == Failure::Unreachable {
                error.message += "; the shard must be closed there, or given up as lost (--lost)";
            }
            error
        })?;
        let left = match owned.former {
            Some(former) => tx.end_sessions(former).await?,
            None => Vec::new(),
        };
        let applied = side::apply(&mut tx, owned, of, direction).await;
        let applied = applied.map_err(|error| error.held_by(&left))?;
        Ok((tx, applied))
    }

    /// Commits a step. Tests can stop it before and after ([`StepHook`](super::hook::StepHook)).
    pub(super) async fn commit(&self, tx: Tx, owned: &Owned, step: Step) -> Result<(), Trouble> {
        let moment = |when| Moment { operation: owned.id, kind: owned.kind, step, when };
        let fault = |fault: StepFault, when| {
            let failure = match (fault, when) {
                (StepFault::MayPass, When::Before) => Failure::Busy,
                (StepFault::Stays, When::Before) => Failure::Other,
                (_, When::After) => Failure::Lost,
            };
            StoreError::new(&self.global_location, failure, format!("{step:?} was made to fail"))
        };
        self.hook.at(moment(When::Before)).await.map_err(|told| fault(told, When::Before))?;
        tx.commit().await?;
        self.hook.at(moment(When::After)).await.map_err(|told| fault(told, When::After))?;
        Ok(())
    }

    /// Tries a step again as long as its failures are temporary.
    async fn retrying<F>(&self, mut step: impl FnMut() -> F) -> Result<(), Trouble>
    where
        F: Future<Output = Result<(), Trouble>>,
    {
        let mut retries = 0;
        loop {
            match step().await {
                Err(Trouble::Store(error)) if error.may_pass() && retries < self.retries.times_max => {
                    self.pause(&mut retries).await;
                }
                done => return done,
            }
        }
    }

    async fn pause(&self, retries: &mut u32) {
        self.metrics.step_retries.one();
        let pause = self.retries.pause_min.saturating_mul(1 << (*retries).min(16));
        *retries += 1;
        tokio::time::sleep(pause.min(self.retries.pause_max)).await;
    }

    /// Renews the lease while `work` goes on. Both are polled together, because a renewal may have to wait for the
    /// transaction that the work has open.
    pub(super) async fn renewing<T>(&self, owned: Owned, work: impl Future<Output = T>) -> T {
        let every = (self.lease / RENEWALS_PER_LEASE).max(Duration::from_millis(1));
        let renew = async {
            loop {
                tokio::time::sleep(every).await;
                // If this fails, the lease ends. After that, epochs decide.
                let _ = self.set_lease(&owned, false).await;
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            () = renew => unreachable!("renewals have no end"),
        }
    }
}

/// Learns which sides may have been written.
pub(super) trait Far {
    fn side(&mut self, index: usize);
}

impl Far for Reached {
    fn side(&mut self, index: usize) {
        self.0 = self.0.max(index + 1);
    }
}

/// For callers that do not need to know it, because to them all sides may have been written.
impl Far for () {
    fn side(&mut self, _: usize) {}
}

/// Begins the transaction of a side. A new shard may be a file that does not exist yet.
async fn begin_local(database: &Database, owned: &Owned) -> Result<Tx, StoreError> {
    if owned.kind == super::OperationKind::AddShard {
        database.begin_or_create(owned.step()).await
    } else {
        database.begin(owned.step()).await
    }
}
