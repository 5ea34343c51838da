//! Listings against a model that reads everything.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rangehold_map::key::{BucketId, ObjectKey};

use super::*;
use crate::object::bucket::Bucket;
use crate::object::generation::tests::{generation, intent};
use crate::object::glob::Glob;
use crate::object::limits::PAGE_ITEMS_MAX;

const BUCKET: BucketId = BucketId(7);
const NOW: Micros = Micros::new(1_000);

/// What is stored: of each name the live generation, and the others with whether they are soft-deleted.
type Stored = BTreeMap<String, (Option<u64>, BTreeMap<u64, bool>)>;

/// The folders of a bucket, those of its tree and the managed ones.
#[derive(Debug, Clone, Default)]
struct Folders {
    tree: BTreeSet<String>,
    managed: BTreeSet<String>,
}

/// The rows of what is stored, in their order. Each name has an upload too, as a row that no listing shows.
fn rows(stored: &Stored) -> Vec<(Vec<u8>, Bytes)> {
    let mut rows = Vec::new();
    for (name, (live, others)) in stored {
        let mut put = |row: ObjectRow<'_>, value: Vec<u8>| {
            let key = ObjectKey { bucket: BUCKET, name: name.as_str().into(), row };
            rows.push((key.encode(), Bytes::from(value)));
        };
        if let Some(number) = live {
            put(ObjectRow::Head, Head { live: generation(*number), intent: None }.encode());
        }
        for number in live.iter().chain(others.keys()) {
            put(ObjectRow::Content(ObjectGeneration(*number)), vec![0x80]);
        }
        for (number, is_deleted) in others {
            let mut older = generation(*number);
            older.state = match is_deleted {
                true => State::SoftDeleted { at: NOW, hard_delete: NOW.plus_seconds(1), noncurrent: None },
                false => State::Noncurrent(NOW),
            };
            put(ObjectRow::NotLive(older.id), older.encode());
        }
        put(ObjectRow::Upload("u".into()), Vec::new());
    }
    rows.sort();
    rows
}

/// One page of a bucket without folders, read as the engine reads it; and how many rows that took.
fn page(rows: &[(Vec<u8>, Bytes)], request: &ListRequest) -> (Vec<(String, u64)>, PageEnd, usize) {
    page_within(rows, &Folders::default(), request, usize::MAX)
}

/// One page that has time for this number of rows.
fn page_within(
    rows: &[(Vec<u8>, Bytes)],
    folders: &Folders,
    request: &ListRequest,
    most: usize,
) -> (Vec<(String, u64)>, PageEnd, usize) {
    let keys = request.keys(BUCKET);
    let mut listing =
        Listing::new(request, BUCKET, NOW).with_folders(folders.managed.iter().map(String::as_str));
    let mut items = Vec::new();
    let mut put = |name: &str, generation: &Generation| items.push((name.to_owned(), generation.id.0));
    let tree = folders.tree.iter().map(|folder| (names_from(BUCKET, folder), Err(folder)));
    let mut all: Vec<_> = rows.iter().map(|(key, value)| (key.clone(), Ok(value))).chain(tree).collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    let (mut from, mut read) = (keys.low().to_vec(), 0);
    let mut at = all.partition_point(|(key, _)| *key < from);
    while let Some((key, row)) = all.get(at).filter(|(key, _)| keys.contains(key)) {
        if read >= most {
            listing.end_soon();
        }
        read += 1;
        let want = match row {
            Ok(value) => listing.visit(key, value, &mut put),
            Err(folder) => listing.visit_folder(folder, &mut put),
        };
        match want {
            Want::Stop => break,
            Want::Next => at += 1,
            Want::Seek(key) => {
                assert!(key > from, "a listing goes forward");
                from = key;
                at = (at + 1).max(all.partition_point(|(key, _)| *key < from));
            }
        }
    }
    let end = listing.finish(&mut put).expect("the rows are good");
    (items, end, read)
}

