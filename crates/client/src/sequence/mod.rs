//! Numbers that are never given out twice: orders, invoices, registrations.
//!
//! A sequence is one entity with the property `Value`, the last number that was reserved. A client that wants numbers reads it,
//! and merges the sum with `If-Match`. If another client was faster, the service refuses with 412, or with 409 for the
//! first number of all, and the client tries again. This is the loop of the article that made the pattern known, and the layout is that of
//! the article too: table `identities`, PartitionKey the scope, RowKey the sequence's name, an Int32 or Int64 `Value`,
//! first number 1. So programs with that loop and programs with this crate may share a sequence.
//!
//! ```text
//!   callers of this process  --->  line  --->  one read and one conditional merge  --->  numbers, in the line's order
//! ```
//!
//! Callers of one process stand in a line, and one merge reserves numbers for all that wait. So 64 callers cost
//! little more than one.
//!
//! **Gaps.** If the answer to a merge is lost, a [`Sequence`] does not know whether the numbers are its own. It leaves them
//! unused and takes the next ones. A [`StrictSequence`] leaves no number unused without a trace: in the same batch as the
//! merge it inserts a *claim* for each number, so it can look whose the number is. A claim stays until its owner has
//! finished. The claims of a program that was killed are listed, and can be taken up.

mod claim;
mod counter;
mod error;
mod finish;
mod line;
mod numbers;

use std::sync::Arc;

pub use claim::{Claim, OpenClaim, StrictSequence};
pub use counter::{Counts, Width};
pub use error::SequenceError;

use crate::error::Error;
use crate::service::Service;
use counter::{Counter, Mode};
use line::Line;
use numbers::Numbers;

/// The table of the article.
pub const TABLE: &str = "identities";

/// How a sequence works. The default is that of the article.
#[derive(Debug, Clone)]
pub struct SequenceOptions {
    /// The table; it is made if it does not exist.
    pub table: String,
    /// The type of `Value`, if the sequence does not exist yet. An existing sequence keeps its type.
    pub width: Width,
    /// How often one reservation is tried before it fails.
    pub tries: u32,
    /// How many numbers are reserved at least. With more than 1 the numbers of several processes are not in the order of
    /// time, and a process that ends leaves the rest of its block unused. A [`StrictSequence`] ignores it.
    pub block: u32,
}

impl Default for SequenceOptions {
    fn default() -> Self {
        Self { table: TABLE.to_owned(), width: Width::Int32, tries: crate::limits::SEQUENCE_TRIES, block: 1 }
    }
}

impl SequenceOptions {
    async fn counter(
        &self,
        service: &Service,
        scope: &str,
        name: &str,
        mode: Mode,
    ) -> Result<Arc<Counter>, Error> {
        let table = service.table(&self.table)?;
        table.create_if_absent().await?;
        Ok(Arc::new(Counter::new(table, scope, name, self.width, self.tries, mode)))
    }
}

/// Numbers without doubles, and perhaps with gaps. Cheap to clone; clones stand in one line.
#[derive(Clone)]
pub struct Sequence {
    line: Arc<Line<Numbers>>,
    counter: Arc<Counter>,
}

impl Sequence {
    /// The sequence `name` in `scope`. Makes the table if it does not exist; the entity is made with the first number.
    pub async fn open(
        service: &Service,
        scope: &str,
        name: &str,
        options: SequenceOptions,
    ) -> Result<Self, Error> {
        let counter =
            options.counter(service, scope, name, Mode::Plain { block: options.block.max(1) }).await?;
        Ok(Self { line: Arc::new(Line::new(Numbers(counter.clone()))), counter })
    }

    /// The next number.
    ///
    /// Fails if all tries met another client, if the last number of the type was given out, or if the service cannot be
    /// used. A failed or dropped call may leave a number unused, and never gives it to two callers.
    pub async fn next(&self) -> Result<i64, SequenceError> {
        Ok(self.line.stand(|_is_again| ()).await?.number)
    }

    /// What this handle and its clones have done so far.
    pub fn counts(&self) -> Counts {
        self.counter.counts()
    }
}
