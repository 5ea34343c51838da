//! A plan as a file of TOML. Pure.
//!
//! ```toml
//! about = "registrations for a marathon"
//! load = 10000              # entities that are in the target partition before the peak
//! entity-bytes = 200        # text in each entity
//!
//! [keys]
//! partition = "{any:Full,Half}"
//! row = "{number}-{row}"
//!
//! [[request]]
//! name = "a club registers its runners"
//! do = "batch"              # insert, update, delete, batch, get or query
//! rows = 20                 # of a batch
//! per-second = 100.0
//! within-ms = 100
//! ```

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::source::KeySource;
use super::template::{Template, Use};
use super::{Act, Kind, Plan};
use crate::stress::limits::{KINDS_MAX, LOADED_MAX, REQUESTS_PER_SECOND_MAX};

/// Rows of a batch, which the service limits too.
const ROWS_MAX: u32 = 100;
/// Entities that one query asks for, which is also a page of the service.
const TOP_MAX: u32 = 1000;
/// Bytes of text in an entity: what one property may have.
const ENTITY_BYTES_MAX: u32 = 32 * 1024;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PlanFile {
    #[serde(default)]
    about: String,
    #[serde(default)]
    load: u64,
    #[serde(default)]
    entity_bytes: u32,
    keys: KeysPart,
    request: Vec<RequestPart>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct KeysPart {
    partition: Option<String>,
    row: Option<String>,
    /// Read by the command, not here.
    file: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RequestPart {
    name: String,
    r#do: Verb,
    per_second: f64,
    within_ms: u64,
    rows: Option<u32>,
    filter: Option<String>,
    top: Option<u32>,
    entities: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Verb {
    Insert,
    Update,
    Delete,
    Batch,
    Get,
    Query,
}

impl PlanFile {
    /// Reads the text of a plan.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Ok(toml::from_str(text)?)
    }

    /// The file of keys that the plan names.
    pub(crate) fn key_file(&self) -> Option<&PathBuf> {
        self.keys.file.as_ref()
    }

    /// The plan; `listed` are the keys of the file, if there is one. Fails with what is wrong, and what to write.
    pub(crate) fn plan(&self, name: &str, listed: Option<KeySource>) -> Result<Plan> {
        let keys = match (listed, &self.keys.partition, &self.keys.row) {
            (Some(listed), None, None) => listed,
            (None, Some(partition), Some(row)) => KeySource::Templates {
                partition: Template::parse(partition, Use::Partition)?,
                row: Template::parse(row, Use::Row)?,
            },
            _ => bail!("[keys] has either partition and row, two templates, or file"),
        };
        if !(1..=KINDS_MAX).contains(&self.request.len()) {
            bail!("a plan has 1 to {KINDS_MAX} parts [[request]], and not {}", self.request.len());
        }
        if self.load > LOADED_MAX || self.entity_bytes > ENTITY_BYTES_MAX {
            bail!("load is at most {LOADED_MAX} entities, and entity-bytes at most {ENTITY_BYTES_MAX}");
        }
        let kinds: Result<Vec<Kind>> = self.request.iter().map(RequestPart::kind).collect();
        let kinds = kinds?;
        let is_nothing = |kind: &Kind| !matches!(kind.act, Act::Insert | Act::Batch { .. });
        if self.load == 0 && kinds.iter().all(is_nothing) {
            bail!("the plan reads or changes entities, and makes none: give load = 1000, or an insert");
        }
        let (about, load, entity_bytes) = (self.about.clone(), self.load, self.entity_bytes as usize);
        let plan = Plan { name: name.to_owned(), about, load, entity_bytes, keys, kinds };
        plan.check_rate()?;
        Ok(plan)
    }
}

impl RequestPart {
    fn kind(&self) -> Result<Kind> {
        self.act()
            .and_then(|act| {
                if !(self.per_second > 0.0 && self.per_second <= REQUESTS_PER_SECOND_MAX) {
                    bail!(
                        "per-second is {}: give more than 0, at most {REQUESTS_PER_SECOND_MAX}",
                        self.per_second
                    );
                }
                if self.within_ms == 0 {
                    bail!(
                        "within-ms is 0: give the response time that is wanted, from the moment of the wish"
                    );
                }
                let within = Duration::from_millis(self.within_ms);
                Ok(Kind { name: self.name.clone(), act, per_second: self.per_second, within })
            })
            .with_context(|| format!("the request {:?}", self.name))
    }

    fn act(&self) -> Result<Act> {
        let of_query = self.filter.is_some() || self.top.is_some() || self.entities.is_some();
        if self.r#do != Verb::Query && of_query {
            bail!("only a query has filter, top and entities");
        }
        if self.r#do != Verb::Batch && self.rows.is_some() {
            bail!("only a batch has rows");
        }
        let between = |name: &str, given: Option<u32>, most: u32| match given {
            Some(number) if (1..=most).contains(&number) => Ok(number),
            _ => bail!("give {name}, from 1 to {most}"),
        };
        Ok(match self.r#do {
            Verb::Insert => Act::Insert,
            Verb::Update => Act::Update,
            Verb::Delete => Act::Delete,
            Verb::Get => Act::Get,
            Verb::Batch => Act::Batch { rows: between("rows", self.rows, ROWS_MAX)? },
            Verb::Query => {
                let filter = self.filter.as_deref().context("a query has a filter")?;
                let top = between("top", self.top.or(Some(100)), TOP_MAX)?;
                let entities = between("entities (about what the query returns)", self.entities, TOP_MAX)?;
                Act::Query { filter: Template::parse(filter, Use::Filter)?, top, entities }
            }
        })
    }
}
