//! The steps of a change of several object names: a move, or a composition that deletes its sources.
//!
//! | died after | readers see | taken up by the next request that meets the intent, or the walk, which |
//! |---|---|---|
//! | `Begun` | the sources | undo the change |
//! | `Committed` | the target | remove the sources |
//! | `Ended` | the target | remove the other sources, and the row of the decision; after the last source only the walk does |
//! | `Forgotten` | the target | have nothing to do |
//! | `Undone` | the sources | clear the intent; the walk removes the row of the decision after a day |
//! | `Cleared` | the sources | remove the row of the decision after a day |

use super::Hook;

/// The steps of a change of several names. A process may die between any two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NamesStep {
    /// The head of a source has the intent.
    Begun,
    /// The target is written, with the row that says so.
    Committed,
    /// A source is removed.
    Ended,
    /// The row that says that the target is written is removed.
    Forgotten,
    /// The row that says that the change never happened is written.
    Undone,
    /// The intent of a change that never happened is taken away.
    Cleared,
    /// Each range has noted that a folder is about to be renamed or deleted.
    Announced,
    /// The folder is renamed or deleted.
    FolderChanged,
}

/// The hook of these steps. It is called with the name that the step was about.
pub type NamesHook = Hook<NamesStep, String>;
