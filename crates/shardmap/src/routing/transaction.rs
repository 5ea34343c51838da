//! A transaction on a key: fenced from its first statement to its end.

use std::pin::Pin;

use bytes::Bytes;
use futures::SinkExt;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, CopyInSink, CopyOutStream, Row, Statement, ToStatement};

use super::Isolation;
use super::error::RoutingError;
use super::flight::Envelope;
use super::link::{First, Link};
use super::session::Session;

/// A parameter of a statement: its value, and its type in PostgreSQL.
pub type Typed<'a> = (&'a (dyn ToSql + Sync), Type);

/// A transaction on the key of its [`ShardConnection`](super::ShardConnection). If it is dropped without
/// [`commit`](ShardTransaction::commit), it is undone.
///
/// After a statement has failed, only `ROLLBACK TO SAVEPOINT` helps, as always in PostgreSQL. A statement that ends
/// the transaction by itself (`COMMIT`, `ROLLBACK`) ends it here too. Later statements are refused
/// ([`RoutingError::Spent`]), since they would not be fenced.
#[derive(Debug)]
pub struct ShardTransaction<'c> {
    link: &'c mut Link,
    isolation: Isolation,
    read_only: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was sent.
    New,
    /// The first statement is under way, or was given up, or failed.
    Entering,
    /// The key was entered.
    Entered,
    /// Committed or undone.
    Over,
}

/// A statement on its way.
#[derive(Debug)]
enum Attempt {
    /// The first statement, which enters the key.
    First(First),
    /// A later statement.
    Later,
}

/// Sends a statement and takes its answer. The first statement may be sent twice. A function that takes the request
/// as a closure would do the same, but the futures of such functions cannot be sent between threads.
macro_rules! request {
    ($transaction:expr, $client:ident => $request:expr) => {{
        let mut attempt = $transaction.attempt();
        loop {
            let $client = $transaction.depart(&attempt).await?;
            let answer = $request.await;
            if let Some(answer) = $transaction.arrive(&mut attempt, answer).await? {
                break Ok::<_, RoutingError>(answer);
            }
        }
    }};
}

impl<'c> ShardTransaction<'c> {
    pub(super) fn new(link: &'c mut Link, isolation: Isolation, read_only: bool) -> Self {
        Self { link, isolation, read_only, state: State::New }
    }

