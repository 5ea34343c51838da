//! What the clients of the objects know together: what each of them was told, and which bytes each write brings.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rangehold_protocol::object::checksum::Crc32c;

use crate::check::etags::Sight;
use crate::check::register::{Call, Operation, Return, Value};
use crate::client::Client;
use crate::client::objects::Shown;

/// The bytes of an object: so many of one write after so many of another.
pub(super) type Content = Vec<(Value, usize)>;

/// See the module. Names are known by their numbers.
#[derive(Default)]
pub(super) struct Known {
    pub(super) operations: BTreeMap<usize, Vec<Operation>>,
    pub(super) sights: BTreeMap<usize, Vec<Sight>>,
    contents: BTreeMap<Value, Content>,
    /// The names that each write may have come to.
    came: BTreeSet<(usize, Value)>,
    /// Writes that may have been made twice: they may have two generations.
    pub(super) doubled: BTreeSet<Value>,
}

/// An object that a client has seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) value: Value,
    pub(super) generation: u64,
}

impl Known {
    /// A write is about to be sent that brings these bytes to a name.
    pub(super) fn brings(&mut self, name: usize, value: Value, content: Content) {
        self.contents.insert(value, content);
        self.came.insert((name, value));
    }

    /// The object of a write is about to be moved to a name. False if it may have been there before: then the write would
    /// have two generations under one name, and a condition on one of them would say nothing of the other.
    pub(super) fn comes(&mut self, name: usize, value: Value) -> bool {
        self.came.insert((name, value))
    }

    /// The bytes that a write brings; `None` if there was no such write.
    pub(super) fn content(&self, value: Value) -> Option<&Content> {
        self.contents.get(&value)
    }

    /// The object that a client saw last under a name.
    pub(super) fn last_seen(&self, name: usize) -> Option<Seen> {
        let last = self.sights.get(&name)?.last()?;
        Some(Seen { value: last.value, generation: last.tag })
    }

    /// Notes what a client was told.
    pub(super) fn note(&mut self, client: &Client, name: usize, call: Call, begun: Duration, told: Return) {
        let (who, ended) = (client.name().to_owned(), client.world().now());
        self.operations.entry(name).or_default().push(Operation { who, call, begun, told, ended });
    }

    /// Notes an object that a client saw, and says what is wrong with it in itself.
    pub(super) fn saw(
        &mut self,
        client: &Client,
        name: usize,
        begun: Duration,
        shown: &Shown,
    ) -> Result<(), String> {
        let (value, tag, ended) = (shown.value, shown.generation, client.world().now());
        self.sights.entry(name).or_default().push(Sight { begun, ended, tag, value });
        let content = self.content(value).ok_or_else(|| format!("{shown:?} was never written"))?;
        let crc32c = Crc32c::of(&bytes_of(content)).text();
        if crc32c == shown.crc32c {
            Ok(())
        } else {
            Err(format!("{shown:?} should have the checksum {crc32c}"))
        }
    }
}

/// The bytes of a content. Those of each write differ from those of all others.
pub(super) fn bytes_of(content: &Content) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (value, length) in content {
        let word = format!("{value}.");
        let end = bytes.len() + length;
        bytes.extend(word.bytes().cycle().take(*length));
        debug_assert_eq!(bytes.len(), end);
    }
    bytes
}
