//! Buckets with a hierarchical namespace: their folders, and what is moved and deleted in them.

use serde_json::Value;

use super::Home;

impl Home {
    fn json(&self, line: &[&str]) -> Value {
        let line: Vec<&str> = line.iter().chain(&["--output", "json"]).copied().collect();
        serde_json::from_str(&self.says(&line)).expect("JSON")
    }

    fn generation(&self, url: &str) -> Value {
        self.json(&["object", "stat", url])["generation"].clone()
    }

    fn folders(&self, url: &str) -> Vec<String> {
        let listed = self.json(&["bucket", "folders", "list", url]);
        let listed = listed.as_array().expect("a list").iter();
        listed.map(|folder| folder["url"].as_str().expect("a URL").to_owned()).collect()
    }

    fn objects(&self, url: &str) -> Vec<String> {
        self.says(&["object", "ls", "-r", url]).lines().map(str::to_owned).collect()
    }

    /// A bucket with folders and one without, and two files in each.
    fn with_two_buckets() -> Self {
        let home = Self::open();
        home.says(&["bucket", "create", "gs://tree", "--enable-hierarchical-namespace"]);
        home.says(&["bucket", "create", "gs://flat"]);
        for name in ["t/1", "t/b/2"] {
            home.write(name, name);
        }
        home.says(&["object", "cp", "-r", "t", "gs://tree"]);
        home.says(&["object", "cp", "-r", "t", "gs://flat"]);
        home
    }
}

#[test]
fn a_bucket_is_made_with_folders_and_shows_it() {
    let home = Home::with_two_buckets();
    let described = home.json(&["bucket", "describe", "gs://tree"]);
    assert_eq!(described["hierarchicalNamespace"]["enabled"], true);
    assert_eq!(described["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"], true);
    let shown = home.says(&["bucket", "describe", "gs://tree"]);
    assert!(
        shown.lines().any(|line| line.starts_with("  hierarchicalNamespace") && line.contains("true")),
        "{shown}"
    );
    assert_eq!(
        home.json(&["bucket", "describe", "gs://flat"])["hierarchicalNamespace"]["enabled"],
        Value::Null
    );
    let both = ["--enable-hierarchical-namespace", "--no-uniform-bucket-level-access"];
    let refused = home.run(&["bucket", "create", "gs://other", both[0], both[1]], "");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.complained.contains("cannot be used with"), "{refused:?}");
    let complained = home.fails(&["bucket", "folders", "create", "gs://flat/x"]);
    assert!(complained.contains("made without a hierarchical namespace"), "{complained}");
}

#[test]
fn folders_are_made_listed_renamed_and_deleted() {
    let home = Home::with_two_buckets();
    assert!(home.fails(&["bucket", "folders", "create", "gs://tree/x/y"]).contains("412"));
    assert_eq!(
        home.says(&["bucket", "folders", "create", "-r", "gs://tree/x/y"]),
        "created gs://tree/x/y/\n"
    );
    assert_eq!(
        home.folders("gs://tree"),
        ["gs://tree/t/", "gs://tree/t/b/", "gs://tree/x/", "gs://tree/x/y/"]
    );
    let table = home.says(&["bucket", "folders", "list", "gs://tree/x/"]);
    let lines: Vec<&str> = table.lines().map(|line| line.split(' ').next().expect("a cell")).collect();
    assert_eq!(lines, ["folder", "gs://tree/x/", "gs://tree/x/y/"]);
    assert_eq!(
        home.says(&["bucket", "folders", "rename", "gs://tree/t", "gs://tree/x/t"]),
        "renamed to gs://tree/x/t/\n"
    );
    assert_eq!(home.objects("gs://tree"), ["gs://tree/x/t/1", "gs://tree/x/t/b/2"]);
    for (line, says) in [
        (
            &["bucket", "folders", "rename", "gs://tree/t", "gs://tree/z"][..],
            "there is no folder gs://tree/t",
        ),
        (&["bucket", "folders", "rename", "gs://tree/x", "gs://flat/x"], "within its bucket"),
        (&["bucket", "folders", "rename", "gs://tree/x/y", "gs://tree/x/t"], "409"),
        (&["bucket", "folders", "delete", "gs://tree/x"], "412"),
        (&["bucket", "folders", "delete", "gs://tree"], "is not a folder"),
    ] {
        let complained = home.fails(line);
        assert!(complained.contains(says), "{line:?}: {complained}");
    }
    assert_eq!(home.says(&["bucket", "folders", "delete", "gs://tree/x/y"]), "deleted gs://tree/x/y\n");
    // Two objects and two folders, and then the rest with the bucket.
    assert_eq!(
        home.says(&["object", "rm", "-r", "gs://tree/x/t"]),
        "deleted 4, 8 bytes; skipped 0; failed 0\n"
    );
    assert_eq!(home.folders("gs://tree"), ["gs://tree/x/"]);
    assert_eq!(
        home.says(&["object", "rm", "-r", "gs://tree"]),
        "deleted the bucket gs://tree\ndeleted 2, 0 bytes; skipped 0; failed 0\n"
    );
}

