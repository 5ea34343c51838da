//! The steps of a blob's life.
//!
//! | died after | left | taken up by |
//! |---|---|---|
//! | `Begun` | a blob with a user and no files | the audit |
//! | `Written` | files that no row names | the audit |
//! | `Referred` | a user without a row that names the blob | the audit |
//! | `Released` | a dead blob with its files, or nothing | the audit |
//! | `Emptied` | a dead blob without files | the audit |
//! | `Buried` | nothing | |

use rangehold_map::BlobId;

use super::Hook;

/// The steps of a blob's life. A process may die between any two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlobStep {
    /// The rows of a blob and of its first user are durable.
    Begun,
    /// A chunk is durable.
    Written,
    /// One more user is durable.
    Referred,
    /// A user is removed.
    Released,
    /// The files of a dead blob are deleted.
    Emptied,
    /// Its state row is deleted.
    Buried,
}

impl BlobStep {
    /// All steps.
    pub const ALL: [Self; 6] =
        [Self::Begun, Self::Written, Self::Referred, Self::Released, Self::Emptied, Self::Buried];
}

/// The hook of these steps. It is called with the blob that the step was about.
pub type BlobHook = Hook<BlobStep, BlobId>;
