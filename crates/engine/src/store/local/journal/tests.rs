//! Tests of the journal alone, with the files that a crash, a bad disk or a second process would leave.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index as AnyOf;

use object_store::PutPayload;

use super::super::read::SealedFile;
use super::record::Draft;
use super::*;
use crate::store::limits::JOURNAL_SEGMENTS_MIN;
use crate::store::seal::Sealer;

/// Objects by their paths.
type Model = BTreeMap<Path, Vec<u8>>;

fn path(number: usize) -> Path {
    Path::from(format!("ranges/{}-1-1/wal/{:020}.sst", number % 3, number))
}

fn open(root: &FilePath) -> Result<Journal, OpenError> {
    make(root, true)?;
    Journal::open(root, true, Access::Owner)
}

/// Opens it without syncs, for tests that write much.
fn open_quick(root: &FilePath) -> Journal {
    make(root, false).unwrap();
    Journal::open(root, false, Access::Owner).unwrap()
}

fn put(journal: &Journal, location: &Path, bytes: &[u8], create: bool) -> io::Result<()> {
    let mut sealer = Sealer::default();
    sealer.update(bytes);
    let payload = PutPayload::from(bytes.to_vec());
    journal.put(location, &payload, &sealer.finish(), create, || false).map(drop)
}

/// Appends a record without a sync.
fn append_only(journal: &Journal, mut draft: Draft) {
    let owned = journal.owned().unwrap();
    let mut appender = owned.appender.lock();
    journal.room_for(owned, &mut appender, draft.len()).unwrap().append(&mut draft).unwrap();
}

fn unsynced(journal: &Journal, location: &Path, bytes: &[u8]) {
    let mut sealer = Sealer::default();
    sealer.update(bytes);
    append_only(journal, Draft::put(location.as_ref(), &[bytes], &sealer.finish()));
}

/// The bytes of an object: `None` if there is none, an error if it is damaged.
fn read(journal: &Journal, location: &Path) -> Option<Result<Vec<u8>, super::super::read::ReadError>> {
    let place = journal.get(location).unwrap()?;
    Some(SealedFile::in_journal(place, location).and_then(|file| Ok(file.read_whole()?.to_vec())))
}

fn all(journal: &Journal) -> Model {
    let listed = journal.below(None).unwrap().into_iter().map(|meta| meta.location);
    listed.map(|location| (location.clone(), read(journal, &location).unwrap().unwrap())).collect()
}

fn segments(root: &FilePath) -> Vec<PathBuf> {
    let directory = owner::find(root).unwrap();
    segments_in(&directory).unwrap().into_iter().map(|name| directory.join(name.to_string())).collect()
}

#[test]
fn objects_are_there_after_the_journal_was_opened_again() {
    let root = tempfile::tempdir().unwrap();
    let journal = open(root.path()).unwrap();
    put(&journal, &path(1), b"one", true).unwrap();
    put(&journal, &path(2), b"", true).unwrap();
    put(&journal, &path(3), &[7; 100_000], true).unwrap();
    let taken = put(&journal, &path(1), b"other", true).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    put(&journal, &path(2), b"two", false).unwrap();
    assert!(journal.delete(&path(3)).unwrap());
    assert!(!journal.delete(&path(4)).unwrap());
    let wanted: Model = [(path(1), b"one".to_vec()), (path(2), b"two".to_vec())].into();
    assert_eq!(all(&journal), wanted);
    drop(journal);
    for _ in 0..3 {
        let journal = open(root.path()).unwrap();
        assert_eq!(all(&journal), wanted);
        let below = |prefix: &str| journal.below(Some(&Path::from(prefix))).unwrap().len();
        assert_eq!(
            [below("ranges/1-1-1"), below("ranges/1-1-1/wal"), below("ranges/1"), below("ranges")],
            [1, 1, 0, 2]
        );
    }
}

#[test]
fn a_process_that_was_shut_out_acknowledges_nothing_more_and_loses_nothing() {
    let root = tempfile::tempdir().unwrap();
    let first = open(root.path()).unwrap();
    put(&first, &path(1), b"one", true).unwrap();
    let second = open(root.path()).unwrap();
    for _ in 0..3 {
        let refused = put(&first, &path(2), b"two", true).unwrap_err().to_string();
        assert!(refused.contains("another process has taken over"), "{refused}");
        assert_eq!(
            read(&first, &path(2)).map(Result::unwrap),
            None,
            "what was not acknowledged is taken back"
        );
    }
    assert!(first.check_owner().is_err() && first.delete(&path(1)).is_err() && first.upkeep(|_| {}).is_err());
    put(&second, &path(2), b"mine", true).unwrap();
    let wanted: Model = [(path(1), b"one".to_vec()), (path(2), b"mine".to_vec())].into();
    assert_eq!(all(&second), wanted);
    drop((first, second));
    assert_eq!(all(&open(root.path()).unwrap()), wanted);
}

