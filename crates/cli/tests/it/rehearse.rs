//! `rehearse`: the answers that a client gets from a range that misbehaves.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::program::Program;

/// A time that is longer than the test.
const LONG: &str = "60m";

#[test]
fn clients_see_what_is_rehearsed() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = Program::start(&directory.path().join("data"), &["--servers", "2", "--manager", "off"]);
    program.create_table("marathon");
    program.insert("Full", "1");
    program.insert("Half", "1");
    program.says(&["map", "split", "marathon/Half"]);

    // The range is named by a key.
    let json = ["--output", "json"];
    let told = |words: &[&str]| program.answers(&[&["rehearse"][..], words, &json].concat());
    let offline = told(&["offline", "marathon/Half", "--for", LONG]);
    assert_eq!((&offline[0]["range"], &offline[0]["act"]), (&json!("r3"), &json!("offline")), "{offline}");
    refused(&program, 503, "ServerBusy");
    assert_eq!(program.entity("Full", "1").0, 200, "the neighbour serves");
    assert_eq!(told(&["stop"]), json!([]));
    assert_eq!(program.entity("Half", "1").0, 200);

    // The range is named with its generation.
    let busy = told(&["busy", "r3@1", "--rate", "1", "--for", LONG]);
    assert_eq!((&busy[0]["range"], &busy[0]["rate"]), (&json!("r3"), &json!(1.0)), "{busy}");
    refused(&program, 503, "ServerBusy");
    let shown = program.says(&["rehearse", "list"]);
    assert!(shown.contains("\nr3     busy  503     1.0 "), "{shown}");
    assert_eq!(program.says(&["rehearse", "stop"]), "no range misbehaves\n");

    let late = ["rehearse", "timeout", "marathon/Half", "--rate", "1", "--late", "200ms", "--for", LONG];
    program.says(&late);
    let begun = Instant::now();
    refused(&program, 500, "OperationTimedOut");
    assert!(begun.elapsed() >= Duration::from_millis(200), "it is late");
    program.says(&["rehearse", "stop"]);
    program.says(&[&late[..], &["--gateway"]].concat());
    let listed = told(&["list"]);
    assert_eq!((&listed[0]["act"], &listed[0]["gateway"]), (&json!("timeout"), &json!(true)), "{listed}");
    refused(&program, 504, "OperationTimedOut");
    program.says(&["rehearse", "stop"]);

    let moved = told(&["move", "marathon/Half"]);
    assert_eq!(moved["ranges"], json!(["r3"]), "{moved}");
    let map = program.says(&["map", "show"]);
    assert!(map.contains("r3@2   s2 "), "{map}");
    assert_eq!(program.entity("Half", "1").0, 200);
    let moved = program.says(&["rehearse", "move", "marathon/Half", "--to", "s1"]);
    assert!(moved.starts_with("done in map version ") && moved.contains(": r3; "), "{moved}");

    for (range, says) in [("r9", "r9 is not in the map"), ("r3@1", "generation 1"), ("walk/Half", "no table")]
    {
        for act in ["offline", "move"] {
            let ended = program.run(&["rehearse", act, range]);
            assert!(ended.code == Some(1) && ended.complained.contains(says), "{act} {range}: {ended:?}");
        }
    }
}

/// Checks that a request for Half gets this status and code.
fn refused(program: &Program, status: u16, code: &str) {
    let (got, body) = program.entity("Half", "1");
    assert!(got == status && body.contains(code), "{got} {body}");
}
