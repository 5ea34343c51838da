//! The lease of a partition server: its permission to answer reads, for a limited time.
//!
//! Writes need no lease, since the epoch of a range's database says which server may write. But an owner
//! that was paused, and replaced meanwhile, would go on answering reads from its memory. So each
//! server runs in an *incarnation*, a number that it takes by creating an object. It answers only
//! while it knows that this incarnation was not ended:
//!
//! ```text
//!   cluster/servers/<server>/<incarnation>         created by the server when it starts
//!   cluster/servers/<server>/<incarnation>-ended   created by the process that takes its ranges away
//!
//!   server:   t0; is there no "-ended"?  ->  the lease holds until t0 + 5 s      (each second)
//!   manager:  create "-ended", wait 6 s, then open the ranges elsewhere
//! ```
//!
//! The server and the manager each count by their own monotonic clock, so that no wall clock matters. The sixth
//! second is for clocks that do not run at the same speed. An ended incarnation never comes back: the server
//! takes a new one when it is started again. Leases come from the store and not from the manager,
//! so ranges are still served while there is no manager.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use rangehold_map::ServerId;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::limits::{LEASE_RENEWED_EVERY, LEASE_TERM};
use crate::store::ObjectError;

/// A server's lease. Clones are the same lease.
#[derive(Debug, Clone)]
pub(crate) struct Lease(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    server: ServerId,
    incarnation: u64,
    base: Instant,
    /// The lease holds until this many microseconds after `base`. 0 if it was ended.
    until: AtomicU64,
}

impl Lease {
    /// Takes the next incarnation of `server`.
    pub(crate) async fn take(objects: &Arc<dyn ObjectStore>, server: ServerId) -> Result<Self, ObjectError> {
        let base = Instant::now();
        loop {
            let incarnation = newest(objects, server).await?.map_or(1, |newest| newest + 1);
            let path = object(server, incarnation);
            match objects.put_opts(&path, PutPayload::default(), PutMode::Create.into()).await {
                Ok(_) => {
                    let lease = Self(Arc::new(Inner { server, incarnation, base, until: AtomicU64::new(0) }));
                    lease.extend(base);
                    return Ok(lease);
                }
                Err(object_store::Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(ObjectError::while_doing("creating", &path)(error)),
            }
        }
    }

    /// The name of this incarnation, such as "1-17". No other incarnation has it or ever had it.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.0.server.0, self.0.incarnation)
    }

    /// Which server has it.
    pub(crate) fn server(&self) -> ServerId {
        self.0.server
    }

    /// Whether reads may be answered now.
    pub(crate) fn holds(&self) -> bool {
        self.micros(Instant::now()) < self.0.until.load(Ordering::Acquire)
    }

    /// Whether the server knows that its incarnation was ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.until.load(Ordering::Acquire) == 0
    }

    /// Whether this is still the newest incarnation: the server was not started again since, here or elsewhere.
    pub(crate) async fn is_newest(&self, objects: &Arc<dyn ObjectStore>) -> Result<bool, ObjectError> {
        Ok(newest(objects, self.0.server).await? == Some(self.0.incarnation))
    }

    /// Renews the lease until the incarnation is ended. Run it as a task.
    pub(crate) async fn renew(self, objects: Arc<dyn ObjectStore>) {
        let mut tick = interval(LEASE_RENEWED_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ended = ended(self.0.server, self.0.incarnation);
        loop {
            tick.tick().await;
            let asked = Instant::now();
            match objects.head(&ended).await {
                Err(object_store::Error::NotFound { .. }) => self.extend(asked),
                Ok(_) => {
                    tracing::warn!(server = %self.0.server, "the ranges of this server were given to others");
                    self.0.until.store(0, Ordering::Release);
                    return;
                }
                // Do not extend the lease without an answer: then it runs out.
                Err(error) => tracing::warn!(server = %self.0.server, %error, "a lease could not be renewed"),
            }
        }
    }

    fn extend(&self, asked: Instant) {
        self.0.until.fetch_max(self.micros(asked + LEASE_TERM), Ordering::AcqRel);
    }

    fn micros(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.0.base).as_micros()).unwrap_or(u64::MAX)
    }
}

