//! `rangehold object cp`
//!
//! `entry` is a file or an object, `join` compares two sorted lists of them, `copy` carries copies out for an `engine`, `up` and `down`
//! are its two ends, `sessions` remembers uploads, and `source` finds what the arguments mean.

mod copy;
mod down;
mod engine;
mod entry;
mod join;
mod sessions;
mod source;
mod up;

use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use rangehold_client::bulk::Gate;

pub(super) use copy::carry_out;
pub(super) use engine::{Engine, Existing, Job, To};
pub(super) use entry::{Body, Entry, files_below, objects_below};
pub(super) use join::{Pair, join};
pub(super) use sessions::folder as sessions_folder;
pub(super) use source::{jobs, name_of_folder};

use super::limits::{AT_ONCE, AT_ONCE_MAX};
use super::place::{Place, place};
use super::report::{Ended, Report};
use super::service::{Kind, ServiceFlags};
use std::io::Write;

/// `rangehold object cp`
#[derive(Debug, Args)]
pub(super) struct Cp {
    /// What to copy, and last the target: files, gs://BUCKET/NAME, patterns with * ** ? or - for standard input and output. A
    /// target that ends in / is a folder.
    #[arg(required = true, num_args = 2.., value_name = "PLACE")]
    places: Vec<String>,
    #[command(flatten)]
    how: How,
}

/// How copies are made.
#[derive(Debug, Clone, Args)]
pub(super) struct How {
    /// Folders with all that is below them.
    #[arg(short, long, visible_short_alias = 'R')]
    pub(super) recursive: bool,
    /// Leave targets alone that exist.
    #[arg(short, long)]
    pub(super) no_clobber: bool,
    /// Go on after a failure; the command still fails at its end.
    #[arg(short, long)]
    pub(super) continue_on_error: bool,
    /// Copies at the same time.
    #[arg(long, value_name = "N", default_value_t = AT_ONCE as u16, value_parser = clap::value_parser!(u16).range(1..=i64::from(AT_ONCE_MAX)))]
    pub(super) parallel: u16,
    /// The media type of the objects [default: by the ending of the name]
    #[arg(long, value_name = "TYPE")]
    pub(super) content_type: Option<String>,
}

impl How {
    /// The engine of these copies.
    pub(super) fn engine(&self, gate: Gate, report: &Report) -> Engine {
        Engine {
            no_clobber: self.no_clobber,
            continue_on_error: self.continue_on_error,
            content_type: self.content_type.clone(),
            sessions: sessions_folder(),
            ..Engine::new(gate, report.flow(), self.parallel.into())
        }
    }
}

/// Copies.
pub(super) async fn run(service: &ServiceFlags, Cp { places, how }: &Cp) -> Result<()> {
    let mut places = places.iter().map(|text| place(text)).collect::<Result<Vec<_>>>()?;
    let target = places.pop().expect("there are at least two");
    let kind = if matches!(target, Place::Cloud(_)) { Kind::Writes } else { Kind::Reads };
    let (storage, gate) = service.open(kind)?;
    let is_listed = !places.contains(&Place::Pipe);
    let mut report = Report::new(service.output, "copied", if is_listed { places.len() } else { 0 });
    let engine = Arc::new(how.engine(gate, &report));
    match (&places[..], &target) {
        ([Place::Pipe], Place::Cloud(to)) => {
            let object = up::upload_input(&engine, &storage.bucket(&to.bucket)?, &to.name).await?;
            report.count(Ended::Done(object.size));
        }
        ([Place::Cloud(from)], Place::Pipe) => {
            let mut download = storage.bucket(&from.bucket)?.download(&from.name, from.generation)?;
            while let Some(piece) = download.next().await? {
                std::io::stdout().write_all(&piece)?;
            }
            return Ok(std::io::stdout().flush()?);
        }
        (sources, _) if sources.contains(&Place::Pipe) => {
            bail!("- stands for one object, and not among others")
        }
        (sources, target) => {
            for (at, source) in sources.iter().enumerate() {
                if at > 0 && engine.stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                let jobs = jobs(&storage, source, target, how.recursive, sources.len() > 1).await?;
                carry_out(&engine, jobs, &mut report).await?;
            }
        }
    }
    report.end("no file and no object matches")
}
