//! A directory as a store: who may open it, and what its objects promise.

use std::fs;
use std::path::Path as FilePath;
use std::sync::Arc;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use rangehold_engine::store::{
    COPY_MARK, FORMAT_FILE, Store, StoreError, StoreLocation, StoreOptions, damaged_file,
};

fn open(directory: &FilePath) -> Result<Store, StoreError> {
    let location = StoreLocation::parse(directory.to_str().unwrap()).unwrap();
    Store::open(&location, StoreOptions::default())
}

fn objects(directory: &FilePath) -> (Store, Arc<dyn ObjectStore>) {
    let store = open(directory).unwrap();
    let objects = store.object_store();
    (store, objects)
}

#[test]
fn a_missing_directory_is_made_and_only_one_may_have_it() {
    let above = tempfile::tempdir().unwrap();
    let directory = above.path().join("a/b");
    let store = open(&directory).unwrap();
    let second = open(&directory).unwrap_err();
    assert!(matches!(second, StoreError::Locked { .. }), "{second}");
    drop(store);
    open(&directory).unwrap();
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("thesis.tex"), "precious").unwrap();
    let refused = open(directory.path()).unwrap_err().to_string();
    assert!(refused.contains("thesis.tex"), "{refused}");

    let later = tempfile::tempdir().unwrap();
    fs::write(later.path().join(FORMAT_FILE), r#"{"format":3}"#).unwrap();
    let refused = open(later.path()).unwrap_err().to_string();
    assert!(refused.contains("format 3") && refused.contains("use a later release"), "{refused}");

    let half = tempfile::tempdir().unwrap();
    drop(open(half.path()).unwrap());
    fs::write(half.path().join(COPY_MARK), "").unwrap();
    let refused = open(half.path()).unwrap_err().to_string();
    assert!(refused.contains("unfinished copy"), "{refused}");
}

#[tokio::test]
async fn leftovers_of_interrupted_writes_go_and_objects_stay() {
    let directory = tempfile::tempdir().unwrap();
    let (store, objects) = objects(directory.path());
    objects.put(&Path::from("ranges/1/wal/1.sst"), "row".into()).await.unwrap();
    objects.put(&Path::from("ranges/1/manifest/1.manifest"), "rows".into()).await.unwrap();
    drop((store, objects));
    let leftover = directory.path().join("ranges/1/manifest/2.manifest#1");
    fs::write(&leftover, "ro").unwrap();

    let (_store, objects) = self::objects(directory.path());
    assert!(!leftover.exists());
    let kept = objects.get(&Path::from("ranges/1/wal/1.sst")).await.unwrap().bytes().await.unwrap();
    assert_eq!(kept, "row");
}

#[tokio::test]
async fn small_and_large_files_of_a_log_are_alike() {
    let directory = tempfile::tempdir().unwrap();
    let (store, objects) = objects(directory.path());
    let log = |number: u32| Path::from(format!("ranges/1/wal/{number:020}.sst"));
    let bytes = |number: u32| vec![number as u8; if number.is_multiple_of(2) { 2 << 20 } else { 1_000 }];
    let make = async |number: u32| {
        objects.put_opts(&log(number), bytes(number).into(), PutMode::Create.into()).await
    };
    for number in 1..5 {
        make(number).await.unwrap();
    }
    for number in 1..5 {
        assert!(matches!(make(number).await, Err(Error::AlreadyExists { .. })), "{number}");
        assert_eq!(objects.head(&log(number)).await.unwrap().size, bytes(number).len() as u64);
        assert_eq!(
            objects.get_range(&log(number), 900..1_200).await.unwrap(),
            bytes(number)[900..].iter().take(300).copied().collect::<Vec<u8>>()
        );
    }
    let listed = async |offset: &Path| {
        let mut found: Vec<_> =
            objects.list_with_offset(Some(&Path::from("ranges/1")), offset).try_collect().await.unwrap();
        found.sort_by(|a, b| a.location.cmp(&b.location));
        found.into_iter().map(|meta| (meta.location, meta.size)).collect::<Vec<_>>()
    };
    let all: Vec<_> = (1..5).map(|number| (log(number), bytes(number).len() as u64)).collect();
    assert_eq!(listed(&Path::default()).await, all);
    assert_eq!(listed(&log(2)).await, all[2..]);
    let above = objects.list_with_delimiter(Some(&Path::from("ranges"))).await.unwrap();
    assert_eq!((above.common_prefixes, above.objects.len()), (vec![Path::from("ranges/1")], 0));
    let inside = objects.list_with_delimiter(Some(&Path::from("ranges/1/wal"))).await.unwrap();
    assert_eq!((inside.common_prefixes.len(), inside.objects.len()), (0, 4));
    assert!(store.remove_directory("ranges/1").await.is_err(), "its log is not deleted");
    objects.copy(&log(1), &log(7)).await.unwrap();
    objects.copy(&log(2), &log(8)).await.unwrap();
    assert_eq!(objects.get(&log(7)).await.unwrap().bytes().await.unwrap(), bytes(1));
    for number in [1, 2, 3, 4, 7, 8] {
        objects.delete(&log(number)).await.unwrap();
        assert!(matches!(objects.get(&log(number)).await, Err(Error::NotFound { .. })));
        assert!(matches!(objects.delete(&log(number)).await, Err(Error::NotFound { .. })));
    }
    assert_eq!(listed(&Path::default()).await, []);
    store.remove_directory("ranges/1").await.unwrap();
}

