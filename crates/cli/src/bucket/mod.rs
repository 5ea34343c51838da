//! `rangehold bucket`: makes, shows, changes and deletes buckets and the folders of those that have some, and shows what
//! buckets bear.

mod folders;
mod rates;
mod settings;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use futures::TryStreamExt;
use rangehold_client::object::{BucketInfo, Storage};
use serde_json::{Value, json};

use self::folders::Folders;
use self::rates::RatesFlags;
use self::settings::Settings;
use crate::object::cloud;
use crate::object::fields;
use crate::object::service::{Form, Kind, ServiceFlags, block_on};
use crate::text_table::text_table;

/// `rangehold bucket`
#[derive(Debug, Args)]
pub(crate) struct BucketCommands {
    #[command(flatten)]
    service: ServiceFlags,
    /// The project of the buckets. Only Google's service needs a true one.
    #[arg(long, env = "GOOGLE_CLOUD_PROJECT", value_name = "PROJECT", global = true)]
    project: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make buckets.
    Create {
        /// Buckets, such as gs://BUCKET.
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
        /// Where the bytes are to be [default: the service's]
        #[arg(short, long, value_name = "LOCATION")]
        location: Option<String>,
        /// Folders are resources of their own: they can be empty, and are renamed with all that lies in them in one change. Needs
        /// uniform access, which this turns on.
        #[arg(long, conflicts_with = "no_uniform_bucket_level_access")]
        enable_hierarchical_namespace: bool,
        #[command(flatten)]
        settings: Settings,
    },
    /// List the buckets of the project.
    List,
    /// Show the settings of buckets.
    Describe {
        /// Buckets, such as gs://BUCKET.
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
    },
    /// Change the settings of buckets.
    Update {
        /// Buckets, such as gs://BUCKET.
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Show what a bucket of a running server of Rangehold bears, which parts of its names grow, and which names scale. Asks the
    /// admin endpoint; the server needs --profile cloud.
    Rates(RatesFlags),
    /// Delete empty buckets. `rangehold object rm --recursive` deletes a bucket with its objects.
    Delete {
        /// Buckets, such as gs://BUCKET.
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
    },
    /// Make, list, rename and delete the folders of buckets with a hierarchical namespace.
    #[command(subcommand)]
    Folders(Folders),
}

/// Runs a command.
pub(crate) fn run(commands: BucketCommands) -> Result<()> {
    let BucketCommands { service, project, command } = commands;
    let (storage, _) = service.open(Kind::Reads)?;
    block_on(async {
        match command {
            Command::Create { urls, location, enable_hierarchical_namespace, settings } => {
                let project = service.project(project.as_deref())?;
                let mut body = settings.body()?;
                if enable_hierarchical_namespace {
                    body["hierarchicalNamespace"] = json!({ "enabled": true });
                    body["iamConfiguration"] = json!({ "uniformBucketLevelAccess": { "enabled": true } });
                }
                if let Some(location) = location {
                    body["location"] = location.into();
                }
                for name in names(&urls)? {
                    let made =
                        storage.create_bucket(&project, &name, &body).await.with_context(|| url(&name))?;
                    say(&service, "created", &made);
                }
            }
            Command::List => list(&storage, &service, &service.project(project.as_deref())?).await?,
            Command::Describe { urls } => {
                for name in names(&urls)? {
                    let found = storage.describe_bucket(&name).await.with_context(|| url(&name))?;
                    match service.output {
                        Form::Json => println!("{:#}", found.json),
                        Form::Table => print!("{}\n{}", url(&name), fields(&found.json)),
                    }
                }
            }
            Command::Update { urls, settings } => {
                for name in names(&urls)? {
                    let changed = update(&storage, &name, &settings).await.with_context(|| url(&name))?;
                    say(&service, "changed", &changed);
                }
            }
            Command::Rates(rates) => {
                rates.show(&bucket(&rates.url)?, service.output)?;
            }
            Command::Delete { urls } => {
                for name in names(&urls)? {
                    storage.delete_bucket(&name).await.with_context(|| url(&name))?;
                    match service.output {
                        Form::Json => println!("{}", json!({ "deleted": name })),
                        Form::Table => println!("deleted {}", url(&name)),
                    }
                }
            }
            Command::Folders(command) => folders::run(&storage, service.output, command).await?,
        }
        Ok(())
    })
}

fn url(name: &str) -> String {
    format!("gs://{name}")
}

/// The buckets that are named, without anything in them.
fn names(urls: &[String]) -> Result<Vec<String>> {
    urls.iter().map(|url| bucket(url)).collect()
}

fn bucket(url: &str) -> Result<String> {
    let place = cloud(url)?;
    if place.bucket.is_empty() || !place.name.is_empty() {
        bail!("{url} is not a bucket: write it as gs://BUCKET");
    }
    Ok(place.bucket)
}

/// Changes settings, if nobody else changed them since they were read.
async fn update(storage: &Storage, name: &str, settings: &Settings) -> Result<BucketInfo> {
    let changes = settings.body()?;
    if changes == json!({}) {
        bail!("nothing to change; see --help for the settings");
    }
    let now = storage.describe_bucket(name).await?;
    Ok(storage.update_bucket(name, &changes, Some(now.metageneration)).await?)
}

fn say(service: &ServiceFlags, verb: &str, bucket: &BucketInfo) {
    match service.output {
        Form::Json => println!("{}", bucket.json),
        Form::Table => println!("{verb} {}", url(&bucket.name)),
    }
}

async fn list(storage: &Storage, service: &ServiceFlags, project: &str) -> Result<()> {
    let buckets: Vec<BucketInfo> = storage.buckets(project, "").try_collect().await?;
    if service.output == Form::Json {
        println!("{:#}", Value::from_iter(buckets.into_iter().map(|bucket| bucket.json)));
        return Ok(());
    }
    let cell = |bucket: &BucketInfo, field: &str| bucket.json[field].as_str().unwrap_or_default().to_owned();
    let rows: Vec<[String; 4]> = buckets
        .iter()
        .map(|bucket| {
            let fields = ["location", "storageClass", "timeCreated"].map(|field| cell(bucket, field));
            let [location, class, created] = fields;
            [url(&bucket.name), location, class, created]
        })
        .collect();
    print!("{}", text_table(["bucket", "location", "class", "created"], &rows));
    Ok(())
}
