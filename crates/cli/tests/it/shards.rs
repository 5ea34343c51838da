//! `rangehold shards` as its users call it: from one database with three tenants to several shards.

use std::path::Path;
use std::process::Command;

use rangehold_testkit::{needs, postgres, roles};
use serde_json::Value;

/// The program with its global map, and a directory for its files.
pub(crate) struct User {
    global: String,
    pub(crate) directory: tempfile::TempDir,
    /// More variables of its environment.
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl User {
    pub(crate) fn new(global: Option<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let global =
            global.unwrap_or_else(|| format!("sqlite:{}", directory.path().join("maps.db").display()));
        Self { global, directory, environment: Vec::new() }
    }

    /// A program that runs in the user's environment.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut program = Command::new(name);
        program
            .env("RANGEHOLD_SHARDS_GLOBAL", &self.global)
            .env("PGUSER", roles::MANAGER)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.directory.path());
        program
    }

    pub(crate) fn call(&self, words: &[&str]) -> (bool, String, String) {
        let mut program = self.program(env!("CARGO_BIN_EXE_rangehold"));
        let output = program.arg("shards").args(words).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    }

    pub(crate) fn done(&self, words: &[&str]) -> String {
        let (done, said, complaint) = self.call(words);
        assert!(done, "{words:?}: {complaint}");
        said
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.done(&[words, &["--output", "json"]].concat())).unwrap()
    }

    pub(crate) fn refused(&self, words: &[&str]) -> String {
        let (done, said, complaint) = self.call(words);
        assert!(!done, "{words:?}: {said}");
        complaint
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }
}

