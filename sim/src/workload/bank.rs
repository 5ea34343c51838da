//! A bank in one partition: each transfer is a batch, and no page may show money made or lost.
//!
//! Each account counts the transfers that changed it. It also names the other account of its last transfer, and the
//! number that the transfer has there. So a page alone shows whether half of a transfer is missing, even if the
//! transfer moves no money. Clients remember which transfers were acknowledged, so they see when one of them is lost.
//! [`crate::check::bank`] judges the pages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{IN_THE_END, make, make_table};
use crate::check::bank::{Account, check};
use crate::client::http::{Reply, Request};
use crate::client::requests::{Content, Entity, Name, Verb, batch, batch_statuses, change_to, page, query};
use crate::client::{Client, Told};

const TABLE: &str = "bank";
const PARTITION: &str = "accounts";
const ACCOUNTS: usize = 6;
const BEGINNING: u64 = 100;

/// Counts the transfers of an account.
const NUMBER: &str = "number";
/// The other account of the last transfer.
const PARTNER: &str = "partner";
/// The number of that transfer in the other account.
const PARTNER_NUMBER: &str = "partnerNumber";

/// What clients know of the bank.
#[derive(Default)]
pub struct Bank {
    /// For each account the greatest number of a transfer that was acknowledged.
    acknowledged: Mutex<[u64; ACCOUNTS]>,
}

impl Bank {
    /// Opens the accounts.
    pub async fn set_up(&self, client: &mut Client) {
        make_table(client, TABLE).await;
        let inserts: Vec<_> =
            (0..ACCOUNTS).map(|account| put(Verb::Insert, account, BEGINNING, [0; 3], None)).collect();
        let opened = |reply: &Reply| matches!(*batch_statuses(reply), [201 | 204 | 409, ..]);
        make(client, "the bank", &batch(&inserts), opened).await;
    }

    /// Transfers until `end`.
    pub async fn transfer(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            if let Some(accounts) = self.look(&mut client).await {
                self.transfer_once(&mut client, &accounts).await;
            }
            client.think(think.0, think.1).await;
        }
    }

    async fn transfer_once(&self, client: &mut Client, accounts: &[Entity]) {
        let from = client.dice().index(ACCOUNTS);
        let to = (from + 1 + client.dice().index(ACCOUNTS - 1)) % ACCOUNTS;
        let amount = client.dice().between(0, accounts[from].value);
        let next = |account: usize| accounts[account].number(NUMBER) + 1;
        let change = |account: usize, other: usize, value| {
            let numbers = [next(account), other as u64, next(other)];
            put(Verb::Replace, account, value, numbers, Some(&accounts[account].etag))
        };
        let changes =
            [change(from, to, accounts[from].value - amount), change(to, from, accounts[to].value + amount)];
        let Told::Answer(reply) = client.ask(batch(&changes)).await.told() else { return };
        if judge(client, &reply) {
            let mut acknowledged = self.acknowledged();
            for account in [from, to] {
                acknowledged[account] = acknowledged[account].max(next(account));
            }
        }
    }

    /// Looks at the accounts until `end`.
    pub async fn audit(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            self.look(&mut client).await;
            client.think(think.0, think.1).await;
        }
    }

    /// Looks at the accounts once more, however long it takes.
    pub async fn audit_at_last(&self, client: &mut Client) {
        let until = client.world().now() + IN_THE_END;
        while self.look(client).await.is_none() {
            if client.world().now() > until {
                return client.world().found("the bank cannot be read when all is calm");
            }
            client.think(100, 500).await;
        }
    }

    /// All accounts in one page, judged; `None` if there was no answer, or only a part of them.
    async fn look(&self, client: &mut Client) -> Option<Vec<Entity>> {
        let acknowledged = *self.acknowledged();
        let Told::Answer(reply) = client.ask(query(TABLE, Some(PARTITION), None, None)).await.told() else {
            return None;
        };
        let Some(page) = page(&reply).filter(|_| reply.status == 200) else {
            client.world().found(format_args!("the bank answered {} {}", reply.status, reply.code()));
            return None;
        };
        if page.next.is_some() {
            // A page may be cut anywhere. It shows a part of the bank, and its sum says nothing.
            return None;
        }
        let accounts: Vec<Account> = page.entities.iter().map(account).collect();
        match check(&accounts, &acknowledged, BEGINNING * ACCOUNTS as u64) {
            None => Some(page.entities),
            Some(why) => {
                client.world().found(why);
                None
            }
        }
    }

    fn acknowledged(&self) -> MutexGuard<'_, [u64; ACCOUNTS]> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn account(entity: &Entity) -> Account {
    Account {
        value: entity.value,
        number: entity.number(NUMBER),
        partner: usize::try_from(entity.number(PARTNER)).unwrap_or(usize::MAX),
        partner_number: entity.number(PARTNER_NUMBER),
    }
}

/// Whether the batch was made. The answer to a batch is that of all its operations, or of the one that failed.
fn judge(client: &Client, reply: &Reply) -> bool {
    let statuses = batch_statuses(reply);
    let done = statuses == [204, 204];
    // Refused, or of unknown outcome: the next page shows what happened.
    let not_done = matches!(statuses[..], [412 | 500 | 503 | 504]);
    if !(done || not_done) {
        client.world().found(format_args!("a transfer was answered {} {statuses:?}", reply.status));
    }
    done
}

fn put(
    verb: Verb,
    account: usize,
    value: u64,
    [number, partner, partner_number]: [u64; 3],
    if_match: Option<&str>,
) -> Request {
    let name = Name::new(TABLE, PARTITION, &format!("a{account}"));
    let numbers = vec![(NUMBER, number), (PARTNER, partner), (PARTNER_NUMBER, partner_number)];
    change_to(verb, &name, &Content { value, padding: 0, numbers }, if_match)
}
