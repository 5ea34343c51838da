//! Managed folders, which carry policies for the names below them.

use std::time::Duration;

use serde_json::Value;

use crate::support::{Service, Wanted};

const FOLDERS: &str = "/storage/v1/b/photos/managedFolders";

async fn make(service: &Service, name: &str) -> Value {
    service.object_json("POST", FOLDERS, &format!(r#"{{"name":"{name}"}}"#)).await
}

#[tokio::test]
async fn managed_folders_are_listed_in_pages() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    for name in ["a/", "b/", "b/c/", "d/"] {
        make(&service, name).await;
    }
    let names = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().expect("a list");
        items.iter().map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
    };
    let first = service.object_json("GET", &format!("{FOLDERS}?pageSize=3"), "").await;
    assert_eq!(names(&first), ["a/", "b/", "b/c/"]);
    let token = first["nextPageToken"].as_str().expect("a token");
    let second = service.object_json("GET", &format!("{FOLDERS}?pageSize=3&pageToken={token}"), "").await;
    assert_eq!((names(&second), &second["nextPageToken"]), (vec!["d/".to_owned()], &Value::Null));
    let below = service.object_json("GET", &format!("{FOLDERS}?prefix=b/&pageSize=0"), "").await;
    assert_eq!(names(&below), ["b/", "b/c/"]);
}

#[tokio::test]
async fn a_managed_folder_has_a_name_that_an_object_could_have() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    for (name, status) in [("", 400), ("/", 400), (&"x".repeat(1_024), 400), (&"x".repeat(1_023), 200)] {
        let body = serde_json::json!({ "name": name }).to_string();
        let answer = service.object("POST", FOLDERS, &body).await;
        assert_eq!(answer.status, status, "{} bytes: {}", name.len(), answer.body);
    }
}

#[tokio::test]
async fn conditions_on_a_managed_folder_look_at_its_metageneration() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    assert_eq!(make(&service, "a/").await["metageneration"], "1");
    for (method, condition, status) in [
        ("GET", "ifMetagenerationMatch=1", 200),
        ("GET", "ifMetagenerationMatch=2", 412),
        ("GET", "ifMetagenerationNotMatch=1", 304),
        ("DELETE", "ifMetagenerationMatch=2", 412),
        ("DELETE", "ifMetagenerationNotMatch=1", 412),
        ("DELETE", "ifMetagenerationMatch=1", 204),
    ] {
        let answer = service.object(method, &format!("{FOLDERS}/a%2F?{condition}"), "").await;
        assert_eq!(answer.status, status, "{method} {condition}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_managed_folder_in_which_something_lies_is_deleted_only_if_the_client_says_so() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    for name in ["a/", "b/", "b/c/"] {
        make(&service, name).await;
    }
    let upload = "/upload/storage/v1/b/photos/o?uploadType=media&name=a/1";
    assert_eq!(service.object("POST", upload, "{}").await.status, 200);
    for (target, status) in [
        ("a%2F", 409),
        ("b%2F", 409),
        ("b%2F?allowNonEmpty=true", 204),
        ("b%2Fc%2F", 204),
        ("a%2F?ifMetagenerationMatch=9", 412),
        ("a%2F?allowNonEmpty=true", 204),
        ("a%2F", 404),
    ] {
        let answer = service.object("DELETE", &format!("{FOLDERS}/{target}"), "").await;
        assert_eq!(answer.status, status, "{target}: {}", answer.body);
    }
    assert_eq!(service.object("GET", "/storage/v1/b/photos/o/a%2F1", "").await.status, 200);
}

#[tokio::test]
async fn managed_folders_are_prefixes_of_a_listing_that_asks_for_them() {
    are_prefixes(Wanted::default()).await;
}

#[tokio::test]
async fn managed_folders_are_prefixes_of_pages_that_have_no_time() {
    are_prefixes(Wanted { page_within: Duration::ZERO, ..Wanted::default() }).await;
}

/// Lists a bucket with and one without a hierarchical namespace, in which the same managed folders and objects lie.
async fn are_prefixes(wanted: Wanted) {
    let service = Service::open(wanted).await.with_tree().await;
    service.create_bucket("wide").await;
    for bucket in ["wide", "tree"] {
        for name in ["a/", "b/c/", "b/d/e/", "c/", "e/"] {
            let folders = format!("/storage/v1/b/{bucket}/managedFolders");
            service.object_json("POST", &folders, &format!(r#"{{"name":"{name}"}}"#)).await;
        }
        for name in ["a", "a/1", "b/d/1", "c/", "d", "f/1"] {
            assert_eq!(service.store(bucket, name, b"x").await, 200);
        }
    }
    // Of the bucket whose name comes last.
    service.split_objects("c").await;
    for (query, names, prefixes) in [
        ("", &["a", "d"][..], &["a/", "b/", "c/", "e/", "f/"][..]),
        ("startOffset=b/d/&endOffset=e", &["d"], &["b/", "c/"]),
        ("startOffset=c0", &["d"], &["e/", "f/"]),
        ("prefix=b/", &[], &["b/c/", "b/d/"]),
        ("prefix=b/d/", &["b/d/1"], &["b/d/e/"]),
        ("matchGlob=e**", &[], &["e/"]),
        ("includeTrailingDelimiter=true", &["a", "c/", "d"], &["a/", "b/", "c/", "e/", "f/"]),
        ("versions=true", &["a", "d"], &["a/", "b/", "c/", "e/", "f/"]),
    ] {
        for bucket in ["wide", "tree"] {
            for most in [1, 2, 1_000] {
                let query = format!("delimiter=/&includeFoldersAsPrefixes=true&maxResults={most}&{query}");
                let found = service.listed(bucket, &query).await;
                assert_eq!(
                    (&found.0[..], &found.1[..]),
                    (&owned(names)[..], &owned(prefixes)[..]),
                    "{bucket} {query}"
                );
            }
        }
    }
    let page = "/storage/v1/b/wide/o?delimiter=/&includeFoldersAsPrefixes=true&maxResults=2";
    let page = service.object_json("GET", page, "").await;
    let count = |list: &str| page[list].as_array().map_or(0, Vec::len);
    assert!(count("items") + count("prefixes") <= 2, "{page}");
    let (_, prefixes) = service.listed("wide", "delimiter=/").await;
    assert_eq!(prefixes, ["a/", "b/", "c/", "f/"], "only those in which an object lies");
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
