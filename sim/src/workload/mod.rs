//! Workloads: what simulated clients do all the time, and what they know of it at the end.
//!
//! | workload | promise |
//! |---|---|
//! | [`register`] | each entity is a linearizable register; its ETags only grow |
//! | [`bank`] | a batch is made whole or not at all, and no page shows half of one |
//! | [`listing`] | who follows tokens sees each lasting entity once |
//! | [`tables`] | a deleted table is gone at every front end, and its rows never come back |
//! | [`ledger`] | what was acknowledged is there, what was refused is not: one owner for each key |

pub mod bank;
pub mod ledger;
pub mod listing;
pub mod register;
pub mod tables;

use std::time::Duration;

use crate::client::requests::create_table;
use crate::client::{Client, Told};

/// How long a step that must succeed in the end is tried.
pub(crate) const IN_THE_END: Duration = Duration::from_secs(60);
/// How long one piece of what a workload needs may take to be made, amid all faults: a store that keeps timing out lets a
/// range change hands for half a minute at a time.
pub(crate) const SET_UP_WITHIN: Duration = Duration::from_secs(300);

/// Creates a table, however long it takes.
pub(crate) async fn make_table(client: &mut Client, table: &str) {
    let until = client.world().now() + SET_UP_WITHIN;
    loop {
        if let Told::Answer(reply) = client.ask(create_table(table)).await.told()
            && matches!(reply.status, 201 | 204 | 409)
        {
            return;
        }
        if client.world().now() > until {
            client.world().found(format_args!("table {table} could not be created within {SET_UP_WITHIN:?}"));
            return;
        }
        client.think(100, 500).await;
    }
}
