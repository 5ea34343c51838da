//! Commands for shard maps after something went wrong: copies, lost and replaced databases, maps that differ.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::shard_commands::Shards;
use crate::shards::{User, sqlite};

/// The keys that the map has on a shard.
fn keys_on(user: &User, shard: &str) -> Vec<String> {
    let list = user.json(&["list", "--shard", shard]);
    list.as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap().to_owned()).collect()
}

/// What `check` finds, if it finds something.
fn findings(user: &User) -> Vec<Value> {
    let (done, said, _) = user.call(&["check", "--output", "json"]);
    let findings = serde_json::from_str::<Value>(&said).unwrap()["findings"].as_array().unwrap().clone();
    assert_eq!(done, findings.is_empty(), "{said}");
    findings
}

fn what_differs(user: &User) -> Vec<String> {
    findings(user).iter().map(|one| format!("{} {}", one["keys"], one["what"]).replace('"', "")).collect()
}

impl Shards {
    fn file(&self, name: &str) -> PathBuf {
        self.user.directory.path().join(name)
    }

    /// A copy of the first shard, with tenants 1 to 3.
    fn copy_first(&self, name: &str) -> String {
        std::fs::copy(self.file("shop.db"), self.file(name)).unwrap();
        format!("sqlite:{}", self.file(name).display())
    }

    /// Takes a file away, or brings it back.
    fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.file(from), self.file(to)).unwrap();
    }
}

#[test]
fn a_copy_is_refused_until_the_command_says_what_it_is() {
    let shards = Shards::new();
    let (user, [first, _]) = (&shards.user, &shards.places);
    let [copy, other] = ["copy.db", "other.db"].map(|name| shards.copy_first(name));
    let refused = user.refused(&["shard", "add", &copy]);
    assert!(["--clone new", "--clone keep", first].iter().all(|word| refused.contains(word)), "{refused}");
    assert_eq!(user.json(&["shard", "add", &copy, "--clone", "new"])["shard"], copy.as_str());
    assert_eq!(keys_on(user, &copy), Vec::<String>::new());
    assert_eq!(
        user.done(&["shard", "add", &other, "--clone", "keep"]),
        format!("moved the shard at {other}\n")
    );
    assert_eq!(keys_on(user, &other), ["1", "2", "3"]);
    assert!(user.refused(&["list", "--shard", first]).contains("no shard at"));
    assert_eq!(findings(user), Vec::<Value>::new());
}

#[test]
fn a_shard_that_is_lost_is_given_up_and_may_come_back() {
    let shards = Shards::new();
    let (user, [first, second]) = (&shards.user, &shards.places);
    let copy = shards.copy_first("copy.db");
    shards.rename("shop.db", "aside");
    assert!(user.refused(&["shard", "update", first, "--to", &copy]).contains("--lost"));
    user.done(&["shard", "update", first, "--to", &copy, "--lost"]);
    assert_eq!(user.done(&["locate", "1"]), format!("1 on {copy}\n"));

    shards.rename("second.db", "second.aside");
    assert!(user.refused(&["recover", "--detach", second]).contains("--lost"));
    let detached = user.done(&["recover", "--detach", second, "--lost"]);
    assert_eq!(detached, format!("{second} is not a shard any more\n"));
    assert!(user.refused(&["locate", "7"]).contains("no shard of map"));
    shards.rename("second.aside", "second.db");
    assert!(user.refused(&["recover", "--attach", second]).contains("--clone keep"));
    let attached = user.done(&["recover", "--attach", second, "--clone", "keep"]);
    assert!(attached.starts_with(&format!("{second} is a shard of 1 maps")), "{attached}");
    assert_eq!(what_differs(user), ["7 only the shard has it"]);
    let kept = user.done(&["recover", "--shard", second, "--keep", "shard"]);
    assert_eq!(kept, format!("1 differences with {second} are resolved\n"));
    assert_eq!(user.done(&["locate", "7"]), format!("7 on {second}\n"));
    assert_eq!(findings(user), Vec::<Value>::new());
}

