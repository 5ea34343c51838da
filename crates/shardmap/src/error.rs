//! What can go wrong, as an application sees it.
//!
//! Categories and codes are those of the elastic database library. So code that was written for that library finds
//! the same cases. New codes are at the end. [`Code::retry`] says whether the same call, with nothing changed, may
//! succeed later.

use std::fmt;
use std::str::FromStr;

use rangehold_map::shard::{NotAKey, ShardChangeRefused, ShardKeyType};

/// The part that refused or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// Creating and opening a manager.
    Factory,
    /// The set of shard maps.
    Manager,
    /// The shards of a map.
    ShardMap,
    /// The mappings of a list map.
    ListShardMap,
    /// The mappings of a range map.
    RangeShardMap,
    /// A shard or a store that refused a handle, or that is not valid itself.
    Validation,
    /// Recovery tools.
    Recovery,
    /// Notes on sharded tables.
    SchemaInfo,
    /// Everything else.
    General,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The database already has a global map.
    StoreAlreadyExists,
    /// The database has no global map.
    StoreDoesNotExist,
    /// The store is of another major version than this program.
    StoreVersionMismatch,
    /// There is already a shard map of this name, of either kind.
    ShardMapAlreadyExists,
    /// There is no shard map of this name.
    ShardMapLookupFailure,
    /// The shard map has been deleted.
    ShardMapDoesNotExist,
    /// A map that has shards cannot be deleted.
    ShardMapHasShards,
    /// The map is of another kind, or its keys are of another type.
    ShardMapTypeConversion,
    /// The map already has a shard at that location.
    ShardLocationAlreadyExists,
    /// The shard is not in the map, or it is no longer in it.
    ShardDoesNotExist,
    /// The shard has changed since the handle was made.
    ShardVersionMismatch,
    /// A shard that has mappings cannot be removed.
    ShardHasMappings,
    /// The database is not a shard of the map.
    ShardNotValid,
    /// The key already has a mapping.
    MappingPointAlreadyMapped,
    /// Some key of the interval already has a mapping.
    MappingRangeAlreadyMapped,
    /// The mapping has changed since the handle was made, or is gone.
    MappingDoesNotExist,
    /// The key has no mapping.
    MappingNotFoundForKey,
    /// The key's mapping is offline.
    MappingIsOffline,
    /// Only an offline mapping can be deleted or moved.
    MappingIsNotOffline,
    /// The mapping is locked by another holder, or the lock of the caller has ended.
    MappingLockOwnerMismatch,
    /// The mapping is already locked.
    MappingAlreadyLocked,
    /// Transactions on keys that go offline could not be ended.
    MappingDrainFailure,
    /// The store could not be reached, or failed. Nothing was changed, or the change was undone.
    StorageOperationFailure,
    /// There is no note of this name.
    SchemaInfoNameDoesNotExist,
    /// There is already a note of this name.
    SchemaInfoNameConflict,
    /// The table is already in the note.
    TableInfoAlreadyPresent,
    /// An invalid argument, such as a key that is too long, a split key outside the mapping, or mappings that
    /// are not neighbours.
    InvalidArgument,
    /// The operation of another process is in the way. Its owner is still running, or the operation could be neither
    /// done nor undone until now.
    PendingOperation,
    /// The store holds something that this program never writes.
    Damaged,
}

impl Code {
    /// All codes.
    pub const ALL: [Self; 29] = [
        Self::StoreAlreadyExists,
        Self::StoreDoesNotExist,
        Self::StoreVersionMismatch,
        Self::ShardMapAlreadyExists,
        Self::ShardMapLookupFailure,
        Self::ShardMapDoesNotExist,
        Self::ShardMapHasShards,
        Self::ShardMapTypeConversion,
        Self::ShardLocationAlreadyExists,
        Self::ShardDoesNotExist,
        Self::ShardVersionMismatch,
        Self::ShardHasMappings,
        Self::ShardNotValid,
        Self::MappingPointAlreadyMapped,
        Self::MappingRangeAlreadyMapped,
        Self::MappingDoesNotExist,
        Self::MappingNotFoundForKey,
        Self::MappingIsOffline,
        Self::MappingIsNotOffline,
        Self::MappingLockOwnerMismatch,
        Self::MappingAlreadyLocked,
        Self::MappingDrainFailure,
        Self::StorageOperationFailure,
        Self::SchemaInfoNameDoesNotExist,
        Self::SchemaInfoNameConflict,
        Self::TableInfoAlreadyPresent,
        Self::InvalidArgument,
        Self::PendingOperation,
        Self::Damaged,
    ];

