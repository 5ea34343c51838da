//! What stored rows say about rows of other ranges, when one range is restored from a backup and the others are not.
//!
//! Rows name blobs, and the blobs have rows that name their users. And rows count: the ids of buckets, and of the folders
//! of a bucket. The engine, which restores the range, does not know the forms of these rows.

use bytes::Bytes;
use rangehold_map::blob::{BlobId, BlobUser};
use rangehold_map::key::{BucketRow, KIND_BUCKET, Key, ObjectKey, ObjectRow};
use rangehold_map::{BucketId, PartitionPrefix};

use super::bucket::Bucket;
use super::error::ObjectError;
use super::folder::Tree;
use super::generation::{Content, Generation, Head, Release};
use super::parts::Part;
use super::row::{decode_row, encode_row};
use super::upload::Session;

/// How many ids a count skips when it is restored: more than anybody gives between a backup and its restore.
const IDS_SKIPPED: u64 = 1 << 32;

/// A key and the row there.
pub type StoredRow = (Vec<u8>, Vec<u8>);

/// The blobs that a row of an object names, each with the user in whose name.
pub fn uses(key: &[u8], row: &Bytes) -> Result<Vec<Release>, ObjectError> {
    let ObjectKey { bucket, name, row: kind } = decode(key)?;
    Ok(match kind {
        ObjectRow::Head => Head::decode(row)?.live.releases(bucket, &name),
        ObjectRow::NotLive(_) => Generation::decode(row)?.releases(bucket, &name),
        ObjectRow::Upload(id) => Session::decode(row)?.progress.releases(bucket, &name, &id),
        ObjectRow::Part { upload, .. } => {
            let blobs = Content::Extents(Part::decode(row)?.extents).blobs();
            blobs.into_iter().map(|blob| used_by(blob, bucket, &name, &upload)).collect()
        }
        // The row of the generation names the blobs of its content.
        ObjectRow::Content(_) | ObjectRow::Answer(_) | ObjectRow::Outcome(_) => Vec::new(),
        ObjectRow::Tree | ObjectRow::Folder(_) | ObjectRow::FolderName { .. } => Vec::new(),
    })
}

fn used_by(blob: BlobId, bucket: BucketId, name: &str, upload: &str) -> Release {
    (blob, BlobUser { bucket, name: name.to_owned(), upload: upload.to_owned() })
}

/// A row that counts ids, moved on above all ids that were given since the backup; `None` for other rows. The row that
/// counts the ids of buckets may be missing in the backup.
pub fn counted_on(key: &[u8], row: Option<&Bytes>) -> Result<Option<Vec<u8>>, ObjectError> {
    if key.first() == Some(&KIND_BUCKET) {
        if key != PartitionPrefix::bucket_ids().bucket_row(&BucketRow::LastId) {
            return Ok(None);
        }
        let last: u64 = row.map_or(Ok(0), |row| decode_row("the id of the last bucket", row))?;
        return Ok(Some(encode_row(&(last + IDS_SKIPPED))));
    }
    Ok(match (decode(key)?.row, row) {
        (ObjectRow::Tree, Some(row)) => {
            let tree = Tree::read(Some(row))?;
            Some(Tree { next: tree.next + IDS_SKIPPED, ..tree }.encode())
        }
        _ => None,
    })
}

/// The row that counts the ids of a bucket's folders, for a bucket that has none any more: its key, and the row moved on.
/// `None` for rows of anything but a bucket, and for buckets without folders.
pub fn folder_count(key: &[u8], row: &Bytes) -> Result<Option<StoredRow>, ObjectError> {
    let damaged = |error| ObjectError::damaged(format_args!("the key of a bucket: {error}"));
    let Key::Bucket { row: BucketRow::Bucket | BucketRow::Deleted(_), .. } =
        Key::decode(key).map_err(damaged)?
    else {
        return Ok(None);
    };
    let bucket = Bucket::decode(row)?;
    if !bucket.has_folders() {
        return Ok(None);
    }
    let new = Tree::default();
    let tree = Tree { next: new.next + IDS_SKIPPED, ..new };
    Ok(Some((PartitionPrefix::object(bucket.id, "").object_row(&ObjectRow::Tree), tree.encode())))
}

