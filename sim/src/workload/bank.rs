//! A bank in one partition: each transfer is a batch, and no page may show money made or lost.

use std::time::Duration;

use super::{IN_THE_END, make, make_table};
use crate::client::http::Reply;
use crate::client::requests::{Entity, Name, Verb, batch, batch_statuses, change, page, query};
use crate::client::{Client, Told};

const TABLE: &str = "bank";
const PARTITION: &str = "accounts";
const ACCOUNTS: usize = 6;
const BEGINNING: u64 = 100;

/// Opens the accounts.
pub async fn set_up(client: &mut Client) {
    make_table(client, TABLE).await;
    let inserts: Vec<_> =
        (0..ACCOUNTS).map(|account| change(Verb::Insert, &name(account), BEGINNING, 0, None)).collect();
    let opened = |reply: &Reply| matches!(*batch_statuses(reply), [201 | 204 | 409, ..]);
    make(client, "the bank", &batch(&inserts), opened).await;
}

/// Transfers until `end`.
pub async fn transfer(mut client: Client, end: Duration, think: (u64, u64)) {
    while client.world().now() < end {
        if let Some(accounts) = look(&mut client).await {
            let from = client.dice().index(ACCOUNTS);
            let to = (from + 1 + client.dice().index(ACCOUNTS - 1)) % ACCOUNTS;
            let amount = client.dice().between(0, accounts[from].value);
            let put = |account: usize, value| {
                change(Verb::Replace, &name(account), value, 0, Some(&accounts[account].etag))
            };
            let changes = [put(from, accounts[from].value - amount), put(to, accounts[to].value + amount)];
            if let Told::Answer(reply) = client.ask(batch(&changes)).await.told() {
                judge(&client, &reply);
            }
        }
        client.think(think.0, think.1).await;
    }
}

/// Looks at the sum until `end`.
pub async fn audit(mut client: Client, end: Duration, think: (u64, u64)) {
    while client.world().now() < end {
        look(&mut client).await;
        client.think(think.0, think.1).await;
    }
}

/// Looks at the sum once more, however long it takes.
pub async fn audit_at_last(client: &mut Client) {
    let until = client.world().now() + IN_THE_END;
    while look(client).await.is_none() {
        if client.world().now() > until {
            return client.world().found("the bank cannot be read when all is calm");
        }
        client.think(100, 500).await;
    }
}

/// All accounts in one page, judged; `None` where there was no answer.
async fn look(client: &mut Client) -> Option<Vec<Entity>> {
    let Told::Answer(reply) = client.ask(query(TABLE, Some(PARTITION), None, None)).await.told() else {
        return None;
    };
    let Some(page) = page(&reply).filter(|_| reply.status == 200) else {
        client.world().found(format_args!("the bank answered {} {}", reply.status, reply.code()));
        return None;
    };
    if page.next.is_some() {
        // A page may be cut anywhere; it shows a part of the bank, and its sum says nothing.
        return None;
    }
    let sum: u64 = page.entities.iter().map(|account| account.value).sum();
    if page.entities.len() != ACCOUNTS || sum != BEGINNING * ACCOUNTS as u64 {
        client.world().found(format_args!(
            "the bank holds {sum} in {} accounts, and should hold {} in {ACCOUNTS}: {:?}",
            page.entities.len(),
            BEGINNING * ACCOUNTS as u64,
            page.entities.iter().map(|account| account.value).collect::<Vec<_>>()
        ));
        return None;
    }
    Some(page.entities)
}

/// The answer to a batch is that of all its operations, or of the one that failed.
fn judge(client: &Client, reply: &Reply) {
    let statuses = batch_statuses(reply);
    let done = statuses == [204, 204];
    // Refused, or of unknown outcome: what became of it shows in the next page.
    let not_done = matches!(statuses[..], [412 | 500 | 503 | 504]);
    if !(done || not_done) {
        client.world().found(format_args!("a transfer was answered {} {statuses:?}", reply.status));
    }
}

fn name(account: usize) -> Name {
    Name::new(TABLE, PARTITION, &format!("a{account}"))
}
