//! Listings, page by page or as a stream of objects.

use futures::{Stream, TryStreamExt, stream};
use http::Method;
use serde::Deserialize;

use super::bucket::Bucket;
use super::call::{Call, segment};
use super::error::Error;
use super::resource::Object;

/// The fields that a listing asks for, unless it asks for all: those of [`Object`] that decisions are made by.
const FEW: &str = "nextPageToken,prefixes,items(name,generation,metageneration,size,crc32c,updated,timeDeleted,contentEncoding)";

/// Which objects of a bucket, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The beginning of their names.
    pub prefix: String,
    /// What separates folders: a name with this text after the prefix is not listed, and its folder is, once.
    pub delimiter: Option<String>,
    /// Only names at or after this one, in the order of bytes.
    pub from: Option<String>,
    /// Older generations too.
    pub versions: bool,
    /// All fields of the objects, and not only name, generations, size, checksum, encoding and times.
    pub all_fields: bool,
}

/// A page of a listing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// Objects, in the order of their names.
    #[serde(default)]
    pub items: Vec<Object>,
    /// Folders: the beginnings of names up to and with the delimiter.
    #[serde(default)]
    pub prefixes: Vec<String>,
    #[serde(default)]
    next_page_token: Option<String>,
}

impl Listing {
    /// All objects whose names begin with `prefix`.
    pub fn under(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), ..Self::default() }
    }

    /// The objects and the folders directly below `prefix`.
    pub fn folder(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), delimiter: Some("/".to_owned()), ..Self::default() }
    }

    fn call(&self, bucket: &str, token: Option<String>) -> Call {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Call::api(Method::GET, &format!("/b/{}/o", segment(bucket)))
            .maybe("prefix", text(&self.prefix))
            .maybe("delimiter", self.delimiter.clone())
            .maybe("startOffset", self.from.clone())
            .maybe("versions", self.versions.then_some("true"))
            .maybe("fields", (!self.all_fields).then_some(FEW))
            .maybe("pageToken", token)
    }
}

impl Bucket {
    /// The pages of a listing. A page may be empty and still not be the last one.
    pub fn pages(&self, listing: Listing) -> impl Stream<Item = Result<Page, Error>> + Send + 'static {
        let bucket = self.clone();
        let fetch = move |place: Option<Option<String>>| {
            let (bucket, listing) = (bucket.clone(), listing.clone());
            async move {
                let Some(token) = place else { return Ok(None) };
                let mut page: Page = bucket.line.read(&listing.call(bucket.name(), token)).await?;
                let next = page.next_page_token.take().map(Some);
                Ok(Some((page, next)))
            }
        };
        stream::try_unfold(Some(None), fetch)
    }

    /// The objects of a listing. Pages are fetched when the stream comes to their end.
    pub fn list(&self, listing: Listing) -> impl Stream<Item = Result<Object, Error>> + Send + 'static {
        self.pages(listing).map_ok(|page| stream::iter(page.items.into_iter().map(Ok))).try_flatten()
    }
}
