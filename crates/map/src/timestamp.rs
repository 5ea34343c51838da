use std::fmt;

/// A point in time in ticks of 100 ns since 1970-01-01T00:00:00Z, the resolution of Azure's entity timestamps
/// and ETags. Negative before 1970. 64 bits reach from the year -27258 to 31197; `Edm.DateTime` needs 1601 to
/// 9999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Ticks in a second.
    pub const TICKS_PER_SECOND: i64 = 10_000_000;
    /// Ticks in a microsecond.
    pub const TICKS_PER_US: i64 = 10;
    /// Ticks in a millisecond.
    pub const TICKS_PER_MS: i64 = 10_000;
    /// 1601-01-01T00:00:00Z, the least `Edm.DateTime` that Azure tables take.
    pub const MIN_DATE_TIME: Self = Self(-116_444_736_000_000_000);
    /// 9999-12-31T23:59:59.9999999Z, the greatest.
    pub const MAX_DATE_TIME: Self = Self(2_534_023_007_999_999_999);

    /// The time `ticks` of 100 ns after 1970, or before it if negative.
    pub const fn from_ticks(ticks: i64) -> Self {
        Self(ticks)
    }

    /// The time `seconds` after 1970, or before it if negative.
    pub const fn from_unix_seconds(seconds: i64) -> Self {
        Self(seconds * Self::TICKS_PER_SECOND)
    }

    /// Ticks of 100 ns since 1970.
    pub const fn ticks(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970, rounded down.
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(Self::TICKS_PER_SECOND)
    }

    /// The next time, 100 ns later.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The time `ticks` later, or earlier if negative. It stops at the ends of the type.
    pub const fn saturating_add(self, ticks: i64) -> Self {
        Self(self.0.saturating_add(ticks))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({})", self.0)
    }
}