#[test]
fn a_process_that_was_shut_out_while_it_was_idle_or_at_the_end_of_a_segment_makes_no_other() {
    let root = tempfile::tempdir().unwrap();
    let (idle, full) = (open_quick(root.path()), open_quick(root.path()));
    assert!(put(&idle, &path(1), b"one", true).is_err());
    let large = vec![1; JOURNAL_RECORD_BYTES_MAX as usize - 100];
    for number in 10..25 {
        put(&full, &path(number), &large, true).unwrap();
    }
    let owner = open_quick(root.path());
    let before = segments(root.path());
    for _ in 0..3 {
        assert!(put(&full, &path(30), &large, true).is_err());
    }
    assert_eq!(segments(root.path()), before);
    assert_eq!(all(&owner).len(), 15);
}

#[test]
fn segments_that_were_found_are_not_written_over() {
    let root = tempfile::tempdir().unwrap();
    let first = open_quick(root.path());
    put(&first, &path(0), b"first", true).unwrap();
    let second = open_quick(root.path());
    second.delete(&path(0)).unwrap();
    let large = vec![1; JOURNAL_RECORD_BYTES_MAX as usize / 2];
    for number in 1..150 {
        put(&second, &path(number), &large, true).unwrap();
        second.delete(&path(number - 1)).unwrap();
        second.upkeep(|_| {}).unwrap();
        // It still writes to the segment that it had open.
        let _ = put(&first, &path(1_000), &large, true);
    }
    assert_eq!(all(&second), [(path(149), large.clone())].into());
    drop(second);
    assert_eq!(all(&open_quick(root.path())), [(path(149), large)].into());
}

#[test]
fn the_journal_stays_small_and_gives_up_what_is_old() {
    let root = tempfile::tempdir().unwrap();
    let journal = open_quick(root.path());
    let beside = Journal::open(root.path(), false, Access::Beside { may_be_missing: false }).unwrap();
    let mut moved = Vec::new();
    put(&journal, &path(0), b"stays", true).unwrap();
    let large = vec![1; JOURNAL_RECORD_BYTES_MAX as usize / 2];
    for number in 1..400 {
        put(&journal, &path(number), &large, true).unwrap();
        if number > 20 {
            assert!(journal.delete(&path(number - 20)).unwrap());
        }
        if journal.wants_upkeep() {
            journal
                .upkeep(|location| {
                    let place = journal.get(location).unwrap().unwrap();
                    assert!(journal.has_moved_out(location, &place).unwrap());
                    moved.push(location.clone());
                })
                .unwrap();
        }
        if number % 50 == 0 {
            assert_eq!(all(&beside), all(&journal));
        }
        assert!(segments(root.path()).len() <= JOURNAL_SEGMENTS_MIN + 2, "{:?}", segments(root.path()));
    }
    assert_eq!(moved, [path(0)]);
    assert_eq!(all(&journal).len(), 20);
    let wanted = all(&journal);
    assert_eq!(all(&beside), wanted);
    drop(journal);
    assert_eq!(all(&open(root.path()).unwrap()), wanted);
    assert_eq!(all(&beside), wanted, "the directory of the owner has another name now");
}

#[test]
fn a_journal_that_is_missing_is_not_taken_for_one_that_ends() {
    let root = tempfile::tempdir().unwrap();
    let journal = open_quick(root.path());
    put(&journal, &path(0), b"0", true).unwrap();
    let beside = Journal::open(root.path(), false, Access::Beside { may_be_missing: false }).unwrap();
    fs::remove_dir_all(root.path().join(JOURNAL)).unwrap();
    let missing = beside.refresh_beside().unwrap_err();
    assert!(missing.to_string().starts_with("the directory of the journal is missing"), "{missing}");
    assert_ne!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_segment_that_is_missing_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    let journal = open_quick(root.path());
    for number in 0..100 {
        put(&journal, &path(number), &vec![1; JOURNAL_RECORD_BYTES_MAX as usize / 2], true).unwrap();
    }
    drop(journal);
    // A segment that was made and could not be used is none that others follow.
    let unused = owner::find(root.path()).unwrap().join(Name::new(99, 1).to_string());
    fs::write(&unused, "").unwrap();
    drop(open_quick(root.path()));
    fs::remove_file(&segments(root.path())[1]).unwrap();
    let beside = Journal::open(root.path(), false, Access::Beside { may_be_missing: false }).unwrap_err();
    assert_eq!(beside.to_string(), "its segment number 2 is missing");
    let refused = Journal::open(root.path(), false, Access::Owner).unwrap_err().to_string();
    assert_eq!(refused, "its segment number 2 is missing");
}

#[test]
fn a_segment_that_is_read_is_not_written_over() {
    let root = tempfile::tempdir().unwrap();
    let journal = open_quick(root.path());
    put(&journal, &path(0), b"read", true).unwrap();
    let held = SealedFile::in_journal(journal.get(&path(0)).unwrap().unwrap(), &path(0)).unwrap();
    journal.delete(&path(0)).unwrap();
    for number in 1..200 {
        put(&journal, &path(number), &vec![2; JOURNAL_RECORD_BYTES_MAX as usize / 2], true).unwrap();
        journal.delete(&path(number)).unwrap();
        journal.upkeep(|_| {}).unwrap();
    }
    assert_eq!(held.read_whole().unwrap(), "read");
}

