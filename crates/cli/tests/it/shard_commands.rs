//! What the commands of `rangehold shards` have in common: retries, metrics, and lines that show how far a long command is.

use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;

use rangehold_testkit::needs;

use crate::shards::{ORDERS, User, sqlite};

/// The file that the tests give for `--metrics`.
const METRICS: &str = "shards.prom";

/// A map with the tenants 1, 2 and 3 in the first shard, and 7 in the second.
pub(crate) struct Shards {
    pub(crate) user: User,
    pub(crate) places: [String; 2],
}

impl Shards {
    pub(crate) fn new() -> Self {
        let user = User::new(None);
        let files = ["shop.db", "second.db"].map(|name| user.directory.path().join(name));
        sqlite(&files[0], ORDERS);
        sqlite(&files[1], "create table orders (tenant bigint, note text)");
        let places = files.map(|file| format!("sqlite:{}", file.display()));
        let [first, second] = &places;
        user.done(&["adopt", first, "--map", "tenants", "--table", "orders", "--column", "tenant"]);
        user.done(&["shard", "add", second]);
        user.done(&["mapping", "add", "7", "--shard", second]);
        Self { user, places }
    }

    /// The file of the second shard.
    fn second(&self) -> PathBuf {
        self.user.directory.path().join("second.db")
    }

    /// A count in the file of metrics.
    fn counted(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(self.user.directory.path().join(METRICS)).unwrap();
        let name = format!("rangehold_shardmap_{name}_total ");
        let count = text.lines().find_map(|line| line.strip_prefix(name.as_str()));
        count.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    /// What the command writes to a terminal. Another program keeps the second shard for itself until the command has
    /// written `awaited`.
    fn on_a_terminal(&self, words: &[&str], awaited: &str) -> String {
        let holder = rusqlite::Connection::open(self.second()).unwrap();
        holder.execute_batch("begin exclusive").unwrap();
        let mut holder = Some(holder);
        let quoted = words.iter().map(|word| format!(" '{word}'"));
        let command = format!("'{}' shards{}", env!("CARGO_BIN_EXE_rangehold"), quoted.collect::<String>());
        let mut script = self.user.program("script");
        script.args(["--quiet", "--command", command.as_str(), "/dev/null"]).env("TERM", "xterm");
        let mut child = script.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut terminal = child.stdout.take().unwrap();
        let (mut bytes, mut piece) = (Vec::new(), [0; 1024]);
        loop {
            let count = terminal.read(&mut piece).unwrap();
            if count == 0 {
                break;
            }
            bytes.extend_from_slice(&piece[..count]);
            if String::from_utf8_lossy(&bytes).contains(awaited) {
                drop(holder.take());
            }
        }
        child.wait().unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The words of a command that writes its metrics.
fn counting<'w>(words: &[&'w str]) -> Vec<&'w str> {
    [words, &["--metrics", METRICS]].concat()
}

#[test]
fn metrics_are_written_after_success_and_after_failure() {
    let shards = Shards::new();
    let user = &shards.user;
    user.done(&counting(&["mapping", "offline", "1"]));
    assert_eq!(shards.counted("operations_done"), 1);
    assert!(user.refused(&counting(&["locate", "99"])).contains("no shard of map"));
    assert_eq!((shards.counted("operations_done"), shards.counted("global_lookups")), (0, 1));
    user.refused(&counting(&["locate", "7", "--global", "sqlite:nothing.db"]));
    assert_eq!(shards.counted("global_lookups"), 0, "nothing was opened, and nothing old is left");
    let other = ["init", "--global", "sqlite:other.db", "--metrics", "other.prom"];
    user.done(&other);
    user.refused(&other);

    // The command did its work, and still fails if its metrics are lost.
    let nowhere = ["--metrics", "no/such/folder.prom"];
    let (done, said, complaint) = user.call(&[&["locate", "7"][..], &nowhere].concat());
    assert!(!done && said.starts_with("7 on "), "{said}");
    assert!(complaint.contains("metrics cannot be written to no/such/folder.prom"), "{complaint}");
    let complaint = user.refused(&[&["locate", "99"][..], &nowhere].concat());
    assert!(complaint.contains("metrics cannot") && complaint.contains("no shard of map"), "{complaint}");
    let entries = std::fs::read_dir(user.directory.path()).unwrap();
    let names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.ends_with(".part")), "{names:?}");
}

