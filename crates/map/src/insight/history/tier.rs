//! The three resolutions of the history in time.

/// The length of columns, which decides how long they are kept. The finest tier comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// One second. Kept in memory only.
    Second,
    /// Ten seconds.
    Ten,
    /// One minute.
    Minute,
}

impl Tier {
    /// All tiers, the finest first.
    pub const ALL: [Self; 3] = [Self::Second, Self::Ten, Self::Minute];

    /// The length of a column, in seconds.
    pub const fn step(self) -> i64 {
        match self {
            Self::Second => 1,
            Self::Ten => 10,
            Self::Minute => 60,
        }
    }

    /// How long a column is kept at most, in seconds.
    pub const fn term(self) -> i64 {
        match self {
            Self::Second => 10 * 60,
            Self::Ten => 6 * 3600,
            Self::Minute => 7 * 86_400,
        }
    }

    /// The time that a segment covers, in seconds: about a thirtieth of the term, so that old columns are
    /// deleted in small pieces.
    pub const fn segment_span(self) -> i64 {
        match self {
            Self::Second => 20,
            Self::Ten => 15 * 60,
            Self::Minute => 6 * 3600,
        }
    }

    /// When the column that holds the second `at` begins. Both are in seconds since 1970.
    pub const fn begin(self, at: i64) -> i64 {
        at - at.rem_euclid(self.step())
    }

    /// The tier whose columns have this length, in seconds.
    pub fn of_step(step: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.step() == step)
    }

    /// The coarsest tier whose length divides `step`, which is in seconds and at least 1.
    pub fn within(step: i64) -> Self {
        let fitting = Self::ALL.into_iter().rev().find(|tier| step % tier.step() == 0);
        fitting.unwrap_or(Self::Second)
    }
}
