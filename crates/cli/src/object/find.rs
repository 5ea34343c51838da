//! What a name or a pattern stands for in a bucket.

use anyhow::{Context, Result};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use rangehold_client::object::{Bucket, Glob, Listing, Object, Page};

use super::place::Cloud;

/// Something that was found.
#[derive(Debug, Clone)]
pub(super) enum Found {
    Object(Box<Object>),
    /// The beginning of the names of a folder, with a slash at its end.
    Folder(String),
}

/// How a pattern is looked up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look {
    /// Older generations too.
    pub(super) versions: bool,
    /// Folders that match too, if the pattern does not go deeper itself.
    pub(super) folders: bool,
}

/// The objects, and the folders if they are wanted, that match a pattern: `*` and `?` do not match a slash, `**` does.
pub(super) fn matching(
    bucket: &Bucket,
    place: &Cloud,
    look: Look,
) -> Result<BoxStream<'static, Result<Found>>> {
    let glob = Glob::new(&place.name).with_context(|| format!("{place} is not a pattern"))?;
    let below = &place.name[place.literal_folder().len()..];
    let is_flat = !below.contains('/') && !below.contains("**");
    let listing = Listing {
        prefix: glob.literal_prefix().to_owned(),
        delimiter: is_flat.then(|| "/".to_owned()),
        versions: look.versions,
        ..Listing::default()
    };
    let place = place.to_string();
    let pages = bucket.pages(listing).map_err(move |error| anyhow::Error::from(error).context(place.clone()));
    let found = pages.map_ok(move |page: Page| {
        let folders = page.prefixes.into_iter().filter(|_| look.folders);
        let folders = folders.filter(|folder| glob.matches(folder.trim_end_matches('/'))).map(Found::Folder);
        let objects = page.items.into_iter().filter(|object| glob.matches(&object.name));
        let objects = objects.map(|object| Found::Object(Box::new(object)));
        stream::iter(folders.chain(objects).map(Ok).collect::<Vec<_>>())
    });
    Ok(found.try_flatten().boxed())
}

/// All objects below a prefix.
pub(super) fn below(bucket: &Bucket, prefix: &str, versions: bool) -> BoxStream<'static, Result<Object>> {
    let listing = Listing { versions, ..Listing::under(prefix) };
    let place = format!("gs://{}/{prefix}", bucket.name());
    bucket.list(listing).map_err(move |error| anyhow::Error::from(error).context(place.clone())).boxed()
}
