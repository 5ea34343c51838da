//! A store, and processes that walk on it by the table: enough of the real thing to tell every story of a change.
//!
//! A database belongs to the process that opened it last. What another process writes to it fails.

use std::fmt::Write as _;

use super::*;

/// Which process.
pub(super) type Index = usize;

/// The names of the processes. The first one makes the change.
pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];

/// What the map says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum MapIs {
    Begun,
    /// The heirs are at this process.
    Done(Index),
    Undone,
    /// The parents are at this process, after the change was undone.
    Assigned(Index),
}

/// What a process answers clients for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Serves {
    Nothing,
    Parents,
    Heirs,
}

/// How a step goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum How {
    Works,
    /// Nothing is done.
    Fails,
    /// It is done, and the walk hears that it failed.
    FailsUnheard,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) seen: Seen,
    pub(super) is_alive: bool,
    pub(super) serves: Serves,
    /// Whether it holds the writes of the parents.
    holds: bool,
    has_ended: bool,
    /// The process whose heirs it writes into the map: itself, unless it finds them served.
    names: Option<Index>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) map: MapIs,
    /// Whether the parents are retired by this change.
    pub(super) retired: bool,
    /// Whether the parents are retired by another change instead; then, whether that one counts.
    pub(super) other: Option<bool>,
    /// What the record says: done by an attempt, or undone (`None`).
    pub(super) record: Option<Option<Attempt>>,
    pub(super) parents_opened_by: Option<Index>,
    pub(super) heirs_opened_by: Option<Index>,
    pub(super) has_lease: bool,
    pub(super) processes: [Process; NAMES.len()],
}

impl World {
    /// The intent is in the map. The first process serves the parents; the others have read the map.
    pub(super) fn new() -> Self {
        let idle = Process {
            seen: Seen::resuming(),
            is_alive: true,
            serves: Serves::Nothing,
            holds: false,
            has_ended: false,
            names: None,
        };
        let mut processes = [idle; NAMES.len()];
        processes[0] = Process { seen: Seen::making(), serves: Serves::Parents, ..idle };
        Self {
            map: MapIs::Begun,
            retired: false,
            other: None,
            record: None,
            parents_opened_by: Some(0),
            heirs_opened_by: None,
            has_lease: true,
            processes,
        }
    }

    /// The process is no more.
    pub(super) fn kill(&mut self, who: Index) {
        let process = &mut self.processes[who];
        (process.is_alive, process.serves, process.holds) = (false, Serves::Nothing, false);
    }

    /// Whether the process goes on by itself.
    pub(super) fn is_walking(&self, who: Index) -> bool {
        self.processes[who].is_alive && !self.processes[who].has_ended
    }

    /// Lets the process do its next step.
    pub(super) fn step(&mut self, who: Index, how: How) -> (Act, Saw) {
        let act = self.processes[who].seen.next();
        if let Act::End(end) = act {
            self.end(who, end);
            return (act, Saw::Worked);
        }
        let saw = if how == How::Fails { Saw::Failed } else { self.act(who, act) };
        let saw = if how == How::FailsUnheard { Saw::Failed } else { saw };
        self.processes[who].seen = self.processes[who].seen.after(act, saw);
        (act, saw)
    }

    /// Lets the process go on until its end. Returns what it did.
    pub(super) fn go_on(&mut self, who: Index) -> Vec<(Act, Saw)> {
        let mut steps = Vec::new();
        while self.is_walking(who) {
            steps.push(self.step(who, How::Works));
            assert!(steps.len() < 30, "it does not come to an end: {steps:?}");
        }
        steps
    }

