//! The example of the cloud's documents: registrations for a marathon, with four choices of the PartitionKey.
//!
//! The peak is the same in all four, an evening on which registration opens; only keys and the one range query differ.

use anyhow::Result;
use clap::ValueEnum;

use super::plan::{Plan, PlanFile};

/// A choice of the PartitionKey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Design {
    /// One value for all registrations.
    OneValue,
    /// The event and the distance.
    EventDistance,
    /// The registration's number, which grows.
    Number,
    /// The number behind one digit of its hash.
    HashedNumber,
}

impl Design {
    /// The plan as a file, from which a plan of one's own can begin.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::OneValue => include_str!("designs/one-value.toml"),
            Self::EventDistance => include_str!("designs/event-distance.toml"),
            Self::Number => include_str!("designs/number.toml"),
            Self::HashedNumber => include_str!("designs/hashed-number.toml"),
        }
    }

    /// The name, as the command line has it.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The plan.
    pub(crate) fn plan(self) -> Result<Plan> {
        PlanFile::parse(self.text())?.plan(&self.name(), None)
    }
}
