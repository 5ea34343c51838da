//! The three resolutions in time.

/// How long the columns of a kind last, and how long they are kept. The finest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// One second; in memory alone.
    Second,
    /// Ten seconds.
    Ten,
    /// A minute.
    Minute,
}

impl Tier {
    /// All, the finest first.
    pub const ALL: [Self; 3] = [Self::Second, Self::Ten, Self::Minute];

    /// Length of a column, in seconds.
    pub const fn step(self) -> i64 {
        match self {
            Self::Second => 1,
            Self::Ten => 10,
            Self::Minute => 60,
        }
    }

    /// How long a column is kept if there is room, in seconds.
    pub const fn term(self) -> i64 {
        match self {
            Self::Second => 10 * 60,
            Self::Ten => 6 * 3600,
            Self::Minute => 7 * 86_400,
        }
    }

    /// Seconds after which a segment is closed: about a thirtieth of the term, so that what is too
    /// old goes in small pieces.
    pub const fn segment_span(self) -> i64 {
        match self {
            Self::Second => 20,
            Self::Ten => 15 * 60,
            Self::Minute => 6 * 3600,
        }
    }

    /// Where the column that holds the second `at` (since 1970) begins.
    pub const fn begin(self, at: i64) -> i64 {
        at - at.rem_euclid(self.step())
    }

    /// The tier with steps of so many seconds.
    pub fn of_step(step: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.step() == step)
    }

    /// The coarsest tier whose columns fit into steps of `step` seconds (at least one) without a rest.
    pub fn within(step: i64) -> Self {
        let fitting = Self::ALL.into_iter().rev().find(|tier| step % tier.step() == 0);
        fitting.unwrap_or(Self::Second)
    }
}
