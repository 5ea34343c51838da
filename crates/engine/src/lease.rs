//! The lease of a partition server: its permission to answer reads, for a limited time.
//!
//! Writes need no lease, since the epoch of a range's database says which server may write. But an owner
//! that was paused, and replaced meanwhile, would go on answering reads from its memory. So each
//! server runs in an *incarnation*, a number that it takes by creating an object. It answers only
//! while it knows that this incarnation was not ended:
//!
//! ```text
//!   cluster/servers/<server>/<incarnation>         created by the server when it starts
//!   cluster/servers/<server>/<incarnation>-ended   created by the process that takes its ranges away,
//!                                                  or by the server when it closes
//!
//!   server:   t0; is there no "-ended", and no next incarnation?  ->  the lease holds until t0 + 5 s   (each second)
//!   manager:  create "-ended", wait 6 s, then open the ranges elsewhere
//!   start:    create the next incarnation, wait 6 s, then serve
//! ```
//!
//! The processes count by their own monotonic clocks, so that no wall clock matters. The sixth
//! second is for clocks that do not run at the same speed. An ended incarnation never comes back: the server
//! takes a new one when it is started again. Leases come from the store and not from the manager,
//! so ranges are still served while there is no manager.
//!
//! **A start that need not wait.** The process of the incarnation before may still run: a directory can lose its lock
//! file, and other stores have no lock. So a start waits, unless it is certain that nothing of the server answers any
//! more. It is certain if the incarnation before has closed itself, or if its process held the same lock that this
//! process holds now. Both count only if that incarnation had itself waited for those before it:
//!
//! | object of an incarnation | what it holds |
//! |---|---|
//! | `<incarnation>` | nothing while the server waits; then `alone`, and the name of its lock if it has one |
//! | `<incarnation>-ended` | `closed` if the server closed itself; nothing if another process ended it |

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use futures::future::try_join;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use rangehold_map::ServerId;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::limits::{LEASE_RENEWED_EVERY, LEASE_TERM};
use crate::store::{ObjectError, damaged_file};

/// The object of an incarnation says this when no process answers as an earlier one.
const ALONE: &str = "alone";
/// The end of an incarnation says this when the server has closed itself.
const CLOSED: &str = "closed";

