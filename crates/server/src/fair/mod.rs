//! A fair queue for one resource of the process: how much of it each tenant may have, and whose turn is next. Pure.
//!
//! The resource is a *room* of so many units: bytes, connections, or turns at the processor. A request enters the queue
//! in the name of its tenant, asks for units, waits until it gets them, and leaves. Tenants are in groups: the
//! tables and principals of an account, or the addresses of a network. Two rules decide:
//!
//! * **Share.** What a tenant may have depends on what the others leave. A group may have seven eighths of the room
//!   that other groups leave, and a tenant seven eighths of what the others in its group leave. So a newcomer finds
//!   some room at once, even if everybody else keeps what they have and never leaves. A group that has nothing may
//!   take all that is free; a tenant that has nothing, an eighth of it, even if its group is above its share.
//!
//! ```text
//!   |--------------- room ---------------|
//!   |  group a: 7/8                 |free|
//!   |  group a: 7/8           |  b  |free|     b came later: it has 7/8 of what a leaves
//!   |  group a: 7/15    | b: 7/15   |free|     the same after some time: as a gives back, both become equal
//! ```
//!
//! * **Turn.** Among those that may have what they ask for, the group that was served least goes first; in a group,
//!   the tenant that was served least; of a tenant, the oldest request. To serve means to give units, or to let
//!   something cost time ([`Queue::charge`]). A newcomer begins where the others are. It gets no advantage from the
//!   time in which it was away.
//!
//! In a room, a request that asks for much can be passed by requests of others that ask for less. Request bodies have a reserve
//! for this case, and pages grow in small steps ([`Queue::grow`]). Where units come back soon, nobody is passed
//! ([`Queue::for_turns`]).

use std::collections::BTreeMap;

/// One part in so many of the room stays free for others.
const SPARE: usize = 8;
/// The most tenants without requests that are remembered.
const REMEMBERED_MAX: usize = 1024;

/// In whose name a request asks. Both numbers are hashes of what they stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tenant {
    /// The account, or the network.
    pub(crate) group: u64,
    /// The table and principal in the account, or the address in the network.
    pub(crate) member: u64,
}

/// Names a request in a queue. A younger one has a greater number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(u64);

/// The requests that have a part of a resource, and those that wait for it.
#[derive(Debug)]
pub(crate) struct Queue {
    room: usize,
    /// Whether a tenant leaves some room free for others.
    spares: bool,
    next: u64,
    all: Usage,
    groups: BTreeMap<u64, Usage>,
    members: BTreeMap<Tenant, Usage>,
    requests: BTreeMap<Ticket, Request>,
    /// Requests that wait, and the units that they ask for.
    waiting: BTreeMap<Tenant, BTreeMap<Ticket, usize>>,
}

/// What a tenant, a group, or everybody has.
#[derive(Debug, Default)]
struct Usage {
    held: usize,
    /// What it was served, on the scale of `clock` of the level above.
    served: u64,
    /// What the last one that got something below this level had been served then.
    clock: u64,
    /// Requests in the queue.
    requests: usize,
}

#[derive(Debug)]
struct Request {
    tenant: Tenant,
    held: usize,
}

