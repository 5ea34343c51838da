//! The steps by which space comes back.
//!
//! None of them is written down: each look reads off the store what is there, and goes on. A row of
//! this table is what a process that dies between two steps leaves, and who takes it up.
//!
//! | died after | left | taken up by |
//! |---|---|---|
//! | `Rewritten` | a child that reads none of its parent's files, and pins them | a collection, two minutes later |
//! | `Collected` | a parent without a pin, or one less | a burial |
//! | `Expired` | a dead database without a checkpoint | a burial |
//! | `Emptied` | an empty directory, without a manifest | a burial, which asks no manifest then |
//! | `Buried` | a change record that nobody can ask for | a forgetting |
//! | `RecordsDeleted` | an empty directory | a forgetting |
//! | `Forgotten` | nothing | |
//!
//! Within `Emptied` the files of a dead database go one by one, in whatever order they are listed:
//! see `housekeeping::burial`.

use super::Hook;

/// The steps of the return of space, in their order: between any two of them a process may die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SpaceStep {
    /// A child reads no file of others any more.
    Rewritten,
    /// Garbage of a database in use is collected, and pins that it no longer needs are released.
    Collected,
    /// A dead database has no checkpoint left: those whose time is over were removed.
    Expired,
    /// All files of a dead database are deleted.
    Emptied,
    /// Its directory is gone.
    Buried,
    /// Change records that nobody can ask for are deleted.
    RecordsDeleted,
    /// Their directory is gone.
    Forgotten,
}

impl SpaceStep {
    /// All steps.
    pub const ALL: [Self; 7] = [
        Self::Rewritten,
        Self::Collected,
        Self::Expired,
        Self::Emptied,
        Self::Buried,
        Self::RecordsDeleted,
        Self::Forgotten,
    ];
}

/// The hook of the return of space, called with the range whose files, or records, they are or were.
pub type SpaceHook = Hook<SpaceStep>;
