//! What a rename of a folder writes, and what a listing shows whose pages are read before and after it.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::{StreamExt, stream};
use rangehold_engine::Visit;
use rangehold_map::KeyRange;
use serde_json::Value;

use crate::support::Service;

/// Uploads at the same time.
const AT_ONCE: usize = 64;

type Rows = BTreeMap<Vec<u8>, Bytes>;

impl Service {
    /// All rows of the service.
    async fn all_rows(&self) -> Rows {
        let whole = KeyRange::whole();
        let scan = self.node.router().scan(&whole, Rows::new, |rows: &mut Rows, key, value| {
            rows.insert(key.to_vec(), value.clone());
            Visit::Next
        });
        scan.await.expect("they can be read")
    }

    /// Batches of rows that were written.
    fn batches(&self) -> u64 {
        self.node.statistics().ranges.iter().map(|(_, range)| range.writes).sum()
    }

    async fn fill(&self, folder: &str, objects: usize) {
        let uploads = stream::iter(0..objects).map(|number| async move {
            assert_eq!(self.store("tree", &format!("{folder}{number:05}"), b"x").await, 200);
        });
        uploads.buffer_unordered(AT_ONCE).collect::<()>().await;
    }

    /// Names and prefixes of a page, and what leads to the next one.
    async fn page(&self, query: &str) -> (Vec<String>, Option<String>) {
        let first = query.split("&pageToken").next().unwrap_or_default();
        let page = self.object_json("GET", &format!("/storage/v1/b/tree/o?{query}"), "").await;
        let texts = |list: &Value, text: fn(&Value) -> &Value| {
            let list = list.as_array().map_or(&[][..], Vec::as_slice);
            list.iter().map(|item| text(item).as_str().expect("a text").to_owned()).collect::<Vec<_>>()
        };
        let mut shown = texts(&page["items"], |item| &item["name"]);
        shown.extend(texts(&page["prefixes"], |prefix| prefix));
        (shown, page["nextPageToken"].as_str().map(|token| format!("{first}&pageToken={token}")))
    }

    /// All that the pages from here on show.
    async fn pages_from(&self, query: Option<String>) -> Vec<String> {
        let (mut all, mut next) = (Vec::new(), query);
        while let Some(query) = next {
            let (shown, more) = self.page(&query).await;
            all.extend(shown);
            next = more;
        }
        all
    }
}

/// How many rows were made, changed or removed.
fn changed(before: &Rows, after: &Rows) -> usize {
    let gone = before.keys().filter(|key| !after.contains_key(*key)).count();
    gone + after.iter().filter(|(key, value)| before.get(*key) != Some(*value)).count()
}

#[tokio::test]
async fn a_rename_writes_as_much_for_ten_thousand_objects_as_for_one() {
    let service = Service::start().await.with_tree().await;
    let mut written = Vec::new();
    for (folder, new, objects) in [("one/", "1/", 1), ("many/", "n/", 10_000)] {
        service.fill(folder, objects).await;
        let (rows, batches) = (service.all_rows().await, service.batches());
        assert!(rows.len() > objects, "{} rows", rows.len());
        assert_eq!(service.renames(folder, new).await, 200);
        written.push((changed(&rows, &service.all_rows().await), service.batches() - batches));
    }
    // The old name, the new one, the folder, the number of changes; and the operation, as a batch of its own.
    assert_eq!(written, [(5, 2); 2]);
    assert_eq!(service.pages_from(Some("prefix=n/".to_owned())).await.len(), 10_000);
    assert_eq!(service.pages_from(Some("prefix=many/".to_owned())).await, [""; 0]);
}

#[tokio::test]
async fn what_lies_in_a_folder_that_is_renamed_between_two_pages_is_shown_twice_or_not_at_all() {
    let service = Service::start().await.with_tree().await;
    for name in ["m/1", "m/2", "m/b/3", "m/b/4", "p/5"] {
        assert_eq!(service.store("tree", name, b"x").await, 200);
    }
    // To a name behind the place of the token: what was shown comes again. What lies elsewhere comes once.
    let (shown, next) = service.page("maxResults=3").await;
    assert_eq!(shown, ["m/1", "m/2", "m/b/3"]);
    assert_eq!(service.renames("m/", "z/").await, 200);
    assert_eq!(service.pages_from(next).await, ["p/5", "z/1", "z/2", "z/b/3", "z/b/4"]);
    // To a name before it: the rest is not shown.
    let (shown, next) = service.page("maxResults=3").await;
    assert_eq!(shown, ["p/5", "z/1", "z/2"]);
    assert_eq!(service.renames("z/", "a/").await, 200);
    assert_eq!(service.pages_from(next).await, [""; 0]);
    // The same below a prefix that nothing has any more.
    let (shown, next) = service.page("prefix=a/&maxResults=1").await;
    assert_eq!(shown, ["a/1"]);
    assert_eq!(service.renames("a/", "c/").await, 200);
    assert_eq!(service.pages_from(next).await, [""; 0]);
    // A folder that gets the old name meanwhile is where the listing goes on.
    let (shown, next) = service.page("prefix=c/&maxResults=2").await;
    assert_eq!(shown, ["c/1", "c/2"]);
    assert_eq!(service.renames("c/", "d/").await, 200);
    for name in ["c/1", "c/9"] {
        assert_eq!(service.store("tree", name, b"new").await, 200);
    }
    assert_eq!(service.pages_from(next).await, ["c/9"]);
    // Prefixes are names too.
    let (shown, next) = service.page("delimiter=/&maxResults=1").await;
    assert_eq!(shown, ["c/"]);
    assert_eq!(service.renames("c/", "q/").await, 200);
    assert_eq!(service.pages_from(next).await, ["d/", "p/", "q/"]);
    // A listing that begins afterwards shows all of it once.
    let all = service.pages_from(Some("maxResults=2".to_owned())).await;
    assert_eq!(all, ["d/1", "d/2", "d/b/3", "d/b/4", "p/5", "q/1", "q/9"]);
}