#[test]
fn a_directory_of_an_earlier_release_gets_a_journal_and_is_refused_without_it() {
    let directory = tempfile::tempdir().unwrap();
    let old = r#"{"format":1,"engine":"slatedb 0.18","log":"objects","files":"sealed"}"#;
    fs::write(directory.path().join(FORMAT_FILE), old).unwrap();
    drop(open(directory.path()).unwrap());
    let format = fs::read_to_string(directory.path().join(FORMAT_FILE)).unwrap();
    assert!(format.contains(r#""log": "journal""#), "{format}");
    drop(open(directory.path()).unwrap());
    fs::remove_dir_all(directory.path().join("journal")).unwrap();
    let error = open(directory.path()).unwrap_err();
    let refused = format!("{error}: {}", std::error::Error::source(&error).unwrap());
    assert!(refused.contains("the directory of the journal is missing"), "{refused}");
}

#[tokio::test]
async fn an_update_replaces_only_what_it_was_made_from() {
    let directory = tempfile::tempdir().unwrap();
    let (_store, objects) = objects(directory.path());
    let path = Path::from("gc/manifest.boundary");
    let update = |e_tag: Option<String>, text: &'static str| {
        let mode = PutMode::Update(UpdateVersion { e_tag, version: None });
        let (objects, path) = (Arc::clone(&objects), path.clone());
        async move { objects.put_opts(&path, text.into(), PutOptions::from(mode)).await }
    };
    let missing = update(Some("\"1\"".into()), "0").await.unwrap_err();
    assert!(matches!(missing, Error::Precondition { .. }), "{missing}");

    let first = objects.put_opts(&path, "1".into(), PutMode::Create.into()).await.unwrap();
    let again = objects.put_opts(&path, "1".into(), PutMode::Create.into()).await;
    assert!(matches!(again, Err(Error::AlreadyExists { .. })));
    assert_eq!(first.e_tag, objects.head(&path).await.unwrap().e_tag);
    let second = update(first.e_tag.clone(), "2").await.unwrap();
    let stale = update(first.e_tag, "3").await.unwrap_err();
    assert!(matches!(stale, Error::Precondition { .. }), "{stale}");

    // Many tasks saw the same version, and one of them may replace it.
    let racers = (0..16).map(|_| update(second.e_tag.clone(), "4"));
    let won = futures::future::join_all(racers).await.into_iter().filter(Result::is_ok).count();
    assert_eq!(won, 1);
}

#[tokio::test]
async fn objects_read_back_as_written_in_every_way() {
    let directory = tempfile::tempdir().unwrap();
    let (_store, objects) = objects(directory.path());
    let payload: Vec<u8> = (0..600_000_u32).map(|i| (i * 7 / 3) as u8).collect();
    for (above, name) in [("compacted", "1.sst"), ("manifest", "1.manifest")] {
        let path = Path::from(above).join(name);
        let mut upload = objects.put_multipart(&path).await.unwrap();
        let parts = payload.chunks(250_000).map(|part| upload.put_part(part.to_vec().into()));
        futures::future::try_join_all(parts.collect::<Vec<_>>()).await.unwrap();
        upload.complete().await.unwrap();
        assert_eq!(objects.head(&path).await.unwrap().size, 600_000);
        let listed: Vec<_> = objects.list(Some(&Path::from(above))).try_collect().await.unwrap();
        assert_eq!(listed.iter().map(|meta| meta.size).collect::<Vec<_>>(), [600_000]);
        for range in [0..10, 599_990..600_000, 5..300_005, 0..600_000, 599_999..700_000] {
            let read = objects.get_range(&path, range.clone()).await.unwrap();
            assert_eq!(read, payload[range.start as usize..(range.end as usize).min(600_000)]);
        }
    }
}

#[tokio::test]
async fn a_deleted_file_gives_its_space_back() {
    let directory = tempfile::tempdir().unwrap();
    let (_store, objects) = objects(directory.path());
    let path = Path::from("compacted/1.sst");
    objects.put(&path, "block".into()).await.unwrap();
    objects.get_range(&path, 0..2).await.unwrap();
    let is_open = || {
        let held =
            fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        held.into_iter().any(|file| file.starts_with(directory.path().join("compacted")))
    };
    assert!(is_open(), "a sorted file that was read is kept open");
    objects.delete(&path).await.unwrap();
    assert!(!is_open());
    assert!(matches!(objects.get_range(&path, 0..2).await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn a_damaged_file_is_named() {
    for (name, kept_bytes) in [("a/1.manifest", 500), ("a/1.sst", 0)] {
        let directory = tempfile::tempdir().unwrap();
        let (store, objects) = objects(directory.path());
        objects.put(&Path::from(name), vec![7; 1_000].into()).await.unwrap();
        let file = directory.path().canonicalize().unwrap().join(name);
        let whole = fs::read(&file).unwrap();
        fs::write(&file, &whole[..kept_bytes]).unwrap();
        let error = objects.get_range(&Path::from(name), 0..10).await.unwrap_err();
        let damaged = damaged_file(&error).expect("the cause is in the chain");
        assert_eq!(damaged.file, file);
        assert_eq!(store.damaged_files(), std::slice::from_ref(damaged));
    }
}
