//! `rangehold object stat`

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;

use super::place::cloud;
use super::service::{Form, Kind, ServiceFlags};

/// `rangehold object stat`
#[derive(Debug, Args)]
pub(super) struct Stat {
    /// Objects, such as gs://BUCKET/NAME or gs://BUCKET/NAME#GENERATION.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
}

/// Shows what the service says about objects.
pub(super) async fn run(service: &ServiceFlags, stat: &Stat) -> Result<()> {
    let (storage, _) = service.open(Kind::Reads)?;
    for url in &stat.urls {
        let place = cloud(url)?;
        let described = storage.bucket(&place.bucket)?.describe(&place.name, place.generation).await;
        let described = described.with_context(|| url.clone())?;
        let described = described.with_context(|| format!("there is no object {url}"))?;
        match service.output {
            Form::Json => println!("{described:#}"),
            Form::Table => print!("{place}\n{}", fields(&described)),
        }
    }
    Ok(())
}

/// The fields of a resource without its links, one on each line.
pub(crate) fn fields(resource: &Value) -> String {
    let fields = resource.as_object().into_iter().flatten().filter(|(name, _)| !name.ends_with("Link"));
    let fields: Vec<(&String, String)> = fields
        .map(|(name, value)| (name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    fields.iter().map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
}