fn decode(key: &[u8]) -> Result<ObjectKey<'_>, ObjectError> {
    ObjectKey::decode(key)
        .map_err(|error| ObjectError::damaged(format_args!("the key of an object: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::bucket::{BucketParameters, next_id};
    use super::super::micros::Micros;
    use super::*;

    #[test]
    fn ids_of_buckets_and_folders_go_on_above_all_that_were_given() {
        let last = PartitionPrefix::bucket_ids().bucket_row(&BucketRow::LastId);
        let (_, row) = next_id(None).unwrap();
        let on = counted_on(&last, Some(&Bytes::from(row))).unwrap().unwrap();
        assert_eq!(next_id(Some(&on)).unwrap().0, BucketId(IDS_SKIPPED + 2));
        assert!(counted_on(&last, None).unwrap().is_some(), "buckets may have been made since");
        let bucket = PartitionPrefix::bucket("photos").bucket_row(&BucketRow::Bucket);
        assert_eq!(counted_on(&bucket, Some(&Bytes::new())).unwrap(), None);

        let of_folders = PartitionPrefix::object(BucketId(7), "");
        let tree = Tree { changes: 3, next: 9 };
        let on = counted_on(&of_folders.object_row(&ObjectRow::Tree), Some(&tree.encode().into())).unwrap();
        assert_eq!(Tree::read(on).unwrap(), Tree { changes: 3, next: 9 + IDS_SKIPPED });
    }

    fn bucket_with_folders(enabled: bool) -> Bucket {
        let body = json!({
            "name": "photos",
            "hierarchicalNamespace": {"enabled": enabled},
            "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": true}},
        });
        let (body, parameters) = (body.as_object().unwrap(), BucketParameters::default());
        Bucket::insert(BucketId(7), "p", body, parameters, Micros::new(1)).unwrap()
    }

    #[test]
    fn a_bucket_with_folders_gets_a_count_far_on_and_others_get_none() {
        for (enabled, is_counted) in [(true, true), (false, false)] {
            let bucket = bucket_with_folders(enabled);
            for row in [BucketRow::Bucket, BucketRow::Deleted(bucket.id)] {
                let key = PartitionPrefix::bucket("photos").bucket_row(&row);
                let count = folder_count(&key, &bucket.encode().into()).unwrap();
                assert_eq!(count.is_some(), is_counted);
                let Some((key, row)) = count else { continue };
                assert_eq!(key, PartitionPrefix::object(bucket.id, "").object_row(&ObjectRow::Tree));
                assert_eq!(Tree::read(Some(row)).unwrap(), Tree { changes: 0, next: IDS_SKIPPED + 1 });
            }
        }
        let key = PartitionPrefix::bucket_ids().bucket_row(&BucketRow::LastId);
        assert_eq!(folder_count(&key, &Bytes::new()).unwrap(), None);
    }

    #[test]
    fn a_part_uses_the_blobs_of_its_upload_and_a_damaged_row_is_told_of() {
        let partition = PartitionPrefix::object(BucketId(7), "a/b");
        let key = |row| partition.object_row(&row);
        let extent =
            rangehold_map::blob::Extent { blob: BlobId(4), first: 0, chunk_bytes: 5, bytes: 5, crc32c: 0 };
        let part = Part {
            modified: Micros::new(1),
            md5: super::super::checksum::Md5([1; 16]),
            crc32c: super::super::checksum::Crc32c(1),
            extents: vec![extent],
        };
        let row = ObjectRow::Part { upload: "own".into(), part: 1 };
        let user = BlobUser { bucket: BucketId(7), name: "a/b".into(), upload: "own".into() };
        assert_eq!(uses(&key(row), &part.encode().into()).unwrap(), [(BlobId(4), user)]);
        assert!(uses(&key(ObjectRow::Head), &Bytes::from_static(b"damaged")).is_err());
        assert!(uses(&key(ObjectRow::Tree), &Bytes::new()).unwrap().is_empty());
    }
}