#[test]
fn a_shard_leaves_and_comes_back_and_either_map_is_kept() {
    let shards = Shards::new();
    let (user, [_, second]) = (&shards.user, &shards.places);
    user.done(&["recover", "--detach", second]);
    assert!(user.refused(&["locate", "7"]).contains("no shard of map"));
    user.done(&["recover", "--attach", second]);
    assert_eq!(what_differs(user), ["7 only the shard has it"]);
    user.done(&["recover", "--shard", second, "--keep", "shard"]);
    assert_eq!(keys_on(user, second), ["7"]);

    sqlite(&shards.file("second.db"), "delete from __shard_management_local_mappings");
    assert_eq!(what_differs(user), ["7 only the global map has it"]);
    user.done(&["recover", "--shard", second, "--keep", "global"]);
    assert_eq!(findings(user), Vec::<Value>::new());
    assert_eq!(keys_on(user, second), ["7"]);
}

#[test]
fn a_shard_gets_the_keys_of_a_file() {
    let shards = Shards::new();
    let (user, [_, second]) = (&shards.user, &shards.places);
    sqlite(&shards.file("second.db"), "delete from __shard_management_local_mappings");
    let rebuild = ["recover", "--rebuild-shard", second.as_str(), "--from-file", "keys.txt"];
    user.file("keys.txt", "7\n8 9\n");
    let refused = user.refused(&rebuild);
    assert!(refused.contains("line 2 of keys.txt") && refused.contains("one key"), "{refused}");
    user.file("keys.txt", "7\n\n8\n");
    assert_eq!(user.json(&rebuild)["intervals"], 2);
    assert_eq!(what_differs(user), ["7 both have it, with different mappings", "8 only the shard has it"]);
    user.done(&["recover", "--shard", second, "--keep", "shard"]);
    assert_eq!(keys_on(user, second), ["7", "8"]);
    assert!(user.refused(&rebuild[..3]).contains("--from-file"));

    user.done(&["map", "create", "blocks", "--kind", "range"]);
    user.done(&["--map", "blocks", "shard", "add", second]);
    user.file("keys.txt", "start 10\n20 end\n");
    user.done(&[&["--map", "blocks"], &rebuild[..]].concat());
    user.done(&["--map", "blocks", "recover", "--shard", second, "--keep", "shard"]);
    let list = user.json(&["--map", "blocks", "list"]);
    let ends: Vec<[&Value; 2]> =
        list.as_array().unwrap().iter().map(|one| [&one["low"], &one["high"]]).collect();
    assert_eq!(ends[0][1], "10");
    assert_eq!(ends[1], [&json!("20"), &Value::Null]);
    user.file("keys.txt", "1 5\n4 end\n");
    assert!(user.refused(&[&["--map", "blocks"], &rebuild[..]].concat()).contains("overlap"));
}

/// The shards of a global map that is replaced serve nothing until they are known again.
#[test]
fn a_global_map_is_replaced_and_made_again_of_its_shards() {
    let shards = Shards::new();
    let (user, [first, second]) = (&shards.user, &shards.places);
    assert!(user.refused(&["init"]).contains("there is a global map"));
    assert!(user.done(&["init", "--replace"]).starts_with("made the global map at sqlite:"));
    assert!(user.refused(&["list"]).contains("rangehold shards map create"));
    let open = "select count(*) from __shard_management_local_mappings";
    let held: i64 = rusqlite::Connection::open(shards.file("shop.db"))
        .unwrap()
        .query_row(open, [], |row| row.get(0))
        .unwrap();
    assert_eq!(held, 0);
    user.done(&["recover", "--rebuild-global", first, second]);
    assert_eq!((keys_on(user, first).len(), keys_on(user, second)), (3, vec!["7".to_owned()]));
    assert_eq!(findings(user), Vec::<Value>::new());
}

