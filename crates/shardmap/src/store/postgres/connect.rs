//! How the pools of a manager connect: with the credentials of the moment, because a token ends while a process runs.

use std::future::Future;

use deadpool_postgres::Connect;
use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, Error, NoTls};

use super::PostgresAccess;
use crate::location::Location;

/// Connects to one database.
pub(super) struct Connecting {
    location: Location,
    access: PostgresAccess,
}

impl Connecting {
    pub(super) fn new(location: &Location, access: &PostgresAccess) -> Self {
        Self { location: location.clone(), access: access.clone() }
    }
}

impl Connect for Connecting {
    /// `config` has the credentials that the pool was made with.
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let config = self.access.config(&self.location).unwrap_or_else(|| config.clone());
        Box::pin(async move {
            match self.access.connector() {
                Some(tls) => {
                    let (client, connection) = config.connect(tls).await?;
                    Ok((client, tokio::spawn(carry(connection))))
                }
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    Ok((client, tokio::spawn(carry(connection))))
                }
            }
        })
    }
}

/// Carries what a client and its server say, until the connection ends.
async fn carry(connection: impl Future<Output = Result<(), Error>>) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection of the manager ended");
    }
}
