//! Which request bodies may grow, when there is room for some of them only. Pure: the time is handed in.
//!
//! ```text
//!   0                                              shared       room
//!   |--------------------------------------------------|-----------|
//!    all bodies, by shares and turns                    only the
//!                                                       finisher
//! ```
//!
//! A body *asks* before it keeps more bytes. The fair queue says which body may have shared room. A body that may not
//! waits, and its socket is not read meanwhile. The *finisher* is the one body that may use the reserve too, from the
//! moment in which it is chosen until it is complete. `docs/design/0009-shares.md` says why nothing can stop.
//!
//! Two things must not be changed. Only the finisher goes above what is shared; otherwise a finisher may not fit
//! any more. And a body remains the finisher until it is complete; otherwise two bodies can fill the reserve
//! together.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::fair::{Queue, Tenant, Ticket};
use crate::limits::{BODY_BYTES_PER_SECOND_MIN, BODY_PACE_LOOKED_AT_EVERY, BODY_PATIENCE};

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

#[derive(Debug)]
struct Body {
    state: State,
    /// How long it may still be read without bringing anything, counted from the beginning of the present reading.
    patience: Duration,
}

/// All bodies that hold room, and those that wait for it.
#[derive(Debug)]
pub(super) struct Growth {
    queue: Queue,
    /// What is shared, and the reserve.
    room: usize,
    /// What only the finisher may use.
    reserve: usize,
    bodies: BTreeMap<Ticket, Body>,
    finisher: Option<Ticket>,
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
            queue: Queue::for_room(shared),
            room: shared + reserve,
            reserve,
            bodies: BTreeMap::new(),
            finisher: None,
            looked: Duration::ZERO,
        }
    }

    /// A body begins, and is read.
    pub(super) fn begin(&mut self, now: Duration, tenant: Tenant) -> Ticket {
        let ticket = self.queue.enter(tenant);
        self.bodies.insert(ticket, Body { state: State::Read(now), patience: BODY_PATIENCE });
        ticket
    }

    /// What a body does. Decisions about other bodies may change it at any time.
    pub(super) fn state(&self, ticket: Ticket) -> State {
        self.bodies[&ticket].state
    }

    /// A body asks to keep `bytes` more. It waits until [`Growth::decide`] lets it go on. A body that was too slow
    /// stays so.
    pub(super) fn ask(&mut self, now: Duration, ticket: Ticket, bytes: usize) {
        let body = self.body(ticket);
        if let State::Read(since) = body.state {
            body.patience = body.patience.saturating_sub(now.saturating_sub(since));
            body.state = State::Waits(bytes);
            self.queue.ask(ticket, bytes);
        }
    }

    /// All of a body is here. It keeps its room until [`Growth::end`].
    pub(super) fn complete(&mut self, ticket: Ticket) {
        self.body(ticket).state = State::Complete;
        self.finisher.take_if(|finisher| *finisher == ticket);
    }

    /// A body gives its room back.
    pub(super) fn end(&mut self, ticket: Ticket) {
        self.finisher.take_if(|finisher| *finisher == ticket);
        self.queue.leave(ticket);
        self.bodies.remove(&ticket);
    }

    /// Lets waiting bodies go on for which there is room. Returns these bodies.
    pub(super) fn decide(&mut self, now: Duration) -> Vec<Ticket> {
        let mut going_on = Vec::new();
        while let Some(ticket) = self.queue.next() {
            self.goes_on(now, ticket);
            going_on.push(ticket);
        }
        self.finisher = self.finisher.or_else(|| self.queue.first());
        if let Some(finisher) = self.finisher
            && let State::Waits(bytes) = self.state(finisher)
            && self.queue.held() + bytes <= self.room
        {
            self.queue.give(finisher);
            self.goes_on(now, finisher);
            going_on.push(finisher);
        }
        let held = self.queue.held();
        assert!(held <= self.room, "bodies hold {held} bytes and have room for {}", self.room);
        going_on
    }

    /// Refuses a body that is too slow and keeps others waiting, and returns it. The finisher comes first, since nobody
    /// else gets the reserve before it ends; then, in the account that holds the most, the body that holds the most, or the
    /// oldest of several. It refuses one at a time, since the room of one may be enough, and looks at most once each
    /// [`BODY_PACE_LOOKED_AT_EVERY`].
    ///
    /// A finisher that is refused costs its account the whole reserve, which nobody could use meanwhile. Otherwise one body
    /// after the other of an account whose clients have stopped becomes the finisher.
    pub(super) fn refuse_slow(&mut self, now: Duration) -> Option<Ticket> {
        if !self.queue.any_waits() || now < self.looked + BODY_PACE_LOOKED_AT_EVERY {
            return None;
        }
        self.looked = now;
        if self.bodies.values().any(|body| body.state == State::TooSlow) {
            return None;
        }
        let is_behind = |ticket: &Ticket| self.bodies[ticket].is_behind(now);
        let slow = if let Some(finisher) = self.finisher.filter(is_behind) {
            self.queue.charge(finisher, self.reserve as u64);
            finisher
        } else {
            let most = self.bodies.keys().map(|ticket| self.queue.held_by_group(*ticket)).max()?;
            let holds_the_most = |ticket: &Ticket| {
                self.queue.held_by(*ticket) > 0 && self.queue.held_by_group(*ticket) == most
            };
            let slow =
                self.bodies.keys().copied().filter(|ticket| is_behind(ticket) && holds_the_most(ticket));
            slow.max_by_key(|ticket| (self.queue.held_by(*ticket), Reverse(*ticket)))?
        };
        self.body(slow).state = State::TooSlow;
        Some(slow)
    }

    /// A body got what it asked for, and is read again.
    fn goes_on(&mut self, now: Duration, ticket: Ticket) {
        let body = self.body(ticket);
        if let State::Waits(bytes) = body.state {
            let earned = Duration::from_secs_f64(bytes as f64 / BODY_BYTES_PER_SECOND_MIN);
            body.patience = BODY_PATIENCE.min(body.patience + earned);
            body.state = State::Read(now);
        }
    }

    fn body(&mut self, ticket: Ticket) -> &mut Body {
        self.bodies.get_mut(&ticket).expect("a body is named until it ends")
    }
}

#[cfg(test)]
mod tests;
