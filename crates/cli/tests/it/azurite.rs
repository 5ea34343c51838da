//! The commands for tables at a service that is not ours: Azurite, in the step `client` of `cargo xtask test`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::home::Home;
use crate::program::Ended;

/// Entities with each type, in several partitions, as JSON Lines.
fn entities(count: i64) -> String {
    let mut text = String::new();
    for n in 0..count {
        let mut entity = json!({
            "PartitionKey": format!("shop-{:02}", n % 7), "RowKey": format!("order {n:06}"),
            "Cents@odata.type": "Edm.Int64", "Cents": (n * 1_000_000_007).to_string(), "Count": n, "Open": n % 2 == 0,
            "Weight": n as f64 + 0.25, "Note": format!("\"n\u{fc}mber\" {n}, with a comma"),
        });
        if n % 3 == 0 {
            for (name, kind, value) in [
                ("Placed", "DateTime", format!("2025-09-{:02}T09:45:35.1234567Z", n % 28 + 1)),
                ("Ticket", "Guid", format!("c9da6455-213d-42c9-9a79-{n:012x}")),
                ("Raw", "Binary", "AAEC/w==".to_owned()),
            ] {
                entity[format!("{name}@odata.type")] = format!("Edm.{kind}").into();
                entity[name] = value.into();
            }
        }
        writeln!(text, "{entity}").expect("a text takes all");
    }
    text
}

/// Count and hash that a command names.
fn sum(said: &Value) -> (Value, Value) {
    (said["count"].clone(), said["hash"].clone())
}

fn was_compared(said: &Value) -> bool {
    said["compared"].as_str().is_some_and(|text| text.starts_with("compared"))
}

#[test]
fn a_table_goes_from_azurite_through_files_to_ours_and_back() {
    let Some(azurite) = Home::other() else { return };
    let ours = Home::open();
    let (table, back) = (azurite.unique("orders"), azurite.unique("back"));
    let file = azurite.path("orders.jsonl");
    std::fs::write(&file, entities(2_500)).expect("there is room");
    let imported = azurite.answers(&["table", "import", "-n", &table, "--from", &file]);
    assert!(was_compared(&imported) && imported["count"] == json!(2_500), "{imported}");

    for format in ["jsonl", "parquet", "csv"] {
        let (out, again) = (azurite.path(format), ours.path(format));
        // Small parts, so that there are several.
        let export = ["table", "export", "-n", &table, "--to", &out, "--format", format, "--part-mib", "1"];
        assert_eq!(sum(&azurite.answers(&export)), sum(&imported), "{format}, out of Azurite");
        let here = ours.answers(&["table", "import", "-n", format, "--from", &out]);
        assert!(was_compared(&here), "{here}");
        assert_eq!(sum(&here), sum(&imported), "{format}, into ours");
        let export = ["table", "export", "-n", format, "--to", &again, "--format", format];
        assert_eq!(sum(&ours.answers(&export)), sum(&imported), "{format}, out of ours");
        let there = azurite.answers(&["table", "import", "-n", &back, "--from", &again]);
        assert!(was_compared(&there), "{there}");
        assert_eq!(sum(&there), sum(&imported), "{format}, into Azurite");
        azurite.says(&["table", "delete", "-n", &back]);
    }
    azurite.says(&["table", "delete", "-n", &table]);
}

#[test]
fn a_table_is_copied_from_azurite_to_ours_and_back() {
    let Some(azurite) = Home::other() else { return };
    let ours = Home::open();
    let (table, back) = (azurite.unique("copied"), azurite.unique("returned"));
    let file = azurite.path("orders.jsonl");
    std::fs::write(&file, entities(1_200)).expect("there is room");
    let imported = azurite.answers(&["table", "import", "-n", &table, "--from", &file]);
    let copy =
        ["table", "copy", "-n", &table, "--to-name", "here", "--to-connection-string", &ours.connection];
    let here = azurite.answers(&copy);
    assert!(was_compared(&here) && sum(&here) == sum(&imported), "{here} {imported}");
    let copy =
        ["table", "copy", "-n", "here", "--to-name", &back, "--to-connection-string", &azurite.connection];
    let there = ours.answers(&copy);
    assert!(was_compared(&there) && sum(&there) == sum(&imported), "{there} {imported}");
    let few = ["table", "copy", "-n", &back, "--to-name", "few", "--to-connection-string", &ours.connection];
    let few =
        azurite.answers(&[&few[..], &["--filter", "PartitionKey eq 'shop-03' and Count lt 70"]].concat());
    assert_eq!(few["count"], json!(10), "{few}");
    for table in [&table, &back] {
        azurite.says(&["table", "delete", "-n", table]);
    }
}