/// All items and prefixes, page by page. Each page has time for `within` rows, if there is a limit.
fn walk(
    rows: &[(Vec<u8>, Bytes)],
    folders: &Folders,
    request: &ListRequest,
    within: Option<usize>,
) -> (Vec<(String, u64)>, Vec<String>) {
    let (mut items, mut prefixes) = (Vec::new(), Vec::new());
    let mut request = request.clone();
    loop {
        let (new_items, end, _) = page_within(rows, folders, &request, within.unwrap_or(usize::MAX));
        let count = new_items.len() + end.prefixes.len();
        assert!(count <= request.max_results, "{count} things on a page");
        items.extend(new_items);
        prefixes.extend(end.prefixes);
        let Some(next) = end.next else { return (items, prefixes) };
        let is_full = count == request.max_results;
        assert!(is_full || within.is_some(), "a page that has a next one is full");
        let behind = |at: &Position| if at.prefix_done { char::MAX.to_string() } else { String::new() };
        let place = |at: &Position| (at.name.clone() + &behind(at), at.generation);
        let goes_on = |before: &Position| place(&next) > place(before);
        assert!(request.position.as_ref().is_none_or(goes_on), "a page ends where it began");
        if request.by_marker {
            request.position = Some(Position::of_marker(&next.name, &request.prefix, &request.delimiter));
            continue;
        }
        request.position = Some(Position::parse(&next.token()).expect("it was just made"));
    }
}

/// The same by reading everything.
fn model(stored: &Stored, folders: &Folders, request: &ListRequest) -> (Vec<(String, u64)>, Vec<String>) {
    let (mut items, mut prefixes) = (Vec::new(), Vec::new());
    let nothing = (None, BTreeMap::new());
    let shows_folders = request.include_folders && request.shown != Shown::SoftDeleted;
    let folders = folders.tree.union(&folders.managed).filter(|_| shows_folders);
    let folders: BTreeSet<&String> = folders.collect();
    let names: BTreeSet<&String> = stored.keys().chain(folders.iter().copied()).collect();
    for name in names {
        let (live, others) = stored.get(name).unwrap_or(&nothing);
        let fits = name.starts_with(&request.prefix)
            && *name >= request.start_offset
            && (request.end_offset.is_empty() || *name < request.end_offset);
        let others =
            |deleted| others.iter().filter(move |(_, is)| **is == deleted).map(|(number, _)| *number);
        let shown: Vec<u64> = match request.shown {
            _ if !fits => Vec::new(),
            Shown::Live => live.iter().copied().collect(),
            Shown::Versions => others(false).chain(*live).collect(),
            Shown::SoftDeleted => others(true).collect(),
        };
        if shown.is_empty() && !(fits && folders.contains(name)) {
            continue;
        }
        let rest = &name[request.prefix.len()..];
        let cut = if request.delimiter.is_empty() { None } else { rest.find(&request.delimiter) };
        let matches = |text: &str| request.glob.as_ref().is_none_or(|glob| glob.matches(text));
        if let Some(cut) = cut {
            let prefix = &name[..request.prefix.len() + cut + request.delimiter.len()];
            if prefixes.last().map(String::as_str) != Some(prefix) && matches(prefix) {
                prefixes.push(prefix.to_owned());
            }
            if !request.include_trailing_delimiter || prefix != name {
                continue;
            }
        }
        if matches(name) {
            items.extend(shown.into_iter().map(|number| (name.clone(), number)));
        }
    }
    (items, prefixes)
}

fn names() -> impl Strategy<Value = Stored> {
    let others = proptest::collection::btree_map(1u64..50, any::<bool>(), 0..6);
    let live = proptest::option::of(50u64..99);
    proptest::collection::btree_map("[ab/\u{1}é]{1,5}", (live, others), 0..14)
}

fn folders() -> impl Strategy<Value = Folders> {
    let some = || proptest::collection::btree_set("[ab/\u{1}é]{1,4}/", 0..5);
    (some(), some()).prop_map(|(tree, managed)| Folders { tree, managed })
}