    fn act(&mut self, who: Index, act: Act) -> Saw {
        let holds_parents = self.parents_opened_by == Some(who);
        let at = self.processes[who].names.unwrap_or(who);
        let holds_heirs = self.heirs_opened_by == Some(at) && self.processes[at].is_alive;
        let worked_if = |worked| if worked { Saw::Worked } else { Saw::Failed };
        match act {
            Act::Hold => {
                self.processes[who].holds = true;
                Saw::Worked
            }
            Act::Retire => {
                self.retired |= holds_parents;
                worked_if(holds_parents)
            }
            Act::MakeHeirs => Saw::Made(1),
            Act::Record(attempt) => {
                self.heirs_opened_by = Some(who);
                match *self.record.get_or_insert(Some(attempt)) {
                    Some(there) if there == attempt => Saw::Worked,
                    there => Saw::Decided(there),
                }
            }
            Act::OpenParents => {
                self.parents_opened_by = Some(who);
                Saw::Row(self.row())
            }
            Act::Decide => Saw::Decided(*self.record.get_or_insert(None)),
            Act::SettleOther if self.other == Some(true) => Saw::MapTooOld,
            Act::SettleOther => {
                self.other = None;
                Saw::Row(self.row())
            }
            Act::LookAtMap if self.map != MapIs::Begun => Saw::Map(Map::GoneOn),
            Act::LookAtMap => match self.acknowledges(Serves::Heirs) {
                Some(server) => {
                    self.processes[who].names = Some(server);
                    Saw::Served
                }
                None => Saw::Map(Map::Ours),
            },
            Act::OpenHeirs(_) => {
                self.heirs_opened_by = Some(who);
                Saw::Worked
            }
            Act::AskLease => Saw::Lease(self.has_lease),
            Act::Serve => {
                (self.processes[who].serves, self.processes[who].holds) = (Serves::Heirs, false);
                Saw::Worked
            }
            Act::Inherit => worked_if(holds_heirs),
            Act::PublishDone if self.map == MapIs::Done(at) => Saw::Worked,
            Act::PublishDone | Act::PublishUndone if self.map != MapIs::Begun => Saw::Overtaken,
            Act::PublishDone => {
                self.map = MapIs::Done(at);
                Saw::Worked
            }
            Act::PublishUndone => {
                self.map = MapIs::Undone;
                // Where it was undone after the writes were held.
                self.processes[who].holds = false;
                Saw::Worked
            }
            Act::Unretire if holds_parents => {
                self.retired = false;
                self.processes[who].holds = false;
                Saw::Worked
            }
            Act::Unretire => Saw::Failed,
            Act::End(_) => unreachable!("the end is not a step"),
        }
    }

    fn row(&self) -> Row {
        match (self.other, self.retired) {
            (Some(_), _) => Row::Another,
            (None, true) => Row::This,
            (None, false) => Row::Absent,
        }
    }

    /// Stops serving heirs that the map gives to another process.
    fn end(&mut self, who: Index, end: End) {
        let process = &mut self.processes[who];
        process.has_ended = true;
        if end == End::Overtaken && process.serves == Serves::Heirs && self.map != MapIs::Done(who) {
            process.serves = Serves::Nothing;
        }
    }

    /// A process opens the parents, since the map says that the change is undone, and serves them if they are not
    /// retired. The map knows one such process.
    pub(super) fn assign_parents(&mut self, who: Index) {
        self.map = MapIs::Assigned(who);
        self.parents_opened_by = Some(who);
        if self.row() == Row::Absent {
            self.processes[who].serves = Serves::Parents;
        }
    }

    /// Whether a client's write of these keys could be acknowledged, and by which process.
    pub(super) fn acknowledges(&self, what: Serves) -> Option<Index> {
        let opened_by = if what == Serves::Parents { self.parents_opened_by } else { self.heirs_opened_by };
        opened_by.filter(|who| {
            let process = &self.processes[*who];
            process.is_alive && process.serves == what && !(what == Serves::Parents && process.holds)
        })
    }

    /// What is in the store and who serves, in one line.
    pub(super) fn tell(&self) -> String {
        let name = |who: Index| NAMES[who];
        let mut told = String::from("map: ");
        let _ = match self.map {
            MapIs::Begun => write!(told, "begun"),
            MapIs::Done(who) => write!(told, "done, heirs at {}", name(who)),
            MapIs::Undone => write!(told, "undone"),
            MapIs::Assigned(who) => write!(told, "parents at {}", name(who)),
        };
        told.push_str(match self.row() {
            Row::Another => "; parents retired for another change",
            Row::This => "; parents retired",
            _ => "; parents not retired",
        });
        let _ = match self.record {
            None => write!(told, "; no record"),
            Some(None) => write!(told, "; record: undone"),
            Some(Some(attempt)) => write!(told, "; record: done by attempt {attempt}"),
        };
        let served = |what| self.acknowledges(what).map_or("nobody", name);
        let _ = write!(told, "; parents served by {}", served(Serves::Parents));
        let _ = write!(told, "; heirs served by {}", served(Serves::Heirs));
        told
    }
}
