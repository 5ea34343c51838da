//! The writers of a trial: at three isolation levels, through all doors, each attempt judged by its error.

use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_shardmap::routing::{Isolation, Retry, RoutingError, Typed};
use rangehold_shardmap::{Location, LookIn, RangeShardMap};
use rangehold_testkit::microseconds_since_1970;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::attempt::{AT_COMMIT, Attempt, Outcome};
use super::stuck::{self, Stage};
use super::world::{End, GRACE, Reach, TENANTS};

const INSERT: &str = "INSERT INTO events VALUES ($1, $2, $3)";
const ISOLATIONS: [(Isolation, &str); 3] = [
    (Isolation::ReadCommitted, "READ COMMITTED"),
    (Isolation::RepeatableRead, "REPEATABLE READ"),
    (Isolation::Serializable, "SERIALIZABLE"),
];
/// What the server may say to a plain client: the fence's refusals, a conflict, a cancel, an end.
const ALLOWED: [&str; 8] = ["RH001", "RH002", "RH003", "RH005", "40001", "40P01", "57014", "57P01"];

/// How a row is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Door {
    /// A statement of its own, through our connection.
    Single,
    /// A transaction of two, through our connection.
    Transaction,
    /// COPY through our connection.
    Copy,
    /// A plain client, through the guard.
    Guard,
    /// COPY by a plain client, through the guard.
    GuardCopy,
}

const DOORS: [Door; 5] = [Door::Single, Door::Transaction, Door::Copy, Door::Guard, Door::GuardCopy];

/// An error of an attempt.
enum Failed {
    Ours(RoutingError),
    Plain(tokio_postgres::Error),
}

impl From<RoutingError> for Failed {
    fn from(error: RoutingError) -> Self {
        Self::Ours(error)
    }
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Plain(error)
    }
}

/// One writer.
struct Writer {
    number: i32,
    reach: Arc<Reach>,
    map: RangeShardMap<i64>,
    random: StdRng,
    stage: Stage,
}

/// Writes until it is told to stop, and prints each attempt.
pub async fn run(reach: Arc<Reach>, number: i32, seed: u64, stop: Arc<AtomicBool>) {
    let map = reach.route(&format!("writer {number}")).await;
    let random = StdRng::seed_from_u64(seed + number as u64);
    let mut writer = Writer { number, reach, map, random, stage: Stage::default() };
    let mut n = i64::from(number) << 32;
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        println!("{}", writer.attempt(n).await);
    }
}

impl Writer {
    async fn attempt(&mut self, n: i64) -> Attempt {
        let tenant = match self.random.random_bool(0.5) {
            true => self.reach.hot.load(Ordering::Relaxed),
            false => self.random.random_range(0..TENANTS),
        };
        let door = DOORS[self.random.random_range(0..DOORS.len())];
        let isolation = ISOLATIONS[self.random.random_range(0..ISOLATIONS.len())];
        // Now and then longer than sessions get to end by themselves.
        let pause = match self.random.random_range(0..40) {
            0 => GRACE * 2,
            1..=10 => Duration::from_millis(self.random.random_range(0..30)),
            _ => Duration::ZERO,
        };
        let rows = if matches!(door, Door::Single | Door::Guard) { 1 } else { 2 };
        let (began, stage) = (microseconds_since_1970(), self.stage.clone());
        let name = || format!("{door:?} {n} of tenant {tenant}");
        let result = stuck::within_limit(self.write(door, isolation, tenant, n, pause), name, &stage).await;
        let result = result.unwrap_or_else(|| Err((Outcome::Unknown, "stuck".to_owned())));
        let (outcome, what) = result.err().unwrap_or((Outcome::Written, String::new()));
        let ended = microseconds_since_1970();
        let pause =
            if door == Door::Single { 0 } else { pause.as_micros().try_into().expect("a short pause") };
        Attempt { n, rows, outcome, door: format!("{door:?}"), tenant, began, ended, pause, what }
    }

    async fn write(
        &mut self,
        door: Door,
        isolation: (Isolation, &str),
        tenant: i64,
        n: i64,
        pause: Duration,
    ) -> Result<(), (Outcome, String)> {
        match door {
            Door::Single | Door::Transaction | Door::Copy => {
                self.through_ours(door, isolation.0, tenant, n, pause).await
            }
            Door::Guard | Door::GuardCopy => self.through_guard(door, isolation.1, tenant, n, pause).await,
        }
    }

