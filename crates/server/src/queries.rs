//! What queries cost, by their kind: how many entities they look at, and how many they return.
//!
//! The guides of the cloud's service distinguish four kinds of queries, and recommend the first two. If a table is
//! slow or throttled, these counts show which kinds its programs use. They may show, for example, that table scans
//! looked at a million entities to return ten.

use std::sync::atomic::{AtomicU64, Ordering};

use rangehold_protocol::table::key_bounds::QueryKind;
use serde::Serialize;
use serde_json::json;

/// All kinds, in the order in which they are shown.
pub const KINDS: [QueryKind; 4] =
    [QueryKind::Point, QueryKind::RowRange, QueryKind::PartitionRange, QueryKind::Table];

/// The name that the guides give to a kind.
pub const fn name_of(kind: QueryKind) -> &'static str {
    match kind {
        QueryKind::Point => "point query",
        QueryKind::RowRange => "row range scan",
        QueryKind::PartitionRange => "partition range scan",
        QueryKind::Table => "table scan",
    }
}

/// The cost of one answer to a query, or of many answers together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Answers: a query of five pages has five.
    pub answers: u64,
    /// Entities that were looked at.
    pub looked_at: u64,
    /// Entities that were returned.
    pub returned: u64,
    /// Ranges that were asked.
    pub ranges: u64,
    /// Partition servers that were asked.
    pub servers: u64,
    /// Answers that ended with a token.
    pub tokens: u64,
}

impl Counts {
    /// The cost of reading one entity by its keys.
    pub(crate) fn of_get(found: bool) -> Self {
        let entities = u64::from(found);
        Self { answers: 1, looked_at: entities, returned: entities, ranges: 1, servers: 1, tokens: 0 }
    }
}

/// Counts since the process began.
#[derive(Debug, Default)]
pub struct Queries([Kind; KINDS.len()]);

#[derive(Debug, Default)]
struct Kind {
    answers: AtomicU64,
    looked_at: AtomicU64,
    returned: AtomicU64,
    ranges: AtomicU64,
    servers: AtomicU64,
    tokens: AtomicU64,
}

impl Kind {
    /// Each counter with its count.
    fn with<'a>(&'a self, counts: &'a Counts) -> [(&'a AtomicU64, u64); 6] {
        [
            (&self.answers, counts.answers),
            (&self.looked_at, counts.looked_at),
            (&self.returned, counts.returned),
            (&self.ranges, counts.ranges),
            (&self.servers, counts.servers),
            (&self.tokens, counts.tokens),
        ]
    }
}

impl Queries {
    /// Adds the cost of an answer to a query of this kind.
    pub(crate) fn count(&self, kind: QueryKind, counts: &Counts) {
        for (counter, count) in self.0[index(kind)].with(counts) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// All counts, as the admin endpoint shows them: a list with a member for each kind.
    pub fn to_json(&self) -> serde_json::Value {
        KINDS.iter().map(|&kind| json!({ "kind": name_of(kind), "counts": self.of(kind) })).collect()
    }

    /// The cost of all queries of a kind together.
    pub fn of(&self, kind: QueryKind) -> Counts {
        let kind = &self.0[index(kind)];
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            answers: now(&kind.answers),
            looked_at: now(&kind.looked_at),
            returned: now(&kind.returned),
            ranges: now(&kind.ranges),
            servers: now(&kind.servers),
            tokens: now(&kind.tokens),
        }
    }
}

const fn index(kind: QueryKind) -> usize {
    match kind {
        QueryKind::Point => 0,
        QueryKind::RowRange => 1,
        QueryKind::PartitionRange => 2,
        QueryKind::Table => 3,
    }
}
