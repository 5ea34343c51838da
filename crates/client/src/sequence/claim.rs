//! Sequences that leave no number unused without a trace.
//!
//! A claim is a row beside the counter, with the number and a nonce of its owner. It goes through these states:
//!
//! ```text
//!   reserved --finish--> gone: the number was used
//!       |----give_up---> free: the number was not used, and anybody may take it up
//!       `----(killed)--> open, until another process takes it up
//! ```
//!
//! Only its owner removes a claim. A process that takes one up becomes its owner, by a change with `If-Match`. The old
//! owner learns of it when it wants to finish.

use std::sync::Arc;

use super::SequenceOptions;
use super::counter::{Counter, Counts, Mode, NONCE, NUMBER};
use super::error::SequenceError;
use super::finish::{Finishing, Removal, is_of_another};
use super::line::Line;
use super::numbers::Numbers;
use crate::entity::{ETag, Entity, Timestamp};
use crate::error::Error;
use crate::request::{Change, Condition, Invalid};
use crate::service::Service;

/// The property of a claim that was given up.
const FREE: &str = "Free";

/// Numbers without doubles, each with a claim until it is used. Cheap to clone; clones stand in one line.
#[derive(Clone)]
pub struct StrictSequence {
    numbers: Arc<Line<Numbers>>,
    finishing: Arc<Line<Finishing>>,
    counter: Arc<Counter>,
}

impl StrictSequence {
    /// The sequence `name` in `scope`. Makes the table if it does not exist. A name with a tilde is refused, because a tilde
    /// stands between the name and the number of a claim.
    pub async fn open(
        service: &Service,
        scope: &str,
        name: &str,
        options: SequenceOptions,
    ) -> Result<Self, Error> {
        if name.contains('~') {
            return Err(
                Invalid(format!("the name {name:?} of a strict sequence must not have a tilde")).into()
            );
        }
        let counter = options.counter(service, scope, name, Mode::Strict).await?;
        let numbers = Arc::new(Line::new(Numbers(counter.clone())));
        let finishing = Arc::new(Line::new(Finishing(counter.clone())));
        Ok(Self { numbers, finishing, counter })
    }

    /// The next number, with its claim.
    ///
    /// Fails as [`Sequence::next`](super::Sequence::next) does. A failed or dropped call may leave a claim, which
    /// [`Self::open_claims`] lists.
    pub async fn next(&self) -> Result<Claim, SequenceError> {
        let reserved = self.numbers.stand(|_is_again| ()).await?;
        Ok(self.claim(reserved.number, reserved.claim))
    }

    fn claim(&self, number: i64, version: Option<ETag>) -> Claim {
        Claim { number, version, counter: self.counter.clone(), finishing: self.finishing.clone() }
    }

    /// The claims of all processes that are not finished, by their numbers. Among them are numbers that are in use at this
    /// moment.
    pub async fn open_claims(&self) -> Result<Vec<OpenClaim>, SequenceError> {
        let claims = self.counter.claims(0, i64::MAX).await?;
        Ok(claims.into_iter().filter_map(OpenClaim::of).collect())
    }

    /// Takes a number up that its owner has left.
    ///
    /// Do this only with a claim that was given up, or whose owner has certainly ended: an owner that lives still uses its
    /// number until it learns, when it finishes, that the number is not its own any more. Fails with
    /// [`SequenceError::Lost`] if another process was faster.
    pub async fn take_up(&self, claim: OpenClaim) -> Result<Claim, SequenceError> {
        let OpenClaim { number, version, .. } = claim;
        let entity =
            Entity { keys: self.counter.claim_keys(number), ..Entity::new("", "") }.with(FREE, false);
        // The nonce is the token of this write, so an answer that is lost does no harm.
        let marked = self.counter.table.clone().with_token(NONCE);
        match marked.apply(Change::Merge(entity, Condition::Version(version))).await {
            Ok(version) => Ok(self.claim(number, version)),
            Err(error) if is_of_another(&error) => Err(SequenceError::Lost { number }),
            Err(error) => Err(error.into()),
        }
    }

    /// What this handle and its clones have done so far.
    pub fn counts(&self) -> Counts {
        self.counter.counts()
    }
}

/// A claim in the table.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenClaim {
    /// Its number.
    pub number: i64,
    /// Whether its owner has given it up.
    pub is_free: bool,
    /// When it was made, taken up or given up, by the clock of the service.
    pub since: Option<Timestamp>,
    version: ETag,
}

impl OpenClaim {
    fn of(entity: Entity) -> Option<Self> {
        let is_free = entity.get(FREE) == Some(&true.into());
        Some(Self {
            number: entity.integer(NUMBER)?,
            is_free,
            since: entity.timestamp,
            version: entity.etag?,
        })
    }
}

/// A number that is yours. A claim that is dropped without [`finish`](Self::finish) stays open.
pub struct Claim {
    number: i64,
    version: Option<ETag>,
    counter: Arc<Counter>,
    finishing: Arc<Line<Finishing>>,
}

impl Claim {
    /// The number.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// Removes the claim: the number has been used. Claims that are finished at the same time go in one batch.
    ///
    /// Fails with [`SequenceError::Lost`] if another process took the number up meanwhile.
    pub async fn finish(self) -> Result<(), SequenceError> {
        let (number, version) = (self.number, self.version()?);
        self.finishing.stand(|is_in_doubt| Removal { number, version: version.clone(), is_in_doubt }).await
    }

    /// Says that the number was not used, so that anybody may take it up.
    ///
    /// Fails with [`SequenceError::Lost`] if another process took the number up meanwhile.
    pub async fn give_up(self) -> Result<(), SequenceError> {
        let entity = Entity { keys: self.counter.claim_keys(self.number), ..Entity::new("", "") };
        let change = Change::Merge(entity.with(FREE, true), Condition::Version(self.version()?));
        match self.counter.table.apply(change).await {
            Ok(_) => Ok(()),
            Err(error) if is_of_another(&error) => Err(SequenceError::Lost { number: self.number }),
            Err(error) => Err(error.into()),
        }
    }

    fn version(&self) -> Result<ETag, SequenceError> {
        self.version.clone().ok_or(SequenceError::Lost { number: self.number })
    }
}
