//! Which request bodies may grow, when there is room for some of them only. Pure: the time is handed in.
//!
//! ```text
//!   0                  large bodies                      shared             room
//!   |----------------------------------------------------|-----------|---------|
//!    large bodies, the older ones first                   only small  only the
//!    small bodies, in any order                           bodies      finisher
//! ```
//!
//! An account and an address may each have three quarters of what is shared. A body is small if its client declared
//! a small length: it does not stand in line behind large ones.
//!
//! A body *asks* before it keeps more bytes. When there is no room it waits, and its socket is not read meanwhile.
//! The *finisher* is the one body that may use the reserve, from the moment in which it is chosen until it is
//! complete. `docs/design/0009-request-bodies.md` says why nothing can stop.
//!
//! Two things must not be changed. Only the finisher goes above what is shared; otherwise a finisher may not fit
//! any more. And a body remains the finisher until it is complete; otherwise two bodies can fill the reserve
//! together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use crate::limits::{BODY_BYTES_PER_SECOND_MIN, BODY_PACE_LOOKED_AT_EVERY, BODY_PATIENCE, BODY_SMALL_BYTES};

/// Names a body. A younger body has a greater number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct BodyId(u64);

/// What a body does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It is read, since this time.
    Read(Duration),
    /// It waits for room for so many bytes, and is not read.
    Waits(usize),
    /// All of it is here; its request is worked on.
    Complete,
    /// It was too slow while others waited, and must be refused.
    TooSlow,
}

/// The sender of a body, whose bodies have a common share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sender {
    /// The name of the account.
    pub(crate) account: String,
    /// The address that the connection comes from.
    pub(crate) address: IpAddr,
}

impl Sender {
    /// Whether both have the same account or the same address, and so a share together.
    fn shares_with(&self, other: &Self) -> bool {
        self.account == other.account || self.address == other.address
    }
}

#[derive(Debug)]
struct Body {
    sender: Sender,
    is_small: bool,
    state: State,
    bytes: usize,
    /// How long it may still be read without bringing anything, counted from the beginning of the present reading.
    patience: Duration,
}

/// All bodies that hold room, and those that wait for it.
#[derive(Debug)]
pub(super) struct Growth {
    shared: usize,
    /// What is shared, and the reserve.
    room: usize,
    held: usize,
    next: u64,
    bodies: BTreeMap<BodyId, Body>,
    accounts: HashMap<String, usize>,
    addresses: HashMap<IpAddr, usize>,
    finisher: Option<BodyId>,
    /// The bodies that wait.
    waiting: BTreeSet<BodyId>,
    /// When slow bodies were last looked for.
    looked: Duration,
}

impl Body {
    fn is_behind(&self, now: Duration) -> bool {
        matches!(self.state, State::Read(since) if now.saturating_sub(since) > self.patience)
    }
}

impl Growth {
    /// Room for `shared` bytes, and above that for the `reserve` bytes of one largest body.
    pub(super) fn new(shared: usize, reserve: usize) -> Self {
        Self {
            shared,
            room: shared + reserve,
            held: 0,
            next: 0,
            bodies: BTreeMap::new(),
            accounts: HashMap::new(),
            addresses: HashMap::new(),
            finisher: None,
            waiting: BTreeSet::new(),
            looked: Duration::ZERO,
        }
    }

    /// A body begins, and is read.
    pub(super) fn begin(&mut self, now: Duration, sender: Sender, is_small: bool) -> BodyId {
        let id = BodyId(self.next);
        self.next += 1;
        let body = Body { sender, is_small, state: State::Read(now), bytes: 0, patience: BODY_PATIENCE };
        self.bodies.insert(id, body);
        id
    }

    /// What a body does. Decisions about other bodies may change it at any time.
    pub(super) fn state(&self, id: BodyId) -> State {
        self.bodies[&id].state
    }

    /// A body asks to keep `bytes` more. It waits until [`Growth::decide`] lets it go on. A body that was too slow
    /// stays so.
    pub(super) fn ask(&mut self, now: Duration, id: BodyId, bytes: usize) {
        let body = self.body(id);
        if let State::Read(since) = body.state {
            body.patience = body.patience.saturating_sub(now.saturating_sub(since));
            body.state = State::Waits(bytes);
            self.waiting.insert(id);
        }
    }

    /// All of a body is here. It keeps its room until [`Growth::end`].
    pub(super) fn complete(&mut self, id: BodyId) {
        self.body(id).state = State::Complete;
        self.finisher.take_if(|finisher| *finisher == id);
    }

    /// A body gives its room back.
    pub(super) fn end(&mut self, id: BodyId) {
        self.finisher.take_if(|finisher| *finisher == id);
        self.waiting.remove(&id);
        let Some(body) = self.bodies.remove(&id) else { return };
        self.held -= body.bytes;
        let (account, address) = (&body.sender.account, &body.sender.address);
        subtract(&mut self.accounts, account, body.bytes);
        subtract(&mut self.addresses, address, body.bytes);
    }