    async fn through_ours(
        &mut self,
        door: Door,
        isolation: Isolation,
        tenant: i64,
        n: i64,
        pause: Duration,
    ) -> Result<(), (Outcome, String)> {
        let work = async {
            self.stage.is("a connection of ours");
            let mut connection = self.map.open_connection_for_key(&tenant, &self.reach.routing).await?;
            let row: [Typed<'_>; 3] = [(&tenant, Type::INT8), (&self.number, Type::INT4), (&n, Type::INT8)];
            self.stage.is("its first statement");
            if door == Door::Single {
                connection.execute_typed(INSERT, &row).await?;
                return Ok(());
            }
            let mut transaction = connection.transaction(isolation, false);
            if door == Door::Transaction {
                transaction.execute_typed(INSERT, &row).await?;
                tokio::time::sleep(pause).await;
                self.stage.is("its second statement");
                transaction.execute_typed(INSERT, &row).await?;
            } else {
                let mut copy = transaction.copy_in("COPY events FROM STDIN").await?;
                tokio::time::sleep(pause).await;
                self.stage.is("the end of its COPY");
                copy.send(self.lines(tenant, n)).await?;
                copy.finish().await?;
            }
            self.stage.is("COMMIT");
            transaction.commit().await
        };
        match work.await {
            Ok(()) => Ok(()),
            Err(error) => Err(judge(&Failed::Ours(error))),
        }
    }

    /// As `psql` or a program that knows nothing of shard maps but where to go.
    async fn through_guard(
        &mut self,
        door: Door,
        isolation: &str,
        tenant: i64,
        n: i64,
        pause: Duration,
    ) -> Result<(), (Outcome, String)> {
        // Where it was, most of the time; so that old knowledge is tried too.
        let look = if self.random.random_bool(0.2) { LookIn::Store } else { LookIn::CacheThenStore };
        self.stage.is("the place of its tenant");
        let place = match self.map.lookup(&tenant, look).await {
            Ok(mapping) => mapping.shard().location().clone(),
            Err(error) => return Err(judge(&Failed::Ours(error.into()))),
        };
        self.stage.is("a plain connection");
        let (client, end) = connect(&self.reach, &place).await?;
        let mut committing = false;
        let work = async {
            self.stage.is("BEGIN");
            client
                .batch_execute(&format!("BEGIN ISOLATION LEVEL {isolation}; SELECT count(*) FROM pg_class"))
                .await?;
            tokio::time::sleep(pause).await;
            self.stage.is("its rows, through the guard");
            if door == Door::Guard {
                client
                    .execute("INSERT INTO guarded VALUES ($1, $2, $3)", &[&tenant, &self.number, &n])
                    .await?;
            } else {
                let sink = client.copy_in::<_, Bytes>("COPY guarded FROM STDIN").await?;
                let mut sink = std::pin::pin!(sink);
                sink.send(self.lines(tenant, n)).await?;
                sink.finish().await?;
            }
            committing = true;
            self.stage.is("COMMIT");
            client.batch_execute("COMMIT").await
        };
        let Err(error) = work.await else { return Ok(()) };
        let code = error.code().map(|code| code.code().to_owned());
        // The server's last words are lost if the client sends a statement just as the session is ended.
        let lost = error.is_closed() || error.source().is_some_and(|cause| cause.is::<io::Error>());
        let (mut outcome, mut what) = judge(&Failed::Plain(error));
        // The server may say so after it has committed.
        let ended_at_commit = committing && code.as_deref() == Some("57P01");
        if outcome == Outcome::Unknown || ended_at_commit {
            // An idle session that was ended is told so when nobody asked it anything.
            drop(client);
            self.stage.is("the end of its session");
            let ended = end.await.ok().flatten();
            let reason = match ended.as_deref().or(code.as_deref()) {
                Some(code @ ("57P01" | "08P01")) => Some(code),
                Some(_) => None,
                None => lost.then_some("closed"),
            };
            // Without a COMMIT nothing may be there. A COMMIT that met the end may have been done.
            if let Some(reason) = reason {
                (outcome, what) = match committing {
                    true => (Outcome::Unknown, format!("plain client: {reason}{AT_COMMIT}")),
                    false => (Outcome::Refused, format!("plain client: {reason} before COMMIT")),
                };
            }
        }
        Err((outcome, what))
    }

    fn lines(&self, tenant: i64, n: i64) -> Bytes {
        format!("{tenant}\t{number}\t{n}\n{tenant}\t{number}\t{n}\n", number = self.number).into()
    }
}

async fn connect(reach: &Reach, place: &Location) -> Result<(Client, End), (Outcome, String)> {
    reach.connect(place).await.map_err(|error| {
        // Nothing was sent, but only an outage excuses it.
        (Outcome::Unknown, format!("plain client: no connection: {error}"))
    })
}

/// What an error leaves open, and its name in the report.
fn judge(failed: &Failed) -> (Outcome, String) {
    match failed {
        Failed::Ours(error) => {
            let name = format!("ours: {}", kind(error));
            match error.retry() {
                Retry::Again => (Outcome::Refused, name),
                Retry::LookFirst => (Outcome::Unknown, name),
                Retry::Never => (Outcome::Unknown, format!("ours: not retryable: {error:?}")),
            }
        }
        Failed::Plain(error) => match error.code().map(tokio_postgres::error::SqlState::code) {
            Some(code) if ALLOWED.contains(&code) => (Outcome::Refused, format!("plain client: {code}")),
            // A pooler has lost the server's session.
            Some("08P01") => (Outcome::Unknown, "plain client: 08P01".to_owned()),
            Some(code) => (Outcome::Unknown, format!("plain client: {code}: {error:?}")),
            None => (Outcome::Unknown, format!("plain client: {error}")),
        },
    }
}

fn kind(error: &RoutingError) -> String {
    let debug = format!("{error:?}");
    let name = debug.split([' ', '(']).next().unwrap_or_default().to_owned();
    match (error.sqlstate(), error) {
        (Some(code), _) => format!("{name} {code}"),
        (None, RoutingError::OutcomeUnknown { source, .. }) if source.is_closed() => {
            format!("{name} of a closed connection")
        }
        (None, _) => name,
    }
}
