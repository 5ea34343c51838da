//! `ranges`, `map` and `events`: what they show of a running server, and how they change it.

use serde_json::{Value, json};

use crate::program::Program;

/// The number of lines with all of `words`.
fn lines_with(text: &str, words: &[&str]) -> usize {
    text.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
}

#[test]
fn ranges_are_shown_and_changed_by_hand() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = Program::start(&directory.path().join("data"), &["--servers", "2", "--manager", "off"]);
    program.create_table("marathon");
    program.insert("Full", "1");
    program.insert("Half", "1");
    assert_eq!(program.entity("Half", "1").0, 200);

    let said = program.says(&["map", "split", "marathon/Half"]);
    assert!(said.starts_with("done in map version 3: r2, r3; writes were held for "), "{said}");
    let moved = program.answers(&["map", "move", "marathon/Half", "s2", "--output", "json"]);
    assert_eq!((&moved["map_version"], &moved["ranges"]), (&json!(5), &json!(["r3"])), "{moved}");
    assert_eq!(
        program.says(&["map", "show"]),
        "version 5, next range r4\n\
         range  server  database  keys\n\
         r2@1   s1      2-1-1     [start, marathon/Half)\n\
         r3@2   s2      3-1-1     [marathon/Half, end)\n"
    );
    assert_eq!(program.says(&["map", "check"]), "version 5: every rule holds\n");

    shows_ranges(&program);
    shows_queries(&program);

    let offline = program.says(&["map", "offline", "r3@2"]);
    assert!(offline.starts_with("done in map version 6: r3"), "{offline}");
    let warning = "warning: r3 answers no request until it is set online: rangehold map online r3\n";
    assert!(offline.ends_with(warning), "{offline}");
    assert_eq!((program.entity("Half", "1").0, program.entity("Full", "1").0), (503, 200));
    assert_eq!(lines_with(&program.says(&["map", "show"]), &["r3@3", "offline"]), 1);
    for line in
        [&["map", "move", "r3", "s1"][..], &["map", "split", "marathon/K"], &["map", "merge", "r2", "r3"]]
    {
        let refused = program.run(line);
        assert!(refused.complained.contains("r3 is offline: set it online first"), "{line:?}: {refused:?}");
    }
    program.says(&["map", "online", "marathon/Half"]);
    assert_eq!(program.entity("Half", "1").0, 200);
    let merged = program.says(&["map", "merge", "r2", "r3"]);
    assert!(merged.contains(": r4; writes were held for "), "{merged}");
    assert_eq!((program.entity("Half", "1").0, program.entity("Full", "1").0), (200, 200));
    // The range has the catalogue too. While it is offline no name of a table can be looked up.
    let offline = program.says(&["map", "offline", "marathon/Half"]);
    assert!(
        offline.contains("it holds the list of tables, so requests for tables in other ranges"),
        "{offline}"
    );
    let unknown = program.run(&["map", "online", "sprint/1"]).complained;
    assert!(unknown.contains("\"sprint\"") && unknown.contains("is not known"), "{unknown}");
    program.says(&["map", "online", "marathon/Half"]);
    assert_eq!(program.entity("Half", "1").0, 200);

    refuses(&program);
    shows_events(&program);
}

fn shows_ranges(program: &Program) {
    let table = program.says(&["ranges"]);
    assert_eq!(lines_with(&table, &["server", "ranges", "requests/s", "cost/s", "busy"]), 1, "{table}");
    assert_eq!(lines_with(&table, &["s2", "0 %"]), 1, "{table}");
    assert_eq!(lines_with(&table, &["r3@2", "s2", "[marathon/Half, end)", "cold"]), 1, "{table}");
    assert!(table.ends_with("nothing is split, merged or moved by itself: the manager is off\n"), "{table}");

    let seen = program.answers(&["ranges", "--output", "json"]);
    let right = &seen["ranges"][1];
    assert_eq!(
        (&right["range"], &right["server"], &right["low"], &right["load"]["state"]),
        (&json!("r3"), &json!("s2"), &json!("marathon/Half"), &json!("cold")),
        "{seen}"
    );
    assert_eq!((&seen["manager"]["plans"], &seen["map_version"]), (&json!(false), &json!(5)), "{seen}");
}

fn shows_queries(program: &Program) {
    let table = program.says(&["ranges", "--queries"]);
    assert!(table.starts_with("kind of query"), "{table}");
    assert_eq!(lines_with(&table, &["point query", "1"]), 1, "{table}");
    let counted = program.answers(&["ranges", "--queries", "--output", "json"]);
    let points = counted.as_array().expect("kinds").iter().find(|kind| kind["kind"] == "point query");
    assert_eq!(points.expect("every kind")["counts"]["returned"], 1, "{counted}");
}

fn refuses(program: &Program) {
    for (line, code, says) in [
        (&["map", "merge", "r2", "r3"][..], 1, "r2 is not in the map"),
        (&["map", "move", "r4@9", "s2"], 1, "made for generation 9"),
        (&["map", "move", "r4", "2"], 2, "write it as s3"),
        (&["map", "split", "marathon"], 2, "write one as table/PartitionKey"),
        (&["map", "split", "walk/Half"], 1, "no table \"walk\""),
    ] {
        let ended = program.run(line);
        assert!(ended.code == Some(code) && ended.complained.contains(says), "{line:?}: {ended:?}");
        assert_eq!(ended.said, "", "{line:?}");
    }
}

fn shows_events(program: &Program) {
    let said = program.says(&["events"]);
    assert_eq!(lines_with(&said, &["asked", "split r1@1 at marathon/Half"]), 1, "{said}");
    assert_eq!(lines_with(&said, &["done", "r2,r3", "(writes held for "]), 1, "{said}");
    let json = program.says(&["events", "--output", "json", "--after", "1"]);
    let first: Value = serde_json::from_str(json.lines().next().expect("events")).expect("one to a line");
    assert_eq!((&first["number"], &first["kind"]), (&json!(2), &json!("done")), "{json}");
    assert_eq!(first["ranges"], json!(["r2", "r3"]), "{json}");
}
