//! A table of 3,000 rows: its pages run out of rows, of bytes and of time.
//!
//! Nothing in it ever changes. So a client that follows the tokens must see each row once and in order, no matter
//! where the pages end and how its ranges change in between.

use std::time::Duration;

use super::{IN_THE_END, follow, make, make_table};
use crate::check::pages::{Key, check};
use crate::client::Client;
use crate::client::http::Reply;
use crate::client::requests::{Name, Verb, batch, batch_statuses, change};

const TABLE: &str = "large";
/// Rows without padding: a page of them ends after 1,000 rows.
const THIN_ROWS: usize = 2_400;
/// Rows with enough padding that a page of them ends after 4 MiB.
const THICK_ROWS: usize = 600;
const THICK_BYTES: usize = 8_000;
const PARTITIONS: usize = 6;
/// Rows of a batch: as many as the service takes.
const BATCH_ROWS: usize = 100;

/// Inserts all rows.
pub async fn set_up(client: &mut Client) {
    make_table(client, TABLE).await;
    let rows: Vec<usize> = (0..THIN_ROWS + THICK_ROWS).collect();
    for rows in rows.chunks(BATCH_ROWS) {
        let inserts: Vec<_> = rows
            .iter()
            .map(|row| {
                let padding = if *row < THIN_ROWS { 0 } else { THICK_BYTES };
                change(Verb::Upsert, &name(*row), *row as u64, padding, None)
            })
            .collect();
        let made = |reply: &Reply| batch_statuses(reply).len() == BATCH_ROWS;
        make(client, format_args!("rows {}.. of the large table", rows[0]), &batch(&inserts), made).await;
    }
}

/// Walks through the table until `end`.
pub async fn walk(mut client: Client, end: Duration, think: (u64, u64)) {
    while client.world().now() < end {
        once_through(&mut client, end, think).await;
    }
}

/// Walks through once more, however long it takes.
pub async fn walk_at_last(client: &mut Client) {
    let end = client.world().now() + IN_THE_END;
    if !once_through(client, end, (1, 20)).await {
        client.world().found("the large table cannot be listed when all is calm");
    }
}

/// One walk, judged. False if it did not reach the end in time.
async fn once_through(client: &mut Client, end: Duration, think: (u64, u64)) -> bool {
    let walk = follow(client, TABLE, None, end, think).await;
    let rows: Vec<Key> =
        (0..THIN_ROWS + THICK_ROWS).map(name).map(|name| (name.partition, name.row)).collect();
    if let Some(finding) = check(&walk, &rows, |_| false).first() {
        client.world().found(format_args!("a walk through the large table {finding}"));
    }
    walk.ended
}

/// Rows in the order of their keys.
fn name(row: usize) -> Name {
    let partition = row * PARTITIONS / (THIN_ROWS + THICK_ROWS);
    Name::new(TABLE, &format!("p{partition}"), &format!("r{row:05}"))
}