/// The whole way, over two places, the first with orders of the tenants 1, 2 and 3.
fn from_one_database_on(user: &User, first: &str, second: &str) {
    let adopted = user.done(&["adopt", first, "--map", "tenants", "--table", "orders", "--column", "tenant"]);
    assert!(adopted.contains("3 new mappings; no row was touched"), "{adopted}");
    assert!(user.refused(&["locate", "4"]).contains("rangehold shards provision"));
    user.done(&["shard", "add", second]);
    let provisioned = user.json(&["provision", "4"]);
    assert_eq!((&provisioned["shard"], &provisioned["new"]), (&second.into(), &true.into()));
    assert_eq!(user.json(&["provision", "4"])["new"], false);
    assert_eq!(user.done(&["locate", "4"]), format!("4 on {second}\n"));

    // A schema for both: `second` comes first by its name, has no table yet, and fails alone.
    user.file("city.sql", "alter table orders add column city text;");
    let failed = user.call(&["exec", "--file", "city.sql"]);
    assert!(!failed.0 && failed.1.contains("failed") && failed.1.contains("waiting"), "{failed:?}");
    user.file("orders.sql", "create table if not exists orders (tenant bigint, note text);");
    user.done(&["exec", "--file", "orders.sql"]);
    user.done(&["exec", "--file", "city.sql"]);
    assert!(!user.done(&["exec", "--file", "city.sql", "--plan"]).contains("waiting"));

    // A tenant moves: offline, rows by hand, the map, online.
    user.refused(&["mapping", "update", "1", "--shard", second]);
    user.done(&["mapping", "offline", "1"]);
    user.done(&["mapping", "update", "1", "--shard", second]);
    assert_eq!(user.done(&["mapping", "online", "1"]), format!("1 on {second}\n"));

    // A lock keeps others away.
    let locked = user.json(&["mapping", "lock", "2", "--owner", "a test"]);
    assert!(user.refused(&["mapping", "offline", "2"]).contains("locked"));
    user.done(&["mapping", "offline", "2", "--token", locked["lock"]["token"].as_str().unwrap()]);
    user.done(&["mapping", "unlock", "2", "--force"]);
    user.done(&["mapping", "delete", "2"]);

    let list = user.json(&["list"]);
    let keys: Vec<&str> =
        list.as_array().unwrap().iter().map(|mapping| mapping["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["1", "3", "4"]);
    assert_eq!(user.json(&["sizes"]).as_array().unwrap().len(), 2);
    assert_eq!(user.json(&["check"])["findings"], serde_json::json!([]));
    assert_eq!(user.done(&["pending"]), "no operation is under way\n");
    assert_eq!(user.done(&["recover"]), "0 abandoned operations were ended\n");

    // Many at once, and a look at some.
    user.file("more.txt", &format!("50 {first}\n51 {second}\n\n52 {first}\n"));
    assert_eq!(user.json(&["mapping", "import", "more.txt"])["added"], 3);
    user.file("wrong.txt", "50\n");
    assert!(user.refused(&["mapping", "import", "wrong.txt"]).contains("line 1"));
    let keys = |words: &[&str]| {
        let list = user.json(words);
        list.as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&["list", "--shard", second]), ["1", "4", "51"]);
    assert_eq!(keys(&["list", "--from", "4", "--to", "52"]), ["4", "50", "51"]);

    // Locks are renewed, and ended together. Nobody sees the token of another.
    let locked = user.json(&["mapping", "lock", "50", "--owner", "a test", "--lease-s", "60"]);
    let token = locked["lock"]["token"].as_str().unwrap();
    user.done(&["mapping", "renew", "50", "--token", token, "--lease-s", "120"]);
    assert!(user.refused(&["mapping", "unlock-all"]).contains("--token"));
    let list = user.json(&["list", "--from", "50"]);
    assert_eq!((&list[0]["lock"]["owner"], &list[0]["lock"]["token"]), (&"a test".into(), &Value::Null));
    assert_eq!(user.json(&["mapping", "unlock-all", "--token", token])["unlocked"], 1);
    user.done(&["mapping", "lock", "50", "--owner", "a test", "--lease-s", "0"]);
    assert_eq!(user.json(&["list", "--from", "50"])[0]["lock"], Value::Null, "a lock that has ended");

    // Transactions are left alone, or ended at once, or waited for.
    user.done(&["mapping", "offline", "50", "--no-drain"]);
    user.done(&["mapping", "online", "50"]);
    user.done(&["mapping", "offline", "50", "--give-up-s", "5"]);
    user.done(&["mapping", "delete", "50", "--grace-s", "0"]);
    assert!(
        user.refused(&["mapping", "offline", "51", "--no-drain", "--grace-s", "1"]).contains("--grace-s")
    );

    // All shards at once.
    let view = user.done(&["view", "--table", "orders", "--column", "tenant"]);
    user.file("view.sql", &view);
    user.done(&["exec", "--file", "view.sql"]);
    let rows = user.json(&["query", "select tenant, note from orders_here order by note"]);
    assert_eq!(rows.as_array().unwrap().len(), 1, "the rows of tenant 3: {rows}");
    assert_eq!((&rows[0]["note"], &rows[0]["shard"]), (&"three".into(), &first.into()));
    let text = user.done(&["query", "select note, null as gap from orders_here"]);
    assert_eq!(text, format!("three\tnull\t{first}\n"));
    match first.starts_with("sqlite:") {
        true => assert!(
            user.refused(&["guard", "--table", "orders", "--column", "tenant"]).contains("PostgreSQL")
        ),
        false => {
            user.file("guard.sql", &user.done(&["guard", "--table", "orders", "--column", "tenant"]));
            user.done(&["exec", "--file", "guard.sql"]);
        }
    }

    // Notes, and rebuilding.
    user.file(
        "note.json",
        r#"{"tables": [{"schema": "public", "table": "orders", "key_column": "tenant"}]}"#,
    );
    user.done(&["schema", "set", "tenants", "--file", "note.json"]);
    user.done(&["schema", "set", "tenants", "--file", "note.json"]);
    assert_eq!(user.json(&["schema", "show", "tenants"])["tables"][0]["table"], "orders");
    assert_eq!(user.done(&["schema", "list"]), "tenants\n");
    user.done(&["schema", "remove", "tenants"]);
    assert!(user.refused(&["schema", "show", "tenants"]).contains("tenants"));
    user.done(&["recover", "--rebuild-shards", first, second]);
    user.done(&["recover", "--rebuild-global", first, second]);
    assert_eq!(user.json(&["check"])["findings"], serde_json::json!([]));

    // A second map, of months.
    user.done(&["map", "create", "months", "--kind", "range", "--key-type", "date-time"]);
    assert!(user.refused(&["list"]).contains("which shard map? give --map with one of months, tenants"));
    user.done(&["--map", "months", "shard", "add", first]);
    let months =
        ["--map", "months", "provision", "--every", "month", "--ahead", "2", "--now", "2026-11-21T19:00:00"];
    assert_eq!(user.json(&months).as_array().unwrap().len(), 3);
    assert_eq!(user.json(&months).as_array().unwrap().len(), 0);
    user.done(&["--map", "months", "mapping", "split", "2026-12-24T00:00:00", "--at", "2026-12-16T00:00:00"]);
    user.done(&["--map", "months", "mapping", "merge", "2026-12-01T00:00:00"]);
    assert!(
        user.refused(&["--map", "months", "mapping", "split", "soon", "--at", "later"])
            .contains("2026-02-28")
    );
}

pub(crate) fn sqlite(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

pub(crate) const ORDERS: &str = "create table orders (tenant bigint, note text);
    insert into orders values (1, 'one'), (2, 'two'), (3, 'three'), (1, 'another');";

#[test]
fn sqlite_files() {
    let user = User::new(None);
    let place = |name: &str| user.directory.path().join(name);
    sqlite(&place("shop.db"), ORDERS);
    let [first, second] = ["shop.db", "second.db"].map(|name| format!("sqlite:{}", place(name).display()));
    from_one_database_on(&user, &first, &second);
    upgrades(&user, &place("second.db"));
    says_what_differs(&user, &place("second.db"), &second);
}

/// Two maps and two shards, of which one is of version 1.0.
fn upgrades(user: &User, shard: &Path) {
    sqlite(
        shard,
        "drop table __shard_management_local_closed_mappings;
        update __shard_management_local_meta set version_minor = 0",
    );
    let upgraded = user.json(&["upgrade"]);
    let states: Vec<&Value> = upgraded.as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["upgraded"; 2], "{upgraded}");
    sqlite(shard, "select * from __shard_management_local_closed_mappings");
    let version = "select version_minor from __shard_management_local_meta";
    let version: i64 =
        rusqlite::Connection::open(shard).unwrap().query_row(version, [], |row| row.get(0)).unwrap();
    assert_eq!(version, 1);

    // A shard that cannot be upgraded is named, and does not keep the others from it.
    let aside = shard.with_extension("aside");
    std::fs::rename(shard, &aside).unwrap();
    let (done, said, complaint) = user.call(&["upgrade"]);
    assert!(!done && complaint.contains("1 shards were not upgraded"), "{complaint}");
    let lines = |word: &str| said.lines().filter(|line| line.contains(word)).count();
    assert_eq!((lines("upgraded"), lines("failed")), (1, 1), "{said}");
    std::fs::rename(&aside, shard).unwrap();
}

/// The key of a list map's mapping is named alone. A shard that cannot be asked is not a difference.
fn says_what_differs(user: &User, shard: &Path, place: &str) {
    let aside = shard.with_extension("aside");
    std::fs::copy(shard, &aside).unwrap();
    let other_ids =
        "update __shard_management_local_mappings set mapping_id = '00000000' || substr(mapping_id, 9)";
    sqlite(shard, other_ids);
    let (done, said, complaint) = user.call(&["check"]);
    assert!(!done && complaint.contains("differences") && !complaint.contains("compared"), "{complaint}");
    let keys = |line: &str| {
        let line = line.strip_prefix(place)?.trim().strip_prefix("tenants")?.trim();
        line.strip_suffix("both have it, with different mappings").map(|keys| keys.trim().to_owned())
    };
    assert_eq!(said.lines().filter_map(keys).collect::<Vec<_>>(), ["1", "4", "51"], "{said}");

    std::fs::remove_file(shard).unwrap();
    let (done, said, complaint) = user.call(&["check"]);
    assert!(!done && complaint.contains("1 shards could not be compared"), "{complaint}");
    assert!(!complaint.contains("differences"), "{complaint}");
    assert_eq!(said.lines().filter(|line| line.starts_with(place)).count(), 1, "{said}");
    std::fs::rename(&aside, shard).unwrap();
    assert_eq!(user.json(&["check"])["findings"], serde_json::json!([]));
}

#[test]
fn postgresql_databases() {
    needs!(PostgreSql);
    let server = postgres::PostgresServer::start();
    server.create_global_database("maps");
    for database in ["shop", "second"] {
        server.create_database(database);
    }
    server.sql_as(roles::OWNER, "shop", ORDERS);
    let place = |name: &str| format!("postgres://127.0.0.1:{}/{name}", server.port());
    from_one_database_on(&User::new(Some(place("maps"))), &place("shop"), &place("second"));
}

/// The user, the password and the trusted certificates come from the environment, as for `psql`.
#[test]
fn a_password_over_tls() {
    needs!(PostgreSql);
    let server = postgres::PostgresServer::start();
    server.create_global_database("maps");
    server.create_database("shop");
    server.sql_as(roles::OWNER, "shop", ORDERS);
    let keeper = format!("create role keeper login password 'a:b' in role {}", roles::MANAGER);
    server.sql("postgres", &keeper);
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    server.demand_tls(&made.cert.pem(), &made.signing_key.serialize_pem(), "scram-sha-256");

    let place = |host: &str, name: &str| format!("postgres://{host}:{}/{name}", server.port());
    let mut user = User::new(Some(place("localhost", "maps")));
    user.file("roots.pem", &made.cert.pem());
    user.file("passwords", &format!("localhost:{}:*:keeper:a\\:b\n", server.port()));
    let file = |name: &str| user.directory.path().join(name);
    let only_mine = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(file("passwords"), only_mine).unwrap();
    let environment = [
        ("PGUSER", "keeper".to_owned()),
        ("PGPASSFILE", file("passwords").display().to_string()),
        ("PGSSLMODE", "verify-full".to_owned()),
        ("PGSSLROOTCERT", file("roots.pem").display().to_string()),
    ];
    user.environment = environment.clone().into();
    let adopted = user.done(&[
        "adopt",
        &place("localhost", "shop"),
        "--map",
        "tenants",
        "--table",
        "orders",
        "--column",
        "tenant",
    ]);
    assert!(adopted.contains("3 new mappings"), "{adopted}");

    // The same map, asked for otherwise.
    let mut refused = |global: String, variable: &'static str, value: &str| {
        user.global = global;
        user.environment = environment.clone().into();
        user.environment.push((variable, value.to_owned()));
        user.refused(&["list"])
    };
    let maps = place("localhost", "maps");
    assert!(refused(maps.clone(), "PGPASSFILE", "nothing").contains("password"));
    assert!(refused(maps.clone(), "PGPASSWORD", "wrong").contains("password"));
    let proves_nothing = refused(maps.clone(), "PGSSLMODE", "require");
    assert!(proves_nothing.contains("use verify-full, or disable"), "{proves_nothing}");
    assert!(proves_nothing.contains("PGSSLMODE in the environment"), "{proves_nothing}");
    assert!(refused(maps.clone(), "PGSSLMODE", "disable").contains("pg_hba.conf"));
    assert!(refused(place("127.0.0.1", "maps"), "PGPASSWORD", "a:b").contains("certificate"));
    // What the address says comes before the environment.
    assert!(refused(format!("{maps}?sslmode=disable"), "PGPASSWORD", "a:b").contains("pg_hba.conf"));
    assert!(refused(format!("{maps}?sslmode=disable"), "PGSSLMODE", "require").contains("pg_hba.conf"));
}

#[test]
fn called_wrongly_it_says_what_to_do() {
    let user = User::new(Some("nowhere".to_owned()));
    assert!(user.refused(&["list"]).contains("write sqlite:PATH or postgres://"));
    let user = User::new(None);
    assert!(user.refused(&["list"]).contains("rangehold shards init"));
    user.done(&["init"]);
    assert!(user.refused(&["init"]).contains("there is a global map"));
    assert!(user.refused(&["list"]).contains("rangehold shards map create"));
}
