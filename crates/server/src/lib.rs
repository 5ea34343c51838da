//! The front end: connections, authentication, the handlers of each protocol, the admin endpoint.
//!
//! ```text
//!   listener   connections, TLS, HTTP, time limits
//!   table      Azure Table Storage: one request to one reply
//!   object     Google Cloud Storage
//!   body       request bodies: which of them may grow
//!   fair       whose turn it is, where requests share something; room waits for it
//!   admin      health, metrics, status, the API about ranges
//!   history    the load by key and time
//!   manager    which ranges are split, merged and moved, and what happened
//!   accounts   names and keys          tokens   bearer tokens' signatures
//! ```
//!
//! Decisions about the protocol are in `rangehold_protocol`, decisions about data in
//! `rangehold_engine`; this crate carries requests from the one to the other.

pub mod accounts;
pub mod admin;
mod admission;
mod body;
mod fair;
pub mod history;
pub mod limits;
pub mod listener;
pub mod manager;
pub mod metrics;
pub mod object;
pub mod profile;
pub mod queries;
pub mod rehearsal;
mod request_ids;
mod room;
pub mod table;
mod throttled;
pub mod tls;
pub mod tokens;
mod turns;

use std::net::SocketAddr;
use std::sync::Arc;

use rangehold_engine::Node;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::admin::{Addresses, Admin};
use crate::listener::Connection;
use crate::manager::Manager;
use crate::object::ObjectService;
use crate::table::TableService;

/// What a server serves, and where.
pub struct Endpoints {
    /// The table service, and its socket.
    pub tables: (TableService, TcpListener),
    /// The object service, and its socket; `None` serves no objects.
    pub objects: Option<(ObjectService, TcpListener)>,
    /// The encryption of tables and objects; `None` encrypts neither.
    pub tls: Option<TlsAcceptor>,
    /// The admin endpoint, and its socket. It is never encrypted.
    pub admin: (Admin, TcpListener),
}

/// A server that runs: its sockets, and the way to stop it.
pub struct Running {
    /// Where tables are served.
    pub table_address: SocketAddr,
    /// Where objects are served, if they are.
    pub object_address: Option<SocketAddr>,
    /// Where the admin endpoint is served.
    pub admin_address: SocketAddr,
    node: Node,
    manager: Manager,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// Serves `endpoints` over `node`, until stopped.
pub fn serve(node: Node, endpoints: Endpoints) -> std::io::Result<Running> {
    let Endpoints { tables: (tables, table_socket), objects, tls, admin: (admin, admin_socket) } = endpoints;
    let (stop, stopped) = watch::channel(false);
    let (table_address, admin_address) = (table_socket.local_addr()?, admin_socket.local_addr()?);
    let object_address = objects.as_ref().map(|(_, socket)| socket.local_addr()).transpose()?;
    let (manager, history) = (admin.manager().clone(), admin.history().cloned());
    let objects = objects.map(|(objects, socket)| (Arc::new(objects), socket));
    let admin = admin.with_objects(objects.as_ref().map(|(objects, _)| objects.clone()));
    let addresses = Addresses {
        tables: table_address,
        objects: object_address,
        admin: admin_address,
        tls: tls.is_some(),
    };
    let admin = admin.with_addresses(addresses);
    let (tables, admin) = (Arc::new(tables), Arc::new(admin));
    let health = admin.clone();
    let on_table = move |connection: Connection, request| {
        let (tables, health) = (tables.clone(), health.clone());
        async move {
            match health.health(&request) {
                Some(reply) => reply,
                None => tables.handle(connection, request).await,
            }
        }
    };
    let on_admin = move |connection: Connection, request| {
        let admin = admin.clone();
        async move {
            // A change of ranges may take minutes, and its client must learn what came of it.
            let _long = connection.long_request();
            admin.handle(request).await
        }
    };
    let most = limits::connections_max();
    let mut tasks = vec![
        tokio::spawn(listener::serve(table_socket, tls.clone(), most, on_table, stopped.clone())),
        tokio::spawn(listener::serve(admin_socket, None, most, on_admin, stopped.clone())),
        tokio::spawn(manager.clone().run(stopped.clone())),
    ];
    if let Some((objects, socket)) = objects {
        tasks.push(tokio::spawn(objects.clone().keep_up(stopped.clone())));
        tasks.push(tokio::spawn(objects.clone().age(stopped.clone())));
        tasks.push(tokio::spawn(objects.clone().carry_on(stopped.clone())));
        tasks.push(tokio::spawn(objects.clone().keep_rates(stopped.clone())));
        let on_object = move |connection, request| {
            let objects = objects.clone();
            async move { objects.handle(connection, request).await }
        };
        tasks.push(tokio::spawn(listener::serve(socket, tls, most, on_object, stopped.clone())));
    }
    if let Some(history) = history {
        tasks.push(tokio::spawn(history.run(stopped)));
    }
    Ok(Running { table_address, object_address, admin_address, node, manager, stop, tasks })
}

impl Running {
    /// Stops accepting, finishes what is under way, and closes the store. Returns whether all of that was done within
    /// [`limits::STOP_WITHIN`]. If it was not, the store is left as it is, and its next opening replays the log.
    pub async fn stop(self) -> bool {
        self.stop.send_replace(true);
        self.manager.events().end();
        let finish = async {
            for task in self.tasks {
                // A task that panicked has nothing left to finish.
                let _ = task.await;
            }
            self.manager.finish().await;
            self.node.close().await;
        };
        timeout(limits::STOP_WITHIN, finish).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use hyper::body::Incoming;

    use super::*;
    use crate::listener::Connection;

    fn size_of_future<A, F>(_: impl FnOnce(A) -> F) -> usize {
        size_of::<F>()
    }

    /// The future of a request is copied from caller to caller several times before it runs.
    #[test]
    fn a_request_is_small_while_it_is_carried_out() {
        type Arguments<S> = (&'static Arc<S>, Connection, Request<Incoming>);
        let of_table = size_of_future(|(service, connection, request): Arguments<TableService>| {
            service.handle(connection, request)
        });
        let of_object = size_of_future(|(service, connection, request): Arguments<ObjectService>| {
            service.handle(connection, request)
        });
        let most = 8 << 10;
        assert!(of_table <= most && of_object <= most, "{of_table} and {of_object} bytes, {most} at most");
    }
}