#[test]
fn entities_have_their_commands_at_azurite_too() {
    let Some(azurite) = Home::other() else { return };
    let table = &azurite.unique("people");
    assert_eq!(azurite.answers(&["table", "create", "-n", table]), json!({ "created": true }));
    assert_eq!(azurite.says(&["table", "exists", "-n", table]), format!("{table} exists\n"));
    assert!(
        azurite.refuses(&["table", "create", "-n", table, "--fail-on-exist"]).contains("TableAlreadyExists")
    );
    let insert = ["entity", "insert", "-t", table, "-e", "PartitionKey=maths", "RowKey=noether", "Born=1882"];
    azurite.says(&insert);
    assert!(azurite.refuses(&insert).contains("EntityAlreadyExists"));
    let show = ["entity", "show", "-t", table, "--partition-key", "maths", "--row-key", "noether"];
    let shown = azurite.answers(&show);
    let etag = shown["etag"].as_str().expect("a version");
    let replace = ["entity", "replace", "-t", table, "--if-match", etag, "-e", "PartitionKey=maths"];
    let replace = [&replace[..], &["RowKey=noether", "Died=1935"]].concat();
    azurite.says(&replace);
    assert!(azurite.refuses(&replace).contains("412"));
    let query = ["entity", "query", "-t", table, "--filter", "Died gt 1900"];
    assert_eq!(azurite.says(&query), "PartitionKey  RowKey   Died\nmaths         noether  1935\n");
    azurite.says(&["entity", "delete", "-t", table, "--partition-key", "maths", "--row-key", "noether"]);
    assert!(azurite.refuses(&show).contains("there is no entity"));
    azurite.says(&["table", "delete", "-n", table]);
    assert_eq!(azurite.says(&["table", "exists", "-n", table]), format!("{table} does not exist\n"));
}

/// A stress test of 3 s that looks for the ranges at a port where nothing listens.
fn stress(azurite: &Home, line: &[&str]) -> Ended {
    azurite
        .run(&[&["stress", "--minutes", "0.05", "--admin", "127.0.0.1:1", "--output", "json"], line].concat())
}

#[test]
fn a_stress_test_judges_azurite() {
    let Some(azurite) = Home::other() else { return };
    let plan = azurite.says(&["stress", "--design", "hashed-number", "--print-plan"]);
    // Few entities at first, and times that no machine misses.
    let lines = plan.lines().map(|line| match line.split_once(" = ") {
        Some(("within-ms", _)) => "within-ms = 60000".to_owned(),
        Some(("load", _)) => "load = 500".to_owned(),
        _ => line.to_owned(),
    });
    std::fs::write(azurite.path("plan.toml"), lines.collect::<Vec<_>>().join("\n")).expect("there is room");
    let table = azurite.unique("stress");
    let ended = stress(&azurite, &["--plan", "plan.toml", "--rate", "200", "--seed", "7", "--table", &table]);
    let said: Value = serde_json::from_str(&ended.said).expect("JSON");
    assert_eq!(
        (ended.code, &said["outcome"], &said["loaded"]),
        (Some(0), &json!("bears"), &json!(500)),
        "{ended:?}"
    );
    let kinds = said["kinds"].as_array().expect("kinds of requests");
    assert!(kinds.iter().all(|kind| kind["asked"] == kind["in_time"]), "{said:#}");
    assert!(kinds.iter().any(|kind| kind["asked"].as_u64() > Some(10)), "{said:#}");
    assert!(
        said["ranges"].is_null() && ended.complained.contains("the ranges of the service are not shown"),
        "{ended:?}"
    );
    assert_eq!(azurite.says(&["table", "exists", "-n", &table]), format!("{table} does not exist\n"));

    // Keys that no store bears at this rate, whatever this service makes of them.
    let hot = "load = 3\n[keys]\npartition = \"one\"\nrow = \"{number}-{row}\"\n[[request]]\nname = \"a batch\"\n\
               do = \"batch\"\nrows = 100\nper-second = 30\nwithin-ms = 60000\n";
    std::fs::write(azurite.path("hot.toml"), hot).expect("there is room");
    let ended = stress(&azurite, &["--plan", "hot.toml", "--seed", "3", "--table", &table]);
    let said: Value = serde_json::from_str(&ended.said).expect("JSON");
    assert_eq!((ended.code, &said["outcome"]), (Some(3), &json!("limited")), "{ended:?}");
}
