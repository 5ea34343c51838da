//! The types of shard keys, and what each allows in bytes.

use std::str::FromStr;

use strum::{Display, IntoStaticStr, VariantArray};

use crate::range::NotAnId;

/// The type of all keys of one shard map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum ShardKeyType {
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// 128 bits, in the order of SQL Server's `uniqueidentifier`.
    Guid,
    /// 128 bits, in the order of RFC 9562, which is that of PostgreSQL's `uuid`: by the bytes as they are written. New
    /// time-ordered ids (version 7) are the greatest.
    Uuid,
    /// At most [`BINARY_BYTES_MAX`] bytes; zero bytes at the end do not count.
    Binary,
    /// A date and time without a zone, to 100 ns, in the years 1 to 9999.
    DateTime,
    /// A signed span of time, to 100 ns.
    TimeSpan,
    /// A point in time with an offset. The offset is not part of the key: two spellings of one instant are
    /// one key.
    DateTimeOffset,
    /// Text of at most [`TEXT_BYTES_MAX`] bytes, in the order of its code points.
    Text,
}

/// The most bytes of a binary key, as in the elastic database library.
pub const BINARY_BYTES_MAX: usize = 128;
/// The most bytes of a text key, in UTF-8. The key after the longest one may have one more.
pub const TEXT_BYTES_MAX: usize = 128;

impl ShardKeyType {
    /// All of them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its name in databases and on the command line, such as `date-time`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// How many bytes each key has, except the least one, which has none. `None` if keys differ in length.
    pub(super) fn width(self) -> Option<usize> {
        match self {
            Self::Int32 => Some(4),
            Self::Int64 | Self::DateTime | Self::TimeSpan => Some(8),
            Self::Guid | Self::Uuid | Self::DateTimeOffset => Some(16),
            Self::Binary | Self::Text => None,
        }
    }

    /// The bytes of the least value.
    pub(super) fn least_written(self) -> &'static [u8] {
        /// Zero ticks with offset zero: the first instant of the year 1.
        const FIRST_INSTANT: [u8; 16] = [0x80, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0];
        match self {
            Self::DateTime => &FIRST_INSTANT[..8],
            Self::DateTimeOffset => &FIRST_INSTANT,
            Self::Int32 => &[0; 4],
            Self::Int64 | Self::TimeSpan => &[0; 8],
            Self::Guid | Self::Uuid => &[0; 16],
            Self::Binary | Self::Text => &[],
        }
    }
}

/// Reads a name, as [`ShardKeyType::name`] gives it.
impl FromStr for ShardKeyType {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().copied().find(|kind| kind.name() == text);
        found.ok_or_else(|| NotAnId { text: text.to_owned(), what: "key type", example: "int64" })
    }
}
