//! A client that lists everything by pages, again and again, while the rest goes on.
//!
//! It keeps its place over kills and changes of ranges: a token that one process gave must lead on in the next one. Keys
//! must come in order, so none comes twice. What was there from the first page to the last must be on one of the pages.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use rangehold_testkit::client::{self, ACCOUNT, Client, Credential};
use rangehold_testkit::load::{Finding, Key, Kind, Ledger, Moment, Refused, TABLE};

/// Entities of one page: a walk takes some dozens of pages, so that changes come in the middle of most walks.
const PAGE_ENTITIES: u32 = 97;
/// Tables of one page.
const PAGE_TABLES: u32 = 3;
/// Between two pages, and before a page is asked for again.
const PAUSE: Duration = Duration::from_millis(20);

/// What a walk lists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Listed {
    Tables,
    Entities,
}

/// A walk that has begun.
struct Walk {
    listed: Listed,
    /// What was certainly there when it began.
    begun: Moment,
    /// The query parameters of the next page.
    next: String,
    order: Order,
}

/// The keys so far, which must ascend.
#[derive(Default)]
struct Order {
    last: Option<(String, String)>,
    seen: BTreeSet<(String, String)>,
}

impl Order {
    /// Takes the next key; the words say what is wrong with it.
    fn take(&mut self, key: (String, String)) -> Option<String> {
        let last = self.last.replace(key.clone());
        let is_new = self.seen.insert(key.clone());
        match last {
            _ if !is_new => Some(format!("{key:?} is listed twice")),
            Some(last) if last >= key => Some(format!("{key:?} is listed after {last:?}")),
            _ => None,
        }
    }
}

/// See the module.
pub(super) struct Walker {
    ledger: Arc<Ledger>,
    walk: Option<Walk>,
    /// Walks that came to their end, and pages of all walks.
    pub(super) walks: u64,
    pub(super) pages: u64,
    /// Pages without an answer, which were asked for again.
    pub(super) broken: u64,
    pub(super) refused: Vec<Refused>,
    pub(super) findings: Vec<Finding>,
}

impl Walker {
    /// A walker that knows from the ledger what it must see.
    pub(super) fn new(ledger: Arc<Ledger>) -> Self {
        let (refused, findings) = (Vec::new(), Vec::new());
        Self { ledger, walk: None, walks: 0, pages: 0, broken: 0, refused, findings }
    }

    /// Goes on until `stop`.
    pub(super) fn run(&mut self, address: SocketAddr, stop: &AtomicBool) {
        let mut client = Client::new(address, Credential::SharedKey);
        while !stop.load(Ordering::Relaxed) {
            let mut walk = self.walk.take().unwrap_or_else(|| self.begin());
            let has_ended = self.page(&mut client, &mut walk);
            if has_ended {
                self.end(&walk);
            } else {
                self.walk = Some(walk);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Every second walk is over the tables.
    fn begin(&self) -> Walk {
        let listed = if self.walks.is_multiple_of(2) { Listed::Tables } else { Listed::Entities };
        Walk { listed, begun: self.ledger.moment(), next: String::new(), order: Order::default() }
    }

    /// Asks for one page; true if it was the last one.
    fn page(&mut self, client: &mut Client, walk: &mut Walk) -> bool {
        let target = match walk.listed {
            Listed::Tables => format!("/{ACCOUNT}/Tables?$top={PAGE_TABLES}{}", walk.next),
            Listed::Entities => format!("/{ACCOUNT}/{TABLE}()?$top={PAGE_ENTITIES}{}", walk.next),
        };
        let from = Instant::now();
        let Ok(answer) = client.send(client::get(target.clone()), "walk") else {
            self.broken += 1;
            return false;
        };
        let page = match client::page(answer) {
            Ok(page) => page,
            Err(answer) => {
                let what = format!("GET {target} was answered {}: {}", answer.status, answer.body);
                if answer.status >= 500 {
                    self.refused.push(Refused { status: answer.status, what, from, to: Instant::now() });
                    return false;
                }
                // The same request would be answered in the same way, so this walk ends here.
                self.findings.push(Finding::new(Kind::Wrong, what));
                *walk = self.begin();
                return false;
            }
        };
        self.pages += 1;
        for item in &page.items {
            let wrong = match key(walk.listed, item) {
                Some(key) => walk.order.take(key),
                None => Some(format!("a page of {:?} has {item}", walk.listed)),
            };
            let wrong = wrong.map(|what| Finding::new(Kind::Wrong, format!("a walk: {what}, at {target}")));
            self.findings.extend(wrong);
        }
        walk.next = page.next.as_ref().map(|token| format!("&{token}")).unwrap_or_default();
        page.next.is_none()
    }

    /// Everything that was there throughout must have been listed.
    fn end(&mut self, walk: &Walk) {
        self.walks += 1;
        let seen =
            |first: &str, second: &str| walk.order.seen.contains(&(first.to_owned(), second.to_owned()));
        match walk.listed {
            Listed::Tables if seen(TABLE, "") => {}
            Listed::Tables => {
                self.findings.push(Finding::new(Kind::Lost, format!("table {TABLE} is not listed")));
            }
            Listed::Entities => {
                let found = |key: &Key| key.table != TABLE || seen(&key.partition, &key.row);
                let missing = self.ledger.missing(&walk.begun, found);
                let lost = |key| format!("a walk does not show {key}, which was there throughout");
                self.findings.extend(missing.iter().map(|key| Finding::new(Kind::Lost, lost(key))));
            }
        }
    }
}

/// The key of an item of a page.
fn key(listed: Listed, item: &Value) -> Option<(String, String)> {
    let text = |name: &str| item[name].as_str().map(str::to_owned);
    match listed {
        Listed::Tables => Some((text("TableName")?, String::new())),
        Listed::Entities => Some((text("PartitionKey")?, text("RowKey")?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_must_ascend() {
        let key = |partition: &str, row: &str| (partition.to_owned(), row.to_owned());
        let mut order = Order::default();
        assert_eq!(order.take(key("p0", "w1")), None);
        assert_eq!(order.take(key("p1", "w0")), None);
        let twice = order.take(key("p1", "w0")).expect("it is there twice");
        assert!(twice.contains("listed twice"), "{twice}");
        let back = order.take(key("p0", "w9")).expect("it is not in order");
        assert!(back.contains("listed after"), "{back}");
    }
}
