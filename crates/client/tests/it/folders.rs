//! Folders of a bucket with a hierarchical namespace, at a real server.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use rangehold_client::Policy;
use rangehold_client::object::{Bucket, Condition, Content, Error, Folder, Listing, Storage};
use serde_json::{Value, json};

use super::support::Home;
use super::support::way::{Fate, Way, bucket, bucket_of};

fn with_folders() -> Value {
    json!({
        "hierarchicalNamespace": { "enabled": true },
        "iamConfiguration": { "uniformBucketLevelAccess": { "enabled": true } },
    })
}

async fn tree() -> Option<(Home, Arc<Way>, Storage, Bucket)> {
    let retry = Policy::fixed(Duration::from_millis(1), 4);
    bucket_of(Home::open(), "tree", &with_folders(), retry, None).await
}

async fn put(bucket: &Bucket, name: &str) -> i64 {
    let made = bucket.upload(name, Content::from(name.to_owned()), Condition::Absent).await;
    made.expect("the name is new").generation.0
}

async fn found(bucket: &Bucket, name: &str) -> Folder {
    bucket.folder(name).await.expect("it can be read").expect("it is there")
}

async fn folders(bucket: &Bucket, prefix: &str) -> Vec<String> {
    let found: Vec<Folder> = bucket.folders(prefix).try_collect().await.expect("they can be listed");
    found.into_iter().map(|folder| folder.name).collect()
}

/// Names and generations.
async fn objects(bucket: &Bucket) -> Vec<(String, i64)> {
    let found = bucket.list(Listing::default()).map_ok(|object| (object.name, object.generation.0));
    found.try_collect().await.expect("they can be listed")
}

fn assert_status<T: std::fmt::Debug>(result: Result<T, Error>, status: u16) {
    let error = result.expect_err("it is refused");
    assert!(error.has_status(status), "{status}: {error}");
}

#[tokio::test]
async fn folders_are_made_listed_renamed_and_deleted() {
    let Some((_home, way, _storage, bucket)) = tree().await else { return };
    assert!(bucket.has_folders().await.expect("it can be read"));
    assert_status(bucket.create_folder("a/b", false).await, 412);
    let made = bucket.create_folder("a/b", true).await.expect("the folder above it is made too");
    assert_eq!((made.name.as_str(), made.metageneration.0), ("a/b/", 1));
    assert_status(bucket.create_folder("a/b/", true).await, 409);
    let kept = [put(&bucket, "a/1").await, put(&bucket, "a/b/2").await, put(&bucket, "c/3").await];
    assert_eq!(folders(&bucket, "").await, ["a/", "a/b/", "c/"]);
    assert_eq!(folders(&bucket, "a/b").await, ["a/b/"]);
    assert_eq!(bucket.folder("none").await.expect("it can be asked for"), None);

    let folder = found(&bucket, "a").await;
    assert_status(bucket.rename_folder(&folder, "c").await, 409);
    assert_status(bucket.rename_folder(&folder, "none/x").await, 412);
    way.next(&[]);
    let renamed = bucket.rename_folder(&folder, "c/z").await.expect("the name is free");
    assert_eq!((renamed.name.as_str(), way.sent()), ("c/z/", 1), "whatever lies in it");
    let names = ["c/3", "c/z/1", "c/z/b/2"].map(str::to_owned);
    let moved = names.into_iter().zip([kept[2], kept[0], kept[1]]).collect::<Vec<_>>();
    assert_eq!(objects(&bucket).await, moved, "generations stay");
    // What was looked up before another rename is not renamed by accident.
    assert_status(bucket.rename_folder(&folder, "d").await, 404);
    bucket.rename_folder(&renamed, "a").await.expect("the name is free again");
    assert_status(bucket.rename_folder(&folder, "d").await, 412);

    assert_status(bucket.delete_folder("a").await, 412);
    bucket.delete_folder("c/z").await.expect_err("it has another name");
    for name in ["a/1", "a/b/2"] {
        bucket.delete(name, Condition::Any).await.expect("it is there");
    }
    bucket.delete_folder("a/b").await.expect("nothing lies in it");
    bucket.delete_folder("a/").await.expect("nothing lies in it");
    assert_status(bucket.delete_folder("a").await, 404);
    assert_eq!(folders(&bucket, "").await, ["c/"]);
    for wrong in ["", "a\nb"] {
        let refused = bucket.create_folder(wrong, true).await.expect_err("it is not a name");
        assert!(matches!(refused, Error::Invalid(_)), "{refused}");
    }
}

#[tokio::test]
async fn a_rename_that_may_have_been_made_is_looked_at_and_one_that_goes_on_is_waited_for() {
    let Some((_home, way, _storage, bucket)) = tree().await else { return };
    put(&bucket, "a/1").await;
    let folder = found(&bucket, "a").await;
    // The second attempt is refused because of the first one, and the folder tells that.
    way.next(&[Fate::AnswerLost]);
    let renamed = bucket.rename_folder(&folder, "c").await.expect("it was made");
    assert_eq!((renamed.name.as_str(), way.sent()), ("c/", 3), "two attempts and a look");
    // Another client's folder has the name.
    bucket.create_folder("d", false).await.expect("the name is new");
    way.next(&[Fate::Refused(503)]);
    let unknown = bucket.rename_folder(&renamed, "d").await.expect_err("the name is taken");
    assert!(matches!(&unknown, Error::OutcomeUnknown(about) if about.target == "tree/c/"), "{unknown}");
    way.next(&[Fate::Unfinished]);
    let renamed = bucket.rename_folder(&renamed, "e").await.expect("it ends");
    assert_eq!((renamed.name.as_str(), way.sent()), ("e/", 2), "it is asked for once");
    assert_eq!(objects(&bucket).await.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["e/1"]);
}

#[tokio::test]
async fn a_bucket_without_folders_says_so() {
    let Some((_home, _way, _storage, bucket)) = bucket("flat").await else { return };
    assert!(!bucket.has_folders().await.expect("it can be read"));
    assert_status(bucket.create_folder("a", false).await, 400);
}
