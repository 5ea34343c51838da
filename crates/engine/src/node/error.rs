//! Why a node was not opened.

use thiserror::Error;

use crate::change::ChangeError;
use crate::database::DatabaseError;
use crate::host::HostError;
use crate::lease::LeaseError;
use crate::map_store::MapError;

/// Why a node was not opened, by the step that failed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The process has too little memory, or no threads.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A partition server could not take its lease.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The map of ranges could not be read or stored.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The first range of an empty store could not be made.
    #[error(transparent)]
    First(#[from] DatabaseError),
    /// A range could not be opened, or a change that was broken off could not be brought to its end.
    #[error(transparent)]
    Ranges(#[from] ChangeError),
}
