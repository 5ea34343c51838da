//! `status` and `health`: what a server tells people and programs about itself. `backup` tells what it has copied.

use serde_json::json;

use crate::program::Program;

#[test]
fn the_status_tells_where_a_server_listens_and_what_it_has() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = Program::start(&directory.path().join("data"), &[]);
    program.create_table("marathon");
    let status = program.answers(&["status", "--output", "json"]);
    let tables = status["addresses"]["tables"].as_str().expect("a URL");
    assert!(program.connection().contains(tables), "{status}");
    let one = json!({ "number": 1, "at_least": false });
    assert_eq!(status["accounts"], json!([{ "name": "devstoreaccount1", "tables": one }]));

    let shown = program.says(&["status", "--output", "table"]);
    for line in [
        format!("tables     at {tables}; tables: 1"),
        format!("admin      at {}", status["addresses"]["admin"].as_str().expect("a URL")),
        "accounts   devstoreaccount1 (tables: 1)".to_owned(),
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line:?} is not in\n{shown}");
    }
}

#[test]
fn health_is_told_to_people_and_to_programs() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = Program::start(&directory.path().join("data"), &[]);
    assert_eq!(program.says(&["health"]), "ready\n");
    let ready = json!({ "ready": true, "troubles": [] });
    assert_eq!(program.answers(&["health", "--output", "json"]), ready);
    let nobody = program.run(&["health", "--output", "json", "--admin", "127.0.0.1:1"]);
    assert_eq!((nobody.code, nobody.said.as_str()), (Some(1), ""), "{nobody:?}");
}

#[test]
fn a_backup_tells_programs_what_it_copied() {
    let directory = tempfile::tempdir().expect("a directory");
    let (data, copy) = (directory.path().join("data"), directory.path().join("copy"));
    let program = Program::start(&data, &[]);
    program.create_table("marathon");
    let [from, to] = [&data, &copy].map(|path| path.to_str().expect("it is text"));
    let report = program.answers(&["backup", "--from", from, "--to", to, "--output", "json"]);
    assert_eq!(
        (&report["from"], &report["to"], &report["object_files"]),
        (&json!(from), &json!(to), &json!(0))
    );
    assert!(report["rows"].as_u64().is_some_and(|rows| rows > 0), "{report}");
}

#[test]
fn a_backup_tells_what_it_has_from_its_base() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("it is text").to_owned();
    let [data, monday, tuesday, wednesday] = ["data", "monday", "tuesday", "wednesday"].map(path);
    let program = Program::start(data.as_ref(), &[]);
    program.create_table("marathon");
    program.says(&["backup", "--from", &data, "--to", &monday]);
    let based = ["backup", "--from", &data, "--to", &tuesday, "--base", &monday];
    let said = program.says(&based);
    assert!(said.contains(&format!("1 of 1 ranges are as in {monday}; ")), "{said}");
    program.create_table("sprint");
    let based = ["backup", "--from", &data, "--to", &wednesday, "--base", &tuesday, "--output", "json"];
    let base = json!({
        "store": tuesday, "ranges": 0, "object_files": 0, "shared_bytes": 0, "not_taken": 0, "not_taken_because": null
    });
    assert_eq!(program.answers(&based)["base"], base);
}
