//! Settings as people and tools give them: by flags and by variables of the environment.

use crate::program::{Program, ended, rangehold};

#[test]
fn empty_variables_count_as_not_set_and_1_means_true() {
    let mut command = rangehold();
    command.arg("connection-string");
    command.env("RANGEHOLD_HOST", "").env("RANGEHOLD_CONFIG", "").env("RANGEHOLD_TABLE_PORT", "");
    command.env("RANGEHOLD_IN_MEMORY", "1").env("RANGEHOLD_ALLOW_PUBLIC_WELL_KNOWN_KEY", "no");
    let ended = ended(command, "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.said.contains("TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"), "{ended:?}");
}

#[test]
fn connection_strings_are_told_to_programs_with_their_accounts() {
    let mut command = rangehold();
    command.args(["connection-string", "--accounts", "one:YQ==;two:Yg==", "--output", "json"]);
    let ended = ended(command, "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told: serde_json::Value = serde_json::from_str(&ended.said).expect("JSON");
    assert_eq!(told[0]["account"], "one", "{told}");
    assert_eq!(told[1]["account"], "two", "{told}");
    let string = told[1]["connection_string"].as_str().expect("a text");
    assert!(string.contains("AccountName=two;"), "{told}");
}

#[test]
fn commands_reach_a_server_by_a_token_that_is_in_no_file() {
    let (directory, token) = (tempfile::tempdir().unwrap(), "a-token-for-this-test");
    let server = Program::start(directory.path(), &["--admin-token", token]);
    assert!(!directory.path().join("admin-token").exists());
    let status = server.answers(&["status", "--admin-token", token, "--output", "json"]);
    assert_eq!(status["map_version"], 1);
    let shown = server.says(&["status", "--admin-token", token]);
    assert!(shown.contains("version 1; ranges: 1 (offline: 0); servers: 1"), "{shown}");
    assert_eq!(server.run(&["status", "--admin-token", "another-token-entirely"]).code, Some(1));
    let without = server.run(&["status"]);
    assert!(without.complained.contains("--admin-token"), "{without:?}");
}

#[test]
fn what_the_server_makes_is_for_its_own_user() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let _server = Program::start(&data, &[]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("rangehold-format.json")), 0o600);
}

#[test]
fn a_new_directory_gets_its_development_certificate() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    drop(Program::start(&data, &["--tls", "self-signed"]));
    assert!(data.join("tls/cert.pem").exists() && data.join("rangehold-format.json").exists());
}

#[test]
fn shells_get_their_completions() {
    let mut command = rangehold();
    command.args(["completions", "bash"]);
    let ended = ended(command, "");
    assert!(ended.said.contains("connection-string"), "{ended:?}");
}
