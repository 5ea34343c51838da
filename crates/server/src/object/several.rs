//! Changes of several names: a target is written and its sources are removed, all or nothing. `protocol::object::intent` has the
//! steps.
//!
//! The future of a request can be dropped anywhere, and the process can die. Then the next request that meets the change, or
//! the walk in the background, ends it (`settle`).

use rangehold_engine::NamesStep;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::generation::{Generation, Intent};
use rangehold_protocol::object::intent::{Begin, Commit};
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::write::{Create, Judge, Name};
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::ObjectService;
use super::changes::Turn;
use super::failure::Failure;
use super::rows::Tried;
use crate::limits::INTENTS_MET_MAX;

/// A source that goes.
pub(super) struct Leaving<'a> {
    pub(super) name: &'a str,
    /// Its live generation as it was read.
    pub(super) live: &'a Generation,
    /// Whether the client named this generation. Then it does not become an older version, even if the bucket keeps versions.
    pub(super) is_final: bool,
}

impl Leaving<'_> {
    /// Whether it becomes an older version.
    fn is_kept(&self, bucket: &Bucket) -> bool {
        bucket.keeps_versions() && !self.is_final
    }
}

/// A change of several names.
pub(super) struct NamesChange<'a> {
    /// The write of the target.
    pub(super) create: Create<'a>,
    /// The sources that go. Each is named once, and the target is not among them.
    pub(super) sources: &'a [Leaving<'a>],
    /// Names the change; it was never used before.
    pub(super) id: &'a str,
    pub(super) deadline: Instant,
}

/// Checks that these sources of a bucket may be deleted at `now`, before anything is written. The beginning of the change
/// checks it again.
pub(super) fn check_may_leave(
    bucket: &Bucket,
    sources: &[Leaving<'_>],
    now: Micros,
) -> Result<(), ObjectError> {
    let period = bucket.protected_seconds();
    sources.iter().filter(|source| !source.is_kept(bucket)).try_for_each(|Leaving { name, live, .. }| {
        live.check_unprotected(&bucket.name, bucket.shown(name), period, now)
    })
}

impl ObjectService {
    /// Takes the turn of the names of a change.
    pub(super) async fn turn(
        &self,
        bucket: &Bucket,
        names: impl IntoIterator<Item = &str>,
        deadline: Instant,
    ) -> Result<Turn<'_>, Failure> {
        let turn = timeout_at(deadline, self.changes.take(bucket.id, names)).await;
        turn.map_err(|_| Failure::unavailable("Other changes of these names are under way. Try again."))
    }

    /// Writes the target and removes the sources. `None` if a source is not as it was read: then nothing was changed.
    /// The caller has the turn of all names.
    pub(super) async fn replace(&self, change: &NamesChange<'_>) -> Result<Option<Generation>, Failure> {
        let NamesChange { create, sources, id, deadline } = *change;
        let bucket = create.to.bucket;
        let intent = Intent {
            id: id.to_owned(),
            target: create.to.name.to_owned(),
            begun: self.clock.now().into(),
            // `begin` sets this for each source.
            keeps: false,
        };
        let made = match self.begin(bucket, sources, &intent, deadline).await {
            Ok(true) => self.commit(create, sources, &intent, deadline).await.map(Some),
            Ok(false) => Ok(None),
            // A beginning whose outcome is unknown is cleared as well; it will not be committed.
            Err(failure) if failure.is_unknown() => {
                Err(Failure::unavailable("The change could not be begun. Try again."))
            }
            Err(refused) => Err(refused),
        };
        // If the outcome of the commit is unknown, the intents stay: the row at the target tells whether it was made.
        let was_given_up = match &made {
            Ok(made) => made.is_none(),
            Err(failure) => !failure.is_unknown(),
        };
        if was_given_up {
            for Leaving { name, .. } in sources {
                if let Err(error) = self.clear(Name { bucket, name }, id, deadline).await {
                    warn!(%error, "the intent of a move that was given up stays for now");
                }
            }
        }
        made
    }

    /// Writes the intent into the head of each source. False if one of them is not as it was read.
    async fn begin(
        &self,
        bucket: &Bucket,
        sources: &[Leaving<'_>],
        intent: &Intent,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        for source in sources {
            let of = Name { bucket, name: source.name };
            let intent = &Intent { keeps: source.is_kept(bucket), ..intent.clone() };
            if !self.change_settling(&Begin { of, seen: source.live, intent }, deadline).await? {
                return Ok(false);
            }
            self.names_hook.after(NamesStep::Begun, of.name.to_owned()).await;
        }
        Ok(true)
    }

    /// Commits the change, and removes the sources.
    async fn commit(
        &self,
        create: Create<'_>,
        sources: &[Leaving<'_>],
        intent: &Intent,
        deadline: Instant,
    ) -> Result<Generation, Failure> {
        let (at, names) =
            (create.to, sources.iter().map(|source| source.name.to_owned()).collect::<Vec<_>>());
        let commit = Commit { create, intent, sources: &names };
        for _ in 0..INTENTS_MET_MAX {
            let window = self.window(at, deadline).await?;
            let other = match self.try_change(&commit, deadline).await {
                Ok(made) => {
                    self.names_hook.after(NamesStep::Committed, at.name.to_owned()).await;
                    if let Err(error) = self.end_sources(&window, at, &intent.id, &names, deadline).await {
                        warn!(%error, "the sources of a move stay for now; readers do not see them");
                    }
                    return Ok(made);
                }
                Err(Tried::Intent(other)) => other,
                Err(failed) => return Err(failed.into()),
            };
            // `settle` opens a window too. A listing that waits until this one is closed would keep that one from opening.
            drop(window);
            self.settle(at, &other, deadline).await?;
        }
        Err(Failure::moved_again())
    }

    /// Makes a write. What stands in its way is finished or undone at once, since the caller has the turn of the name.
    async fn change_settling<J: Judge>(&self, judge: &J, deadline: Instant) -> Result<J::Answer, Failure> {
        for _ in 0..INTENTS_MET_MAX {
            match self.try_change(judge, deadline).await {
                Err(Tried::Intent(intent)) => self.settle(judge.name(), &intent, deadline).await?,
                Err(failed) => return Err(failed.into()),
                Ok(answer) => return Ok(answer),
            }
        }
        Err(Failure::moved_again())
    }
}