    /// Lets waiting bodies go on for which there is room. Returns these bodies.
    pub(super) fn decide(&mut self, now: Duration) -> Vec<BodyId> {
        let mut going_on = Vec::new();
        let mut line_is_full = false;
        // Senders of older large bodies that are above their shares: younger ones of theirs wait behind them.
        let mut above: Vec<Sender> = Vec::new();
        for id in Vec::from_iter(self.waiting.iter().copied()) {
            let (is_small, sender) = (self.bodies[&id].is_small, &self.bodies[&id].sender);
            if !is_small && (line_is_full || above.iter().any(|other| sender.shares_with(other))) {
                continue;
            }
            if self.is_above_share(id) {
                above.extend((!is_small).then(|| sender.clone()));
            } else if self.held + self.asked(id) <= self.limit(id) {
                self.grow(now, id);
                going_on.push(id);
            } else {
                line_is_full = true;
            }
        }
        if self.finisher.is_none() {
            let below_share = self.waiting.iter().find(|id| !self.is_above_share(**id));
            self.finisher = below_share.or(self.waiting.first()).copied();
        }
        if let Some(finisher) = self.finisher.filter(|id| self.waiting.contains(id))
            && self.held + self.asked(finisher) <= self.room
        {
            self.grow(now, finisher);
            going_on.push(finisher);
        }
        assert!(self.held <= self.room, "bodies hold {} bytes and have room for {}", self.held, self.room);
        going_on
    }

    /// Refuses the oldest body that is read, or the finisher, if it is too slow, not small, and keeps others waiting.
    /// It refuses one at a time, since the room of one may be enough, and looks at most once each
    /// [`BODY_PACE_LOOKED_AT_EVERY`]. Returns the body that it refused.
    pub(super) fn refuse_slow(&mut self, now: Duration) -> Option<BodyId> {
        if self.waiting.is_empty() || now < self.looked + BODY_PACE_LOOKED_AT_EVERY {
            return None;
        }
        self.looked = now;
        if self.bodies.values().any(|body| body.state == State::TooSlow) {
            return None;
        }
        let is_read = |body: &Body| matches!(body.state, State::Read(_)) && body.bytes >= BODY_SMALL_BYTES;
        let oldest = self.bodies.iter().find(|(_, body)| is_read(body)).map(|(id, _)| *id);
        let slow = [oldest, self.finisher].into_iter().flatten().find(|id| self.bodies[id].is_behind(now))?;
        self.body(slow).state = State::TooSlow;
        Some(slow)
    }

    fn grow(&mut self, now: Duration, id: BodyId) {
        let bytes = self.asked(id);
        self.waiting.remove(&id);
        let body = self.bodies.get_mut(&id).expect("a body that waits has not ended");
        let earned = Duration::from_secs_f64(bytes as f64 / BODY_BYTES_PER_SECOND_MIN);
        body.patience = BODY_PATIENCE.min(body.patience + earned);
        body.bytes += bytes;
        body.state = State::Read(now);
        self.held += bytes;
        *self.accounts.entry(body.sender.account.clone()).or_default() += bytes;
        *self.addresses.entry(body.sender.address).or_default() += bytes;
    }

    /// Up to where a body may grow while it is not the finisher.
    fn limit(&self, id: BodyId) -> usize {
        if self.bodies[&id].is_small { self.shared } else { self.shared / 8 * 7 }
    }

    /// The bytes that a body waits for; none if it does not wait.
    fn asked(&self, id: BodyId) -> usize {
        match self.bodies[&id].state {
            State::Waits(bytes) => bytes,
            State::Read(_) | State::Complete | State::TooSlow => 0,
        }
    }

    /// Whether the account or the address of a body would have more than its share with what the body asks for.
    fn is_above_share(&self, id: BodyId) -> bool {
        let sender = &self.bodies[&id].sender;
        let of_account = self.accounts.get(&sender.account).copied().unwrap_or_default();
        let of_address = self.addresses.get(&sender.address).copied().unwrap_or_default();
        of_account.max(of_address) + self.asked(id) > self.limit(id) / 4 * 3
    }

    fn body(&mut self, id: BodyId) -> &mut Body {
        self.bodies.get_mut(&id).expect("a body is named until it ends")
    }
}

/// Takes `bytes` from a sum, and forgets a sum that is nothing.
fn subtract<K: std::hash::Hash + Eq>(sums: &mut HashMap<K, usize>, key: &K, bytes: usize) {
    if let Some(sum) = sums.get_mut(key) {
        *sum -= bytes;
        if *sum == 0 {
            sums.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
