//! The settings of buckets that have flags, and their form in the JSON API.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};

/// What can be set for a bucket.
#[derive(Debug, Args)]
pub(super) struct Settings {
    /// The storage class of new objects: STANDARD, NEARLINE, COLDLINE or ARCHIVE.
    #[arg(short = 'c', long, value_name = "CLASS")]
    default_storage_class: Option<String>,
    /// Keep older generations of objects.
    #[arg(long, overrides_with = "no_versioning")]
    versioning: bool,
    /// Do not keep older generations any more.
    #[arg(long)]
    no_versioning: bool,
    /// Permissions by the bucket's policy alone, and not by lists of single objects.
    #[arg(long, overrides_with = "no_uniform_bucket_level_access")]
    uniform_bucket_level_access: bool,
    /// Permissions by lists of single objects too.
    #[arg(long)]
    no_uniform_bucket_level_access: bool,
    /// How long deleted objects can be restored, in seconds; 0 for not at all.
    #[arg(long, value_name = "SECONDS")]
    soft_delete_duration: Option<u64>,
    /// Labels, to be added or changed.
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = label)]
    update_labels: Vec<(String, String)>,
    /// Labels, to be removed.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    remove_labels: Vec<String>,
    /// A JSON file with lifecycle rules: {"rule": [{"action": ..., "condition": ...}]}.
    #[arg(long, value_name = "FILE")]
    lifecycle_file: Option<PathBuf>,
}

fn label(text: &str) -> Result<(String, String), String> {
    let pair =
        text.split_once('=').ok_or_else(|| format!("{text:?} is not a label: write it as NAME=VALUE"))?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

impl Settings {
    /// Those that were given, as a body of the JSON API.
    pub(super) fn body(&self) -> Result<Value> {
        let mut body = json!({});
        if let Some(class) = &self.default_storage_class {
            body["storageClass"] = class.to_uppercase().into();
        }
        if self.versioning || self.no_versioning {
            body["versioning"] = json!({ "enabled": self.versioning });
        }
        if self.uniform_bucket_level_access || self.no_uniform_bucket_level_access {
            let enabled = self.uniform_bucket_level_access;
            body["iamConfiguration"] = json!({ "uniformBucketLevelAccess": { "enabled": enabled } });
        }
        if let Some(seconds) = self.soft_delete_duration {
            body["softDeletePolicy"] = json!({ "retentionDurationSeconds": seconds.to_string() });
        }
        for (name, value) in &self.update_labels {
            body["labels"][name] = value.as_str().into();
        }
        for name in &self.remove_labels {
            body["labels"][name] = Value::Null;
        }
        if let Some(file) = &self.lifecycle_file {
            let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            let rules: Value =
                serde_json::from_slice(&text).with_context(|| format!("{} is not JSON", file.display()))?;
            // gcloud's files have the rules alone, or below "lifecycle".
            body["lifecycle"] = rules.get("lifecycle").cloned().unwrap_or(rules);
        }
        Ok(body)
    }
}
