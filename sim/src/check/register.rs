//! A linearizable register: is there one order of all operations on a key that explains what every
//! client was told?
//!
//! Each operation must take effect at some moment between its call and its return. An operation of unknown outcome
//! may take effect at any time after its call, or never. The search is that of Wing and Gong with Lowe's memory: it
//! tries the operations that may come next, and remembers the sets of operations that it has already tried, with the
//! state of the register after them. Each key is checked by itself, which is allowed because linearizability
//! is local.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

/// What an entity holds: each write has a value of its own.
pub type Value = u64;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// The value.
    Read,
    /// To insert a value if there is none.
    Insert(Value),
    /// To put a value in any case.
    Upsert(Value),
    /// To replace the value if it is the expected one.
    Replace(Value, Expected),
    /// To delete the value if it is the expected one.
    Delete(Expected),
}

/// What `If-Match` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Any value.
    Any,
    /// The value of a certain write.
    Is(Value),
}

/// What the client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// The value that was read; `None` if there was none.
    Value(Option<Value>),
    /// It was done.
    Done,
    /// There is one already.
    Exists,
    /// There is none.
    Missing,
    /// There is another value than the expected one.
    Mismatch,
    /// There is none, or another one than the expected one.
    NotMet,
    /// No answer: it may have been done, it may be done later, or it may never be done.
    Unknown,
}

/// One operation of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The client that asked, as a name for people.
    pub who: String,
    /// What was asked for.
    pub call: Call,
    /// When.
    pub begun: Duration,
    /// What was told.
    pub told: Return,
    /// When the answer came. It is ignored if there was no answer.
    pub ended: Duration,
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// An order that explains everything.
    Linearizable,
    /// No order explains it. The text says where the best order fails.
    Not(String),
    /// The search was given up.
    Undecided,
}

/// The most operations on one key that are judged.
const OPERATIONS_MAX: usize = 2_048;
/// The most states that are tried before the search is given up. Each takes up to 600 bytes.
const STEPS_MAX: usize = 200_000;

type State = Option<Value>;

impl Operation {
    fn is_known(&self) -> bool {
        self.told != Return::Unknown
    }

    /// The state after the operation took effect in `state`; `None` if it cannot take effect there.
    fn after(&self, state: State) -> Option<State> {
        let (told, after) = match self.call {
            Call::Read => (Return::Value(state), state),
            Call::Insert(value) => match state {
                None => (Return::Done, Some(value)),
                Some(_) => (Return::Exists, state),
            },
            Call::Upsert(value) => (Return::Done, Some(value)),
            Call::Replace(value, expected) => conditional(state, expected, Some(value)),
            Call::Delete(expected) => conditional(state, expected, None),
        };
        let fits = match self.told {
            Return::Unknown => true,
            Return::NotMet => matches!(told, Return::Missing | Return::Mismatch),
            known => known == told,
        };
        fits.then_some(after)
    }

    /// Whether the operation can take effect in `after` and not in `before`.
    fn needs(&self, before: State, after: State) -> bool {
        let has_effect = |state| self.after(state).is_some_and(|then| self.is_known() || then != state);
        !has_effect(before) && has_effect(after)
    }
}

fn conditional(state: State, expected: Expected, after: State) -> (Return, State) {
    match (state, expected) {
        (None, _) => (Return::Missing, state),
        (Some(there), Expected::Is(value)) if there != value => (Return::Mismatch, state),
        _ => (Return::Done, after),
    }
}

/// Looks for an order of all operations, on one key, that begins without a value.
pub fn check(operations: &[Operation]) -> Verdict {
    if operations.len() > OPERATIONS_MAX {
        return Verdict::Undecided;
    }
    let mut operations: Vec<&Operation> = operations.iter().collect();
    operations.sort_by_key(|operation| operation.begun);
    Search::new(operations).run()
}

/// A set of operations by their indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Taken([u64; OPERATIONS_MAX / 64]);

impl Taken {
    fn contains(self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    fn with(self, index: usize) -> Self {
        let mut more = self;
        more.0[index / 64] |= 1 << (index % 64);
        more
    }
}

struct Search<'a> {
    operations: Vec<&'a Operation>,
    tried: HashSet<(Taken, State)>,
    open: Vec<(Taken, State)>,
    /// The most operations that were placed or have no answer, the operations that were placed then, and the value after them.
    best: (usize, Taken, State),
}

