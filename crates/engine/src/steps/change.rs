//! The named steps of a change of ranges. A test can stop a process between any two of them.
//!
//! Partition servers and changes report each step to the hook in [`Options`](crate::Options).
//! [`crate::change`] says what the steps mean.

use super::Hook;

/// The steps of changes, in their order. A process may die between any two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// The intent is in the map.
    Begun,
    /// New writes are held, and the writes that were let in before are in the log.
    Frozen,
    /// The retirement row is durable, everything is saved, and the checkpoint to clone from is made (split,
    /// merge).
    Retired,
    /// The new databases are made (split, merge).
    Cloned,
    /// The change record is created (split, merge): the commit point.
    Recorded,
    /// The heirs are open and not yet served (split, merge).
    HeirsOpen,
    /// Everything is saved, and the writes that waited for that are answered (move).
    Saved,
    /// The target has opened the database (move): the commit point.
    Taken,
    /// The source does not answer reads any more (move).
    LetGo,
    /// The new owner serves; the map does not say so yet.
    Served,
    /// What the new ranges inherited is written into them (split, merge).
    Inherited,
    /// The map says that the change is done.
    Published,
    /// It is decided that the change is undone (split, merge).
    UndoDecided,
    /// The range is no longer retired (split, merge), or its database is opened again (move).
    Restored,
    /// The map says that the change is undone.
    UndoPublished,
}

impl Step {
    /// All steps.
    pub const ALL: [Self; 15] = [
        Self::Begun,
        Self::Frozen,
        Self::Retired,
        Self::Cloned,
        Self::Recorded,
        Self::HeirsOpen,
        Self::Saved,
        Self::Taken,
        Self::LetGo,
        Self::Served,
        Self::Inherited,
        Self::Published,
        Self::UndoDecided,
        Self::Restored,
        Self::UndoPublished,
    ];

    /// Its name on the command line and in logs, such as `heirs-open`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Frozen => "frozen",
            Self::Retired => "retired",
            Self::Cloned => "cloned",
            Self::Recorded => "recorded",
            Self::HeirsOpen => "heirs-open",
            Self::Saved => "saved",
            Self::Taken => "taken",
            Self::LetGo => "let-go",
            Self::Served => "served",
            Self::Inherited => "inherited",
            Self::Published => "published",
            Self::UndoDecided => "undo-decided",
            Self::Restored => "restored",
            Self::UndoPublished => "undo-published",
        }
    }
}

/// The hook of changes, called with the range that is changed.
pub type StepHook = Hook<Step>;
