//! Workloads: what simulated clients do all the time, and what they know of it at the end.
//!
//! | workload | promise |
//! |---|---|
//! | [`register`] | each entity is a linearizable register; its ETags only grow |
//! | [`bank`] | a batch is made whole or not at all, and no page shows half of one |
//! | [`listing`] | a client that follows tokens sees each lasting entity once |
//! | [`tables`] | a deleted table is gone at every front end, and its rows never come back |
//! | [`ledger`] | a batch that was acknowledged is there whole until another replaces it, one that was refused is not |
//! | [`objects`] | each object is a linearizable register with its bytes, and no chunk of them is lost or left over |
//! | [`large`] | a table of 3,000 rows is seen whole, whether its pages run out of rows, bytes or time |

pub mod bank;
pub mod large;
pub mod ledger;
pub mod listing;
pub(crate) mod mix;
pub mod objects;
pub mod register;
pub mod tables;

use std::fmt;
use std::time::Duration;

use crate::check::pages::Walk;
use crate::client::http::{Reply, Request};
use crate::client::requests::{Page, create_table, page, query};
use crate::client::{Client, Told};

/// How long a step is tried that must succeed in the end.
pub(crate) const IN_THE_END: Duration = Duration::from_secs(60);
/// How long it may take to make one thing that a workload needs, while all faults strike: a store that keeps timing
/// out can keep a range changing hands for half a minute at a time.
pub(crate) const SET_UP_WITHIN: Duration = Duration::from_secs(300);

/// Creates a table, however long it takes.
pub(crate) async fn make_table(client: &mut Client, table: &str) {
    let made = |reply: &Reply| matches!(reply.status, 201 | 204 | 409);
    make(client, format_args!("table {table}"), &create_table(table), made).await;
}

/// Sends a request again and again until `made` accepts its answer. After [`SET_UP_WITHIN`] this is a finding, which
/// names `what`.
pub(crate) async fn make(
    client: &mut Client,
    what: impl fmt::Display,
    request: &Request,
    made: impl Fn(&Reply) -> bool,
) {
    let until = client.world().now() + SET_UP_WITHIN;
    loop {
        if let Told::Answer(reply) = client.ask(request.clone()).await.told()
            && made(&reply)
        {
            return;
        }
        if client.world().now() > until {
            return client.world().found(format_args!("{what} could not be made within {SET_UP_WITHIN:?}"));
        }
        client.think(100, 500).await;
    }
}

/// Walks through a table until the end of its pages, or until `end`, and thinks after each page.
pub(crate) async fn follow(
    client: &mut Client,
    table: &str,
    top: Option<usize>,
    end: Duration,
    think: (u64, u64),
) -> Walk {
    let (mut walk, mut token) = (Walk::default(), None::<String>);
    while client.world().now() < end {
        if let Told::Answer(reply) = client.ask(query(table, None, top, token.as_deref())).await.told() {
            let fits = |page: &Page| reply.status == 200 && top.is_none_or(|top| page.entities.len() <= top);
            let Some(page) = page(&reply).filter(fits) else {
                let (status, code) = (reply.status, reply.code());
                client.world().found(format_args!("a page of {table} was answered {status} {code}"));
                return walk;
            };
            walk.seen.extend(page.entities.into_iter().map(|entity| (entity.partition, entity.row)));
            token = page.next;
            if token.is_none() {
                walk.ended = true;
                return walk;
            }
        }
        client.think(think.0, think.1).await;
    }
    walk
}
