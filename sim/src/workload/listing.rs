//! Listings: a client that follows the tokens sees each lasting entity of a table exactly once. Other entities come
//! and go in the meantime, and the client may wait for any time between two pages.

use std::time::Duration;

use super::{IN_THE_END, follow, make, make_table};
use crate::check::pages::{Key, check};
use crate::client::Client;
use crate::client::requests::{Name, Verb, change};

const TABLE: &str = "listing";
const PARTITIONS: usize = 6;
const ROWS: usize = 5;
/// The end of the RowKeys of entities that come and go.
const COMING: &str = "c";

/// Inserts the lasting entities.
pub async fn set_up(client: &mut Client) {
    make_table(client, TABLE).await;
    for name in lasting() {
        let upsert = change(Verb::Upsert, &name, 0, 0, None);
        make(client, format_args!("{name:?}"), &upsert, |reply| reply.status == 204).await;
    }
}

/// Inserts and deletes other entities between them until `end`.
pub async fn churn(mut client: Client, end: Duration, think: (u64, u64)) {
    while client.world().now() < end {
        let dice = client.dice();
        let partition = format!("p{}", dice.index(PARTITIONS));
        // Between the lasting rows, in their order.
        let name = Name::new(TABLE, &partition, &format!("r{}{COMING}", dice.index(ROWS)));
        let request = if dice.happens(0.5) {
            change(Verb::Upsert, &name, 1, 0, None)
        } else {
            change(Verb::Delete, &name, 1, 0, Some("*"))
        };
        client.ask(request).await;
        client.think(think.0, think.1).await;
    }
}

/// Walks through the table again and again until `end`, holding each token for a while.
pub async fn walk(mut client: Client, end: Duration, hold: (u64, u64)) {
    while client.world().now() < end {
        let top = client.dice().between(2, 12);
        once_through(&mut client, end, usize::try_from(top).unwrap_or(1), hold).await;
    }
}

/// Walks through once more, however long it takes.
pub async fn walk_at_last(client: &mut Client) {
    let end = client.world().now() + IN_THE_END;
    if !once_through(client, end, 7, (1, 5)).await {
        client.world().found("the table cannot be listed when all is calm");
    }
}

/// One walk, judged. False if it did not reach the end in time.
async fn once_through(client: &mut Client, end: Duration, top: usize, hold: (u64, u64)) -> bool {
    let since = client.world().now().as_secs_f64();
    let walk = follow(client, TABLE, Some(top), end, hold).await;
    let lasting: Vec<Key> = lasting().map(|name| (name.partition, name.row)).collect();
    for finding in check(&walk, &lasting, |(_, row)| row.ends_with(COMING)) {
        client.world().found(format_args!("a listing begun at {since:.3} s {finding}"));
    }
    walk.ended
}

fn lasting() -> impl Iterator<Item = Name> {
    (0..PARTITIONS).flat_map(|partition| {
        (0..ROWS).map(move |row| Name::new(TABLE, &format!("p{partition}"), &format!("r{row}")))
    })
}
