//! Callers of one process.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rangehold_client::sequence::{SequenceOptions, StrictSequence};
use rangehold_client::{Condition, Entity, Options, Policy, Service, Table};
use tokio::task::JoinSet;

use super::Taken;

/// Table and keys of the loop.
const TABLE: &str = "loopids";
const SCOPE: &str = "shop";
const NAME: &str = "order";
const VALUE: &str = "Value";

/// Each client has its own connections and runs the loop.
pub(super) async fn looping(service: &Service, clients: usize, time: Duration) -> Result<Vec<Taken>> {
    let table = service.table(TABLE)?;
    table.create_if_absent().await?;
    table.insert_or_replace(Entity::new(SCOPE, NAME).with(VALUE, 0)).await?;
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let table = table.clone();
        tasks.spawn(async move {
            let begun = Instant::now();
            let mut taken = Taken::default();
            while begun.elapsed() < time {
                let asked = Instant::now();
                // It begins again until it has a number, or the time is over.
                while begun.elapsed() < time {
                    if let Some(number) = one_try(&table).await? {
                        taken.numbers.push(number);
                        taken.micros.push(asked.elapsed().as_micros() as u64);
                        break;
                    }
                    taken.failed += 1;
                }
            }
            anyhow::Ok(taken)
        });
    }
    tasks.join_all().await.into_iter().collect()
}

/// Read, add one, merge; `None` if another client was faster.
async fn one_try(table: &Table) -> Result<Option<i64>> {
    let found = table.get(SCOPE, NAME).await?.context("the counter is there")?;
    let number = found.integer(VALUE).context("the counter is a number")? + 1;
    let condition = Condition::from(found.etag.as_ref().context("it has a version")?);
    match table.merge(Entity::new(SCOPE, NAME).with(VALUE, number as i32), condition).await {
        Ok(_) => Ok(Some(number)),
        Err(error) if error.has_status(412) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Callers of one strict sequence; each finishes its claim before it takes the next number, and that counts as its time.
pub(super) async fn strict(service: &Service, callers: usize, time: Duration) -> Result<Vec<Taken>> {
    let sequence = StrictSequence::open(service, SCOPE, "invoice", SequenceOptions::default()).await?;
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let sequence = sequence.clone();
        tasks.spawn(async move {
            let begun = Instant::now();
            let mut taken = Taken::default();
            while begun.elapsed() < time {
                let asked = Instant::now();
                match sequence.next().await {
                    Ok(claim) => {
                        taken.numbers.push(claim.number());
                        taken.micros.push(asked.elapsed().as_micros() as u64);
                        taken.failed += u64::from(claim.finish().await.is_err());
                    }
                    Err(_) => taken.failed += 1,
                }
            }
            anyhow::Ok(taken)
        });
    }
    tasks.join_all().await.into_iter().collect()
}

/// The service of a worker, which tries again as usual.
pub(super) fn service(connection: &str) -> Result<Service> {
    let account = rangehold_client::Account::from_connection_string(connection)?;
    Ok(Service::new(account, Options { retry: Policy::quick(), ..Options::default() })?)
}