#[test]
fn a_step_is_tried_again_as_often_as_the_command_says() {
    let mut shards = Shards::new();
    let (second, aside) = (shards.second(), shards.second().with_extension("aside"));
    std::fs::rename(&second, &aside).unwrap();
    let retries = |shards: &Shards, more: &[&str]| {
        shards.user.refused(&counting(&[&["mapping", "offline", "7"][..], more].concat()));
        assert_eq!(shards.counted("operations_undone"), 1);
        shards.counted("step_retries")
    };
    assert_eq!(retries(&shards, &[]), 5, "as the library does it");
    assert_eq!(retries(&shards, &["--retries", "0"]), 0);
    assert_eq!(retries(&shards, &["--retries", "2", "--retry-wait-ms", "1"]), 2);
    shards.user.environment.push(("RANGEHOLD_SHARDS_RETRIES", "1".to_owned()));
    assert_eq!(retries(&shards, &[]), 1);
    std::fs::rename(&aside, &second).unwrap();
    shards.user.done(&["mapping", "offline", "7"]);

    assert!(shards.user.refused(&["list", "--retries", "1001"]).contains("0..=1000"));
    let refused = shards.user.refused(&["list", "--retry-wait-ms", "1001"]);
    assert!(refused.contains("at least 1001 for --retry-wait-max-ms"), "{refused}");
}

#[test]
fn long_commands_show_on_a_terminal_how_far_they_are() {
    needs!(Script);
    let shards = Shards::new();
    let (user, [first, second]) = (&shards.user, &shards.places);
    user.file("note.sql", "create table notes (note text);");
    user.file("more.txt", &format!("50 {second}\n51 {second}\n"));
    let commands: [(&[&str], &str); 6] = [
        (&["check"], "comparing ["),
        (&["upgrade"], "upgrading ["),
        (&["exec", "--file", "note.sql"], "running ["),
        (&["mapping", "import", "more.txt"], "importing ["),
        (&["recover", "--rebuild-shards", first, second], "rebuilding ["),
        (&["recover", "--shard", second, "--keep", "global"], "resolving, "),
    ];
    for (words, awaited) in commands {
        let written = shards.on_a_terminal(words, awaited);
        assert!(written.contains(awaited), "{words:?}: {written}");
    }
    // A program that reads JSON has no use for it.
    let rebuild = ["recover", "--rebuild-shards", first.as_str(), "--output", "json"];
    let written = shards.on_a_terminal(&rebuild, "is done, 1 of 1");
    assert!(written.contains("is done, 1 of 1") && !written.contains("rebuilding"), "{written}");

    user.done(&["map", "create", "months", "--kind", "range", "--key-type", "date-time"]);
    user.done(&["--map", "months", "shard", "add", second]);
    let months = ["--map", "months", "provision", "--every", "month", "--now", "2026-11-21T19:00:00"];
    let written = shards.on_a_terminal(&months, "placing ranges, ");
    assert!(written.contains("placing ranges, "), "{written}");
}

#[test]
fn without_a_terminal_only_whole_lines_are_written() {
    let shards = Shards::new();
    let (user, [first, second]) = (&shards.user, &shards.places);
    let (done, _, complaint) = user.call(&["check"]);
    assert!(done && complaint.is_empty(), "{complaint}");
    let (done, _, complaint) = user.call(&["recover", "--rebuild-shards", first, second]);
    assert!(done, "{complaint}");
    assert_eq!(complaint, format!("{first} is done, 1 of 2\n{second} is done, 2 of 2\n"));
    user.file("more.txt", &format!("50 {first}\n"));
    assert_eq!(user.call(&["mapping", "import", "more.txt"]).2, "1 mappings are added\n");
}
