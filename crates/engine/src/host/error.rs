//! Why a process could not start its host.

use thiserror::Error;

use crate::database::TooLittleMemory;

/// Why a process could not start its host.
#[derive(Debug, Error)]
pub enum HostError {
    /// The given memory is too little to work with.
    #[error(transparent)]
    Memory(#[from] TooLittleMemory),
    /// The operating system gave no thread for compaction.
    #[error("the compaction runtime could not be started")]
    Runtime(#[source] std::io::Error),
}