#[test]
fn a_folder_is_moved_as_a_whole_where_the_bucket_has_folders() {
    let home = Home::with_two_buckets();
    let before = home.generation("gs://tree/t/b/2");
    assert_eq!(
        home.says(&["object", "mv", "-r", "gs://tree/t", "gs://tree/new/place"]),
        "renamed the folder gs://tree/t to gs://tree/new/place/\nmoved 1, 0 bytes; skipped 0; failed 0\n"
    );
    assert_eq!(home.objects("gs://tree"), ["gs://tree/new/place/1", "gs://tree/new/place/b/2"]);
    // An object that is renamed by itself has a new generation.
    assert_eq!(home.generation("gs://tree/new/place/b/2"), before);
    home.says(&["object", "mv", "-r", "gs://tree/new/place/", "gs://tree/"]);
    assert_eq!(home.objects("gs://tree"), ["gs://tree/place/1", "gs://tree/place/b/2"]);
    let folders = home.folders("gs://tree");
    assert_eq!(folders, ["gs://tree/new/", "gs://tree/place/", "gs://tree/place/b/"]);
    for into in ["gs://tree/place/b/x/y", "gs://tree/place/", "gs://tree/"] {
        let complained = home.fails(&["object", "mv", "-r", "gs://tree/place", into]);
        assert!(complained.contains("cannot be moved into itself"), "{into}: {complained}");
        assert_eq!(home.folders("gs://tree"), folders, "{into}");
    }
    // Into a folder that exists, object by object.
    home.write("u/3", "u/3");
    home.says(&["object", "cp", "-r", "u", "gs://tree"]);
    assert_eq!(
        home.says(&["object", "mv", "-r", "gs://tree/u", "gs://tree/place"]),
        "moved 1, 0 bytes; skipped 0; failed 0\n"
    );
    assert_eq!(home.objects("gs://tree"), ["gs://tree/place/1", "gs://tree/place/3", "gs://tree/place/b/2"]);
}

#[test]
fn in_other_buckets_and_between_buckets_objects_are_moved_one_by_one() {
    let home = Home::with_two_buckets();
    let before = home.generation("gs://flat/t/1");
    assert_eq!(
        home.says(&["object", "mv", "-r", "gs://flat/t", "gs://flat/s"]),
        "moved 2, 0 bytes; skipped 0; failed 0\n"
    );
    assert_eq!(home.objects("gs://flat"), ["gs://flat/s/1", "gs://flat/s/b/2"]);
    assert_ne!(home.generation("gs://flat/s/1"), before);
    assert_eq!(
        home.says(&["object", "mv", "-r", "gs://tree/t", "gs://flat/from"]),
        "moved 2, 8 bytes; skipped 0; failed 0\n"
    );
    assert_eq!(
        home.objects("gs://flat"),
        ["gs://flat/from/1", "gs://flat/from/b/2", "gs://flat/s/1", "gs://flat/s/b/2"]
    );
    assert_eq!(home.says(&["object", "ls", "-r", "gs://tree"]), "");
}

#[test]
fn what_is_moved_to_itself_is_still_there() {
    let home = Home::with_two_buckets();
    for line in [
        &["object", "mv", "gs://flat/t/1", "gs://flat/t/"][..],
        &["object", "mv", "gs://flat/t/*", "gs://flat/t/"],
        &["object", "mv", "-r", "gs://flat/t", "gs://flat/"],
        &["object", "mv", "-r", "gs://flat/t", "gs://flat"],
    ] {
        let complained = home.fails(line);
        assert!(complained.contains("it cannot be moved to itself"), "{line:?}: {complained}");
        assert_eq!(home.objects("gs://flat"), ["gs://flat/t/1", "gs://flat/t/b/2"], "{line:?}");
    }
}
