//! What the arguments of a copy mean: which files and objects, and what their copies are called.
//!
//! The names of copies depend on the arguments alone, and not on what is at the target already. So a command that was killed
//! does the same when it is run again. A target that ends in a slash, or is a whole bucket, is a folder: copies are put below it, by
//! the last part of their source's name. Any other target is the name of the copy itself. Only a folder on the disk that exists is a
//! folder for single files without a slash too: no file can have its name.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, future, stream};
use rangehold_client::object::{Bucket, Glob, Storage};

use super::engine::{Existing, Job, To};
use super::entry::{Body, Entry, files_below, objects_below};
use super::join::{Pair, join};
use crate::object::find::{Found, Look, matching};
use crate::object::place::{Cloud, Place, base, below};

/// The place of copies.
#[derive(Clone)]
enum Target {
    Folder(PathBuf),
    Prefix(Bucket, String),
}

impl Target {
    /// The copy of this name.
    fn of(&self, name: &str) -> Result<To> {
        match self {
            Self::Folder(folder) => Ok(To::Path(below(folder, name)?)),
            Self::Prefix(bucket, prefix) => Ok(To::Object(bucket.clone(), format!("{prefix}{name}"))),
        }
    }

    /// A folder in it.
    fn folder(&self, name: &str) -> Result<Self> {
        match self {
            Self::Folder(folder) => Ok(Self::Folder(below(folder, name)?)),
            Self::Prefix(bucket, prefix) => Ok(Self::Prefix(bucket.clone(), format!("{prefix}{name}/"))),
        }
    }
}

/// The copies that one source asks for.
pub(in crate::object) async fn jobs(
    storage: &Storage,
    source: &Place,
    target: &Place,
    recursive: bool,
    several: bool,
) -> Result<BoxStream<'static, Result<Job>>> {
    match source {
        Place::Path(path) => from_path(storage, path, target, recursive, several),
        Place::Cloud(cloud) => from_cloud(storage, cloud, target, recursive, several).await,
        Place::Pipe => bail!("- cannot be among several sources"),
    }
}

fn from_path(
    storage: &Storage,
    path: &Path,
    target: &Place,
    recursive: bool,
    several: bool,
) -> Result<BoxStream<'static, Result<Job>>> {
    let text = path.display().to_string();
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(_) if text.contains(['*', '?', '[']) => return from_pattern(storage, &text, target),
        Err(error) => return Err(anyhow::Error::from(error).context(format!("cannot read {text}"))),
    };
    if !about.is_dir() {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("{text} has no name that an object can have"))?;
        let entry = Entry::file(name, path.to_owned(), about.len());
        let to = single(storage, target, name, several)?;
        return Ok(one(Job { from: entry, bucket: None, to, existing: Existing::Unknown }));
    }
    if !recursive {
        bail!("{text} is a folder; copy folders with --recursive");
    }
    let whole = std::fs::canonicalize(path).with_context(|| format!("cannot read {text}"))?;
    let name = whole.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{text} has no name that an object can have"))?;
    let target = tree(storage, target, name, several)?;
    Ok(compared(files_below(path, false), None, &target))
}

/// Files that match a pattern which the shell did not expand.
fn from_pattern(storage: &Storage, pattern: &str, target: &Place) -> Result<BoxStream<'static, Result<Job>>> {
    let glob = Glob::new(pattern).with_context(|| format!("{pattern} is not a pattern"))?;
    let literal = pattern.split(['*', '?', '[', '{']).next().unwrap_or_default();
    let folder = &literal[..literal.rfind('/').map_or(0, |slash| slash + 1)];
    let root = if folder.is_empty() { Path::new(".") } else { Path::new(folder) };
    let (folder, target) = (folder.to_owned(), many(storage, target)?);
    let files = files_below(root, true)
        .try_filter(move |entry| future::ready(glob.matches(&format!("{folder}{}", entry.name))));
    Ok(unseen(files.boxed(), None, target))
}

async fn from_cloud(
    storage: &Storage,
    cloud: &Cloud,
    target: &Place,
    recursive: bool,
    several: bool,
) -> Result<BoxStream<'static, Result<Job>>> {
    let bucket = storage.bucket(&cloud.bucket)?;
    if cloud.is_pattern() && cloud.generation.is_none() {
        let target = many(storage, target)?;
        let folder = cloud.literal_folder().len();
        let found = matching(&bucket, cloud, Look { folders: recursive, versions: false })?;
        let from = bucket.clone();
        let entries = found.and_then(move |found| {
            let entries = match found {
                Found::Object(object) => one(Entry::object(&object.name.clone()[folder..], *object)),
                Found::Folder(prefix) => {
                    let name = prefix[folder..].to_owned();
                    let below = objects_below(&from, &prefix);
                    below
                        .map_ok(move |entry| Entry { name: format!("{name}{}", entry.name), ..entry })
                        .boxed()
                }
            };
            future::ready(Ok(entries))
        });
        return Ok(unseen(entries.try_flatten().boxed(), Some(bucket), target));
    }
    if !cloud.is_folder()
        && let Some(object) =
            bucket.stat(&cloud.name, cloud.generation).await.with_context(|| cloud.to_string())?
    {
        let name = base(&cloud.name).to_owned();
        let to = single(storage, target, &name, several)?;
        let from = Entry::object(&name, object);
        return Ok(one(Job { from, bucket: Some(bucket), to, existing: Existing::Unknown }));
    }
    if !recursive {
        bail!("there is no object {cloud}; copy folders with --recursive");
    }
    let name = if cloud.name.is_empty() { &cloud.bucket } else { base(&cloud.name) };
    let target = tree(storage, target, name, several)?;
    Ok(compared(objects_below(&bucket, &cloud.as_folder()), Some(bucket), &target))
}