impl<'a> Search<'a> {
    fn new(operations: Vec<&'a Operation>) -> Self {
        let none = Taken([0; OPERATIONS_MAX / 64]);
        Self { open: vec![(none, None)], tried: HashSet::new(), best: (0, none, None), operations }
    }

    fn run(mut self) -> Verdict {
        while let Some((taken, state)) = self.open.pop() {
            if !self.tried.insert((taken, state)) {
                continue;
            }
            if self.tried.len() > STEPS_MAX {
                return Verdict::Undecided;
            }
            let left = self.known_left(&taken);
            if left == 0 {
                return Verdict::Linearizable;
            }
            let placed = self.operations.len() - left;
            if placed > self.best.0 {
                self.best = (placed, taken, state);
            }
            self.extend(&taken, state);
        }
        Verdict::Not(self.explain())
    }

    fn known_left(&self, taken: &Taken) -> usize {
        let left =
            |(index, operation): &(usize, &&Operation)| operation.is_known() && !taken.contains(*index);
        self.operations.iter().enumerate().filter(left).count()
    }

    /// Adds the operations that can come next: those that began before any of the remaining ones ended. What can come next
    /// by itself is tried first.
    ///
    /// An answered operation that fits and changes nothing is placed at once, and nothing else is tried. This loses no order:
    /// wherever the operation stands in an order, it can stand here too, and the others see the same values without it.
    ///
    /// An operation without an answer may take effect at any later time, or never. So it is placed only right before one that
    /// needs its effect. This loses no order: if the next operation also fits without it, then that operation either overwrites
    /// the effect, or leaves the value alone, and the effect can come after it. Of two that ask for the same, one is tried.
    fn extend(&mut self, taken: &Taken, state: State) {
        let candidates = self.candidates(taken);
        let (known, unknown): (Vec<usize>, Vec<usize>) =
            candidates.iter().partition(|index| self.operations[**index].is_known());
        if let Some(index) = known.iter().find(|index| self.operations[**index].after(state) == Some(state)) {
            self.open.push((taken.with(*index), state));
            return;
        }
        let needed = unknown.iter().enumerate().filter_map(|(at, &index)| {
            let operation = self.operations[index];
            let after = operation.after(state)?;
            let is_needed = candidates.iter().any(|&next| self.operations[next].needs(state, after));
            let is_first = unknown[..at].iter().all(|other| self.operations[*other].call != operation.call);
            (after != state && is_needed && is_first).then(|| (taken.with(index), after))
        });
        let fitting = |&index: &usize| Some((taken.with(index), self.operations[index].after(state)?));
        let next: Vec<_> = needed.chain(known.iter().filter_map(fitting)).collect();
        self.open.extend(next);
    }

    fn candidates(&self, taken: &Taken) -> Vec<usize> {
        let left = || self.operations.iter().enumerate().filter(|(index, _)| !taken.contains(*index));
        let known = left().filter(|(_, operation)| operation.is_known());
        let first_end = known.map(|(_, operation)| operation.ended).min().unwrap_or(Duration::MAX);
        left().filter(|(_, operation)| operation.begun <= first_end).map(|(index, _)| index).collect()
    }

    fn explain(&self) -> String {
        let (_, taken, state) = &self.best;
        let stuck = self.candidates(taken);
        let stuck: Vec<String> = stuck.iter().map(|index| self.operations[*index].to_string()).collect();
        let before = self.operations.iter().enumerate().filter(|(index, _)| taken.contains(*index));
        let mut before: Vec<&Operation> = before.map(|(_, operation)| *operation).collect();
        before.sort_by_key(|operation| operation.ended);
        let placed = before.len();
        let before: Vec<String> = before.iter().rev().take(4).rev().map(ToString::to_string).collect();
        format!(
            "after {placed} of {} operations, the last of them\n      {}\n    the value is {state:?}, and none of these can come next:\n      {}",
            self.operations.len(),
            before.join("\n      "),
            stuck.join("\n      ")
        )
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (begun, ended) = (self.begun.as_secs_f64(), self.ended.as_secs_f64());
        write!(f, "{} [{begun:.3} {ended:.3}] {:?} -> {:?}", self.who, self.call, self.told)
    }
}
