//! Copies that are based on an earlier one: what they take over, and that they are as whole as others.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use object_store::ObjectStoreExt;
use object_store::path::Path as ObjectPath;
use rangehold_engine::Node;
use rangehold_engine::copy::{CopyError, CopyOptions, CopyReport, copy};
use rangehold_engine::store::{Store, StoreOptions};
use rangehold_map::Change;

use crate::copy::objects;
use crate::copy::{
    BATCH_ROWS, PARTITIONS, copy_quietly, location, options, partition, put_round, rounds, serve,
};

/// Large enough that a round of a partition is some blocks of a sorted file.
const VALUE_BYTES: usize = 3_000;

async fn copy_based(from: &Path, to: &Path, base: &Path) -> Result<CopyReport, CopyError> {
    copy_telling(from, to, base, &mut |_| {}).await
}

async fn copy_telling(
    from: &Path,
    to: &Path,
    base: &Path,
    progress: &mut (dyn FnMut(&CopyReport) + Send),
) -> Result<CopyReport, CopyError> {
    let options = CopyOptions { base: Some(location(base)), ..options() };
    copy(&location(from), &location(to), &options, progress).await
}

/// Serves a new directory in which each partition is in its first round, and has a range of its own.
async fn serve_in_ranges(directory: &Path) -> Node {
    let server = serve(directory).await;
    for number in 0..PARTITIONS {
        put_round(&server, number, 1, VALUE_BYTES).await;
    }
    for number in 1..PARTITIONS {
        let at = partition(number).as_bytes().to_vec();
        let entry = server.executor().maps().current().lookup(&at).unwrap().clone();
        let change = Change::Split { range: entry.id, generation: entry.generation, at };
        server.executor().carry_out(&change).await.unwrap();
    }
    server
}

async fn check(directory: &Path, wanted: [u64; PARTITIONS]) {
    let server = serve(directory).await;
    for (number, round) in wanted.into_iter().enumerate() {
        assert_eq!(rounds(&server, number).await, [round; BATCH_ROWS], "partition {number}");
    }
    server.close().await;
}

fn sorted_files(directory: &Path) -> Vec<PathBuf> {
    let below =
        |directory: PathBuf| fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    let files = below(directory.join("ranges")).flat_map(|database| below(database.join("compacted")));
    files.collect()
}

fn links(file: &Path) -> u64 {
    fs::metadata(file).unwrap().nlink()
}