fn requests() -> impl Strategy<Value = ListRequest> {
    let text = || prop_oneof![3 => Just(String::new()), 2 => "[ab/]{1,3}"];
    let delimiter = prop_oneof![Just(""), Just("/"), Just("b/")];
    let shown = prop_oneof![Just(Shown::Live), Just(Shown::Versions), Just(Shown::SoftDeleted)];
    let glob = prop_oneof![4 => Just(""), 1 => Just("a*"), 1 => Just("**/"), 1 => Just("a/**b")];
    let bounds = (text(), text(), text());
    (bounds, delimiter, any::<(bool, bool)>(), shown, glob, 1usize..6).prop_map(
        |(
            (prefix, start_offset, end_offset),
            delimiter,
            (include_trailing_delimiter, include_folders),
            shown,
            glob,
            max_results,
        )| {
            ListRequest {
                prefix,
                delimiter: delimiter.to_owned(),
                start_offset,
                end_offset,
                include_trailing_delimiter,
                include_folders,
                shown,
                glob: (!glob.is_empty()).then(|| Glob::new(glob).expect("a good pattern")),
                filter: Filter::default(),
                max_results,
                position: None,
                by_marker: false,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_walk_finds_what_reading_everything_finds(stored in names(), folders in folders(), request in requests()) {
        let rows = rows(&stored);
        prop_assert_eq!(walk(&rows, &folders, &request, None), model(&stored, &folders, &request));
    }

    #[test]
    fn a_walk_whose_pages_have_little_time_finds_the_same(
        stored in names(),
        folders in folders(),
        request in requests(),
        within in 0usize..12,
    ) {
        let rows = rows(&stored);
        prop_assert_eq!(walk(&rows, &folders, &request, Some(within)), model(&stored, &folders, &request));
    }

    #[test]
    fn a_walk_by_markers_finds_the_same(
        stored in names(),
        folders in folders(),
        request in requests(),
        within in proptest::option::of(0usize..12),
    ) {
        let shown = Shown::Live;
        let request = ListRequest {
            include_trailing_delimiter: false,
            glob: None,
            shown,
            by_marker: true,
            ..request
        };
        let rows = rows(&stored);
        prop_assert_eq!(walk(&rows, &folders, &request, within), model(&stored, &folders, &request));
    }
}

fn parse(query: &[(&'static str, &'static str)]) -> Result<ListRequest, ObjectError> {
    ListRequest::parse(|name| query.iter().find(|(given, _)| *given == name).map(|(_, value)| *value))
}

#[test]
fn parameters_are_read_and_checked() {
    let request = parse(&[("prefix", "a"), ("maxResults", "5000"), ("versions", "true")]).expect("good");
    assert_eq!((request.max_results, request.shown), (PAGE_ITEMS_MAX, Shown::Versions));
    let nought = parse(&[("maxResults", "0")]).map(|request| request.max_results);
    assert_eq!(nought, Ok(PAGE_ITEMS_MAX), "as if the client had named no number");
    for (name, value) in [
        ("maxResults", "-1"),
        ("maxResults", "x"),
        ("versions", "yes"),
        ("pageToken", "abc"),
        ("matchGlob", "a{"),
        ("filter", "size"),
    ] {
        let error = parse(&[(name, value)]).expect_err(name);
        assert_eq!((error.kind.status(), error.location.as_str()), (400, name));
    }
    assert!(parse(&[("matchGlob", "a"), ("delimiter", "-")]).is_err());
    assert!(parse(&[("versions", "true"), ("softDeleted", "true")]).is_err());
}

#[test]
fn ten_thousand_old_generations_cost_a_few_rows() {
    let mut stored = Stored::new();
    stored.insert("a".to_owned(), (Some(99_999), (1..10_000).map(|number| (number, false)).collect()));
    stored.insert("b".to_owned(), (Some(99_999), BTreeMap::new()));
    let request = ListRequest { max_results: 10, ..ListRequest::default() };
    let (items, end, read) = page(&rows(&stored), &request);
    assert_eq!((items.len(), end.next), (2, None));
    assert!(read < 10, "{read} rows were read");
}

#[test]
fn a_folder_of_any_size_costs_a_few_rows() {
    let name = |folder, number| format!("{folder}/{number:06}");
    let names = (0..2_000).flat_map(|number| ["x", "y"].map(|folder| name(folder, number)));
    let stored: Stored = names.map(|name| (name, (Some(99), BTreeMap::new()))).collect();
    let request = ListRequest { delimiter: "/".to_owned(), max_results: 10, ..ListRequest::default() };
    let (items, end, read) = page(&rows(&stored), &request);
    assert_eq!((items.len(), end.prefixes), (0, vec!["x/".to_owned(), "y/".to_owned()]));
    assert!(read < 5, "{read} rows were read");
}

#[test]
fn a_page_that_reads_much_and_finds_nothing_ends() {
    let names = (0..PAGE_ROWS_MAX).map(|number| format!("{number:06}"));
    let stored: Stored = names.map(|name| (name, (Some(99), BTreeMap::new()))).collect();
    let rows = rows(&stored);
    let glob = Some(Glob::new("*9999").expect("a good pattern"));
    let mut request = ListRequest { glob, max_results: 10, ..ListRequest::default() };
    let (mut items, mut pages) = (Vec::new(), 0);
    loop {
        let (new_items, end, read) = page(&rows, &request);
        assert!(read <= PAGE_ROWS_MAX + 2, "{read} rows were read");
        items.extend(new_items);
        pages += 1;
        request.position = end.next;
        if request.position.is_none() {
            break;
        }
    }
    assert!(pages > 1, "it was more than one page can read");
    assert_eq!(items.len(), PAGE_ROWS_MAX / 10_000);
}

#[test]
fn a_page_over_empty_folders_ends_when_its_time_is_over() {
    for by_marker in [false, true] {
        let mut request =
            ListRequest { delimiter: "/".to_owned(), max_results: 10, by_marker, ..ListRequest::default() };
        let folders = ["a/", "a/b/", "a/b/c/", "b/", "b//", "c//", "d//", "e/"];
        let mut pages = 0;
        loop {
            let mut listing = Listing::new(&request, BUCKET, NOW);
            listing.end_soon();
            let from = request.begins_at().to_owned();
            for folder in folders.iter().filter(|folder| **folder >= from.as_str()) {
                if listing.visit_folder(folder, |_, _| {}) == Want::Stop {
                    break;
                }
            }
            pages += 1;
            let Some(next) = listing.finish(|_, _| {}).expect("no row was read").next else { break };
            assert!(next.name > from, "a page ends where it began");
            request.position = Some(match by_marker {
                true => Position::of_marker(&next.name, "", "/"),
                false => next,
            });
            assert!(
                !request.position.as_ref().is_some_and(|position| position.prefix_done),
                "nothing was listed"
            );
        }
        assert!(pages >= 3, "{pages} pages");
    }
}

#[test]
fn a_page_is_written_as_json() {
    let mut stored = Stored::new();
    stored.insert("a".to_owned(), (Some(50), BTreeMap::new()));
    stored.insert("b/c".to_owned(), (Some(51), BTreeMap::new()));
    stored.insert("d".to_owned(), (Some(52), BTreeMap::new()));
    let fields = crate::object::fields::Fields::parse("items(name,generation),prefixes,nextPageToken");
    let fields = fields.expect("good fields");
    let body = serde_json::json!({"name": "bucket"});
    let body = body.as_object().expect("an object");
    let bucket = Bucket::insert(BucketId(1), "p", body, Default::default(), NOW).expect("a bucket");
    let at = bucket.address("http://localhost", "");
    let request = ListRequest { delimiter: "/".to_owned(), max_results: 2, ..ListRequest::default() };
    let mut listing = Listing::new(&request, BUCKET, NOW);
    let mut page = JsonPage::new(at, Default::default(), &fields);
    for (key, value) in rows(&stored) {
        if listing.visit(&key, &value, |name, generation| page.put(name, generation)) == Want::Stop {
            break;
        }
    }
    let end = listing.finish(|name, generation| page.put(name, generation)).expect("a page");
    let token = end.next.as_ref().expect("there is more").token();
    let items = r#""items":[{"name":"a","generation":"50"}]}"#;
    let expected = format!(r#"{{"nextPageToken":"{token}","prefixes":["b/"],{items}"#);
    assert_eq!(page.finish(&end), expected);
}

#[test]
fn a_page_of_any_size_is_the_same_json() {
    let fields = crate::object::fields::Fields::parse("prefixes,items/name").expect("good fields");
    let body = serde_json::json!({"name": "bucket"});
    let body = body.as_object().expect("an object");
    let bucket = Bucket::insert(BucketId(1), "p", body, Default::default(), NOW).expect("a bucket");
    for (prefixes, items) in [(0, 0), (1, 0), (1, 1), (1_000, 0), (1_000, 1), (0, 1_000), (500, 20_000)] {
        let prefixes: Vec<String> = (0..prefixes).map(|number| format!("{number:06}/")).collect();
        let names: Vec<String> = (0..items).map(|number| format!("n{number:060}")).collect();
        let mut page = JsonPage::new(bucket.address("http://localhost", ""), Default::default(), &fields);
        names.iter().for_each(|name| page.put(name, &generation(50)));
        let json = page.finish(&PageEnd { prefixes: prefixes.clone(), next: None });
        let mut expected = serde_json::Map::new();
        if !prefixes.is_empty() {
            expected.insert("prefixes".to_owned(), prefixes.into());
        }
        if !names.is_empty() {
            let names = names.iter().map(|name| serde_json::json!({"name": name}));
            expected.insert("items".to_owned(), names.collect());
        }
        let json: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
        assert_eq!(json, serde_json::Value::Object(expected));
    }
}

#[test]
fn a_name_that_is_replaced_between_two_pages_is_shown_once() {
    let stored = |generation| -> Stored {
        [("a", 3), ("b", generation), ("c", 4)]
            .map(|(name, live)| (name.to_owned(), (Some(live), BTreeMap::new())))
            .into()
    };
    let mut request =
        ListRequest::parse(|name| (name == "maxResults").then_some("2")).expect("it is a request");
    let (items, end, _) = page(&rows(&stored(5)), &request);
    assert_eq!(items, [("a".to_owned(), 3), ("b".to_owned(), 5)]);
    request.position = end.next;
    let (items, end, _) = page(&rows(&stored(9)), &request);
    assert_eq!((items, end.next), (vec![("c".to_owned(), 4)], None));
}

#[test]
fn a_source_of_a_change_is_noted_and_left_out_when_it_is_known_to_be_gone() {
    let key = |name: &str| ObjectKey { bucket: BUCKET, name: name.into(), row: ObjectRow::Head }.encode();
    let rows = [("a/1", None), ("a/2", Some(intent())), ("b", Some(intent()))]
        .map(|(name, intent)| (key(name), Bytes::from(Head { live: generation(5), intent }.encode())));
    let gone = BTreeSet::from([intent().id]);
    for (shown, delimiter, seen, seen_without) in [
        (Shown::Live, "", &["a/1", "a/2", "b"][..], &["a/1"][..]),
        (Shown::Versions, "", &["a/1", "a/2", "b"], &["a/1"]),
        (Shown::Live, "/", &["b"], &[]),
        (Shown::SoftDeleted, "", &[], &[]),
    ] {
        let request =
            ListRequest { shown, delimiter: delimiter.to_owned(), max_results: 9, ..ListRequest::default() };
        for (without, seen) in [(false, seen), (true, seen_without)] {
            let mut listing = Listing::new(&request, BUCKET, NOW);
            if without {
                listing = listing.without(&gone);
            }
            let mut items = Vec::new();
            for (key, row) in &rows {
                listing.visit(key, row, |name, _| items.push(name.to_owned()));
            }
            let met: Vec<_> = listing.take_met().into_iter().map(|(name, _)| name).collect();
            let end = listing.finish(|name, _| items.push(name.to_owned())).expect("the rows are good");
            assert_eq!(
                (items, end.next),
                (seen.iter().map(|name| (*name).to_owned()).collect(), None),
                "{request:?}"
            );
            let is_rolled_up = !delimiter.is_empty();
            let noted: &[&str] = match (without, is_rolled_up) {
                (true, _) => &[],
                (false, true) => &["b"],
                (false, false) => &["a/2", "b"],
            };
            assert_eq!(met, noted, "{request:?}");
        }
    }
}
