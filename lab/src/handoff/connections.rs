//! Connections that read: single steady rows, and listings by pages. (Those that write are
//! [`rangehold_testkit::load::Writer`]s.)

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use super::slot::{SLOTS, filter, slot_of, steady};
use rangehold_testkit::client::{self, ACCOUNT, Answer, Client, Credential, Request, percent_encode};
use rangehold_testkit::load::{Key, Ledger, Row, TABLE, Timed, properties};

/// Entities of a page.
const PAGE: usize = 100;
/// Every so many-th listing is of the whole table.
const WHOLE_EVERY: u64 = 10;
/// Errors after which a connection gives up: they are counted, and enough is known.
const ERRORS_MAX: usize = 20;

/// What a reading connection saw.
#[derive(Default)]
pub(super) struct Seen {
    /// Its requests of its slot.
    pub(super) times: Vec<Timed>,
    /// Requests that were not answered as they should.
    pub(super) errors: Vec<String>,
    /// Entities that were missing, or other than they should be.
    pub(super) wrong: Vec<String>,
    /// Listings that came to their end.
    pub(super) listings: u64,
}

/// What all connections need.
pub(super) struct Scene<'a> {
    pub(super) address: SocketAddr,
    pub(super) stop: &'a AtomicBool,
    /// By slot, what its writers know to be there.
    pub(super) ledgers: &'a [Arc<Ledger>],
}

impl Scene<'_> {
    fn goes_on(&self, seen: &Seen) -> bool {
        !self.stop.load(Ordering::Relaxed) && seen.errors.len() < ERRORS_MAX
    }
}

/// Reads steady rows of a slot, one after the other, until it is stopped.
pub(super) fn read(scene: &Scene<'_>, slot: usize, seed: u64) -> Seen {
    let rows: Vec<(Key, Row)> = steady(slot).into_iter().collect();
    let (mut rng, mut seen) = (StdRng::seed_from_u64(seed), Seen::default());
    let mut client = Client::new(scene.address, Credential::SharedKey);
    while scene.goes_on(&seen) {
        let (key, row) = &rows[rng.random_range(0..rows.len())];
        let request = client::get(client::entity_path(&key.table, &key.partition, &key.row));
        let Some(answer) = seen.exchange(&mut client, request, true) else { continue };
        match answer.status {
            200 if properties(&answer).as_ref() == Some(row) => {}
            200 | 404 => seen.wrong.push(format!("{key} was read as {}: {}", answer.status, answer.body)),
            status => seen.errors.push(format!("reading {key} was answered {status}: {}", answer.body)),
        }
    }
    seen
}

/// Lists a slot, and now and then the whole table, until it is stopped.
pub(super) fn list(scene: &Scene<'_>, slot: usize) -> Seen {
    let mut seen = Seen::default();
    let mut client = Client::new(scene.address, Credential::SharedKey);
    let all: BTreeMap<Key, Row> = (0..SLOTS).flat_map(steady).collect();
    let own = steady(slot);
    while scene.goes_on(&seen) {
        let whole = seen.listings % WHOLE_EVERY == WHOLE_EVERY - 1;
        let slots = if whole { 0..SLOTS } else { slot..slot + 1 };
        let moments: Vec<_> =
            slots.map(|slot| (&scene.ledgers[slot], scene.ledgers[slot].moment())).collect();
        let condition = if whole { None } else { Some(filter(slot)) };
        let Some(found) = seen.listing(scene, &mut client, condition.as_deref()) else { continue };
        for (key, row) in if whole { &all } else { &own } {
            match found.get(key) {
                Some(is) if is == row => {}
                Some(_) => seen.wrong.push(format!("{key} is listed with another value")),
                None => seen.wrong.push(format!("{key} is not listed, and nobody changes it")),
            }
        }
        for (ledger, moment) in &moments {
            let missing = ledger.missing(moment, |key| found.contains_key(key));
            let missing = missing.iter().map(|key| format!("{key} is not listed, and was there throughout"));
            seen.wrong.extend(missing);
        }
        seen.listings += 1;
    }
    seen
}

impl Seen {
    fn exchange(&mut self, client: &mut Client, request: Request, counts: bool) -> Option<Answer> {
        let line = format!("{} {}", request.method, request.target);
        let from = Instant::now();
        let sent = client.send(request, "handoff");
        if counts {
            self.times.push(Timed { writes: false, from, to: Instant::now() });
        }
        sent.map_err(|failure| self.errors.push(format!("{line}: {failure}"))).ok()
    }

    /// All pages of a listing; `None` when it was stopped or failed.
    fn listing(
        &mut self,
        scene: &Scene<'_>,
        client: &mut Client,
        condition: Option<&str>,
    ) -> Option<BTreeMap<Key, Row>> {
        let filter = condition.map(|text| format!("&$filter={}", percent_encode(text))).unwrap_or_default();
        let (mut found, mut next) = (BTreeMap::new(), String::new());
        loop {
            let target = format!("/{ACCOUNT}/{TABLE}()?$top={PAGE}{filter}{next}");
            let answer = self.exchange(client, client::get(target), condition.is_some())?;
            let page = match client::page(answer) {
                Ok(page) => page,
                Err(answer) => {
                    self.errors.push(format!("a page was answered {}: {}", answer.status, answer.body));
                    return None;
                }
            };
            for item in page.items {
                self.take(item, condition.is_none(), &mut found);
            }
            match page.next {
                None => return Some(found),
                Some(_) if !scene.goes_on(self) => return None,
                Some(token) => next = format!("&{token}"),
            }
        }
    }

    /// Adds one entity of a page, which must come after those before it.
    fn take(&mut self, item: Value, whole: bool, found: &mut BTreeMap<Key, Row>) {
        let Value::Object(mut row) = item else {
            self.wrong.push(format!("not an entity: {item}"));
            return;
        };
        let mut text = |name: &str| row.remove(name).and_then(|value| value.as_str().map(str::to_owned));
        let (Some(partition), Some(row_key), Some(_)) =
            (text("PartitionKey"), text("RowKey"), text("Timestamp"))
        else {
            self.wrong.push(format!("an entity without keys: {row:?}"));
            return;
        };
        let key = Key { table: TABLE.to_owned(), partition, row: row_key };
        if found.last_key_value().is_some_and(|(last, _)| *last >= key) {
            self.wrong.push(format!("{key} is listed after a later one, or twice"));
        }
        if slot_of(&key).is_none() && !whole {
            self.wrong.push(format!("{key} is listed, and does not match"));
        }
        found.insert(key, row);
    }
}