/// The place of a single copy.
fn single(storage: &Storage, target: &Place, name: &str, several: bool) -> Result<To> {
    match target {
        Place::Cloud(cloud) if cloud.is_folder() || several => many(storage, target)?.of(name),
        Place::Cloud(cloud) => Ok(To::Object(storage.bucket(&cloud.bucket)?, cloud.name.clone())),
        Place::Path(path) if is_folder(path) || path.is_dir() || several => many(storage, target)?.of(name),
        Place::Path(path) => Ok(To::Path(path.clone())),
        Place::Pipe => bail!("only one object can be copied to standard output"),
    }
}

/// The place of several copies: always a folder.
fn many(storage: &Storage, target: &Place) -> Result<Target> {
    match target {
        Place::Cloud(cloud) => Ok(Target::Prefix(storage.bucket(&cloud.bucket)?, cloud.as_folder())),
        Place::Path(path) => Ok(Target::Folder(path.clone())),
        Place::Pipe => bail!("only one object can be copied to standard output"),
    }
}

/// The place of a folder with this name.
fn tree(storage: &Storage, target: &Place, name: &str, several: bool) -> Result<Target> {
    let is_folder = match target {
        Place::Cloud(cloud) => cloud.is_folder(),
        Place::Path(path) => is_folder(path),
        Place::Pipe => false,
    };
    let target = many(storage, target)?;
    if is_folder || several { target.folder(name) } else { Ok(target) }
}

/// The whole name that the copy of a folder with this name has in a bucket, with its slash; `None` on a disk.
pub(in crate::object) fn name_of_folder(
    storage: &Storage,
    target: &Place,
    name: &str,
    several: bool,
) -> Result<Option<String>> {
    Ok(match tree(storage, target, name, several)? {
        Target::Prefix(_, prefix) => Some(prefix),
        Target::Folder(_) => None,
    })
}

/// Whether a path is written as a folder.
fn is_folder(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    text.ends_with(b"/") || matches!(text, b"." | b"..") || text.ends_with(b"/.") || text.ends_with(b"/..")
}

fn one<T: Send + 'static>(item: T) -> BoxStream<'static, Result<T>> {
    stream::iter([Ok(item)]).boxed()
}

/// Jobs whose targets are looked at one by one.
fn unseen(
    entries: BoxStream<'static, Result<Entry>>,
    bucket: Option<Bucket>,
    target: Target,
) -> BoxStream<'static, Result<Job>> {
    let jobs = entries.try_filter(|entry| future::ready(!is_marker(entry))).map(move |entry| {
        let from = entry?;
        let to = target.of(&from.name)?;
        Ok(Job { from, bucket: bucket.clone(), to, existing: Existing::Unknown })
    });
    jobs.boxed()
}

/// Jobs of a whole folder, whose targets in a bucket are known from a listing.
fn compared(
    entries: BoxStream<'static, Result<Entry>>,
    bucket: Option<Bucket>,
    target: &Target,
) -> BoxStream<'static, Result<Job>> {
    let Target::Prefix(to, prefix) = target.clone() else {
        return unseen(entries, bucket, target.clone());
    };
    let pairs = join(entries, objects_below(&to, &prefix));
    let jobs = pairs.try_filter_map(move |pair| {
        let (from, existing) = match pair {
            Pair::Target(_) => return future::ready(Ok(None)),
            Pair::Source(from) => (from, Existing::Nothing),
            Pair::Both(from, there) => (from, Existing::There(there.body)),
        };
        let to = To::Object(to.clone(), format!("{prefix}{}", from.name));
        future::ready(Ok(Some(Job { from, bucket: bucket.clone(), to, existing })))
    });
    jobs.boxed()
}

/// An empty object whose name ends in a slash stands for a folder; on a disk it would have no name.
fn is_marker(entry: &Entry) -> bool {
    matches!(&entry.body, Body::Object(object) if object.size == 0 && (entry.name.is_empty() || entry.name.ends_with('/')))
}
