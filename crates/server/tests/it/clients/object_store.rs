//! Rust's crate `object_store`: the tests that it has for Google's service, and a job that asks for more than a bucket bears.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{StreamExt, TryStreamExt, stream};
use object_store::gcp::GoogleCloudStorage;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, integration};
use rangehold_server::profile::{ObjectRules, Profile};
use rangehold_testkit::google_store::google_store;

use crate::support::Service;

/// A job that a bucket that takes ten writes a second does not bear at once.
const OBJECTS: usize = 24;
/// Writes at once: a few more than wait in the server for a second. The crate's ten retries may be over after little more
/// than that, so many more would not all be let in.
const PARALLEL: usize = 13;

/// The service's bucket `photos`, which is made, and a count of what is refused.
async fn photos(service: &Service) -> (GoogleCloudStorage, Arc<AtomicU64>) {
    let body = r#"{"name":"photos","versioning":{"enabled":true}}"#;
    service.object_json("POST", "/storage/v1/b?project=p", body).await;
    let (address, refusals) = (service.running.object_address.expect("objects are served"), Arc::default());
    (google_store(address, "photos", &refusals).expect("a store"), refusals)
}

#[tokio::test]
async fn the_tests_of_the_crate_for_objects_and_listings_pass() {
    let service = Service::start().await;
    let (store, _) = photos(&service).await;
    integration::put_get_delete_list(&store).await;
    integration::list_with_offset_exclusivity(&store).await;
    integration::list_uses_directories_correctly(&store).await;
    integration::list_with_delimiter(&store).await;
    integration::list_paginated(&store, &store).await;
    integration::rename_and_copy(&store).await;
    integration::copy_if_not_exists(&store).await;
    integration::copy_rename_nonexistent_object(&store).await;
    integration::get_opts(&store).await;
    integration::put_opts(&store, true).await;
    integration::put_get_attributes(&store).await;
}

#[tokio::test]
async fn the_tests_of_the_crate_for_uploads_in_parts_pass() {
    let service = Service::start().await;
    let (store, _) = photos(&service).await;
    integration::stream_get(&store).await;
    integration::multipart(&store, &store).await;
    integration::multipart_with_opts(&store, &store).await;
    integration::multipart_put_part_out_of_order(&store, &store).await;
    integration::multipart_race_condition(&store, true).await;
    integration::multipart_out_of_order(&store).await;
}

#[tokio::test]
async fn the_default_retries_finish_a_job_that_is_too_fast() {
    let cloud = ObjectRules::cloud();
    // Ten writes and fifty reads a second.
    let rates = cloud.rates.clone().scaled(0.01);
    let objects = Some(ObjectRules { rates, ..cloud });
    let service = Service::with_profile(Profile { objects, ..Profile::cloud() }).await;
    let (store, refusals) = photos(&service).await;
    let names: Vec<Path> = (0..OBJECTS).map(|number| Path::from(format!("{number:02}"))).collect();
    let puts = names.iter().map(|name| store.put(name, name.to_string().into()));
    stream::iter(puts).buffer_unordered(PARALLEL).try_collect::<Vec<_>>().await.expect("all are put");
    let listed: Vec<Path> =
        store.list(None).map_ok(|found| found.location).try_collect().await.expect("a listing");
    assert_eq!(listed, names);
    assert!(refusals.load(Ordering::Relaxed) > 0, "some were refused first");
}
