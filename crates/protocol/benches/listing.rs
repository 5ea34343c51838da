//! What a page of a listing costs in the pure core: `cargo bench -p rangehold-protocol --bench listing`.
//!
//! A page has 1,000 names. Small objects have their bytes in the row of the head; behind the head of a large one lies the row of
//! its content. So the figures say what the protocol's part of a listing costs, without the reading of rows and without HTTP.

use bytes::Bytes;
use divan::counter::ItemsCount;
use rangehold_map::blob::BlobId;
use rangehold_map::key::{BucketId, ObjectGeneration, ObjectKey, ObjectRow};
use rangehold_protocol::object::acl::Acl;
use rangehold_protocol::object::checksum::{Crc32c, Md5};
use rangehold_protocol::object::fields::Fields;
use rangehold_protocol::object::generation::{
    BlobUse, Content, Encryption, Generation, Head, Heads, ObjectAddress, Projection, Settings, State,
};
use rangehold_protocol::object::list::{JsonPage, ListRequest, Listing, Want};
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::storage_class::StorageClass;

const BUCKET: BucketId = BucketId(7);
const NAMES: u64 = 1_000;

fn main() {
    divan::main();
}

/// A head as an upload of some bytes makes it.
fn head(number: u64, blobs: Option<BlobUse>) -> Head {
    let id = 1_700_000_000_000_000 + number * 1_001;
    let time = Micros::new(id as i64);
    let live = Generation {
        id: ObjectGeneration(id),
        metageneration: 1,
        state: State::Live,
        size: 1024,
        crc32c: Crc32c::of(&id.to_be_bytes()),
        md5: Some(Md5([7; 16])),
        component_count: None,
        created: time,
        updated: time,
        class_updated: time,
        released: None,
        storage_class: StorageClass::Standard,
        settings: Settings { content_type: Some("text/plain".to_owned()), ..Settings::default() },
        owner: "user-a@example.com".to_owned(),
        acl: Acl::default(),
        encryption: Encryption::Default,
        bytes: blobs.is_none().then(|| Bytes::from(vec![7; 1024])),
        blobs,
    };
    Head { live, intent: None }
}

/// The rows of a page, in their order.
fn rows(blobs: Option<&BlobUse>) -> Vec<(Vec<u8>, Bytes)> {
    let of = |number: u64| {
        let head = head(number, blobs.cloned());
        let name = format!("f{}/{number:09}", number % 10);
        let key = |row| ObjectKey { bucket: BUCKET, name: name.as_str().into(), row }.encode();
        let content = head.live.blobs.is_some().then(|| {
            let row = Content::Extents(Vec::new()).encode();
            (key(ObjectRow::Content(head.live.id)), row.into())
        });
        std::iter::once((key(ObjectRow::Head), head.encode().into())).chain(content).collect::<Vec<_>>()
    };
    let mut rows: Vec<_> = (0..NAMES).flat_map(of).collect();
    rows.sort();
    rows
}

fn page(rows: &[(Vec<u8>, Bytes)], fields: &Fields) -> usize {
    let request = ListRequest { max_results: NAMES as usize, ..ListRequest::default() };
    let at = ObjectAddress {
        base: "http://127.0.0.1:4443",
        bucket: "bench",
        name: "",
        project_number: 1,
        retention_seconds: None,
        is_uniform: false,
        is_hierarchical: false,
    };
    let mut listing = Listing::new(&request, BUCKET, Micros::new(0));
    let mut page = JsonPage::new(at, Projection::NoAcl, fields);
    for (key, value) in rows {
        let want = listing.visit(key, value, |name, generation| page.put(name, generation));
        assert_eq!(want, Want::Next);
    }
    let end = listing.finish(|name, generation| page.put(name, generation)).expect("the rows are good");
    page.finish(&end).len()
}

#[divan::bench]
fn all_members(bencher: divan::Bencher<'_, '_>) {
    let rows = rows(None);
    bencher.counter(ItemsCount::new(NAMES)).bench(|| page(&rows, &Fields::ALL));
}

#[divan::bench]
fn all_members_of_large_objects(bencher: divan::Bencher<'_, '_>) {
    let blobs = BlobUse { upload: "ABCDEFGHIJKLMNOPQRSTUVWX".to_owned(), blobs: vec![BlobId(5)] };
    let rows = rows(Some(&blobs));
    bencher.counter(ItemsCount::new(NAMES)).bench(|| page(&rows, &Fields::ALL));
}

#[divan::bench]
fn names_alone(bencher: divan::Bencher<'_, '_>) {
    let rows = rows(None);
    let fields = Fields::parse("items(name),nextPageToken").expect("good fields");
    bencher.counter(ItemsCount::new(NAMES)).bench(|| page(&rows, &fields));
}

#[divan::bench]
fn reading_heads(bencher: divan::Bencher<'_, '_>) {
    let rows = rows(None);
    bencher.counter(ItemsCount::new(NAMES)).bench(|| {
        let mut heads = Heads::default();
        rows.iter().map(|(_, row)| heads.read(row).expect("a head").live.size).sum::<u64>()
    });
}
