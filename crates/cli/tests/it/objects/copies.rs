//! Files up and down, and what commands say and refuse.

use std::process::Stdio;

use rangehold_client::object::Crc32c;
use serde_json::Value;

use super::Home;

#[test]
fn files_go_up_and_down_and_the_commands_do_what_their_names_say() {
    let home = Home::open();
    home.says(&["bucket", "create", "gs://one", "gs://two", "--location", "EU", "--versioning"]);
    for name in ["t/a.txt", "t/b/c.txt", "t/b/d.bin", "t/e f"] {
        home.write(name, name);
    }
    assert_eq!(
        home.says(&["object", "cp", "-r", "t", "gs://one"]),
        "copied 4, 30 bytes; skipped 0; failed 0\n"
    );
    // Again, nothing has to be copied; a file that changed is.
    home.write("t/a.txt", "new");
    assert_eq!(
        home.says(&["object", "cp", "-r", "t", "gs://one"]),
        "copied 1, 3 bytes; skipped 3; failed 0\n"
    );
    assert_eq!(home.says(&["object", "ls", "gs://one"]), "gs://one/t/\n");
    assert_eq!(
        home.says(&["object", "ls", "gs://one/t/*"]),
        "gs://one/t/b/\ngs://one/t/a.txt\ngs://one/t/e f\n"
    );
    assert_eq!(home.says(&["object", "ls", "gs://one/**.txt"]), "gs://one/t/a.txt\ngs://one/t/b/c.txt\n");
    let long = home.says(&["object", "ls", "-l", "-r", "gs://one/t"]);
    assert!(long.ends_with("TOTAL: 4 objects, 26 bytes\n"), "{long}");
    assert_eq!(home.says(&["object", "ls", "-a", "gs://one/t/a.txt"]).lines().count(), 2);
    assert_eq!(home.says(&["object", "cat", "gs://one/t/a.txt", "gs://one/t/b/c.txt"]), "newt/b/c.txt");
    assert_eq!(home.says(&["object", "cat", "-r", "-3", "gs://one/t/b/c.txt"]), "txt");
    let stat: Value =
        serde_json::from_str(&home.says(&["object", "stat", "--output", "json", "gs://one/t/a.txt"]))
            .expect("JSON");
    assert_eq!((&stat["contentType"], &stat["size"]), (&"text/plain".into(), &"3".into()));

    home.says(&["object", "cp", "-r", "gs://one/t", "gs://two/u"]);
    home.says(&["object", "cp", "-r", "gs://two/u", "down/"]);
    assert_eq!(
        (home.read("down/u/a.txt"), home.read("down/u/b/d.bin")),
        (b"new".to_vec(), b"t/b/d.bin".to_vec())
    );
    assert_eq!(home.run(&["object", "cp", "-", "gs://two/in"], "from input").code, Some(0));
    assert_eq!(home.says(&["object", "cp", "gs://two/in", "-"]), "from input");
    home.write("down/u/a.txt", "kept");
    home.says(&["object", "cp", "-n", "gs://two/u/a.txt", "down/u/"]);
    assert_eq!(home.read("down/u/a.txt"), b"kept");

    home.says(&["object", "mv", "gs://two/in", "gs://two/moved"]);
    home.says(&["object", "mv", "gs://two/moved", "gs://one/moved"]);
    home.says(&["object", "mv", "gs://one/moved", "here"]);
    assert_eq!(home.read("here"), b"from input");
    assert_eq!(home.says(&["object", "ls", "-r", "gs://two"]).lines().count(), 4);

    let rehearsed = home.says(&[
        "object",
        "sync",
        "-r",
        "--dry-run",
        "--delete-unmatched-destination-objects",
        "t",
        "gs://two/u",
    ]);
    assert_eq!(rehearsed, "would copy 0, 0 bytes; skipped 4; failed 0\n");
    std::fs::remove_dir_all(home.directory.path().join("work/t/b")).expect("a folder");
    home.write("t/g", "g");
    let synced =
        home.says(&["object", "sync", "-r", "--delete-unmatched-destination-objects", "t", "gs://two/u"]);
    assert!(synced.ends_with("copied 1, 1 bytes; skipped 2; failed 0\n"), "{synced}");
    assert_eq!(
        home.says(&["object", "ls", "-r", "gs://two"]),
        "gs://two/u/a.txt\ngs://two/u/e f\ngs://two/u/g\n"
    );
    home.says(&["object", "sync", "-r", "--delete-unmatched-destination-objects", "gs://two/u", "down/u"]);
    assert!(!home.exists("down/u/b/c.txt") && home.read("down/u/a.txt") == b"new");

    assert!(home.says(&["bucket", "describe", "gs://one"]).contains("EU"));
    home.says(&["bucket", "update", "gs://one", "--update-labels", "team=a", "--no-versioning"]);
    let described = home.says(&["bucket", "describe", "--output", "json", "gs://one"]);
    let described: Value = serde_json::from_str(&described).expect("JSON");
    assert_eq!(
        (&described["labels"]["team"], &described["versioning"]["enabled"]),
        (&"a".into(), &false.into())
    );
    assert!(home.fails(&["bucket", "delete", "gs://one"]).contains("gs://one: the service refused with 409"));
    assert_eq!(
        home.says(&["object", "rm", "gs://one/t/**.txt"]),
        "deleted 2, 12 bytes; skipped 0; failed 0\n"
    );
    home.says(&["object", "rm", "-r", "gs://one"]);
    home.says(&["object", "rm", "-r", "gs://two/u"]);
    home.says(&["object", "rm", "-r", "gs://two"]);
    assert_eq!(home.says(&["bucket", "list"]).lines().count(), 1, "only the titles are left");
}

