//! Where keys come from: two templates, or a list. Pure.
//!
//! Keys are those of *registrations*. A registration has a number and one or more entities, the rows of one partition: a
//! club registers its runners in one batch.

use anyhow::{Context, Result, bail};
use rangehold_client::Keys;

use super::template::{Fields, Template};
use crate::stress::limits::KEY_LINES_MAX;

/// What gives each number its keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum KeySource {
    /// By templates.
    Templates {
        /// Of the PartitionKey.
        partition: Template,
        /// Of the RowKey.
        row: Template,
    },
    /// One after the other from a list, and again from its beginning. It is not empty.
    Listed(Vec<Keys>),
}

impl KeySource {
    /// The keys of a file: on each line a PartitionKey and a RowKey, with a comma or a tab between them.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let mut keys = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let parts = line.split_once('\t').or_else(|| line.split_once(','));
            let (partition, row) = parts.with_context(|| {
                format!(
                    "line {} of the keys, {line:?}, has neither a comma nor a tab between two keys",
                    at + 1
                )
            })?;
            keys.push(Keys::new(partition.trim(), row.trim()));
        }
        match keys.len() {
            0 => bail!("the file of keys is empty"),
            1..=KEY_LINES_MAX => Ok(Self::Listed(keys)),
            lines => bail!("the file of keys has {lines} lines, and {KEY_LINES_MAX} is the limit"),
        }
    }

    /// The PartitionKey of a registration.
    pub(crate) fn partition(&self, number: u64) -> String {
        match self {
            Self::Templates { partition, .. } => partition.fill(&Fields { number, ..Fields::default() }),
            Self::Listed(keys) => listed(keys, number).partition_key.clone(),
        }
    }

    /// The keys of one entity of a registration. Rows after the first have their number behind a listed RowKey.
    pub(crate) fn keys(&self, number: u64, row: u32) -> Keys {
        match self {
            Self::Templates { partition, row: template } => {
                let fields = Fields { number, row, ..Fields::default() };
                Keys::new(partition.fill(&fields), template.fill(&fields))
            }
            Self::Listed(keys) => {
                let keys = listed(keys, number);
                match row {
                    0 => keys.clone(),
                    row => Keys::new(&keys.partition_key, format!("{}-{row:02}", keys.row_key)),
                }
            }
        }
    }

    /// Whether two registrations may have the same keys, so that an insert may find an entity.
    pub(crate) fn repeats(&self) -> bool {
        matches!(self, Self::Listed(_))
    }
}

fn listed(keys: &[Keys], number: u64) -> &Keys {
    &keys[(number % keys.len() as u64) as usize]
}
