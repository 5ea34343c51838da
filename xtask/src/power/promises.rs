//! What a load was promised, of tables or of objects.

use std::path::Path;

use anyhow::Result;
use rangehold_testkit::load::Finding;
use rangehold_testkit::server::Server;

/// What was promised up to the moment that the walk has reached, and how it is compared with what a server holds.
pub(super) trait Promises {
    /// Takes an answer into account.
    fn promise(&mut self, id: &str);

    /// Compares with what the server on this data directory holds; an error says that it cannot be read.
    fn compare(&self, server: &Server, data: &Path) -> Result<Vec<Finding>>;
}