/// Another global map closes a map in a shard that is not its own. The first one notices, and opens it again.
#[test]
fn a_map_of_another_global_map_is_retired() {
    let shards = Shards::new();
    let (user, [first, _]) = (&shards.user, &shards.places);
    user.done(&["init", "--global", "sqlite:other.db"]);
    let retire = ["recover", "--retire", first.as_str(), "--global", "sqlite:other.db"];
    assert_eq!(user.done(&retire), format!("1 maps of another global map were closed at {first}\n"));
    assert_eq!(user.json(&retire)["maps"], 0);
    let found = findings(user);
    assert!(found.iter().any(|one| one["what"].as_str().unwrap().contains("closed")), "{found:?}");
    user.done(&["recover", "--shard", first, "--keep", "global"]);
    assert_eq!(findings(user), Vec::<Value>::new());
}

/// A copy of the first shard at the place of the second: `check` says which shard it is, beside the keys.
#[test]
fn another_shard_at_the_place_of_a_shard_is_found() {
    let shards = Shards::new();
    let (user, [first, second]) = (&shards.user, &shards.places);
    shards.copy_first("second.db");
    let found = findings(user);
    let of_second: Vec<&Value> = found.iter().filter(|one| one["shard"] == second.as_str()).collect();
    let identity = of_second.iter().find(|one| one["keys"] == "").unwrap();
    assert_eq!(identity["map"], "tenants");
    assert!(identity["what"].as_str().unwrap().contains(first.as_str()), "{identity}");
    let (done, said, complaint) = user.call(&["check"]);
    assert!(!done && complaint.contains("differences"), "{complaint}");
    assert!(said.lines().any(|line| line.starts_with(second) && line.contains(first.as_str())), "{said}");
}

/// A server that does not answer is not a global map that was never made. And nothing is said twice.
#[test]
fn a_server_that_is_down_is_not_a_map_that_was_never_made() {
    // Nothing listens on this port, which only root may use.
    let user = User::new(Some("postgres://127.0.0.1:1/maps".to_owned()));
    let complaint = user.refused(&["list"]);
    assert!(complaint.contains("cannot open the global map") && !complaint.contains("init"), "{complaint}");
    for once in ["postgres://127.0.0.1:1/maps", "cannot open", "refused"] {
        assert_eq!(complaint.matches(once).count(), 1, "{once}: {complaint}");
    }
    let user = User::new(None);
    let complaint = user.refused(&["list"]);
    for once in ["rangehold shards init", "unable to open"] {
        assert_eq!(complaint.matches(once).count(), 1, "{once}: {complaint}");
    }
}

/// The order of guid keys is SQL Server's, and the commands that show it say so. The order of uuid keys is that of the text.
#[test]
fn guid_and_uuid_keys_have_their_orders() {
    const LESS: &str = "00000000-0000-0000-0000-000000000001";
    const GREATER: &str = "10000000-0000-0000-0000-000000000000";
    let note = "the order of guid keys is SQL Server's";
    for (key_type, order) in [("uuid", [LESS, GREATER]), ("guid", [GREATER, LESS])] {
        let user = User::new(None);
        let file = user.directory.path().join("shop.db");
        let table =
            format!("create table things (id text); insert into things values ('{LESS}'), ('{GREATER}')");
        sqlite(&file, &table);
        let place = format!("sqlite:{}", file.display());
        let words = ["adopt", &place, "--map", "things", "--table", "things", "--column", "id"];
        let adopted = user.done(&[&words[..], &["--key-type", key_type]].concat());
        assert!(adopted.contains("2 new mappings"), "{adopted}");
        let list = user.done(&["list"]);
        let says = key_type == "guid";
        assert_eq!((adopted.contains(note), list.contains(note)), (says, says), "{adopted}{list}");
        let keys: Vec<&str> =
            list.lines().filter_map(|line| line.split(' ').next()).filter(|word| word.len() == 36).collect();
        assert_eq!(keys, order);
        let made = user.done(&["map", "create", "others", "--kind", "range", "--key-type", key_type]);
        assert_eq!(made.contains("in SQL Server's order"), says, "{made}");
        user.done(&["--map", "others", "shard", "add", &place]);
        let [low, high] = order;
        let added = user.done(&["--map", "others", "mapping", "add", low, high, "--shard", &place]);
        assert_eq!(added, format!("added [{low}, {high}) on {place}\n"));
        assert!(user.refused(&["--map", "others", "locate", "seven"]).contains(key_type));
    }
}
