//! Stress tests against a server.

use serde_json::{Value, json};

use crate::program::{Ended, Program, rangehold};

/// A stress test against `program`, of 1.2 s.
fn stress(program: &Program, line: &[&str]) -> Ended {
    let connection = program.connection();
    let line = [&["stress", "--minutes", "0.02", "--connection-string", &connection], line].concat();
    program.run(&line)
}

#[test]
fn a_peak_is_driven_in_a_table_of_its_own_and_judged_by_a_plan() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name).to_str().expect("it is text").to_owned();
    let program = Program::start(&folder.path().join("data"), &["--servers", "2"]);

    // A plan that begins as that of a design, with times that no machine misses.
    let plan = program.says(&["stress", "--design", "number", "--print-plan"]);
    let patient: Vec<String> = plan
        .lines()
        .map(
            |line| {
                if line.starts_with("within-ms") { "within-ms = 60000".to_owned() } else { line.to_owned() }
            },
        )
        .collect();
    std::fs::write(path("plan.toml"), patient.join("\n")).expect("there is room");
    let (plan, html) = (path("plan.toml"), path("report.html"));
    let run = ["--plan", &plan, "--rate", "1500", "--seed", "7", "--html", &html, "--output", "json"];
    let ended = stress(&program, &run);
    let said: Value = serde_json::from_str(&ended.said).expect("JSON");
    assert_eq!((ended.code, &said["outcome"]), (Some(0), &json!("bears")), "{ended:?}");
    let asked: u64 = (0..6).filter_map(|kind| said["kinds"][kind]["asked"].as_u64()).sum();
    let in_time: u64 = (0..6).filter_map(|kind| said["kinds"][kind]["in_time"].as_u64()).sum();
    assert!(asked > 100 && asked == in_time, "{said:#}");
    assert_eq!(said["loaded"], json!(10_000));
    // The client sees that keys grow, and the service shows its ranges.
    let findings = said["findings"].as_array().expect("findings");
    for kind in ["append", "ranges"] {
        assert!(findings.iter().any(|finding| finding["kind"] == kind), "{kind}: {said:#}");
    }
    assert!(said["ranges"]["looks"][0]["ranges"].as_u64() >= Some(1), "{said:#}");
    assert!(std::fs::read_to_string(html).expect("a page").contains("BEARS the peak"));
    let connection = program.connection();
    assert_eq!(
        program.says(&["table", "list", "--connection-string", &connection]),
        "",
        "its table is deleted"
    );
}

#[test]
fn a_hot_partition_ends_with_a_code_of_its_own_and_keys_of_a_file_are_used() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name);
    let program = Program::start(&path("data"), &[]);
    std::fs::write(path("keys.csv"), "hot,a\nhot,b\nhot,c\n").expect("there is room");
    let plan = "load = 3\n[keys]\nfile = \"keys.csv\"\n[[request]]\nname = \"a batch\"\ndo = \"batch\"\nrows = 100\n\
                per-second = 30\nwithin-ms = 60000\n[[request]]\nname = \"all\"\ndo = \"query\"\nentities = 3\n\
                filter = \"PartitionKey eq '{PartitionKey}' and RowKey ge '{RowKey}'\"\nper-second = 2\nwithin-ms = 60000\n";
    std::fs::write(path("plan.toml"), plan).expect("there is room");
    let plan = path("plan.toml");
    let plan = plan.to_str().expect("it is text");
    // About 3,000 entities a second are too many for a partition, though this profile lets them pass.
    let kept = stress(&program, &["--plan", plan, "--seed", "3", "--table", "kept", "--keep-table"]);
    assert_eq!(kept.code, Some(3), "{kept:?}");
    assert!(kept.said.starts_with("LIMITED by a hot partition"), "{kept:?}");
    assert!(kept.said.contains("spread over more partitions"), "{kept:?}");
    let connection = program.connection();
    assert_eq!(program.says(&["table", "list", "--connection-string", &connection]), "kept\n");

    let again = stress(&program, &["--plan", plan, "--table", "kept"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.complained.contains("a table of its own"), "{again:?}");
    std::fs::write(path("plan.toml"), "load = 3\n").expect("there is room");
    let wrong = stress(&program, &["--plan", plan]);
    assert_eq!((wrong.code, wrong.said.as_str()), (Some(1), ""), "{wrong:?}");
    assert!(wrong.complained.contains("plan.toml"), "{wrong:?}");
    let mut neither = rangehold();
    neither.args(["stress"]);
    assert_eq!(crate::program::ended(neither, "").code, Some(2));
}