#[test]
fn a_name_is_taken_while_a_large_file_of_it_is_made() {
    let root = tempfile::tempdir().unwrap();
    let journal = open(root.path()).unwrap();
    let location = path(1);
    let reserved = journal.reserve(&location).unwrap();
    assert_eq!(put(&journal, &location, b"", true).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert!(journal.reserve(&location).is_err());
    drop(reserved);
    put(&journal, &location, b"", true).unwrap();
    assert!(journal.reserve(&location).is_err());
}

/// A step of a random use of the journal.
#[derive(Debug, Clone)]
enum Step {
    /// Puts an object and waits until it is durable.
    Put(usize, Vec<u8>),
    Delete(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..3_000);
    let step = prop_oneof![
        3 => (0..12_usize, bytes).prop_map(|(number, bytes)| Step::Put(number, bytes)),
        1 => (0..12_usize).prop_map(Step::Delete),
    ];
    prop::collection::vec(step, 1..20)
}

/// Carries the steps out. Returns what must be there, and what may be there again because its deletion was not synced.
fn carry_out(journal: &Journal, steps: &[Step]) -> (Model, BTreeMap<Path, BTreeSet<Vec<u8>>>) {
    let (mut model, mut gone) = (Model::new(), BTreeMap::<Path, BTreeSet<Vec<u8>>>::new());
    for step in steps {
        match step {
            Step::Put(number, bytes) => {
                let done = put(journal, &path(*number), bytes, true);
                assert_eq!(done.is_err(), model.contains_key(&path(*number)));
                model.entry(path(*number)).or_insert_with(|| bytes.clone());
            }
            Step::Delete(number) => {
                journal.delete(&path(*number)).unwrap();
                if let Some(bytes) = model.remove(&path(*number)) {
                    gone.entry(path(*number)).or_default().insert(bytes);
                }
            }
        }
    }
    (model, gone)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn after_a_loss_of_power_everything_that_was_durable_is_there(
        steps in steps(),
        torn in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3_000), 0..4),
        lost_sectors in prop::collection::vec(any::<bool>(), 1..40),
        lost_note in any::<bool>(),
    ) {
        let root = tempfile::tempdir().unwrap();
        let journal = open(root.path()).unwrap();
        let (wanted, gone) = carry_out(&journal, &steps);
        torn.iter().enumerate().for_each(|(number, bytes)| unsynced(&journal, &path(100 + number), bytes));
        let synced = journal.owned().unwrap().appender.lock().segments.back().map_or(0, |last| last.synced());
        drop(journal);
        if let Some(last) = segments(root.path()).last() {
            let mut bytes = fs::read(last).unwrap();
            let first = synced.next_multiple_of(512) as usize;
            bytes[synced as usize..first].fill(if lost_sectors[0] { 0 } else { 0xff });
            for (sector, lost) in bytes[first..].chunks_mut(512).zip(lost_sectors.iter().cycle()) {
                if *lost {
                    sector.fill(0);
                }
            }
            fs::write(last, bytes).unwrap();
        }
        if lost_note {
            let _ = fs::remove_file(owner::find(root.path()).unwrap().join("synced"));
        }
        let found = all(&open(root.path()).unwrap());
        for (location, bytes) in &wanted {
            prop_assert_eq!(found.get(location), Some(bytes));
        }
        for (location, bytes) in found.iter().filter(|(location, _)| !wanted.contains_key(location)) {
            let number: usize = location.filename().unwrap().trim_end_matches(".sst").parse().unwrap();
            let was_torn = torn.get(number.wrapping_sub(100)) == Some(bytes);
            prop_assert!(was_torn || gone.get(location).is_some_and(|gone| gone.contains(bytes)), "{location}");
        }
    }

    #[test]
    fn a_flipped_bit_loses_nothing_in_silence(steps in steps(), at in any::<AnyOf>(), bits in prop::collection::vec(any::<u8>(), 1..60)) {
        let root = tempfile::tempdir().unwrap();
        let journal = open(root.path()).unwrap();
        let (wanted, gone) = carry_out(&journal, &steps);
        let written = journal.owned().unwrap().appender.lock().segments.back().map_or(0, |last| last.synced());
        drop(journal);
        prop_assume!(written > 0);
        let last = segments(root.path()).pop().unwrap();
        let mut bytes = fs::read(&last).unwrap();
        let at = at.index(written as usize);
        let end = written as usize;
        bytes[at..end].iter_mut().zip(&bits).for_each(|(byte, bits)| *byte ^= bits);
        fs::write(&last, bytes).unwrap();
        let journal = match open(root.path()) {
            Ok(journal) => journal,
            Err(OpenError::Segment { .. }) => return Ok(()),
            Err(error) => panic!("{error}"),
        };
        for (location, bytes) in &wanted {
            match read(&journal, location) {
                Some(Ok(found)) => prop_assert!(
                    found == *bytes || gone.get(location).is_some_and(|gone| gone.contains(&found))
                ),
                Some(Err(_)) => {}
                None => prop_assert!(false, "{} is lost", location),
            }
        }
    }
}
