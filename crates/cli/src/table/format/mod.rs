//! Entities in files: Parquet, CSV with types, JSON Lines. `docs/design/0015-moving-tables.md` has the reasons.
//!
//! A file is written from a part that is in memory as a whole, so its names and types are known before the first row.
//! It is read row by row, because others make files of any size.

mod csv;
mod json_lines;
mod parquet;

use std::path::Path;

use anyhow::{Result, bail};
use clap::ValueEnum;
use rangehold_client::Entity;
use serde::{Deserialize, Serialize};

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Apache Parquet: a column for each name and type. Small, and read by pandas, Polars, DuckDB, Spark.
    Parquet,
    /// CSV with a type beside each value, as Storage Explorer writes and reads it.
    Csv,
    /// JSON Lines: one entity on each line, as the service writes it.
    Jsonl,
}

/// The entities of a file, in its order.
pub(crate) type Rows = Box<dyn Iterator<Item = Result<Entity>>>;

impl Format {
    /// The ending of the files' names.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
        }
    }

    /// The format of a file, by the ending of its name.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("parquet") => Ok(Self::Parquet),
            Some("csv") => Ok(Self::Csv),
            Some("jsonl" | "ndjson") => Ok(Self::Jsonl),
            _ => bail!(
                "{} is not a file to import: its name must end in .parquet, .csv or .jsonl",
                path.display()
            ),
        }
    }

    /// A file with these entities.
    pub(crate) fn write(self, entities: &[Entity]) -> Result<Vec<u8>> {
        match self {
            Self::Parquet => parquet::write(entities),
            Self::Csv => Ok(csv::write(entities)),
            Self::Jsonl => Ok(json_lines::write(entities)),
        }
    }

    /// The entities of a file. An error names the line or the row.
    pub(crate) fn read(self, path: &Path) -> Result<Rows> {
        match self {
            Self::Parquet => parquet::read(path),
            Self::Csv => csv::read(path),
            Self::Jsonl => json_lines::read(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use rangehold_client::moving::Fingerprint;
    use rangehold_client::{Binary, Guid, Timestamp};

    use super::*;

    /// Every type, names that have two types, properties that are absent, and texts that formats stumble over.
    fn entities() -> Vec<Entity> {
        let mut all: Vec<Entity> = (0..200)
            .map(|n| {
                Entity::new("p, \"q\"", format!("{n:04}")).with("N", n).with("L", i64::MIN + i64::from(n))
            })
            .collect();
        all.push(
            Entity::new("", "é日本")
                .with("Text", "two\r\nlines, \"quoted\"")
                .with("Empty", "")
                .with("N", "a text this time")
                .with("Whole", 5.0)
                .with("Odd", 0.1 + 0.2)
                .with("None", f64::NAN)
                .with("End", f64::NEG_INFINITY)
                .with("Yes", true)
                .with("Bytes", Binary(vec![0, 255, 10]))
                .with("NoBytes", Binary(Vec::new()))
                .with("Guid", Guid([0x1A; 16]))
                .with("First", Timestamp::MIN_DATE_TIME)
                .with("Last", Timestamp::MAX_DATE_TIME),
        );
        all.push(Entity::new("nothing", "but keys"));
        all
    }

    #[test]
    fn every_format_gives_back_what_it_got() {
        let directory = tempfile::tempdir().expect("a directory");
        for format in [Format::Parquet, Format::Csv, Format::Jsonl] {
            let path = directory.path().join(format!("file.{}", format.ending()));
            std::fs::write(&path, format.write(&entities()).expect("they can be written"))
                .expect("there is room");
            let found: Result<Vec<Entity>> =
                Format::of(&path).and_then(|format| format.read(&path)).and_then(Iterator::collect);
            let found = found.unwrap_or_else(|error| panic!("{format:?}: {error:#}"));
            let keys = |all: &[Entity]| all.iter().map(|entity| entity.keys.clone()).collect::<Vec<_>>();
            assert_eq!(keys(&found), keys(&entities()), "{format:?}");
            // Not by `==`, for which NaN is not itself.
            for (found, wanted) in found.iter().zip(&entities()) {
                assert_eq!(
                    Fingerprint::of([found]),
                    Fingerprint::of([wanted]),
                    "{format:?}: {found:?} {wanted:?}"
                );
            }
        }
    }
}