fn flip_a_bit(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranges_that_have_not_changed_are_taken_over_and_share_their_files() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [monday, tuesday, wednesday] = ["1", "2", "3"].map(|name| above.path().join(name));
    let server = serve_in_ranges(from.path()).await;
    // What the new ranges have in their logs goes into sorted files.
    server.close().await;
    let server = serve(from.path()).await;
    let whole = copy_quietly(from.path(), &monday).await.unwrap();
    assert_eq!((whole.ranges, whole.ranges_taken, whole.shared_bytes), (PARTITIONS as u64, 0, 0));

    put_round(&server, 2, 2, VALUE_BYTES).await;
    let report = copy_based(from.path(), &tuesday, &monday).await.unwrap();
    assert_eq!((report.ranges_taken, report.not_taken), (PARTITIONS as u64 - 1, 0), "{report:?}");
    assert!(report.ranges == whole.ranges && report.rows >= whole.rows, "{report:?}");
    let shared = sorted_files(&tuesday).iter().filter(|file| links(file) == 2).count();
    assert!(shared >= PARTITIONS - 1, "only {shared} files are shared");
    assert!(report.shared_bytes > 0);
    // A list of compactions that was taken over could name files that were not.
    let below = |name: &str| fs::read_dir(tuesday.join("ranges").join(name)).unwrap().count();
    let databases = fs::read_dir(tuesday.join("ranges")).unwrap();
    let fewest = databases.map(|entry| below(entry.unwrap().file_name().to_str().unwrap())).min();
    assert_eq!(fewest, Some(2), "more than manifests and sorted files");
    assert_eq!(sorted_files(&monday).iter().filter(|file| links(file) == 1).count(), 1, "the changed range");

    // Based on a copy that was itself based on one. At the end of the server the new rows of range 2 went from its log into a
    // sorted file, so it counts as changed.
    server.close().await;
    let server = serve(from.path()).await;
    put_round(&server, 5, 3, VALUE_BYTES).await;
    let report = copy_based(from.path(), &wednesday, &tuesday).await.unwrap();
    assert_eq!((report.ranges_taken, report.not_taken), (PARTITIONS as u64 - 2, 0), "{report:?}");
    server.close().await;

    fs::remove_dir_all(&monday).unwrap();
    check(&tuesday, [1, 1, 2, 1, 1, 1]).await;
    fs::remove_dir_all(&tuesday).unwrap();
    check(&wednesday, [1, 1, 2, 1, 1, 3]).await;
    check(&wednesday, [1, 1, 2, 1, 1, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_base_that_was_changed_gives_nothing_of_its_own() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [base, restored, next] = ["base", "restored", "next"].map(|name| above.path().join(name));
    let server = serve_in_ranges(from.path()).await;
    copy_quietly(from.path(), &base).await.unwrap();
    // A restore only reads the base.
    copy_quietly(&base, &restored).await.unwrap();
    let other = serve(&base).await;
    put_round(&other, 3, 9, VALUE_BYTES).await;
    other.close().await;
    // What the copy of the base notes is of the base, and not of the source.
    let report = copy_based(from.path(), &above.path().join("other"), &restored).await.unwrap();
    assert_eq!(report.ranges_taken, 0);

    let report = copy_based(from.path(), &next, &base).await.unwrap();
    assert_eq!(report.ranges_taken, PARTITIONS as u64 - 1, "{report:?}");
    server.close().await;
    check(&next, [1; PARTITIONS]).await;
    check(&base, [1, 1, 1, 9, 1, 1]).await;
}

/// It is written while its files are taken over. The new backup shows nothing of that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_base_that_changes_meanwhile_gives_nothing_of_its_own() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [base, next] = ["base", "next"].map(|name| above.path().join(name));
    let server = serve_in_ranges(from.path()).await;
    copy_quietly(from.path(), &base).await.unwrap();
    let other = serve(&base).await;
    let mut written = false;
    let mut write = |_: &CopyReport| {
        if !std::mem::replace(&mut written, true) {
            let all = async {
                for number in 0..PARTITIONS {
                    put_round(&other, number, 9, VALUE_BYTES).await;
                }
            };
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(all));
        }
    };
    let report = copy_telling(from.path(), &next, &base, &mut write).await.unwrap();
    assert!(written);
    assert_eq!((report.ranges_taken, report.not_taken), (0, 0), "{report:?}");
    other.close().await;
    server.close().await;
    check(&next, [1; PARTITIONS]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_copy_leaves_its_base_whole() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [base, next] = ["base", "next"].map(|name| above.path().join(name));
    let server = serve_in_ranges(from.path()).await;
    copy_quietly(from.path(), &base).await.unwrap();
    let interrupted = tokio::sync::Notify::new();
    let mut progress = |_: &CopyReport| interrupted.notify_one();
    tokio::select! {
        biased;
        () = interrupted.notified() => {}
        result = copy_telling(from.path(), &next, &base, &mut progress) => panic!("not interrupted: {result:?}"),
    }
    assert!(!sorted_files(&next).is_empty(), "nothing was taken over before");
    let report = copy_based(from.path(), &next, &base).await.unwrap();
    assert_eq!((report.ranges_taken, report.not_taken), (PARTITIONS as u64, 0), "{report:?}");
    server.close().await;
    check(&next, [1; PARTITIONS]).await;
    check(&base, [1; PARTITIONS]).await;
}

/// Two directories that were one may give the same name to different chunks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_of_the_same_name_with_other_bytes_is_not_taken_over() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [base, next] = ["base", "next"].map(|name| above.path().join(name));
    let server = serve(from.path()).await;
    objects::put(&server, "a", 1).await;
    objects::put(&server, "b", 2).await;
    copy_quietly(from.path(), &base).await.unwrap();
    let store = Store::open(&location(&base), StoreOptions::default()).unwrap().object_store();
    let file = objects::chunk_files(&base).remove(0);
    let object = ObjectPath::from(file.strip_prefix(&base).unwrap().to_str().unwrap());
    let bytes = store.get(&object).await.unwrap().bytes().await.unwrap().len();
    store.put(&object, vec![7; bytes].into()).await.unwrap();
    let report = copy_based(from.path(), &next, &base).await.unwrap();
    assert_eq!((report.chunks, report.chunks_taken, report.not_taken), (2, 1, 0), "{report:?}");
    let rows = objects::rows(&server).await;
    server.close().await;
    let copied = serve(&next).await;
    objects::check(&copied, &rows).await;
    copied.close().await;
}

/// Both directories have the same ranges, generations and sequence numbers then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_another_directory_with_the_same_numbers_gives_nothing() {
    let (one, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [other, base, next] = ["other", "base", "next"].map(|name| above.path().join(name));
    let server = serve(one.path()).await;
    put_round(&server, 0, 1, VALUE_BYTES).await;
    server.close().await;
    let copied = std::process::Command::new("cp").arg("-r").args([one.path(), &other]).status().unwrap();
    assert!(copied.success());
    for (directory, round) in [(one.path(), 2), (&other, 3)] {
        let server = serve(directory).await;
        put_round(&server, 0, round, VALUE_BYTES).await;
        server.close().await;
    }
    copy_quietly(one.path(), &base).await.unwrap();
    let report = copy_based(&other, &next, &base).await.unwrap();
    assert_eq!(report.ranges_taken, 0);
    let server = serve(&next).await;
    assert_eq!(rounds(&server, 0).await, [3; BATCH_ROWS]);
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_damaged_in_the_base_is_copied_from_the_source() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (base, next) = (above.path().join("base"), above.path().join("next"));
    let server = serve_in_ranges(from.path()).await;
    objects::put(&server, "a", 1).await;
    objects::put(&server, "b", 2).await;
    copy_quietly(from.path(), &base).await.unwrap();
    let files = sorted_files(&base);
    flip_a_bit(&files[0]);
    fs::remove_file(&files[1]).unwrap();
    flip_a_bit(&objects::chunk_files(&base)[0]);

    let report = copy_based(from.path(), &next, &base).await.unwrap();
    assert_eq!((report.not_taken, report.ranges_taken), (3, PARTITIONS as u64 - 2), "{report:?}");
    assert_eq!((report.chunks, report.chunks_taken), (2, 1));
    assert!(report.not_taken_because.as_ref().unwrap().contains("compacted"), "{report:?}");
    assert_eq!(
        sorted_files(&next)
            .iter()
            .chain(&objects::chunk_files(&next))
            .filter(|file| links(file) == 1)
            .count(),
        3
    );
    let rows = objects::rows(&server).await;
    server.close().await;
    fs::remove_dir_all(&base).unwrap();
    check(&next, [1; PARTITIONS]).await;
    let copied = serve(&next).await;
    assert_eq!(objects::rows(&copied).await, rows);
    objects::check(&copied, &rows).await;
    copied.close().await;
}

