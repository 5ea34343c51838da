//! Listings: a client that follows the tokens sees each lasting entity of a table exactly once. Other entities come
//! and go in the meantime, and the client may wait for any time between two pages.

use std::time::Duration;

use super::{IN_THE_END, make, make_table};
use crate::client::requests::{Entity, Name, Verb, change, page, query};
use crate::client::{Client, Told};

const TABLE: &str = "listing";
const PARTITIONS: usize = 6;
const ROWS: usize = 5;

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
        let name = Name::new(TABLE, &partition, &format!("r{}c", dice.index(ROWS)));
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
        let begun = client.world().now();
        if let Some(seen) = once_through(&mut client, end, usize::try_from(top).unwrap_or(1), hold).await {
            judge(&client, begun, &seen);
        }
    }
}

/// Walks through once more, however long it takes.
pub async fn walk_at_last(client: &mut Client) {
    let (begun, end) = (client.world().now(), client.world().now() + IN_THE_END);
    match once_through(client, end, 7, (1, 5)).await {
        Some(seen) => judge(client, begun, &seen),
        None => client.world().found("the table cannot be listed when all is calm"),
    }
}

/// One walk; `None` if it did not reach the end in time.
async fn once_through(
    client: &mut Client,
    end: Duration,
    top: usize,
    hold: (u64, u64),
) -> Option<Vec<Entity>> {
    let (mut seen, mut token) = (Vec::new(), None::<String>);
    while client.world().now() < end {
        let asked = client.ask(query(TABLE, None, Some(top), token.as_deref())).await;
        if let Told::Answer(reply) = asked.told() {
            let Some(page) = page(&reply).filter(|page| reply.status == 200 && page.entities.len() <= top)
            else {
                client.world().found(format_args!("a page was answered {} {}", reply.status, reply.code()));
                return None;
            };
            seen.extend(page.entities);
            token = page.next;
            if token.is_none() {
                return Some(seen);
            }
        }
        client.think(hold.0, hold.1).await;
    }
    None
}

fn judge(client: &Client, begun: Duration, seen: &[Entity]) {
    let keys: Vec<(&str, &str)> =
        seen.iter().map(|entity| (entity.partition.as_str(), entity.row.as_str())).collect();
    let since = begun.as_secs_f64();
    if let Some(pair) = keys.windows(2).find(|pair| pair[0] >= pair[1]) {
        client
            .world()
            .found(format_args!("a listing begun at {since:.3} s shows {:?} before {:?}", pair[0], pair[1]));
    }
    for name in lasting() {
        let times = keys.iter().filter(|key| **key == (name.partition.as_str(), name.row.as_str())).count();
        if times != 1 {
            client.world().found(format_args!(
                "a listing begun at {since:.3} s shows {}/{} {times} times",
                name.partition, name.row
            ));
        }
    }
}

fn lasting() -> impl Iterator<Item = Name> {
    (0..PARTITIONS).flat_map(|partition| {
        (0..ROWS).map(move |row| Name::new(TABLE, &format!("p{partition}"), &format!("r{row}")))
    })
}
