//! Folders of buckets with a hierarchical namespace: listings are those of flat names, and a rename or deletion is one change
//! or none, also beside writes that looked before it, and after a crash at any of its steps.

mod renames;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use rangehold_engine::store::Store;
use rangehold_engine::{NamesHook, NamesStep};
use rangehold_map::key::names_from;
use rangehold_map::{BucketId, Change};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::support::wire::{self, Request};
use crate::support::{Service, Wanted};

const TREE: &str = r#"{"name":"tree","hierarchicalNamespace":{"enabled":true},
    "iamConfiguration":{"uniformBucketLevelAccess":{"enabled":true}},
    "softDeletePolicy":{"retentionDurationSeconds":"0"}}"#;
const FOLDERS: &str = "/storage/v1/b/tree/folders";

impl Service {
    pub(super) async fn with_tree(self) -> Self {
        self.object_json("POST", "/storage/v1/b?project=p", TREE).await;
        self
    }

    async fn tree_on(objects: &Arc<dyn ObjectStore>, after_names_step: NamesHook) -> Self {
        let store = Store::on(Arc::clone(objects));
        Self::open(Wanted { store, after_names_step, ..Wanted::default() }).await
    }

    pub(super) async fn store(&self, bucket: &str, name: &str, bytes: &[u8]) -> u16 {
        let name = name.replace('/', "%2F");
        let target = format!("/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}");
        self.send_object(&Request::new("POST", &target, &[], bytes)).await.status
    }

    async fn renames(&self, from: &str, to: &str) -> u16 {
        let target = format!("{FOLDERS}/{}/renameTo/folders/{}", segment(from), segment(to));
        self.object("POST", &target, "").await.status
    }

    /// All names and prefixes that the pages of a listing show.
    pub(super) async fn listed(&self, bucket: &str, query: &str) -> (Vec<String>, Vec<String>) {
        let (mut names, mut prefixes, mut token) = (Vec::new(), Vec::new(), String::new());
        for _ in 0..200 {
            let page = format!("/storage/v1/b/{bucket}/o?{query}{token}");
            let page = self.object_json("GET", &page, "").await;
            let items = page["items"].as_array().map_or(&[][..], Vec::as_slice);
            names.extend(items.iter().map(|item| item["name"].as_str().expect("a name").to_owned()));
            let some = page["prefixes"].as_array().map_or(&[][..], Vec::as_slice);
            prefixes.extend(some.iter().map(|prefix| prefix.as_str().expect("a prefix").to_owned()));
            match page["nextPageToken"].as_str() {
                Some(next) => token = format!("&pageToken={next}"),
                None => return (names, prefixes),
            }
        }
        panic!("a listing without an end: {query}");
    }

    /// All names and prefixes that the pages of the XML API show, each of which begins after a name.
    async fn listed_by_markers(&self, bucket: &str, query: &str) -> Vec<String> {
        let (mut all, mut marker) = (Vec::new(), String::new());
        for _ in 0..200 {
            let page = self.object("GET", &format!("/{bucket}?{query}&marker={marker}"), "").await.body;
            let of = |element: &str| -> Vec<String> {
                let (begin, end) = (format!("<{element}>"), format!("</{element}>"));
                let parts = page.split(&begin).skip(1);
                parts.map(|part| part.split(&end).next().unwrap_or_default().to_owned()).collect()
            };
            all.extend(of("Key"));
            // The first one is the prefix that was asked for.
            all.extend(of("Prefix").into_iter().skip(1));
            match of("NextMarker").pop() {
                Some(next) => marker = segment(&next),
                None => {
                    all.sort();
                    return all;
                }
            }
        }
        panic!("a listing without an end: {query}");
    }

    async fn object_names(&self) -> Vec<String> {
        self.listed("tree", "").await.0
    }

    /// Lets a range begin among the objects of the bucket's folders. The bucket is the first one.
    async fn split_tree(&self) {
        let at = [names_from(BucketId(1), "0000000000000001/m"), vec![0]].concat();
        let map = self.node.router().map();
        let entry = map.lookup(&at).expect("a map has all keys");
        let split = Change::Split { range: entry.id, generation: entry.generation, at };
        self.node.executor().carry_out(&split).await.expect("it can be split");
    }

