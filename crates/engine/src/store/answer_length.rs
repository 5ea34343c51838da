//! Checks that an answer is as long as the request asked for.
//!
//! Where SlateDB repeats reads by itself, it compares the length of the answer with the length that it
//! asked for. Its reader of the log does not. *Seen*: an answer that was cut short ended the process, by a
//! panic over a range beyond its end. No part of SlateDB checks the length of a whole object, so half of
//! one may be taken for the object. In a directory, the seals show this; other stores are read through this
//! module.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// A store whose answers are checked for their length. An answer that is cut short becomes an error like
/// any other error of the network: if the read is repeated, the whole answer may come.
#[derive(Debug)]
pub(super) struct CheckedLengths(pub(super) Arc<dyn ObjectStore>);

#[async_trait]
impl ObjectStore for CheckedLengths {
    /// The whole answer is in memory when this returns. No read here asks for more than a sorted file.
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let (head, asked) = (options.head, options.range.clone());
        let got = self.0.get_opts(location, options).await?;
        if head {
            return Ok(got);
        }
        let size = got.meta.size;
        let range = match asked {
            Some(asked) => asked.as_range(size).map_err(|error| unlike(location, error.to_string()))?,
            None => 0..size,
        };
        let (meta, attributes, extensions) =
            (got.meta.clone(), got.attributes.clone(), got.extensions.clone());
        let bytes = got.bytes().await?;
        if bytes.len() as u64 != range.end - range.start {
            let (from, to, given) = (range.start, range.end, bytes.len());
            let reason = format!("asked for its bytes {from} to {to} of {size}, and got {given} bytes");
            return Err(unlike(location, reason));
        }
        let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.0.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.0.rename_opts(from, to, options).await
    }
}

/// The error for an answer that is not what was asked for. The read may be repeated.
fn unlike(location: &Path, reason: String) -> Error {
    Error::Generic { store: "rangehold", source: format!("reading {location}: {reason}").into() }
}

impl fmt::Display for CheckedLengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "whole answers of {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use object_store::{GetRange, ObjectStoreExt};

    use super::*;

    /// Leaves out the last byte of each answer.
    #[derive(Debug)]
    struct Miser(InMemory);

    impl fmt::Display for Miser {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("miser")
        }
    }

    #[async_trait]
    impl ObjectStore for Miser {
        async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
            let got = self.0.get_opts(location, options).await?;
            let (meta, range, attributes, extensions) =
                (got.meta.clone(), got.range.clone(), got.attributes.clone(), got.extensions.clone());
            let mut bytes = got.bytes().await?;
            bytes.truncate(bytes.len().saturating_sub(1));
            let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
            Ok(GetResult { payload, meta, range, attributes, extensions })
        }

        async fn put_opts(&self, to: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
            self.0.put_opts(to, payload, options).await
        }

        async fn put_multipart_opts(
            &self,
            to: &Path,
            options: PutMultipartOptions,
        ) -> Result<Box<dyn MultipartUpload>> {
            self.0.put_multipart_opts(to, options).await
        }

        fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
            self.0.delete_stream(paths)
        }

        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
            self.0.list(prefix)
        }

        async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
            self.0.list_with_delimiter(prefix).await
        }

        async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
            self.0.copy_opts(from, to, options).await
        }
    }

    /// Requests and their answers: the whole object, a range, a range that reaches beyond the end, from an
    /// offset to the end, and the last bytes.
    fn askings() -> [(Option<GetRange>, &'static [u8]); 5] {
        [
            (None, b"0123456789"),
            (Some(GetRange::Bounded(2..5)), b"234"),
            (Some(GetRange::Bounded(8..20)), b"89"),
            (Some(GetRange::Offset(7)), b"789"),
            (Some(GetRange::Suffix(4)), b"6789"),
        ]
    }

    #[tokio::test]
    async fn an_answer_that_is_cut_short_is_an_error_that_may_be_tried_again() {
        let path = Path::from("a/b.sst");
        let cut = CheckedLengths(Arc::new(Miser(InMemory::new())));
        cut.put(&path, PutPayload::from_static(b"0123456789")).await.expect("stored");
        for (range, wanted) in askings() {
            let options = GetOptions { range: range.clone(), ..GetOptions::default() };
            let error = cut.get_opts(&path, options).await.expect_err("cut short");
            let (said, wanted) = (error.to_string(), format!("got {} bytes", wanted.len() - 1));
            assert!(said.contains("a/b.sst") && said.contains(&wanted), "{range:?}: {said}");
            assert!(slatedb_common::retry::should_retry(&error), "{range:?}: {error:?}");
        }
        assert_eq!(cut.head(&path).await.expect("there").size, 10);
    }

    #[tokio::test]
    async fn whole_answers_pass_as_they_are() {
        let path = Path::from("a/b.sst");
        let store = CheckedLengths(Arc::new(InMemory::new()));
        store.put(&path, PutPayload::from_static(b"0123456789")).await.expect("stored");
        for (range, wanted) in askings() {
            let options = GetOptions { range: range.clone(), ..GetOptions::default() };
            let got = store.get_opts(&path, options).await.expect("whole");
            assert_eq!(got.range.end - got.range.start, wanted.len() as u64, "{range:?}");
            assert_eq!(got.bytes().await.expect("read"), wanted, "{range:?}");
        }
        store.put(&path, PutPayload::new()).await.expect("stored");
        assert_eq!(store.get(&path).await.expect("empty").bytes().await.expect("read"), "");
    }
}
