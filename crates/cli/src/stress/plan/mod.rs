//! What a stress test does: the peak that somebody expects. Pure.
//!
//! A plan has keys, and kinds of requests. Each kind has a rate and a wanted response time. Rates are those of
//! *wishes*: people register whether the service is fast or not, so a slow answer never makes the next request later.

mod file;
mod source;
mod target;
mod template;

use std::time::Duration;

use anyhow::{Result, bail};

pub(crate) use file::PlanFile;
pub(crate) use source::KeySource;
pub(crate) use target::Target;
pub(crate) use template::{Fields, Template};

use super::limits::REQUESTS_PER_SECOND_MAX;

/// A stress test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    /// The name of the design or of the file.
    pub(crate) name: String,
    /// What it stands for, in a sentence.
    pub(crate) about: String,
    /// Entities of the target partition that are there before the peak.
    pub(crate) load: u64,
    /// Bytes of text in each entity.
    pub(crate) entity_bytes: usize,
    pub(crate) keys: KeySource,
    /// At least one.
    pub(crate) kinds: Vec<Kind>,
}

/// Requests of one sort.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) act: Act,
    /// Wishes a second.
    pub(crate) per_second: f64,
    /// The response time that is wanted, from the moment of the wish.
    pub(crate) within: Duration,
}

/// What a request does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Act {
    /// Makes one entity of a new registration.
    Insert,
    /// Changes an entity that exists.
    Update,
    /// Removes an entity that exists.
    Delete,
    /// Makes a new registration with so many entities.
    Batch {
        /// Entities.
        rows: u32,
    },
    /// Reads an entity that exists.
    Get,
    /// Reads several.
    Query {
        /// Which, by an entity that exists.
        filter: Template,
        /// At most so many for each prefix.
        top: u32,
        /// About so many are expected.
        entities: u32,
    },
}

impl Act {
    /// Entities that one request writes or reads, about.
    pub(crate) fn entities(&self) -> u32 {
        match self {
            Self::Batch { rows } => *rows,
            Self::Query { entities, .. } => *entities,
            _ => 1,
        }
    }

    /// Whether it writes.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self, Self::Get | Self::Query { .. })
    }

    /// Requests that it takes: a query that asks each prefix takes one for each.
    pub(crate) fn requests(&self) -> u32 {
        match self {
            Self::Query { filter, .. } => filter.each().map_or(1, |digits| 16_u32.pow(digits as u32)),
            _ => 1,
        }
    }
}

impl Plan {
    /// Entities a second that the peak asks for.
    pub(crate) fn entities_per_second(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.per_second * f64::from(kind.act.entities())).sum()
    }

    /// The same peak, so much larger or smaller that it asks for `rate` entities a second.
    pub(crate) fn scaled_to(mut self, rate: f64) -> Result<Self> {
        if !(rate > 0.0 && rate.is_finite()) {
            bail!("a rate of {rate} entities a second is not one");
        }
        let factor = rate / self.entities_per_second();
        for kind in &mut self.kinds {
            kind.per_second *= factor;
        }
        self.check_rate()?;
        Ok(self)
    }

    fn check_rate(&self) -> Result<()> {
        let of = |kind: &Kind| kind.per_second * f64::from(kind.act.requests());
        let requests: f64 = self.kinds.iter().map(of).sum();
        if requests > REQUESTS_PER_SECOND_MAX {
            bail!(
                "the plan asks for {requests:.0} requests a second, and {REQUESTS_PER_SECOND_MAX} is the limit"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        load = 10
        [keys]
        partition = "{any:Full,Half}"
        row = "{number}-{row}"
        [[request]]
        name = "register"
        do = "batch"
        rows = 20
        per-second = 100
        within-ms = 100
        [[request]]
        name = "in order"
        do = "query"
        filter = "PartitionKey ge '{each:1}-{number}'"
        entities = 50
        per-second = 2.0
        within-ms = 500
    "#;

    fn plan(text: &str) -> Result<Plan> {
        PlanFile::parse(text)?.plan("test", None)
    }

    #[test]
    fn a_plan_is_read_and_scaled_by_its_entities() {
        let read = plan(PLAN).unwrap();
        assert_eq!(read.entities_per_second(), 2_100.0);
        assert_eq!(read.kinds[1].act.requests(), 16);
        let scaled = read.scaled_to(4_200.0).unwrap();
        assert_eq!((scaled.kinds[0].per_second, scaled.kinds[1].per_second), (200.0, 4.0));
        assert!(scaled.clone().scaled_to(0.0).is_err());
        assert!(scaled.scaled_to(1e9).unwrap_err().to_string().contains("the limit"));
    }

    #[test]
    fn a_wrong_plan_is_refused_with_the_request_and_the_remedy() {
        for (from, to, word) in [
            ("rows = 20", "rows = 101", "from 1 to 100"),
            ("rows = 20", "", "\"register\""),
            ("per-second = 100", "per-second = 0", "more than 0"),
            ("within-ms = 100", "within-ms = 0", "wanted"),
            ("within-ms = 100", "within = 100", "within"),
            ("do = \"batch\"", "do = \"get\"", "only a batch has rows"),
            ("partition = \"{any:Full,Half}\"", "", "either"),
            ("entities = 50", "", "entities"),
            ("do = \"batch\"", "do = \"bath\"", "bath"),
        ] {
            assert!(PLAN.contains(from), "{from}");
            let why = format!("{:#}", plan(&PLAN.replacen(from, to, 1)).unwrap_err());
            assert!(why.contains(word), "{from} -> {to}: {why}");
        }
    }

    #[test]
    fn keys_of_a_file_are_taken_again_from_the_beginning() {
        let keys = KeySource::read("p,a\n\np\tb\n").unwrap();
        let rows: Vec<String> = (0..3).map(|number| keys.keys(number, 0).row_key).collect();
        assert_eq!((rows.join(" "), keys.keys(1, 3).row_key), ("a b a".to_owned(), "b-03".to_owned()));
        assert!(KeySource::read("alone").unwrap_err().to_string().contains("line 1"));
    }
}
