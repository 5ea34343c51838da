//! `map script`: one language, for a running server and for a map in memory.

use std::fs;
use std::path::Path;

use crate::program::{Ended, Program, ended, rangehold};

/// A story in memory: what the planner does about a hot range.
const STORY: &str = "\
# A range gets hot.
table t
observe r1 rate=2400 cause=split:t/m
plan
execute
----
what it said before
";

fn in_memory(script: &str) -> Ended {
    let mut command = rangehold();
    command.args(["map", "script", "-", "--dry-run"]);
    ended(command, script)
}

#[test]
fn in_memory_all_commands_run_and_the_script_is_printed_with_its_results() {
    let told = in_memory(STORY);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(
        told.said,
        "# A range gets hot.\n\
         table t\nobserve r1 rate=2400 cause=split:t/m\nplan\nexecute\n----\n\
         t is table #1\nr1@1 rate=2400 cause=split:t/m\nsplit r1@1 at t/m\n\
         # r1 with 2400/s is split: 50 % of that goes above the cut\n\
         version 3: r2@1 [start, t/m) of s1\nversion 3: r3@1 [t/m, end) of s1\n"
    );
    for (script, said, says) in [
        ("map\n\noffline r9\nmap\n", "map\n----\nversion 1", "line 3: refused: r9 is not in the map"),
        (
            "table t\nsplit t\n",
            "table t\nsplit t\n----\nt is table #1\n",
            "line 2: error: \"t\" is not a key",
        ),
    ] {
        let told = in_memory(script);
        assert!(told.code == Some(1) && told.complained.contains(says), "{told:?}");
        assert!(told.said.starts_with(said), "{told:?}");
    }
}

/// The golden scripts of the map crate can be run as they are.
#[test]
fn a_golden_script_is_printed_unchanged() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../map/tests/scripts/marathon.txt");
    let mut command = rangehold();
    command.args(["map", "script", "--dry-run"]).arg(&file);
    assert_eq!(ended(command, "").said, fs::read_to_string(file).expect("it is there"));
}

#[test]
fn a_running_server_gets_the_commands_up_to_the_first_that_fails() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = Program::start(&directory.path().join("data"), &["--servers", "2", "--manager", "off"]);
    program.create_table("marathon");
    let file = directory.path().join("script.txt");
    let script = "# Half gets a server of its own.\ntable marathon\nsplit marathon/Half\nmove marathon/Half to s2\n\
                  wait 1ms\nfind marathon/Half/0001\nmap\ncheck\n";
    fs::write(&file, script).expect("it is written");
    let said = program.says(&["map", "script", file.to_str().expect("text")]);
    // The time for which writes were held differs in each run.
    let lines: Vec<&str> =
        said.lines().map(|line| line.split(" writes were").next().unwrap_or(line)).collect();
    assert_eq!(
        lines,
        [
            "> table marathon",
            "there is such a table",
            "> split marathon/Half",
            "done in map version 3: r2, r3;",
            "> move marathon/Half to s2",
            "done in map version 5: r3;",
            "> wait 1ms",
            "> find marathon/Half/0001",
            "marathon/Half/0001 is in r3@2 [marathon/Half, end) of s2",
            "> map",
            "version 5, next range r4",
            "range  server  database  keys",
            "r2@1   s1      2-1-1     [start, marathon/Half)",
            "r3@2   s2      3-1-1     [marathon/Half, end)",
            "> check",
            "version 5: every rule holds",
        ],
        "{said}"
    );

    let run = |script: &str| program.run_with(&["map", "script", "-"], script);
    let stopped = run("offline r3\n\noffline r3\nonline r3\n");
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    assert!(stopped.complained.contains("line 3: offline r3: r3 is offline already"), "{stopped:?}");
    assert!(!stopped.said.contains("> online"), "nothing comes after it: {stopped:?}");
    assert!(run("table walk\n").complained.contains("line 1: table walk: there is no table \"walk\""));

    // A script that cannot run to its end is not begun.
    for (script, says) in [
        ("online r3\nplan\n", "line 2: plan works only on a map in memory: a running service plans"),
        ("online r3\nobserve r3 rate=9\n", "line 2: observe works only on a map in memory"),
        ("online r3\nsplt marathon/Full\n", "line 2: \"splt\" is not a command"),
    ] {
        let ended = run(script);
        assert!(ended.code == Some(1) && ended.complained.contains(says), "{ended:?}");
        assert!(ended.said.is_empty() && ended.complained.contains("no command was run"), "{ended:?}");
    }
    assert!(program.says(&["map", "show"]).contains("version 6"));
}