    /// Whether the same call may succeed later, without another handle or another argument.
    pub fn retry(self) -> bool {
        matches!(
            self,
            Self::MappingIsOffline
                | Self::MappingDrainFailure
                | Self::StorageOperationFailure
                | Self::PendingOperation
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl FromStr for Code {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|code| code.to_string() == text);
        found.ok_or_else(|| {
            Error::new(Category::General, Code::InvalidArgument, format!("{text:?} names no error code"))
        })
    }
}

/// What a failure of a database means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// There was no connection, and nothing was done.
    Unreachable,
    /// The connection broke. It is not known whether the last statement was done.
    Lost,
    /// Another transaction was in the way. This one was undone and may be tried again.
    Busy,
    /// Keys that already have a mapping were mapped again. A trigger found this, or the exclusion constraint of an earlier
    /// version.
    Overlap,
    /// Another row has the same name or location.
    Duplicate,
    /// The tables do not exist.
    NoSchema,
    /// An operation that another process has taken over wrote late, and was refused.
    Outrun,
    /// Transactions on keys that go offline or away did not end.
    NotDrained,
    /// The role has no right to do this.
    Denied,
    /// The database says that it is another shard than the one that was to be written or read.
    OtherShard,
    /// The local map is of another major version than this program writes.
    OtherVersion,
    /// A row that this program would never write.
    Damaged,
    /// Any other error of the database.
    Other,
}

/// An error of the shard map manager.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    category: Category,
    code: Code,
    message: String,
    failure: Option<Failure>,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(category: Category, code: Code, message: impl Into<String>) -> Self {
        Self { category, code, message: message.into(), failure: None, source: None }
    }

    pub(crate) fn because(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    pub(crate) fn failed_by(mut self, failure: Failure) -> Self {
        self.failure = Some(failure);
        self
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(Category::General, Code::InvalidArgument, message)
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new(Category::General, Code::Damaged, message)
    }

    /// The error for a change that the rules of maps refuse.
    pub(crate) fn refused(category: Category, key_type: ShardKeyType, refused: &ShardChangeRefused) -> Self {
        use ShardChangeRefused as Refused;
        let code = match refused {
            Refused::UnknownMapping { .. } => Code::MappingDoesNotExist,
            Refused::AlreadyMapped { .. } if category == Category::ListShardMap => {
                Code::MappingPointAlreadyMapped
            }
            Refused::AlreadyMapped { .. } => Code::MappingRangeAlreadyMapped,
            Refused::NotOffline { .. } => Code::MappingIsNotOffline,
            Refused::Locked { .. } | Refused::NotLocked { .. } => Code::MappingLockOwnerMismatch,
            Refused::AlreadyLocked { .. } => Code::MappingAlreadyLocked,
            Refused::NoKeys { .. }
            | Refused::NotARange
            | Refused::OutsideMapping { .. }
            | Refused::NotNeighbours { .. }
            | Refused::OtherShard { .. }
            | Refused::OtherStatus { .. }
            | Refused::NoToken => Code::InvalidArgument,
        };
        Self::new(category, code, refused.sentence(key_type))
    }

    /// The part that refused or failed.
    pub fn category(&self) -> Category {
        self.category
    }

    /// What is wrong.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What the failure of a database means; `None` if no database failed.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Whether the same call may succeed later: see [`Code::retry`].
    pub fn retry(&self) -> bool {
        self.code.retry()
    }
}

impl From<NotAKey> for Error {
    fn from(error: NotAKey) -> Self {
        Self::argument(error.to_string())
    }
}
