use std::fmt;

use crate::range::{Generation, KeyRange, RangeId, ServerId};

/// One line of the map: a range, the generation it is in, and the server that owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeEntry {
    /// Which range.
    pub id: RangeId,
    /// The keys it holds.
    pub keys: KeyRange,
    /// The generation of its ownership.
    pub generation: Generation,
    /// Its owner.
    pub server: ServerId,
}

/// Which range holds which keys, and who owns it: one immutable version.
///
/// In every version each key belongs to exactly one range ([`RangeMap::check`]). To front ends a
/// map is a hint: whoever is asked for a key checks for himself whether he owns it, so a stale map
/// costs a retry and never a wrong answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeMap {
    version: u64,
    /// Sorted by low key.
    entries: Vec<RangeEntry>,
}

/// A rule of the map that does not hold, found by [`RangeMap::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The map has no range at all.
    NoRange,
    /// No range holds the keys before this one, or between it and its left neighbour.
    Gap {
        /// The range after the gap.
        before: RangeId,
    },
    /// Keys belong to two ranges.
    Overlap {
        /// The range with the lower bound.
        left: RangeId,
        /// The range that begins inside it.
        right: RangeId,
    },
    /// The last range ends, and keys above it belong to nobody.
    OpenEnd {
        /// The last range.
        after: RangeId,
    },
    /// A range without keys.
    Empty {
        /// That range.
        range: RangeId,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRange => write!(f, "the map has no range"),
            Self::Gap { before } => write!(f, "keys before {before} belong to no range"),
            Self::Overlap { left, right } => write!(f, "{left} and {right} hold the same keys"),
            Self::OpenEnd { after } => write!(f, "keys after {after} belong to no range"),
            Self::Empty { range } => write!(f, "{range} can hold no key"),
        }
    }
}

impl RangeMap {
    /// A first map: the whole key space is one range of `server`.
    pub fn single(id: RangeId, server: ServerId) -> Self {
        Self::new(1, vec![RangeEntry { id, keys: KeyRange::whole(), generation: Generation(1), server }])
    }

    /// A map of the given entries, in the order of their keys. It is not checked.
    pub fn new(version: u64, mut entries: Vec<RangeEntry>) -> Self {
        entries.sort_by(|a, b| a.keys.low().cmp(b.keys.low()));
        Self { version, entries }
    }

    /// The number of this version; each change makes a greater one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The ranges in the order of their keys.
    pub fn entries(&self) -> &[RangeEntry] {
        &self.entries
    }

    /// The range that holds `key`; `None` below the key space or in a gap.
    pub fn lookup(&self, key: &[u8]) -> Option<&RangeEntry> {
        let after = self.entries.partition_point(|e| e.keys.low() <= key);
        self.entries[..after].last().filter(|e| e.keys.contains(key))
    }

    /// Lists every rule that this version breaks; an empty list is a good map.
    pub fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let whole = KeyRange::whole();
        let Some(first) = self.entries.first() else {
            return vec![Finding::NoRange];
        };
        if first.keys.low() > whole.low() {
            findings.push(Finding::Gap { before: first.id });
        }
        for pair in self.entries.windows(2) {
            let (left, right) = (&pair[0], &pair[1]);
            match left.keys.high() {
                Some(high) if high < right.keys.low() => findings.push(Finding::Gap { before: right.id }),
                Some(high) if high == right.keys.low() => {}
                _ => findings.push(Finding::Overlap { left: left.id, right: right.id }),
            }
        }
        findings.extend(
            self.entries.iter().filter(|e| e.keys.is_empty()).map(|e| Finding::Empty { range: e.id }),
        );
        if let Some(last) = self.entries.last().filter(|e| e.keys.high().is_some()) {
            findings.push(Finding::OpenEnd { after: last.id });
        }
        findings
    }
}
