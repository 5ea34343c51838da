//! One request to the service, and what became of it.

use std::sync::Arc;

use anyhow::Result;
use futures::stream::{FuturesUnordered, StreamExt, TryStreamExt};
use rangehold_client::{Change, Condition, Entity, Error, Lost, Query, Table};

use super::book::Outcome;
use super::plan::{Act, Fields, Plan, Template};

/// Statuses that say that the entity was there, or was not, or had another version.
const MISSING: [u16; 3] = [404, 409, 412];
/// Entities of a batch.
const BATCH: u32 = 100;

/// Sends the requests of a plan to a table. Cheap to clone.
#[derive(Clone)]
pub(super) struct Sender {
    table: Table,
    plan: Arc<Plan>,
    text: Arc<str>,
}

impl Sender {
    /// `table` should repeat nothing by itself.
    pub(super) fn new(table: Table, plan: Arc<Plan>) -> Self {
        let text = "x".repeat(plan.entity_bytes).into();
        Self { table: table.without_look(), plan, text }
    }

    /// A request of the kind `kind` about the registration `number`.
    pub(super) async fn send(&self, kind: usize, number: u64) -> Outcome {
        let done = match &self.plan.kinds[kind].act {
            Act::Insert => self.apply(self.made(number, 0)).await,
            Act::Batch { rows } => self.batch(number, *rows).await,
            Act::Update => {
                let change = Entity { keys: self.plan.keys.keys(number, 0), ..Entity::new("", "") };
                self.apply(Change::Merge(change.with("Changed", true), Condition::Any)).await
            }
            Act::Delete => self.apply(Change::Delete(self.plan.keys.keys(number, 0), Condition::Any)).await,
            Act::Get => {
                let keys = self.plan.keys.keys(number, 0);
                let found = self.table.get(&keys.partition_key, &keys.row_key).await;
                return match found {
                    Ok(Some(_)) => Outcome::Done(1),
                    Ok(None) => Outcome::Missing,
                    Err(error) => outcome(&error),
                };
            }
            Act::Query { filter, top, .. } => self.query(filter, *top, number).await,
        };
        done.map_or_else(|error| outcome(&error), Outcome::Done)
    }

    /// Makes the registrations `numbers` with `rows` entities each, before the peak. Fails at the first error.
    pub(super) async fn load(&self, numbers: &[u64], rows: u32) -> Result<u32> {
        let entities: Vec<Entity> =
            numbers.iter().flat_map(|number| (0..rows).map(|row| self.entity(*number, row))).collect();
        let count = entities.len() as u32;
        for group in rangehold_client::groups(entities.into_iter().map(Change::InsertOrReplace)) {
            self.table.batch(group).await?;
        }
        Ok(count)
    }

    /// Registrations of `rows` entities that fit one batch.
    pub(super) fn numbers_of_batch(rows: u32) -> usize {
        (BATCH / rows.max(1)).max(1) as usize
    }

    fn entity(&self, number: u64, row: u32) -> Entity {
        let keys = self.plan.keys.keys(number, row);
        let entity = Entity { keys, ..Entity::new("", "") };
        entity.with("Number", number as i64).with("Changed", false).with("Text", &*self.text)
    }

    /// Keys that may come again are upserted, so that the second time is a write too.
    fn made(&self, number: u64, row: u32) -> Change {
        let entity = self.entity(number, row);
        if self.plan.keys.repeats() { Change::InsertOrReplace(entity) } else { Change::Insert(entity) }
    }

    async fn apply(&self, change: Change) -> Result<u32, Error> {
        self.table.apply(change).await.map(|_| 1)
    }

    async fn batch(&self, number: u64, rows: u32) -> Result<u32, Error> {
        let changes: Vec<Change> = (0..rows).map(|row| self.made(number, row)).collect();
        self.table.batch(changes).await.map(|_| rows)
    }

    /// A query is answered when each of its prefixes is.
    async fn query(&self, filter: &Template, top: u32, number: u64) -> Result<u32, Error> {
        let keys = self.plan.keys.keys(number, 0);
        let prefixes = match filter.each() {
            None => vec![String::new()],
            Some(digits) => (0..16_u32.pow(digits as u32)).map(|one| format!("{one:0digits$x}")).collect(),
        };
        let one = |each: String| {
            let fields = Fields {
                number,
                row: 0,
                partition_key: &keys.partition_key,
                row_key: &keys.row_key,
                each: &each,
            };
            let query = Query::of_text(filter.fill(&fields)).page_items(top);
            // Pages may be short, or empty, and the query goes on.
            self.table.query(query).take(top as usize).try_fold(0_u32, |sum, _| async move { Ok(sum + 1) })
        };
        let all: FuturesUnordered<_> = prefixes.into_iter().map(one).collect();
        all.try_fold(0, |sum, found| async move { Ok(sum + found) }).await
    }
}

/// What an error means for the wish.
fn outcome(error: &Error) -> Outcome {
    match error {
        Error::OutcomeUnknown(unknown) => outcome(&unknown.last),
        Error::Refused(refusal) => match refusal.status {
            429 | 503 => Outcome::Busy,
            408 | 500 | 504 => Outcome::TimedOut,
            status if MISSING.contains(&status) && refusal.code != "TableNotFound" => Outcome::Missing,
            _ => Outcome::Failed(error.to_string()),
        },
        Error::Lost(Lost::Unsent(_) | Lost::Unanswered(_)) => Outcome::Lost,
        other => Outcome::Failed(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use rangehold_client::{Found, OutcomeUnknown, Refusal};

    use super::*;

    fn refused(status: u16, code: &str) -> Error {
        Refusal { status, code: code.to_owned(), text: String::new(), change: None }.into()
    }

    #[test]
    fn an_error_says_what_became_of_the_wish() {
        for (status, code, expected) in [
            (503, "ServerBusy", Outcome::Busy),
            (500, "OperationTimedOut", Outcome::TimedOut),
            (409, "EntityAlreadyExists", Outcome::Missing),
        ] {
            assert_eq!(outcome(&refused(status, code)), expected);
            let (found, last) = (Found::Nothing, refused(status, code));
            let unknown = OutcomeUnknown { keys: None, attempts: 1, found, last };
            assert_eq!(outcome(&Box::new(unknown).into()), expected);
        }
        for (status, code) in [(403, "AuthenticationFailed"), (404, "TableNotFound")] {
            assert!(matches!(outcome(&refused(status, code)), Outcome::Failed(why) if why.contains(code)));
        }
    }
}