impl Queue {
    /// A queue for bytes or places, which are kept for as long as their holder likes. So some stay free for others.
    pub(crate) fn for_room(room: usize) -> Self {
        Self {
            room,
            spares: true,
            next: 0,
            all: Usage::default(),
            groups: BTreeMap::new(),
            members: BTreeMap::new(),
            requests: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// A queue for what comes back soon, such as turns at the processor. One tenant may have all of it while nobody else
    /// waits. Nobody is passed: the request whose turn it is waits until what it asks for has come back.
    pub(crate) fn for_turns(units: usize) -> Self {
        Self { spares: false, ..Self::for_room(units) }
    }

    /// A request of `tenant` enters. It has nothing, and waits for nothing.
    pub(crate) fn enter(&mut self, tenant: Tenant) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.all.requests += 1;
        let group = self.groups.entry(tenant.group).or_default();
        group.come(self.all.clock);
        self.members.entry(tenant).or_default().come(group.clock);
        self.requests.insert(ticket, Request { tenant, held: 0 });
        ticket
    }

    /// A request begins to wait for `units` more.
    pub(crate) fn ask(&mut self, ticket: Ticket, units: usize) {
        let tenant = self.requests[&ticket].tenant;
        self.waiting.entry(tenant).or_default().insert(ticket, units);
    }

    /// Gives units to the request whose turn it is, if there is one that may have what it asks for. The caller
    /// goes on until nobody's turn is left.
    pub(crate) fn next(&mut self) -> Option<Ticket> {
        let ticket = match self.spares {
            true => self.turn(|queue, tenant, units| units <= queue.most(tenant))?,
            false => self.first().filter(|first| self.may_have(*first))?,
        };
        self.give(ticket);
        Some(ticket)
    }

    /// The waiting request whose turn it would be if there were room for all.
    pub(crate) fn first(&self) -> Option<Ticket> {
        self.turn(|_, _, _| true)
    }

    /// Gives a waiting request what it asks for, even above its share and above the room.
    pub(crate) fn give(&mut self, ticket: Ticket) {
        let tenant = self.requests[&ticket].tenant;
        let Some(units) = self.no_longer_waits(ticket, tenant) else { return };
        let (group, member) = of(&mut self.groups, &mut self.members, tenant);
        self.all.clock = self.all.clock.max(group.served);
        group.clock = group.clock.max(member.served);
        for usage in [&mut self.all, group, member] {
            usage.held += units;
            usage.served += units as u64;
        }
        self.request(ticket).held += units;
    }

    /// Gives `units` more to a request if its tenant may have them now. Requests that wait are passed.
    pub(crate) fn grow(&mut self, ticket: Ticket, units: usize) -> bool {
        let may = units <= self.most(self.requests[&ticket].tenant);
        if may {
            self.ask(ticket, units);
            self.give(ticket);
        }
        may
    }

    /// Counts what a request cost, where its units do not tell it.
    pub(crate) fn charge(&mut self, ticket: Ticket, cost: u64) {
        let tenant = self.requests[&ticket].tenant;
        let (group, member) = of(&mut self.groups, &mut self.members, tenant);
        group.served += cost;
        member.served += cost;
    }

    /// A request gives back all but `units`.
    pub(crate) fn keep(&mut self, ticket: Ticket, units: usize) {
        let request = self.request(ticket);
        let (tenant, back) = (request.tenant, request.held.saturating_sub(units));
        request.held -= back;
        let (group, member) = of(&mut self.groups, &mut self.members, tenant);
        for usage in [&mut self.all, group, member] {
            usage.held -= back;
        }
    }

    /// A request gives back what it has, and leaves.
    pub(crate) fn leave(&mut self, ticket: Ticket) {
        self.keep(ticket, 0);
        let tenant = self.requests[&ticket].tenant;
        self.no_longer_waits(ticket, tenant);
        self.requests.remove(&ticket);
        let (group, member) = of(&mut self.groups, &mut self.members, tenant);
        for usage in [&mut self.all, group, member] {
            usage.requests -= 1;
        }
        // While nobody is here, nobody was served more than others.
        if self.all.requests == 0 {
            *self = Self { next: self.next, spares: self.spares, ..Self::for_room(self.room) };
        } else if self.members.len() > self.requests.len() + REMEMBERED_MAX {
            self.members.retain(|_, member| member.requests > 0);
            self.groups.retain(|_, group| group.requests > 0);
        }
    }

    /// Whether a waiting request may have what it asks for.
    fn may_have(&self, ticket: Ticket) -> bool {
        let tenant = self.requests[&ticket].tenant;
        let units = self.waiting.get(&tenant).and_then(|requests| requests.get(&ticket));
        units.is_some_and(|units| *units <= self.most(tenant))
    }

    /// The most units that a tenant may have in addition, now.
    fn most(&self, tenant: Tenant) -> usize {
        let free = self.room.saturating_sub(self.all.held);
        let group = self.groups.get(&tenant.group).map_or(0, |group| group.held);
        let member = self.members.get(&tenant).map_or(0, |member| member.held);
        let of_group = self.share(self.room, self.all.held, group);
        let of_member = self.share(of_group, group, member);
        if group == 0 {
            return free;
        }
        let more = of_group.saturating_sub(group).min(of_member.saturating_sub(member));
        // The last part of the room is for groups that are below their share.
        let is_newcomer = member == 0 && free > self.room / (SPARE * SPARE);
        if is_newcomer { more.max(free / SPARE) } else { more.min(free) }
    }

    /// Whether a request waits.
    pub(crate) fn waits(&self, ticket: Ticket) -> bool {
        let tenant = self.requests[&ticket].tenant;
        self.waiting.get(&tenant).is_some_and(|requests| requests.contains_key(&ticket))
    }

    /// Whether any request waits.
    pub(crate) fn any_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What everybody has.
    pub(crate) fn held(&self) -> usize {
        self.all.held
    }

    /// Whether everything is given away.
    pub(crate) fn is_full(&self) -> bool {
        self.all.held >= self.room
    }

    /// What all requests of the tenant of a request have.
    pub(crate) fn held_by_tenant(&self, ticket: Ticket) -> usize {
        self.members[&self.requests[&ticket].tenant].held
    }

    /// What all requests in the group of a request have.
    pub(crate) fn held_by_group(&self, ticket: Ticket) -> usize {
        self.groups[&self.requests[&ticket].tenant.group].held
    }

    /// What a request has.
    pub(crate) fn held_by(&self, ticket: Ticket) -> usize {
        self.requests[&ticket].held
    }

    /// What one of several may have at most of `room`, if all of them have `all`, and this one has `one` of that.
    fn share(&self, room: usize, all: usize, one: usize) -> usize {
        let left = room.saturating_sub(all - one);
        if self.spares { left - left.div_ceil(SPARE) } else { left }
    }

    /// The oldest request of the tenant that was served least among those that `may` get something.
    fn turn(&self, may: impl Fn(&Self, Tenant, usize) -> bool) -> Option<Ticket> {
        let oldest = self.waiting.iter().filter_map(|(tenant, requests)| {
            let (ticket, units) = requests.first_key_value()?;
            may(self, *tenant, *units).then_some((*tenant, *ticket))
        });
        let served = |(tenant, ticket): &(Tenant, Ticket)| {
            let (group, member) = (&self.groups[&tenant.group], &self.members[tenant]);
            (group.served, tenant.group, member.served, *ticket)
        };
        oldest.min_by_key(served).map(|(_, ticket)| ticket)
    }

    /// Ends the waiting of a request, and returns what it asked for.
    fn no_longer_waits(&mut self, ticket: Ticket, tenant: Tenant) -> Option<usize> {
        let requests = self.waiting.get_mut(&tenant)?;
        let units = requests.remove(&ticket);
        if requests.is_empty() {
            self.waiting.remove(&tenant);
        }
        units
    }

    fn request(&mut self, ticket: Ticket) -> &mut Request {
        self.requests.get_mut(&ticket).expect("a request is named until it leaves")
    }
}

impl Usage {
    /// A request comes. If it is the only one, what was served before the last clock is forgotten.
    fn come(&mut self, clock: u64) {
        if self.requests == 0 {
            self.served = self.served.max(clock);
        }
        self.requests += 1;
    }
}

/// The group and the member of a tenant that has requests.
fn of<'a>(
    groups: &'a mut BTreeMap<u64, Usage>,
    members: &'a mut BTreeMap<Tenant, Usage>,
    tenant: Tenant,
) -> (&'a mut Usage, &'a mut Usage) {
    let group = groups.get_mut(&tenant.group).expect("a group is kept while it has requests");
    let member = members.get_mut(&tenant).expect("a tenant is kept while it has requests");
    (group, member)
}

#[cfg(test)]
mod tests;