/// An incarnation that was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    incarnation: u64,
    /// How long it may still answer reads.
    pub(crate) wait: Duration,
}

/// Ends the newest incarnation of `server`. `None` if there never was one.
pub(crate) async fn end(
    objects: &Arc<dyn ObjectStore>,
    server: ServerId,
) -> Result<Option<Ended>, ObjectError> {
    let Some(incarnation) = newest(objects, server).await? else { return Ok(None) };
    let path = ended(server, incarnation);
    match objects.put_opts(&path, PutPayload::default(), PutMode::Create.into()).await {
        // If it exists, another process has ended the incarnation, perhaps only just now: so wait all the same.
        Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => {
            Ok(Some(Ended { incarnation, wait: LEASE_TERM + LEASE_RENEWED_EVERY }))
        }
        Err(error) => Err(ObjectError::while_doing("creating", &path)(error)),
    }
}

/// Whether `server` has been started again since that incarnation was ended. It then answers reads by a new
/// lease.
pub(crate) async fn is_back(
    objects: &Arc<dyn ObjectStore>,
    server: ServerId,
    ended: Ended,
) -> Result<bool, ObjectError> {
    Ok(newest(objects, server).await? > Some(ended.incarnation))
}

async fn newest(objects: &Arc<dyn ObjectStore>, server: ServerId) -> Result<Option<u64>, ObjectError> {
    let prefix = Path::from(format!("cluster/servers/{}", server.0));
    let listed: Vec<_> = objects
        .list(Some(&prefix))
        .try_collect()
        .await
        .map_err(ObjectError::while_doing("listing", &prefix))?;
    let number = |name: &str| name.split('-').next()?.parse().ok();
    let mut newest: u64 =
        listed.iter().filter_map(|object| number(object.location.filename()?)).max().unwrap_or(0);
    // A listing may lag behind. Ending an incarnation that is not the newest would not stop the server.
    loop {
        let next = object(server, newest + 1);
        match objects.head(&next).await {
            Ok(_) => newest += 1,
            Err(object_store::Error::NotFound { .. }) => return Ok((newest > 0).then_some(newest)),
            Err(error) => return Err(ObjectError::while_doing("looking for", &next)(error)),
        }
    }
}

fn object(server: ServerId, incarnation: u64) -> Path {
    Path::from(format!("cluster/servers/{}/{incarnation:020}", server.0))
}

fn ended(server: ServerId, incarnation: u64) -> Path {
    Path::from(format!("cluster/servers/{}/{incarnation:020}-ended", server.0))
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_holds_until_it_is_ended_and_the_next_incarnation_has_its_own() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let first = Lease::take(&objects, ServerId(3)).await.unwrap();
        let renewing = tokio::spawn(first.clone().renew(Arc::clone(&objects)));
        sleep(Duration::from_secs(60)).await;
        assert!(first.holds());
        let ended = end(&objects, ServerId(3)).await.unwrap().unwrap();
        sleep(ended.wait).await;
        assert!(!first.holds() && first.has_ended());
        assert!(!is_back(&objects, ServerId(3), ended).await.unwrap());
        renewing.await.unwrap();
        let second = Lease::take(&objects, ServerId(3)).await.unwrap();
        assert!(second.holds() && !first.holds());
        assert!(is_back(&objects, ServerId(3), ended).await.unwrap());
        assert_eq!(end(&objects, ServerId(4)).await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_answer_from_the_store_it_runs_out() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let lease = Lease::take(&objects, ServerId(1)).await.unwrap();
        sleep(LEASE_TERM - Duration::from_millis(1)).await;
        assert!(lease.holds());
        sleep(Duration::from_millis(1)).await;
        assert!(!lease.holds());
    }
}
