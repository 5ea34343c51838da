//! What is promised of objects when the power fails: what acknowledged operations left, or that with the operation that came
//! next, whole; bytes that fit their checksums; generations that grow; and no chunk that nobody uses after an audit.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;

use super::promises::Promises;
use rangehold_testkit::load::Finding;
use rangehold_testkit::object_load::{ObjectLoad, left_over};
use rangehold_testkit::server::Server;

/// See the module.
pub(super) struct OfObjects<'a> {
    load: &'a ObjectLoad,
    /// The writer to which each answer was a promise. The number tells answers with the same id apart.
    promises: HashMap<(&'a str, usize), usize>,
    /// Answers so far with each id.
    told: HashMap<String, usize>,
    /// Promises of each writer that count.
    answered: Vec<usize>,
    /// Whether the bucket is promised: its creation is the first answer of all.
    has_bucket: bool,
}

impl<'a> OfObjects<'a> {
    pub(super) fn new(load: &'a ObjectLoad) -> Self {
        let answered = vec![0; load.writers()];
        Self { load, promises: load.answers(), told: HashMap::new(), answered, has_bucket: false }
    }
}

impl Promises for OfObjects<'_> {
    fn promise(&mut self, id: &str) {
        self.has_bucket = true;
        let told = self.told.entry(id.to_owned()).or_default();
        if let Some(writer) = self.promises.get(&(id, *told)) {
            self.answered[*writer] += 1;
        }
        *told += 1;
    }

    fn compare(&self, server: &Server, data: &Path) -> Result<Vec<Finding>> {
        if !self.has_bucket {
            return Ok(Vec::new());
        }
        let mut then = self.load.as_of(&self.answered);
        let mut findings = then.check(server.objects)?;
        then.remove_all(server.objects)?;
        findings.extend(left_over(&data.join("blobs"))?);
        Ok(findings)
    }
}