    /// The rows of a statement.
    ///
    /// # Errors
    ///
    /// A [`RoutingError`], which says whether to try the whole transaction again. All methods here have it.
    pub async fn query<S: ToStatement + ?Sized>(
        &mut self,
        statement: &S,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, RoutingError> {
        request!(self, client => client.query(statement, parameters))
    }

    /// The rows of a statement. It takes one round trip, since the types of its parameters are known.
    pub async fn query_typed(
        &mut self,
        sql: &str,
        parameters: &[Typed<'_>],
    ) -> Result<Vec<Row>, RoutingError> {
        request!(self, client => client.query_typed(sql, parameters))
    }

    /// Runs a statement, and returns how many rows it changed.
    pub async fn execute<S: ToStatement + ?Sized>(
        &mut self,
        statement: &S,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, RoutingError> {
        request!(self, client => client.execute(statement, parameters))
    }

    /// Runs a statement in one round trip, and returns how many rows it changed.
    pub async fn execute_typed(&mut self, sql: &str, parameters: &[Typed<'_>]) -> Result<u64, RoutingError> {
        request!(self, client => client.execute_typed(sql, parameters))
    }

    /// Prepares a statement for this transaction.
    pub async fn prepare(&mut self, sql: &str) -> Result<Statement, RoutingError> {
        request!(self, client => client.prepare(sql))
    }

    /// Begins `COPY ... FROM STDIN`.
    pub async fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>, RoutingError> {
        let statement = self.prepare(sql).await?;
        let sink = request!(self, client => client.copy_in::<_, Bytes>(&statement))?;
        // Until the copy is finished, the session is in the middle of a request.
        let session = self.session()?;
        session.depart(Envelope::none());
        Ok(CopyIn { session, sink: Box::pin(sink) })
    }

    /// Begins `COPY ... TO STDOUT`.
    pub async fn copy_out(&mut self, sql: &str) -> Result<CopyOut<'_>, RoutingError> {
        let statement = self.prepare(sql).await?;
        let stream = request!(self, client => client.copy_out(&statement))?;
        let session = self.session()?;
        session.depart(Envelope::none());
        Ok(CopyOut { session, stream: Box::pin(stream) })
    }

    /// Commits the transaction.
    ///
    /// # Errors
    ///
    /// [`RoutingError::Spent`] if a statement has failed. Then all was undone. [`RoutingError::OutcomeUnknown`] if
    /// the connection broke.
    pub async fn commit(mut self) -> Result<(), RoutingError> {
        if self.state == State::New {
            self.state = State::Over;
            return Ok(());
        }
        self.expect_entered().await?;
        let session = self.session()?;
        if !session.is_open() {
            return Err(RoutingError::Spent { location: session.location().clone() });
        }
        session.depart(Envelope::none());
        let committed = session.client().batch_execute("COMMIT").await;
        committed.map_err(|error| RoutingError::of_driver(session.location(), error, true))?;
        session.arrived();
        self.state = State::Over;
        Ok(())
    }

    /// Undoes the transaction, and waits until that is done.
    pub async fn rollback(mut self) -> Result<(), RoutingError> {
        if self.state != State::New
            && let Some(session) = self.link.session()
        {
            let undone = session.settle().await;
            undone.map_err(|error| RoutingError::of_driver(session.location(), error, false))?;
        }
        self.state = State::Over;
        Ok(())
    }

    /// The client for the last statement. The commit is sent with it.
    pub(super) async fn depart_last(&mut self) -> Result<&Client, RoutingError> {
        self.expect_entered().await?;
        let envelope = self.link.envelope().and_commit();
        let session = self.session()?;
        session.depart(envelope);
        Ok(session.client())
    }

    /// Takes the answer of the last statement.
    pub(super) fn arrive_last<T>(
        mut self,
        answer: Result<T, tokio_postgres::Error>,
    ) -> Result<T, RoutingError> {
        let session = self.session()?;
        let answer = answer.map_err(|error| RoutingError::of_driver(session.location(), error, true))?;
        session.arrived();
        self.state = State::Over;
        Ok(answer)
    }

    /// Whether the next statement is the first.
    fn attempt(&mut self) -> Attempt {
        if self.state != State::New {
            return Attempt::Later;
        }
        self.state = State::Entering;
        Attempt::First(First::of(self.isolation, self.read_only))
    }

    async fn depart(&mut self, attempt: &Attempt) -> Result<&Client, RoutingError> {
        if let Attempt::First(first) = attempt {
            return self.link.depart(first).await;
        }
        self.expect_entered().await?;
        let envelope = self.link.envelope();
        let session = self.session()?;
        session.depart(envelope);
        Ok(session.client())
    }

    /// `None` means that the statement must be sent again.
    async fn arrive<T>(
        &mut self,
        attempt: &mut Attempt,
        answer: Result<T, tokio_postgres::Error>,
    ) -> Result<Option<T>, RoutingError> {
        if let Attempt::First(first) = attempt {
            let answer = self.link.arrive(first, answer).await?;
            if answer.is_some() {
                self.state = State::Entered;
            }
            return Ok(answer);
        }
        let session = self.session()?;
        let answer = answer.map_err(|error| RoutingError::of_driver(session.location(), error, false))?;
        session.arrived();
        Ok(Some(answer))
    }

    /// Fails if the server would run a statement outside of the transaction.
    async fn expect_entered(&mut self) -> Result<(), RoutingError> {
        let entered = self.state == State::Entered;
        let session = self.session()?;
        let spent = || RoutingError::Spent { location: session.location().clone() };
        if !entered {
            return Err(spent());
        }
        let caught_up = session.catch_up().await;
        caught_up.map_err(|error| RoutingError::of_driver(session.location(), error, false))?;
        if session.is_idle() {
            Err(RoutingError::Spent { location: session.location().clone() })
        } else {
            Ok(())
        }
    }

    fn session(&mut self) -> Result<&mut Session, RoutingError> {
        let location = self.link.route.location.clone();
        self.link.session().ok_or(RoutingError::Spent { location })
    }
}

impl Drop for ShardTransaction<'_> {
    fn drop(&mut self) {
        if !matches!(self.state, State::New | State::Over)
            && let Some(session) = self.link.session()
        {
            session.abandon();
        }
    }
}

/// Rows that go into a `COPY ... FROM STDIN`, in the format that the statement says. If it is dropped without
/// [`finish`](CopyIn::finish), the copy fails.
pub struct CopyIn<'t> {
    session: &'t mut Session,
    sink: Pin<Box<CopyInSink<Bytes>>>,
}

impl CopyIn<'_> {
    /// Sends some rows.
    ///
    /// # Errors
    ///
    /// The connection broke, or the server refused earlier rows. In the second case [`finish`](CopyIn::finish) says
    /// why.
    pub async fn send(&mut self, rows: Bytes) -> Result<(), RoutingError> {
        let sent = self.sink.send(rows).await;
        sent.map_err(|error| RoutingError::of_driver(self.session.location(), error, false))
    }

    /// Ends the copy, and returns the number of rows.
    ///
    /// # Errors
    ///
    /// What the server says about the rows, which includes a guard's refusal.
    pub async fn finish(mut self) -> Result<u64, RoutingError> {
        let copied = self.sink.as_mut().finish().await;
        copied.map_err(|error| RoutingError::of_driver(self.session.location(), error, false))
    }
}

impl std::fmt::Debug for CopyIn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyIn").field("location", self.session.location()).finish_non_exhaustive()
    }
}

/// Rows that come out of a `COPY ... TO STDOUT`, piece by piece.
pub struct CopyOut<'t> {
    session: &'t mut Session,
    stream: Pin<Box<CopyOutStream>>,
}

impl CopyOut<'_> {
    /// The next piece; `None` after the last one.
    ///
    /// # Errors
    ///
    /// The connection broke, or the server failed.
    pub async fn next(&mut self) -> Result<Option<Bytes>, RoutingError> {
        let piece = futures::StreamExt::next(&mut self.stream).await.transpose();
        piece.map_err(|error| RoutingError::of_driver(self.session.location(), error, false))
    }
}

impl std::fmt::Debug for CopyOut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyOut").field("location", self.session.location()).finish_non_exhaustive()
    }
}
