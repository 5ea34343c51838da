//! `rangehold bucket folders`: the folders of a bucket with a hierarchical namespace.

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use futures::TryStreamExt;
use rangehold_client::object::{Bucket, Folder, Storage};
use serde_json::{Value, json};

use crate::object::cloud;
use crate::object::service::Form;
use crate::text_table::text_table;

#[derive(Debug, Subcommand)]
pub(super) enum Folders {
    /// Make folders.
    Create {
        /// Folders, such as gs://BUCKET/FOLDER.
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
        /// The folders above them too, where they are missing.
        #[arg(short, long, visible_short_alias = 'R')]
        recursive: bool,
    },
    /// List the folders of a bucket, or those whose names begin with a text, in the order of their names.
    List {
        /// gs://BUCKET, or gs://BUCKET/BEGINNING.
        #[arg(value_name = "URL")]
        url: String,
    },
    /// Rename a folder with all that lies in it, in one change or none. The folder above the new name must exist.
    Rename {
        /// The folder, such as gs://BUCKET/FOLDER.
        #[arg(value_name = "URL")]
        from: String,
        /// Its new name in the same bucket. It must be free.
        #[arg(value_name = "URL")]
        to: String,
    },
    /// Delete folders in which nothing lies. `rangehold object rm --recursive` deletes folders with what lies in them.
    Delete {
        /// Folders, such as gs://BUCKET/FOLDER.
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
    },
}

/// Runs a command.
pub(super) async fn run(storage: &Storage, form: Form, command: Folders) -> Result<()> {
    match command {
        Folders::Create { urls, recursive } => {
            for url in &urls {
                let (bucket, name) = folder(storage, url)?;
                let made = bucket.create_folder(&name, recursive).await.with_context(|| url.clone())?;
                say(form, "created", &bucket, &made);
            }
        }
        Folders::List { url } => list(storage, form, &url).await.with_context(|| url.clone())?,
        Folders::Rename { from, to } => {
            let ((bucket, name), (other, new)) = (folder(storage, &from)?, folder(storage, &to)?);
            if bucket.name() != other.name() {
                bail!("a folder is renamed within its bucket; move it to {to} with rangehold object mv");
            }
            let found = bucket.folder(&name).await.with_context(|| from.clone())?;
            let found = found.with_context(|| format!("there is no folder {from}"))?;
            let renamed =
                bucket.rename_folder(&found, &new).await.with_context(|| format!("{from} to {to}"))?;
            say(form, "renamed to", &bucket, &renamed);
        }
        Folders::Delete { urls } => {
            for url in &urls {
                let (bucket, name) = folder(storage, url)?;
                bucket.delete_folder(&name).await.with_context(|| url.clone())?;
                match form {
                    Form::Json => println!("{}", json!({ "deleted": url })),
                    Form::Table => println!("deleted {url}"),
                }
            }
        }
    }
    Ok(())
}

/// The bucket and the whole name of a folder.
fn folder(storage: &Storage, url: &str) -> Result<(Bucket, String)> {
    let place = cloud(url)?;
    if place.name.is_empty() || place.is_pattern() || place.generation.is_some() {
        bail!("{url} is not a folder: write it as gs://BUCKET/FOLDER");
    }
    Ok((storage.bucket(&place.bucket)?, place.as_folder()))
}

async fn list(storage: &Storage, form: Form, url: &str) -> Result<()> {
    let place = cloud(url)?;
    if place.bucket.is_empty() || place.is_pattern() {
        bail!("write it as gs://BUCKET or gs://BUCKET/BEGINNING");
    }
    let bucket = storage.bucket(&place.bucket)?;
    let folders: Vec<Folder> = bucket.folders(&place.name).try_collect().await?;
    if form == Form::Json {
        println!("{:#}", Value::from_iter(folders.iter().map(|folder| shown(&bucket, folder))));
        return Ok(());
    }
    let rows: Vec<[String; 2]> = folders
        .iter()
        .map(|folder| [path(&bucket, folder), folder.create_time.clone().unwrap_or_default()])
        .collect();
    print!("{}", text_table(["folder", "created"], &rows));
    Ok(())
}

fn say(form: Form, verb: &str, bucket: &Bucket, folder: &Folder) {
    match form {
        Form::Json => println!("{}", shown(bucket, folder)),
        Form::Table => println!("{verb} {}", path(bucket, folder)),
    }
}

fn path(bucket: &Bucket, folder: &Folder) -> String {
    format!("gs://{}/{}", bucket.name(), folder.name)
}

fn shown(bucket: &Bucket, folder: &Folder) -> Value {
    json!({
        "url": path(bucket, folder),
        "metageneration": folder.metageneration.to_string(),
        "createTime": folder.create_time,
        "updateTime": folder.update_time,
    })
}
