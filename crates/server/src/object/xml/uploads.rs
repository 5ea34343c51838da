//! The list of a bucket's multipart uploads.
//!
//! Uploads lie behind the heads of their names, so the list looks at every name of the bucket; a page ends after
//! [`ROWS_MAX`] rows, also if it has no upload yet.

use bytes::Bytes;
use rangehold_engine::Visit;
use rangehold_map::KeyRange;
use rangehold_map::key::{ObjectKey, ObjectRow, PartitionPrefix, bucket_objects, names_from};
use rangehold_map::key::{after_prefix, names_beginning_with};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::upload::{Session, UploadKind};
use rangehold_protocol::object::xml::parts::{self, ListedUpload};

use super::{XmlApi, xml_reply};
use crate::object::exchange::Exchange;
use crate::object::failure::Failure;
use crate::object::reply::Reply;

/// Uploads of a page.
const UPLOADS_MAX: u64 = 1000;
/// Rows that a page reads.
const ROWS_MAX: usize = 20_000;

/// Ids are hexadecimal digits, and this comes before all of them.
const BEFORE_ALL_IDS: &str = "-";

/// A page while it is made.
struct Page<'a> {
    bucket: &'a Bucket,
    /// The upload after which the page begins.
    after: (&'a str, &'a str),
    most: usize,
    rows: usize,
    uploads: Vec<ListedUpload>,
    /// Where the next page begins, if this one is full.
    next: Option<(String, String)>,
    fault: Option<ObjectError>,
}

impl XmlApi<'_> {
    pub(super) async fn list_uploads(&self, exchange: &Exchange<'_>, bucket: &str) -> Result<Reply, Failure> {
        let bucket = self.bucket(bucket).await?;
        if bucket.has_folders() {
            let what = "The list of multipart uploads of a bucket with a hierarchical namespace";
            return Err(ObjectError::not_implemented(what).into());
        }
        let text = |name: &str| exchange.parameter(name).unwrap_or_default();
        let (marker, prefix) = (text("key-marker"), text("prefix"));
        let most = exchange.query.number("max-uploads")?.unwrap_or(UPLOADS_MAX).min(UPLOADS_MAX) as usize;
        let end = match prefix {
            "" => after_prefix(&bucket_objects(bucket.id)),
            prefix => after_prefix(&names_beginning_with(bucket.id, prefix)),
        };
        let low = names_from(bucket.id, marker.max(prefix));
        let keys = KeyRange::new(low.clone(), end.map(|end| end.max(low)));
        let after = (marker, text("upload-id-marker"));
        let begin =
            || Page { bucket: &bucket, after, most, rows: 0, uploads: Vec::new(), next: None, fault: None };
        let page = self.router.scan(&keys, begin, |page, key, row| page.visit(key, row)).await?;
        if let Some(fault) = page.fault {
            return Err(fault.into());
        }
        let next = page.next.as_ref().map(|(name, upload)| (name.as_str(), upload.as_str()));
        Ok(xml_reply(200, parts::uploads(&bucket.name, &page.uploads, next)))
    }
}

impl Page<'_> {
    fn visit(&mut self, key: &[u8], row: &Bytes) -> Visit {
        match self.take(key, row) {
            Ok(visit) => visit,
            Err(fault) => {
                self.fault = Some(fault);
                Visit::Stop
            }
        }
    }

    fn take(&mut self, key: &[u8], row: &[u8]) -> Result<Visit, ObjectError> {
        let key = ObjectKey::decode(key).map_err(ObjectError::damaged)?;
        self.rows += 1;
        let first = ObjectRow::Upload("".into());
        match &key.row {
            ObjectRow::Upload(upload) => {
                let session = Session::decode(row)?;
                // A marker without an id stands for all uploads of its name.
                let is_after = match self.after {
                    (marker, "") => key.name.as_ref() > marker,
                    after => (key.name.as_ref(), upload.as_ref()) > after,
                };
                if session.kind != UploadKind::Parts || !is_after {
                    return Ok(Visit::Next);
                }
                if self.uploads.len() == self.most {
                    let last = self.uploads.last();
                    self.next = last.map(|last| (last.name.clone(), last.upload.clone()));
                    return Ok(Visit::Stop);
                }
                let class = session.draft.storage_class.unwrap_or(self.bucket.storage_class());
                self.uploads.push(ListedUpload {
                    name: key.name.to_string(),
                    upload: upload.to_string(),
                    storage_class: class.name().to_owned(),
                    begun: session.begun.text(),
                });
                Ok(Visit::Next)
            }
            // What lies before the uploads of a name, and what lies behind them, is passed over.
            row if *row < first && self.rows >= ROWS_MAX => {
                self.next = Some((key.name.to_string(), BEFORE_ALL_IDS.to_owned()));
                Ok(Visit::Stop)
            }
            row if *row < first => {
                let partition = PartitionPrefix::object(self.bucket.id, &key.name);
                Ok(Visit::Seek(partition.object_row(&first)))
            }
            _ => Ok(Visit::Seek(key.past_name())),
        }
    }
}
