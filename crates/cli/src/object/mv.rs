//! `rangehold object mv`: copies that remove their sources.
//!
//! In a bucket the service renames; a folder of a bucket with a hierarchical namespace as a whole. Elsewhere each source is removed as soon as its copy is complete and has the right checksum, so
//! a command that is killed has lost nothing, and goes on when it is run again.

use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;

use super::cp::{Engine, How, carry_out, jobs};
use super::place::{Place, place};
use super::rename::rename;
use super::report::{Ended, Report};
use super::service::{Kind, ServiceFlags};

/// `rangehold object mv`
#[derive(Debug, Args)]
pub(super) struct Mv {
    /// What to move, and last the target: files, gs://BUCKET/NAME, patterns with * ** ?. A target that ends in / is a folder.
    #[arg(required = true, num_args = 2.., value_name = "PLACE")]
    places: Vec<String>,
    #[command(flatten)]
    how: How,
}

/// Moves.
pub(super) async fn run(service: &ServiceFlags, Mv { places, how }: &Mv) -> Result<()> {
    let mut places = places.iter().map(|text| place(text)).collect::<Result<Vec<_>>>()?;
    if places.contains(&Place::Pipe) {
        bail!("- cannot be moved; copy it with cp");
    }
    let target = places.pop().expect("there are at least two");
    if places.contains(&target) {
        bail!("the source and the target are the same");
    }
    let (storage, gate) = service.open(Kind::Writes)?;
    let mut report = Report::new(service.output, "moved", places.len());
    let engine = Arc::new(Engine { moves: true, ..how.engine(gate, &report) });
    for source in &places {
        if how.recursive
            && let Some(renamed) = rename(&storage, &engine.gate, source, &target, places.len() > 1).await?
        {
            report.needs_no_listing();
            report.say(&renamed);
            report.count(Ended::Done(0));
            continue;
        }
        let jobs = jobs(&storage, source, &target, how.recursive, places.len() > 1).await?;
        carry_out(&engine, jobs, &mut report).await?;
    }
    report.end("no file and no object matches")
}
