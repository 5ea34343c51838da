//! `rangehold object ls`

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::TryStreamExt;
use rangehold_client::object::{Bucket, Listing, Object, Storage};
use serde_json::json;

use super::find::{Found, Look, below, matching};
use super::place::{Cloud, cloud};
use super::service::{Form, Kind, ServiceFlags};

/// `rangehold object ls`
#[derive(Debug, Args)]
pub(super) struct Ls {
    /// Buckets, folders, objects or patterns, such as gs://BUCKET/a*. Without one, all buckets.
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Sizes and times too, and a sum.
    #[arg(short, long)]
    long: bool,
    /// Everything below, not only what is directly in the folder.
    #[arg(short, long, visible_short_alias = 'R')]
    recursive: bool,
    /// Older generations too, with their numbers.
    #[arg(short, long)]
    all_versions: bool,
    /// The project whose buckets are listed. Only Google's service needs it.
    #[arg(long, env = "GOOGLE_CLOUD_PROJECT", value_name = "PROJECT")]
    project: Option<String>,
}

/// What has been printed.
struct Printer<'a> {
    ls: &'a Ls,
    form: Form,
    objects: u64,
    bytes: u64,
    any: bool,
}

/// Lists what each URL stands for.
pub(super) async fn run(service: &ServiceFlags, ls: &Ls) -> Result<()> {
    let (storage, _) = service.open(Kind::Reads)?;
    let mut printer = Printer { ls, form: service.output, objects: 0, bytes: 0, any: false };
    let all = ["gs://".to_owned()];
    for url in if ls.urls.is_empty() { &all[..] } else { &ls.urls[..] } {
        let place = cloud(url)?;
        printer.any = false;
        if place.bucket.is_empty() {
            let project = service.project(ls.project.as_deref())?;
            let mut buckets = std::pin::pin!(storage.buckets(&project, ""));
            while let Some(bucket) = buckets.try_next().await? {
                printer.folder(&format!("gs://{}/", bucket.name));
            }
            printer.any = true;
            continue;
        }
        list(&storage, &place, &mut printer).await.with_context(|| url.clone())?;
        if !printer.any && !place.name.is_empty() {
            bail!("nothing matches {url}");
        }
    }
    if ls.long && service.output == Form::Table {
        let (objects, bytes) = (printer.objects, printer.bytes);
        println!("TOTAL: {objects} objects, {bytes} bytes");
    }
    Ok(())
}

async fn list(storage: &Storage, place: &Cloud, printer: &mut Printer<'_>) -> Result<()> {
    let bucket = storage.bucket(&place.bucket)?;
    let Ls { recursive, all_versions, .. } = *printer.ls;
    if place.is_pattern() {
        let mut found = matching(&bucket, place, Look { versions: all_versions, folders: true })?;
        while let Some(found) = found.try_next().await? {
            match found {
                Found::Object(object) => printer.object(&bucket, &object),
                Found::Folder(folder) if recursive => folder_below(&bucket, &folder, printer).await?,
                Found::Folder(folder) => printer.folder(&format!("gs://{}/{folder}", bucket.name())),
            }
        }
        return Ok(());
    }
    if !place.is_folder() {
        // An object, and perhaps a folder of the same name.
        let listing =
            Listing { versions: all_versions, from: Some(place.name.clone()), ..Listing::under(&place.name) };
        let mut named = std::pin::pin!(bucket.list(listing));
        while let Some(object) = named.try_next().await? {
            if object.name != place.name {
                break;
            }
            if place.generation.is_none_or(|generation| generation == object.generation) {
                printer.object(&bucket, &object);
            }
        }
    }
    let folder = place.as_folder();
    if recursive {
        return folder_below(&bucket, &folder, printer).await;
    }
    let mut pages =
        std::pin::pin!(bucket.pages(Listing { versions: all_versions, ..Listing::folder(&folder) }));
    while let Some(page) = pages.try_next().await? {
        for object in &page.items {
            printer.object(&bucket, object);
        }
        for folder in &page.prefixes {
            printer.folder(&format!("gs://{}/{folder}", bucket.name()));
        }
    }
    Ok(())
}

async fn folder_below(bucket: &Bucket, folder: &str, printer: &mut Printer<'_>) -> Result<()> {
    let mut objects = below(bucket, folder, printer.ls.all_versions);
    while let Some(object) = objects.try_next().await? {
        printer.object(bucket, &object);
    }
    Ok(())
}

impl Printer<'_> {
    fn object(&mut self, bucket: &Bucket, object: &Object) {
        self.any = true;
        self.objects += 1;
        self.bytes += object.size;
        let mut url = format!("gs://{}/{}", bucket.name(), object.name);
        if self.ls.all_versions {
            url += &format!("#{}", object.generation);
        }
        let updated = object.updated.as_deref().unwrap_or_default();
        match self.form {
            Form::Json => println!(
                "{}",
                json!({
                    "url": url,
                    "generation": object.generation.to_string(),
                    "size": object.size,
                    "crc32c": object.crc32c.map(rangehold_client::object::Crc32c::text),
                    "updated": updated,
                })
            ),
            Form::Table if self.ls.long => println!("{:>12}  {updated:<27}  {url}", object.size),
            Form::Table => println!("{url}"),
        }
    }

    fn folder(&mut self, url: &str) {
        self.any = true;
        match self.form {
            Form::Json => println!("{}", json!({ "url": url })),
            Form::Table if self.ls.long => println!("{:>12}  {:<27}  {url}", "", ""),
            Form::Table => println!("{url}"),
        }
    }
}
