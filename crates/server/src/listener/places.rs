//! Places for connections: how many each address may have, and which connection gives way.
//!
//! The fair queue ([`fair`](crate::fair)) says what an address, and its network, may have. If a connection comes
//! that is above that, or if all places are taken, an idle connection is closed in its favour. An idle connection
//! has no open request. Those that never sent a valid request go first, and then those of the address that
//! has the most. If no connection is idle, the new one is closed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::warn;

use super::activity::Activity;
use crate::fair::{Queue, Tenant, Ticket};
use crate::limits;

/// The places of one listener. Clones are the same.
#[derive(Clone)]
pub(super) struct Places(Arc<Mutex<Taken>>);

struct Taken {
    queue: Queue,
    connections: BTreeMap<Ticket, Kept>,
    /// Connections that were closed for others since this was last logged, and when it was.
    closed: u64,
    logged: Option<Instant>,
}

struct Kept {
    tenant: Tenant,
    activity: Arc<Activity>,
}

/// The place of a connection, until this is dropped.
pub(super) struct Place {
    places: Places,
    ticket: Ticket,
}

impl Places {
    /// So many places.
    pub(super) fn new(most: usize) -> Self {
        let queue = Queue::for_room(most);
        Self(Arc::new(Mutex::new(Taken { queue, connections: BTreeMap::new(), closed: 0, logged: None })))
    }

    /// A place for a new connection from `peer`; `None` if it must be closed.
    pub(super) fn enter(&self, peer: IpAddr, activity: &Arc<Activity>) -> Option<Place> {
        let taken = &mut *self.0.lock();
        let tenant = tenant_of(peer);
        let ticket = taken.queue.enter(tenant);
        while !taken.queue.grow(ticket, 1) {
            taken.note_closed(peer);
            let Some(idle) = taken.give_way(tenant) else {
                taken.queue.leave(ticket);
                return None;
            };
            taken.remove(idle);
        }
        taken.connections.insert(ticket, Kept { tenant, activity: activity.clone() });
        Some(Place { places: self.clone(), ticket })
    }
}

impl Taken {
    /// The connection that gives way to one of `tenant`, which is above its share or finds all places taken.
    fn give_way(&self, tenant: Tenant) -> Option<Ticket> {
        let full = self.queue.is_full();
        let idle = self
            .connections
            .iter()
            .filter(|(_, kept)| kept.activity.is_idle() && (full || kept.tenant.group == tenant.group));
        let first = idle.max_by_key(|(ticket, kept)| {
            (!kept.activity.is_known(), self.queue.held_by_tenant(**ticket), Reverse(**ticket))
        });
        first.map(|(ticket, _)| *ticket)
    }

    fn remove(&mut self, ticket: Ticket) {
        if let Some(kept) = self.connections.remove(&ticket) {
            kept.activity.end();
            self.queue.leave(ticket);
        }
    }

    fn note_closed(&mut self, peer: IpAddr) {
        self.closed += 1;
        if self.logged.is_none_or(|logged| logged.elapsed() >= limits::CLOSED_LOGGED_EVERY) {
            let (closed, open) = (self.closed, self.connections.len());
            warn!(%peer, closed, open, "too many connections: idle ones were closed for new ones, or new ones refused");
            (self.closed, self.logged) = (0, Some(Instant::now()));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.0.lock().remove(self.ticket);
    }
}

/// An address, in its network. A client can have all addresses of a network of 64 bits of IPv6, so these count as
/// one address.
fn tenant_of(peer: IpAddr) -> Tenant {
    match peer.to_canonical() {
        IpAddr::V4(address) => {
            let address = u64::from(address.to_bits());
            Tenant { group: address >> 8, member: address }
        }
        IpAddr::V6(address) => {
            let address = (address.to_bits() >> 64) as u64;
            Tenant { group: address >> 16 | 1 << 63, member: address }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTACKER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const NEIGHBOUR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
    const STRANGER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 9, 9));

    /// Connections of one address, so many that some have to give way.
    fn many(places: &Places, count: usize) -> Vec<(Option<Place>, Arc<Activity>)> {
        let open = |_| {
            let activity = Activity::new();
            (places.enter(ATTACKER, &activity), activity)
        };
        (0..count).map(open).collect()
    }

    #[tokio::test]
    async fn idle_connections_of_one_address_leave_room_for_others_and_give_way_to_each_other() {
        let places = Places::new(64);
        let attackers = many(&places, 200);
        assert!(
            attackers.iter().all(|(place, _)| place.is_some()),
            "a new one takes the place of an old one"
        );
        assert_eq!(places.0.lock().connections.len(), 49);
        let activity = Activity::new();
        assert!(places.enter(STRANGER, &activity).is_some());
        assert!(places.enter(NEIGHBOUR, &activity).is_some());
    }

    #[tokio::test]
    async fn a_connection_that_is_known_outlives_those_that_are_not_and_a_busy_one_both() {
        let places = Places::new(16);
        let (known, busy) = (Activity::new(), Activity::new());
        let _places = [places.enter(ATTACKER, &known), places.enter(ATTACKER, &busy)];
        known.prove();
        busy.open.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        let _attackers = many(&places, 100);
        let has = |wanted: &Arc<Activity>| {
            places.0.lock().connections.values().any(|kept| Arc::ptr_eq(&kept.activity, wanted))
        };
        assert!(has(&known) && has(&busy));
    }

    #[tokio::test]
    async fn a_new_connection_is_closed_if_all_others_are_busy() {
        let places = Places::new(8);
        let mut kept = Vec::new();
        let refused = (0..8).any(|_| {
            let activity = Activity::new();
            activity.open.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
            let place = places.enter(ATTACKER, &activity);
            let refused = place.is_none();
            kept.push(place);
            refused
        });
        assert!(refused);
        assert!(places.enter(STRANGER, &Activity::new()).is_some());
    }
}