/// Why a server did not get its lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ObjectError),
    /// Two processes were started as the same server at the same time.
    #[error("another process was started as server {0} meanwhile; only one process may run as a server")]
    StartedElsewhere(ServerId),
}

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
    /// Takes the next incarnation of `server`, and waits until the ones before answer nothing any more. `lock` names
    /// the lock that this process holds on the store, if it has one; see [`crate::store::Store::lock`]. Fails if another
    /// process takes the incarnation after it meanwhile: of two starts at the same time the later one serves.
    pub(crate) async fn take(
        objects: &Arc<dyn ObjectStore>,
        server: ServerId,
        lock: Option<&str>,
    ) -> Result<Self, LeaseError> {
        // An incarnation that this call took and in which it has waited. It never answered anything.
        let mut own = None;
        loop {
            let base = Instant::now();
            let before = newest(objects, server).await?;
            let is_alone = match before {
                Some(before) => own == Some(before) || is_over(objects, server, before, lock).await?,
                None => true,
            };
            let incarnation = before.unwrap_or(0) + 1;
            let path = object(server, incarnation);
            let says = if is_alone { alone(lock) } else { String::new() };
            match objects.put_opts(&path, says.into(), PutMode::Create.into()).await {
                Ok(_) => {}
                Err(object_store::Error::AlreadyExists { .. }) => continue,
                Err(error) => return Err(ObjectError::while_doing("creating", &path)(error).into()),
            }
            let lease = Self(Arc::new(Inner { server, incarnation, base, until: AtomicU64::new(0) }));
            lease.extend(base);
            if !is_alone {
                tracing::info!(%server, "waiting until an earlier process of this server answers no more");
                sleep(LEASE_TERM + LEASE_RENEWED_EVERY).await;
                let asked = Instant::now();
                if exists(objects, &object(server, incarnation + 1)).await? {
                    return Err(LeaseError::StartedElsewhere(server));
                }
                if lease.was_ended(objects).await? {
                    // A manager took this server for dead. To wait again would let it do so again, without end.
                    own = Some(incarnation);
                    continue;
                }
                lease.extend(asked);
                let written = objects.put(&path, alone(lock).into()).await;
                written.map_err(ObjectError::while_doing("writing", &path))?;
            }
            forget_before(objects, server, incarnation - 1).await;
            return Ok(lease);
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
        loop {
            tick.tick().await;
            let asked = Instant::now();
            match self.was_ended(&objects).await {
                Ok(false) => self.extend(asked),
                Ok(true) => {
                    tracing::warn!(
                        server = %self.0.server,
                        "the ranges of this server were given to others, or another process serves as this server"
                    );
                    self.0.until.store(0, Ordering::Release);
                    return;
                }
                // Do not extend the lease without an answer: then it runs out.
                Err(error) => tracing::warn!(server = %self.0.server, %error, "a lease could not be renewed"),
            }
        }
    }

    /// Whether another process has ended this incarnation or begun the next one.
    async fn was_ended(&self, objects: &Arc<dyn ObjectStore>) -> Result<bool, ObjectError> {
        let Inner { server, incarnation, .. } = *self.0;
        // The objects of later incarnations may have been deleted since, but not before this lease ran out.
        if !self.holds() && !self.is_newest(objects).await? {
            return Ok(true);
        }
        let (ended, next) = (ended(server, incarnation), object(server, incarnation + 1));
        let (ended, next) = try_join(exists(objects, &ended), exists(objects, &next)).await?;
        Ok(ended || next)
    }

    /// Ends this incarnation. Call this when the server answers nothing any more: the next start need not wait then.
    /// Does nothing if that fails, or if the lease was lost.
    pub(crate) async fn close(&self, objects: &Arc<dyn ObjectStore>) {
        if self.0.until.swap(0, Ordering::AcqRel) == 0 {
            return;
        }
        let path = ended(self.0.server, self.0.incarnation);
        let ending = objects.put_opts(&path, CLOSED.into(), PutMode::Create.into());
        if !matches!(timeout(LEASE_TERM, ending).await, Ok(Ok(_))) {
            tracing::warn!(server = %self.0.server, "its end could not be noted; the next start waits some seconds");
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

/// Ends the newest incarnation of a server that is not here. `None` if it is certain that nothing answers as this
/// server; `lock` is the lock that this process holds.
pub(crate) async fn end_absent(
    objects: &Arc<dyn ObjectStore>,
    server: ServerId,
    lock: Option<&str>,
) -> Result<Option<Ended>, ObjectError> {
    match newest(objects, server).await? {
        Some(newest) if !is_over(objects, server, newest, lock).await? => end(objects, server).await,
        _ => Ok(None),
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
    let mut newest = list(objects, server).await?.iter().filter_map(number).max().unwrap_or(0);
    // A listing may lag behind. Ending an incarnation that is not the newest would not stop the server.
    while exists(objects, &object(server, newest + 1)).await? {
        newest += 1;
    }
    Ok((newest > 0).then_some(newest))
}

/// What the object of an incarnation holds if none before it answers any more.
fn alone(lock: Option<&str>) -> String {
    lock.map_or_else(|| ALONE.to_owned(), |lock| format!("{ALONE} {lock}"))
}

/// Whether it is certain that no process answers as this incarnation of `server` or as one before it. `lock` is the
/// lock that this process holds.
async fn is_over(
    objects: &Arc<dyn ObjectStore>,
    server: ServerId,
    incarnation: u64,
    lock: Option<&str>,
) -> Result<bool, ObjectError> {
    if read(objects, &ended(server, incarnation)).await?.is_some_and(|text| text == CLOSED) {
        return Ok(true);
    }
    let began = read(objects, &object(server, incarnation)).await?;
    Ok(lock.is_some() && began.is_some_and(|text| text == alone(lock).as_bytes()))
}

/// What an object holds; `None` if it does not exist or is damaged. Either only makes a start wait.
async fn read(objects: &Arc<dyn ObjectStore>, path: &Path) -> Result<Option<Bytes>, ObjectError> {
    let got = match objects.get(path).await {
        Ok(got) => got.bytes().await,
        Err(error) => Err(error),
    };
    match got {
        Ok(bytes) => Ok(Some(bytes)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(source) if damaged_file(&source).is_some() => Ok(None),
        Err(error) => Err(ObjectError::while_doing("reading", path)(error)),
    }
}

async fn exists(objects: &Arc<dyn ObjectStore>, path: &Path) -> Result<bool, ObjectError> {
    match objects.head(path).await {
        Ok(_) => Ok(true),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(ObjectError::while_doing("looking for", path)(error)),
    }
}

/// Deletes the objects of incarnations before this one: they have ended, and the last of them is enough to know the
/// next number. What cannot be deleted is deleted at a later start.
async fn forget_before(objects: &Arc<dyn ObjectStore>, server: ServerId, incarnation: u64) {
    let Ok(listed) = list(objects, server).await else { return };
    for path in listed.into_iter().filter(|path| number(path).is_some_and(|number| number < incarnation)) {
        let _ = objects.delete(&path).await;
    }
}

async fn list(objects: &Arc<dyn ObjectStore>, server: ServerId) -> Result<Vec<Path>, ObjectError> {
    let prefix = Path::from(format!("cluster/servers/{}", server.0));
    let listed = objects.list(Some(&prefix)).map_ok(|object| object.location).try_collect().await;
    listed.map_err(ObjectError::while_doing("listing", &prefix))
}

/// The incarnation of which an object tells.
fn number(path: &Path) -> Option<u64> {
    path.filename()?.split('-').next()?.parse().ok()
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

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_holds_until_it_is_ended_and_the_next_incarnation_has_its_own() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let first = Lease::take(&objects, ServerId(3), None).await.unwrap();
        let renewing = tokio::spawn(first.clone().renew(Arc::clone(&objects)));
        sleep(Duration::from_secs(60)).await;
        assert!(first.holds());
        let ended = end(&objects, ServerId(3)).await.unwrap().unwrap();
        sleep(ended.wait).await;
        assert!(!first.holds() && first.has_ended());
        assert!(!is_back(&objects, ServerId(3), ended).await.unwrap());
        renewing.await.unwrap();
        let second = Lease::take(&objects, ServerId(3), None).await.unwrap();
        assert!(second.holds() && !first.holds());
        assert!(is_back(&objects, ServerId(3), ended).await.unwrap());
        assert_eq!(end(&objects, ServerId(4)).await.unwrap(), None);
    }

    /// How long a start waits for an earlier one.
    async fn start(objects: &Arc<dyn ObjectStore>, lock: Option<&str>) -> (Lease, Duration) {
        let begun = Instant::now();
        let lease = Lease::take(objects, ServerId(1), lock).await.unwrap();
        assert!(lease.holds());
        (lease, begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_ends_the_incarnation_before_and_waits_until_it_answers_no_more() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let (first, _) = start(&objects, Some("a")).await;
        tokio::spawn(first.clone().renew(Arc::clone(&objects)));
        let (second, waited) = start(&objects, Some("b")).await;
        assert!(first.has_ended() && waited > LEASE_TERM, "after {waited:?}");
        // Its lease ran out long ago, and the objects of the incarnation that followed it are gone.
        let (_, waited) = start(&objects, Some("b")).await;
        assert_eq!(waited, Duration::ZERO, "the lock is the same");
        let (_, waited) = start(&objects, Some("b")).await;
        assert_eq!(waited, Duration::ZERO, "the lock is the same");
        sleep(LEASE_TERM).await;
        assert!(second.was_ended(&objects).await.unwrap());
        assert_eq!(list(&objects, ServerId(1)).await.unwrap().len(), 2, "older ones are deleted");
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_starts_at_the_same_time_the_later_one_serves() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        start(&objects, None).await;
        let both = [0, 1].map(async |seconds| {
            sleep(Duration::from_secs(seconds)).await;
            Lease::take(&objects, ServerId(1), None).await
        });
        let [first, second] = both;
        let (first, second) = tokio::join!(first, second);
        assert!(matches!(first, Err(LeaseError::StartedElsewhere(ServerId(1)))), "{first:?}");
        assert!(second.unwrap().holds());
    }

    /// The simulation found servers that never came back: each time that a manager had waited for an ended incarnation,
    /// it found that the server had been started again, and ended the next one.
    #[tokio::test(start_paused = true)]
    async fn a_start_waits_once_although_a_manager_ends_its_incarnations_meanwhile() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        start(&objects, None).await;
        let ending = tokio::spawn({
            let objects = Arc::clone(&objects);
            async move {
                loop {
                    sleep(Duration::from_millis(700)).await;
                    end(&objects, ServerId(1)).await.unwrap();
                }
            }
        });
        let (_, waited) = start(&objects, None).await;
        ending.abort();
        assert!(waited > LEASE_TERM && waited < 2 * LEASE_TERM, "{waited:?}");
    }

    /// The process with lock `b` died while it waited for the one with lock `a`.
    #[tokio::test(start_paused = true)]
    async fn a_start_after_one_that_died_while_it_waited_waits_too() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        start(&objects, Some("a")).await;
        let died = timeout(Duration::from_secs(1), Lease::take(&objects, ServerId(1), Some("b"))).await;
        assert!(died.is_err());
        let (_, waited) = start(&objects, Some("b")).await;
        assert!(waited > LEASE_TERM, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_after_one_that_was_closed_does_not_wait() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let (first, _) = start(&objects, None).await;
        first.close(&objects).await;
        assert!(!first.holds());
        let (_, waited) = start(&objects, None).await;
        assert_eq!(waited, Duration::ZERO);
        let (_, waited) = start(&objects, None).await;
        assert!(waited > LEASE_TERM, "{waited:?}: the second was not closed");
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_answer_from_the_store_it_runs_out() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let lease = Lease::take(&objects, ServerId(1), None).await.unwrap();
        sleep(LEASE_TERM - Duration::from_millis(1)).await;
        assert!(lease.holds());
        sleep(Duration::from_millis(1)).await;
        assert!(!lease.holds());
    }
}
