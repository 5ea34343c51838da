//! The servers while a plan is made, each with the load that it would have after the changes decided so far.

use super::observe::{ServerObservation, Standing};
use crate::range::ServerId;

/// One server, after the changes decided so far.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) id: ServerId,
    pub(super) standing: Standing,
    /// The load per second that it can take; above 0.
    pub(super) capacity: f64,
    /// The load per second of its ranges.
    pub(super) load: f64,
    /// The load per second of the busiest of them. With that range the server cannot have less.
    pub(super) hottest: f64,
    /// How many ranges it has.
    pub(super) ranges: u32,
    /// How many merges it takes part in.
    pub(super) merges: u32,
}

impl Server {
    /// The share of its capacity that is used.
    pub(super) fn utilisation(&self) -> f64 {
        self.load / self.capacity
    }

    /// Gives it a range.
    pub(super) fn add(&mut self, rate: f64) {
        self.load += rate;
        self.hottest = self.hottest.max(rate);
        self.ranges += 1;
    }

    /// Takes a range from it. `hottest` stays, because only servers that keep their hottest range are asked for
    /// it.
    pub(super) fn remove(&mut self, rate: f64) {
        self.load = (self.load - rate).max(0.0);
        self.ranges = self.ranges.saturating_sub(1);
    }
}

/// All servers, ordered by id. A place in this order is a server's index.
#[derive(Debug)]
pub(super) struct Fleet {
    servers: Vec<Server>,
}

impl Fleet {
    pub(super) fn new(observations: &[ServerObservation]) -> Self {
        let mut servers: Vec<_> = observations.iter().map(server).collect();
        servers.sort_by_key(|server| server.id);
        servers.dedup_by_key(|server| server.id);
        Self { servers }
    }

    /// Whether a server has no lease: it was seen dead, or was not seen at all.
    pub(super) fn is_dead(&self, id: ServerId) -> bool {
        self.index(id).is_none_or(|index| self.get(index).standing == Standing::Dead)
    }

    /// The index of a server, if it was observed.
    pub(super) fn index(&self, id: ServerId) -> Option<u32> {
        // Ids mostly have no gaps; then the index follows from the id.
        let first = self.servers.first()?.id.0;
        let guess = id.0.checked_sub(first)? as usize;
        if self.servers.get(guess).is_some_and(|server| server.id == id) {
            return Some(guess as u32);
        }
        self.servers.binary_search_by_key(&id, |server| server.id).ok().map(|index| index as u32)
    }

    pub(super) fn get(&self, index: u32) -> &Server {
        &self.servers[index as usize]
    }

    pub(super) fn get_mut(&mut self, index: u32) -> &mut Server {
        &mut self.servers[index as usize]
    }

    /// Whether this server may have ranges.
    pub(super) fn serves(&self, index: u32) -> bool {
        self.get(index).standing == Standing::Serving
    }

    /// The servers that serve, with their indexes.
    pub(super) fn serving(&self) -> impl Iterator<Item = (u32, &Server)> {
        let indexed = self.servers.iter().enumerate().map(|(index, server)| (index as u32, server));
        indexed.filter(|(_, server)| server.standing == Standing::Serving)
    }

    /// The mean utilisation of the servers that serve.
    pub(super) fn mean(&self) -> f64 {
        let (load, capacity) = self
            .serving()
            .fold((0.0, 0.0), |(load, capacity), (_, s)| (load + s.load, capacity + s.capacity));
        if capacity > 0.0 { load / capacity } else { 0.0 }
    }

    /// The utilisation of the busiest server that serves.
    pub(super) fn max(&self) -> f64 {
        self.serving().map(|(_, server)| server.utilisation()).fold(0.0, f64::max)
    }

    /// The load of each server, by index.
    pub(super) fn loads(&self) -> Vec<f64> {
        self.servers.iter().map(|server| server.load).collect()
    }

    /// How many servers serve.
    pub(super) fn serving_count(&self) -> usize {
        self.serving().count()
    }
}

fn server(seen: &ServerObservation) -> Server {
    Server {
        id: seen.id,
        standing: seen.standing,
        capacity: if seen.capacity.is_finite() { seen.capacity.max(1.0) } else { 1.0 },
        load: 0.0,
        hottest: 0.0,
        ranges: 0,
        merges: 0,
    }
}

/// A figure with a total order, so that it can be in a heap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level(pub(super) f64);

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Level {}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
