//! The steps by which space is given back.
//!
//! No step is recorded: each look reads off the store what is there, and goes on. Each row of this table
//! says what is left if a process dies after the step, and which work goes on from there.
//!
//! | died after | left | taken up by |
//! |---|---|---|
//! | `Rewritten` | a child that reads none of its parent's files, and pins them | a collection, two minutes later |
//! | `Collected` | a parent with no pin, or with one pin less | a burial |
//! | `Expired` | a dead database without a checkpoint | a burial |
//! | `Emptied` | an empty directory, without a manifest | a burial, which then reads no manifest |
//! | `Buried` | a change record that no process can need | the deletion of records |
//! | `RecordsDeleted` | an empty directory | the deletion of records |
//! | `Forgotten` | nothing | |
//!
//! Before `Emptied` the files of a dead database are deleted one by one, in whatever order they are listed:
//! see `housekeeping::burial`.

use super::Hook;

/// The steps of giving space back, in their order. A process may die between any two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SpaceStep {
    /// A child reads no file of other databases any more.
    Rewritten,
    /// The garbage of a database in use is collected, and pins that it no longer needs are released.
    Collected,
    /// A dead database has no checkpoint left: those whose time is over were removed.
    Expired,
    /// All files of a dead database are deleted.
    Emptied,
    /// Its directory is gone.
    Buried,
    /// Change records that no process can need any more are deleted.
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

/// The hook of these steps. It is called with the range whose files or records the step was about.
pub type SpaceHook = Hook<SpaceStep>;