    fn objects_at(&self) -> SocketAddr {
        self.running.object_address.expect("objects are served")
    }
}

fn segment(name: &str) -> String {
    name.replace('/', "%2F")
}

/// A request that brings half of an object, and the rest later. It has looked for its folder before the second half.
struct Slow(TcpStream);

impl Slow {
    async fn begin(service: &Service, name: &str) -> Self {
        let mut stream = TcpStream::connect(service.objects_at()).await.expect("a connection");
        let name = segment(name);
        let head = format!(
            "POST /upload/storage/v1/b/tree/o?uploadType=media&name={name} HTTP/1.1\r\nHost: localhost\r\n\
             Content-Length: 10\r\nConnection: close\r\n\r\n12345"
        );
        stream.write_all(head.as_bytes()).await.expect("it is sent");
        let (folder, _) = name.rsplit_once("%2F").expect("a folder");
        // The look makes the folder.
        while service.object("GET", &format!("{FOLDERS}/{folder}%2F"), "").await.status != 200 {
            tokio::task::yield_now().await;
        }
        Self(stream)
    }

    /// The status of the answer.
    async fn end(mut self) -> u16 {
        self.0.write_all(b"67890").await.expect("it is sent");
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).await.expect("an answer");
        answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }
}

#[tokio::test]
async fn a_bucket_with_folders_is_listed_as_one_without() {
    is_listed_as_one_without(Wanted::default()).await;
}

#[tokio::test]
async fn a_bucket_with_folders_is_listed_as_one_without_by_pages_that_have_no_time() {
    is_listed_as_one_without(Wanted { page_within: Duration::ZERO, ..Wanted::default() }).await;
}

async fn is_listed_as_one_without(wanted: Wanted) {
    let service = Service::open(wanted).await.with_tree().await;
    service.create_bucket("flat").await;
    let names = [
        "a", "a-b/x", "a.txt", "a/1", "a/2", "a/", "a/b/c/d", "a/b/c/e", "a/b0", "b//x", "c/d/", "/top",
        "é/ü", "z",
    ];
    for name in names {
        assert_eq!(
            [service.store("flat", name, b"x").await, service.store("tree", name, b"x").await],
            [200; 2]
        );
    }
    service.split_tree().await;
    let prefixes = ["", "a", "a/", "a/b", "a/b/", "a-", "b/", "b//", "none/", "%C3%A9/", "/"];
    let others = [
        "",
        "&startOffset=a/2",
        "&startOffset=a/b/c/e",
        "&endOffset=a/b/",
        "&startOffset=a.&endOffset=c",
        "&includeTrailingDelimiter=true",
        "&matchGlob=a**e",
        "&matchGlob=*/b**",
    ];
    for prefix in prefixes {
        for other in others {
            for delimiter in ["", "/"] {
                for most in [1, 3, 100] {
                    let query = format!("prefix={prefix}&delimiter={delimiter}&maxResults={most}{other}");
                    assert_eq!(
                        service.listed("tree", &query).await,
                        service.listed("flat", &query).await,
                        "{query}"
                    );
                }
            }
        }
    }
    for prefix in prefixes {
        for delimiter in ["", "%2F"] {
            for most in [1, 3, 100] {
                let query = format!("delimiter={delimiter}&prefix={prefix}&max-keys={most}");
                assert_eq!(
                    service.listed_by_markers("tree", &query).await,
                    service.listed_by_markers("flat", &query).await,
                    "{query}"
                );
            }
        }
    }
    let all = service.listed_by_markers("tree", "delimiter=%2F").await;
    assert_eq!(all, ["/", "a", "a-b/", "a.txt", "a/", "b/", "c/", "z", "é/"]);
}