#[test]
fn a_copy_says_what_it_cannot_do_and_never_leaves_its_folder() {
    let home = Home::open();
    home.says(&["bucket", "create", "gs://names"]);
    assert_eq!(home.run(&["object", "cp", "-", "gs://names/a/../../../escaped"], "x").code, Some(0));
    let complained = home.fails(&["object", "cp", "-r", "gs://names/a", "down"]);
    assert!(
        complained.contains("../../../escaped") && complained.contains("would lead elsewhere"),
        "{complained}"
    );
    assert!(!home.directory.path().join("escaped").exists() && !home.exists("escaped"));
    for (line, says) in [
        (&["object", "cp", "none", "gs://names"][..], "cannot read none"),
        (&["object", "cat", "gs://names/none"], "gs://names/none: the service refused with 404"),
        (&["object", "cp", "gs://names/none", "x"], "there is no object gs://names/none"),
        (&["object", "rm", "gs://names/none*"], "nothing matches"),
        (&["object", "rm", "gs://names"], "delete it with --recursive"),
        (&["object", "ls", "gs://none"], "gs://none"),
    ] {
        let complained = home.fails(line);
        assert!(complained.contains(says), "{line:?}: {complained}");
    }
}

#[test]
fn a_copy_that_is_killed_goes_on_where_it_ended() {
    let home = Home::open();
    home.says(&["bucket", "create", "gs://killed"]);
    let bytes: Vec<u8> = (0..40_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    home.write("large", &bytes);
    let sessions = home.directory.path().join("state/rangehold/uploads");
    // Killed once its session is written down, at whatever place that is.
    let mut child = home
        .command(&["object", "cp", "large", "gs://killed"])
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let is_kept = |name: std::ffi::OsString| name.to_string_lossy().ends_with(".json");
    let kept = || {
        std::fs::read_dir(&sessions)
            .is_ok_and(|mut all| all.any(|one| one.is_ok_and(|one| is_kept(one.file_name()))))
    };
    while !kept() {
        if child.try_wait().expect("it is a child").is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().expect("it is a child");
    child.wait().expect("it is a child");
    home.says(&["object", "cp", "large", "gs://killed"]);
    assert_eq!(
        std::fs::read_dir(&sessions).expect("the folder").count(),
        0,
        "a session that ended is forgotten"
    );
    // A part that a killed download left is taken up: it is not overwritten from its beginning.
    let stat = home.says(&["object", "stat", "--output", "json", "gs://killed/large"]);
    let stat: Value = serde_json::from_str(&stat).expect("JSON");
    let generation = stat["generation"].as_str().expect("a generation");
    let part = format!("down/.{:08x}-{generation}.rangehold-part", Crc32c::of(b"large").0);
    home.write(&part, &bytes[..30 << 20]);
    assert_eq!(
        home.says(&["object", "cp", "gs://killed/large", "down/"]),
        "copied 1, 10485760 bytes; skipped 0; failed 0\n"
    );
    assert!(home.read("down/large") == bytes && !home.exists(&part));
    // A part with wrong bytes is refused, and removed.
    std::fs::remove_file(home.directory.path().join("work/down/large")).expect("a file");
    home.write(&part, vec![0; 30 << 20]);
    let complained = home.fails(&["object", "cp", "gs://killed/large", "down/"]);
    assert!(complained.contains("gs://killed/large") && complained.contains("CRC32C"), "{complained}");
    assert!(!home.exists(&part) && !home.exists("down/large"));
}