#[tokio::test]
async fn a_base_that_cannot_be_one_is_refused_before_anything_is_made() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (copied, to) = (above.path().join("copied"), above.path().join("to"));
    let server = serve(from.path()).await;
    copy_quietly(from.path(), &copied).await.unwrap();
    let told = |result: Result<CopyReport, CopyError>| result.unwrap_err().to_string();
    assert!(told(copy_based(from.path(), &to, from.path()).await).contains("same place"));
    assert!(told(copy_based(from.path(), &copied, &copied).await).contains("same place"));
    assert!(told(copy_based(from.path(), &to, &above.path().join("missing")).await).contains("no directory"));
    assert!(!to.exists());
    let other = tempfile::tempdir().unwrap();
    serve(other.path()).await.close().await;
    let refused = told(copy_based(from.path(), &to, other.path()).await);
    assert!(!to.exists());
    assert!(
        refused.contains("cannot be the base") && refused.contains(other.path().to_str().unwrap()),
        "{refused}"
    );
    copy_based(from.path(), &to, &copied).await.unwrap();
    server.close().await;
}

/// Each copy is based on the one before it. Half of the partitions are written, and ranges are split and merged meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_of_a_busy_store_hold_what_was_acknowledged_before() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = serve_in_ranges(from.path()).await;
    let acknowledged = Arc::new(AtomicU64::new(1));
    let stop = Arc::new(AtomicBool::new(false));
    let changing = tokio::spawn({
        let (server, acknowledged, stop) = (server.clone(), Arc::clone(&acknowledged), Arc::clone(&stop));
        async move {
            for round in 2.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                for number in 0..PARTITIONS / 2 {
                    put_round(&server, number, round, VALUE_BYTES).await;
                }
                acknowledged.store(round, Ordering::Relaxed);
                // The two lower ranges are merged, and cut again.
                if round % 4 == 0 {
                    // A range that waits for compaction is not changed.
                    let _ = server.executor().carry_out(&change_of_the_first(&server)).await;
                }
            }
        }
    });
    let mut taken = 0;
    let mut base: Option<PathBuf> = None;
    for attempt in 0..6_u64 {
        while acknowledged.load(Ordering::Relaxed) < 8 * attempt {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let before = acknowledged.load(Ordering::Relaxed);
        let to = above.path().join(attempt.to_string());
        taken += match &base {
            Some(base) => copy_based(from.path(), &to, base).await.unwrap().ranges_taken,
            None => copy_quietly(from.path(), &to).await.unwrap().ranges_taken,
        };
        // The copy is looked at through one of its own, since it is the next base.
        let looked_at = above.path().join(format!("{attempt}-restored"));
        copy_quietly(&to, &looked_at).await.unwrap();
        let copied = serve(&looked_at).await;
        for number in 0..PARTITIONS {
            let rounds = rounds(&copied, number).await;
            let least = if number < PARTITIONS / 2 { before } else { 1 };
            assert_eq!(rounds.len(), BATCH_ROWS, "partition {number}");
            assert!(rounds.iter().all(|round| *round >= least), "lost: {rounds:?}, had {least}");
            assert!(rounds.windows(2).all(|pair| pair[0] == pair[1]), "torn: {rounds:?}");
        }
        copied.close().await;
        base = Some(to);
    }
    stop.store(true, Ordering::Relaxed);
    changing.await.unwrap();
    server.close().await;
    assert!(taken >= 5, "of the quiet ranges only {taken} were taken over by five copies");
}

/// A merge of the first two ranges, or a split of the first where they were.
fn change_of_the_first(server: &Node) -> Change {
    let map = server.executor().maps().current();
    let [left, right, ..] = map.entries() else { unreachable!("some partitions stay apart") };
    if left.keys.contains(partition(1).as_bytes()) {
        let at = partition(1).as_bytes().to_vec();
        return Change::Split { range: left.id, generation: left.generation, at };
    }
    Change::Merge {
        left: left.id,
        left_generation: left.generation,
        right: right.id,
        right_generation: right.generation,
    }
}