#[tokio::test]
async fn folders_are_made_by_hand_or_by_writes_and_deleted_when_they_are_empty() {
    let service = Service::start().await.with_tree().await;
    let status =
        async |method: &str, target: &str, body: &str| service.object(method, target, body).await.status;
    let insert = |name: &str| json!({ "name": name }).to_string();
    assert_eq!(status("POST", FOLDERS, &insert("a/b/")).await, 412, "its parent is missing");
    let made = service.object_json("POST", &format!("{FOLDERS}?recursive=true"), &insert("a/b")).await;
    assert_eq!((&made["name"], &made["kind"]), (&json!("a/b/"), &json!("storage#folder")));
    assert_eq!(made["metageneration"], "1");
    assert_eq!(status("POST", FOLDERS, &insert("a/b/")).await, 409);
    assert_eq!(service.store("tree", "c/d/e", b"x").await, 200);
    let list = async |query: &str| {
        let listed = service.object_json("GET", &format!("{FOLDERS}?{query}"), "").await;
        let items = listed["items"].as_array().expect("items").clone();
        items.iter().map(|item| item["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list("").await, ["a/", "a/b/", "c/", "c/d/"]);
    assert_eq!(list("delimiter=/").await, ["a/", "c/"]);
    assert_eq!(list("prefix=c/&delimiter=/").await, ["c/", "c/d/"]);
    assert_eq!(list("startOffset=a/b/&endOffset=c/d/").await, ["a/b/", "c/"]);
    let first = service.object_json("GET", &format!("{FOLDERS}?pageSize=3"), "").await;
    let token = first["nextPageToken"].as_str().expect("there is more");
    assert_eq!(list(&format!("pageToken={token}")).await, ["c/d/"]);
    let (names, prefixes) = service.listed("tree", "delimiter=/").await;
    assert_eq!((names.len(), prefixes), (0, vec!["c/".to_owned()]), "a folder without objects is not listed");
    let (_, prefixes) = service.listed("tree", "delimiter=/&includeFoldersAsPrefixes=true").await;
    assert_eq!(prefixes, ["a/", "c/"]);
    assert_eq!(status("DELETE", &format!("{FOLDERS}/a%2F"), "").await, 412);
    assert_eq!(status("DELETE", &format!("{FOLDERS}/c%2Fd%2F"), "").await, 412);
    assert_eq!(status("DELETE", "/storage/v1/b/tree/o/c%2Fd%2Fe", "").await, 204);
    for folder in ["c%2Fd", "c", "a%2Fb%2F"] {
        assert_eq!(status("DELETE", &format!("{FOLDERS}/{folder}"), "").await, 204, "{folder}");
    }
    assert_eq!(status("DELETE", "/storage/v1/b/tree", "").await, 409, "a folder is left");
    assert_eq!(service.store("tree", "a/x/y", b"x").await, 200);
    let done = service.object_json("POST", &format!("{FOLDERS}/a/deleteRecursive"), "").await;
    assert_eq!(done["done"], true);
    assert_eq!(list("").await, [""; 0]);
    assert_eq!(status("DELETE", "/storage/v1/b/tree", "").await, 204);
    let bucket = |more: &str| TREE.replace(r#""name":"tree""#, &format!(r#""name":"other",{more}"#));
    let versions = bucket(r#""versioning":{"enabled":true}"#);
    assert_eq!(status("POST", "/storage/v1/b?project=p", &versions).await, 400);
    service.create_bucket("flat").await;
    assert_eq!(status("POST", "/storage/v1/b/flat/folders", &insert("a/")).await, 400);
}

#[tokio::test]
async fn a_write_with_a_condition_that_cannot_be_read_makes_no_folders() {
    let service = Service::start().await.with_tree().await;
    assert_eq!(service.store("tree", "a", b"bytes").await, 200);
    let wrong = ("x-goog-if-generation-match", "x");
    let from = ("x-goog-copy-source", "/tree/a");
    let upload = "/upload/storage/v1/b/tree/o?name=new%2Fa&ifGenerationMatch=x&uploadType=";
    let json: &[(&str, &str)] = &[];
    for (method, target, headers) in [
        ("POST", format!("{upload}media"), json),
        ("POST", format!("{upload}resumable"), json),
        ("POST", "/storage/v1/b/tree/o/a/moveTo/o/new%2Fa?ifGenerationMatch=x".to_owned(), json),
        ("POST", "/storage/v1/b/tree/o/a/copyTo/b/tree/o/new%2Fa?ifGenerationMatch=x".to_owned(), json),
        ("PUT", "/tree/new/a".to_owned(), &[wrong]),
        ("PUT", "/tree/new/a".to_owned(), &[wrong, from]),
        ("POST", "/tree/new/a?uploads".to_owned(), &[wrong]),
    ] {
        let answer = service.send_object(&Request::new(method, &target, headers, b"")).await;
        assert_eq!(answer.status, 400, "{method} {target}: {}", answer.body);
        let folder = service.object("GET", &format!("{FOLDERS}/new%2F"), "").await;
        assert_eq!(folder.status, 404, "{method} {target} {headers:?}");
    }
}

#[tokio::test]
async fn a_rename_moves_all_that_lies_in_a_folder_and_nothing_else() {
    let service = Service::start().await.with_tree().await;
    for name in ["a/1", "a/b/2", "a", "ab/3", "c/4"] {
        assert_eq!(service.store("tree", name, name.as_bytes()).await, 200);
    }
    let before = service.object_json("GET", "/storage/v1/b/tree/o/a%2Fb%2F2", "").await;
    let session = "/upload/storage/v1/b/tree/o?uploadType=resumable&name=a%2Fb%2F5";
    let session = service.object("POST", session, "").await;
    let session = session.header("x-guploader-uploadid").expect("an id").to_owned();
    for (from, to, status) in [
        ("none/", "d/", 404),
        ("a/", "c/", 409),
        ("a/", "a/b/x/", 400),
        ("a/", "no/x/", 412),
        ("a/", "a/", 400),
    ] {
        assert_eq!(service.renames(from, to).await, status, "{from} {to}");
    }
    let target = format!("{FOLDERS}/a%2F/renameTo/folders/c%2Fz%2F?ifSourceMetagenerationMatch=2");
    assert_eq!(service.object("POST", &target, "").await.status, 412);
    let done = service.object_json("POST", &target.replace("=2", "=1"), "").await;
    assert_eq!((&done["done"], &done["response"]["name"]), (&json!(true), &json!("c/z/")));
    let name = done["name"].as_str().and_then(|name| name.rsplit('/').next()).expect("an id").to_owned();
    let asked = service.object_json("GET", &format!("/storage/v1/b/tree/operations/{name}"), "").await;
    assert_eq!(asked, done);
    assert_eq!(service.object_names().await, ["a", "ab/3", "c/4", "c/z/1", "c/z/b/2"]);
    let after = service.object_json("GET", "/storage/v1/b/tree/o/c%2Fz%2Fb%2F2", "").await;
    assert_eq!((&after["generation"], &after["name"]), (&before["generation"], &json!("c/z/b/2")));
    assert_eq!(service.object("GET", "/storage/v1/b/tree/o/a%2Fb%2F2?alt=media", "").await.status, 404);
    let media = service.object("GET", "/storage/v1/b/tree/o/c%2Fz%2Fb%2F2?alt=media", "").await;
    assert_eq!((media.status, media.body.as_str()), (200, "a/b/2"));
    let rest = format!("/upload/storage/v1/b/tree/o?upload_id={session}");
    assert_eq!(service.object("PUT", &rest, "x").await.status, 404, "its folder has another name by now");
    // What has the old name next lies in a new folder.
    assert_eq!(service.store("tree", "a/1", b"new").await, 200);
    let moved = service.object("POST", "/storage/v1/b/tree/o/c%2Fz%2F1/moveTo/o/a%2F9", "").await;
    assert_eq!(moved.status, 200, "{}", moved.body);
    let parts = r#"{"sourceObjects":[{"name":"a/1"},{"name":"a/9"}]}"#;
    service.object_json("POST", "/storage/v1/b/tree/o/q%2Fr/compose", parts).await;
    let copied = service.object("POST", "/storage/v1/b/tree/o/q%2Fr/rewriteTo/b/tree/o/s%2Ft", "").await;
    assert_eq!(copied.status, 200, "{}", copied.body);
    let body = service.object("GET", "/storage/v1/b/tree/o/s%2Ft?alt=media", "").await.body;
    assert_eq!(body, "newa/1");
    let expected = ["a", "a/1", "a/9", "ab/3", "c/4", "c/z/b/2", "q/r", "s/t"];
    assert_eq!(service.object_names().await, expected);
}

#[tokio::test]
async fn many_objects_are_deleted_and_restored_by_their_whole_names() {
    let service = Service::start().await;
    let kept = TREE.replace(r#""0""#, r#""604800""#);
    service.object_json("POST", "/storage/v1/b?project=p", &kept).await;
    for name in ["a/x/1", "a/x/2", "b/3", "c/4"] {
        assert_eq!(service.store("tree", name, name.as_bytes()).await, 200);
    }
    let keys = ["a/x/1", "a/x/2", "b/3", "none/5"].map(|name| format!("<Object><Key>{name}</Key></Object>"));
    let many = format!("<Delete>{}</Delete>", keys.concat());
    let deleted = service.send_object(&Request::new("POST", "/tree?delete", &[], many.as_bytes())).await;
    assert_eq!((deleted.status, deleted.body.matches("<Deleted>").count()), (200, 4), "{}", deleted.body);
    assert_eq!(service.object_names().await, ["c/4"]);
    assert_eq!(service.renames("a/", "d/").await, 200);
    assert_eq!(service.object("DELETE", &format!("{FOLDERS}/b"), "").await.status, 204);
    // The new name counts, and the folder that was deleted stays so.
    for (globs, succeeded, failed) in [("a/**", "0", "0"), ("d/**", "2", "0"), ("**", "0", "1")] {
        let body = json!({ "matchGlobs": [globs] }).to_string();
        let mut done = service.object_json("POST", "/storage/v1/b/tree/o/bulkRestore", &body).await;
        let id = done["name"].as_str().and_then(|name| name.rsplit('/').next()).expect("an id").to_owned();
        while done["done"] != true {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            done = service.object_json("GET", &format!("/storage/v1/b/tree/operations/{id}"), "").await;
        }
        let counts = (&done["metadata"]["succeededCount"], &done["metadata"]["failedCount"]);
        assert_eq!(counts, (&json!(succeeded), &json!(failed)), "{globs}: {done}");
    }
    assert_eq!(service.object_names().await, ["c/4", "d/x/1", "d/x/2"]);
}

#[tokio::test]
async fn a_write_that_looked_before_a_rename_or_deletion_does_not_land_after_it() {
    let service = Service::start().await.with_tree().await;
    // In the folder itself, and in one below it. What was written meanwhile under the new name stays.
    for slow in ["a/x", "a/b/x"] {
        let late = Slow::begin(&service, slow).await;
        assert_eq!(service.renames("a/", "n/").await, 200);
        let new = slow.replace("a/", "n/");
        assert_eq!(service.store("tree", &new, b"newer").await, 200);
        assert_eq!(late.end().await, 503, "{slow}");
        let body = service
            .object("GET", &format!("/storage/v1/b/tree/o/{}?alt=media", segment(&new)), "")
            .await
            .body;
        assert_eq!(body, "newer");
        assert_eq!(service.object_names().await, [new]);
        service.object_json("POST", &format!("{FOLDERS}/n/deleteRecursive"), "").await;
    }
    let late = Slow::begin(&service, "d/x").await;
    assert_eq!(service.object("DELETE", &format!("{FOLDERS}/d"), "").await.status, 204);
    assert_eq!((late.end().await, service.object_names().await.len()), (503, 0));
    // One that the change does not touch goes on, also if the change was announced by a process that is gone.
    let late = Slow::begin(&service, "e/f/x").await;
    assert_eq!(service.store("tree", "g/y", b"y").await, 200);
    assert_eq!(service.renames("g/", "h/").await, 200);
    assert_eq!(late.end().await, 200);
    assert_eq!(service.object_names().await, ["e/f/x", "h/y"]);
}

/// A hook after whose n-th call of the steps of folders the process does nothing any more.
fn dies_at(step: usize) -> (NamesHook, Arc<Notify>) {
    let (died, reached) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let told = Arc::clone(&died);
    let hook = NamesHook::new(move |at, _| {
        let (told, reached) = (Arc::clone(&told), Arc::clone(&reached));
        async move {
            let counts = matches!(at, NamesStep::Announced | NamesStep::FolderChanged);
            if counts && reached.fetch_add(1, Ordering::SeqCst) == step {
                told.notify_one();
                future::pending::<()>().await;
            }
        }
    });
    (hook, died)
}

#[tokio::test]
async fn after_a_crash_at_any_step_a_folder_has_one_name_and_all_that_lay_in_it() {
    for (step, deletes) in [(0, false), (1, false), (0, true), (1, true)] {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let (hook, died) = dies_at(step);
        let service = Service::tree_on(&objects, hook).await.with_tree().await;
        service.split_tree().await;
        for number in 0..20 {
            assert_eq!(service.store("tree", &format!("a/b/{number:02}"), b"x").await, 200);
        }
        service.object_json("POST", FOLDERS, r#"{"name":"empty/"}"#).await;
        let (method, target) = match deletes {
            false => ("POST", format!("{FOLDERS}/a/renameTo/folders/c")),
            true => ("DELETE", format!("{FOLDERS}/empty")),
        };
        let request = Request::new(method, &target, &[], b"");
        tokio::select! {
            answer = wire::exchange(service.objects_at(), &request) => panic!("{}", answer.status),
            () = died.notified() => {}
        }
        service.node.clone().close().await;

        let service = Service::tree_on(&objects, NamesHook::default()).await;
        let is_made = step == 1;
        let folder = if is_made && !deletes { "c" } else { "a" };
        let names: Vec<String> = (0..20).map(|number| format!("{folder}/b/{number:02}")).collect();
        assert_eq!(service.object_names().await, names);
        let empty = service.object("GET", &format!("{FOLDERS}/empty"), "").await.status;
        assert_eq!(empty, if is_made && deletes { 404 } else { 200 });
        // Writes go on, and so do changes of folders.
        assert_eq!(service.store("tree", &format!("{folder}/b/20"), b"x").await, 200);
        assert_eq!(service.renames(folder, "z/").await, 200);
        assert_eq!(service.object_names().await.len(), 21);
        service.node.clone().close().await;
    }
}

#[tokio::test]
async fn no_object_is_lost_or_in_two_places_while_its_folder_is_renamed_again_and_again() {
    let service = Service::start().await.with_tree().await;
    service.split_tree().await;
    let stop = AtomicBool::new(false);
    // The folder is taken away under a new name, and the next write makes it again.
    let renaming = async {
        let mut round = 0;
        while round < 30 {
            match service.renames("a/", &format!("r{round}/")).await {
                200 => round += 1,
                status => assert_eq!(status, 404),
            }
        }
        stop.store(true, Ordering::SeqCst);
    };
    let writing = async |writer: usize| {
        let (mut made, mut refused) = (BTreeSet::new(), BTreeSet::new());
        for number in 0.. {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            let name = format!("{writer}-{number}");
            match service.store("tree", &format!("a/s/{name}"), name.as_bytes()).await {
                200 => made.insert(name),
                status => {
                    assert_eq!(status, 503);
                    refused.insert(name)
                }
            };
        }
        (made, refused)
    };
    let last = |name: &String| name.rsplit('/').next().expect("a name").to_owned();
    let listing = async {
        while !stop.load(Ordering::SeqCst) {
            // One page is one moment. Two pages are not.
            let page = service.object_json("GET", "/storage/v1/b/tree/o", "").await;
            let items = page["items"].as_array().map_or(&[][..], Vec::as_slice);
            let names: Vec<String> =
                items.iter().map(|item| item["name"].as_str().expect("a name").to_owned()).collect();
            let different: BTreeSet<String> = names.iter().map(last).collect();
            assert_eq!(different.len(), names.len(), "in two places: {names:?}");
        }
    };
    let (_, one, two, _) = future::join4(renaming, writing(1), writing(2), listing).await;
    let found: BTreeSet<String> = service.object_names().await.iter().map(last).collect();
    for (made, refused) in [one, two] {
        let lost: Vec<&String> = made.difference(&found).collect();
        assert!(lost.is_empty() && !made.is_empty(), "{lost:?}");
        assert!(refused.is_disjoint(&found), "what was refused was written");
    }
}
