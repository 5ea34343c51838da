//! Commands for tables and entities, and moving tables between services and files.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::home::Home;
use crate::program::{ended, rangehold};

#[test]
fn tables_and_entities_have_the_commands_of_az() {
    let home = Home::open();
    let people = ["--name", "people"];
    assert_eq!(home.answers(&["table", "create", "--name", "people"]), json!({ "created": true }));
    assert_eq!(home.says(&["table", "create", "-n", "people"]), "people exists already\n");
    assert!(
        home.refuses(&["table", "create", "-n", "people", "--fail-on-exist"]).contains("TableAlreadyExists")
    );
    assert_eq!(home.says(&["table", "exists", people[0], people[1]]), "people exists\n");
    assert_eq!(home.answers(&["table", "list"]), json!([{ "name": "people" }]));

    let insert =
        ["entity", "insert", "-t", "people", "-e", "PartitionKey=maths", "RowKey=noether", "Born=1882"];
    assert!(home.says(&insert).ends_with("is written\n"));
    assert!(home.refuses(&insert).contains("EntityAlreadyExists"));
    let merge = ["entity", "merge", "-t", "people", "-e", "PartitionKey=maths", "RowKey=noether", "Zip=0001"];
    home.says(&[&merge[..], &["Zip@odata.type=Edm.String"]].concat());
    let show = ["entity", "show", "-t", "people", "--partition-key", "maths", "--row-key", "noether"];
    let shown = home.answers(&show);
    assert_eq!((&shown["Born"], &shown["Zip"]), (&json!(1882), &json!("0001")), "{shown}");
    let etag = shown["etag"].as_str().expect("a version");
    let replace = ["entity", "replace", "-t", "people", "--if-match", etag, "-e", "PartitionKey=maths"];
    let replace = [&replace[..], &["RowKey=noether", "Died=1935"]].concat();
    home.says(&replace);
    assert!(home.refuses(&replace).contains("412"));
    let query = ["entity", "query", "-t", "people", "--filter", "Died gt 1900"];
    assert_eq!(home.says(&query), "PartitionKey  RowKey   Died\nmaths         noether  1935\n");

    let delete = ["entity", "delete", "-t", "people", "--partition-key", "maths", "--row-key", "noether"];
    home.says(&delete);
    assert!(home.refuses(&delete).contains("ResourceNotFound"));
    assert!(home.refuses(&show).contains("there is no entity"));
    assert_eq!(home.says(&["table", "delete", "-n", "people"]), "people is deleted\n");
    assert!(home.refuses(&["table", "delete", "-n", "people", "--fail-not-exist"]).contains("404"));
    let mut alone = rangehold();
    alone.args(["table", "list"]).env_remove("AZURE_STORAGE_CONNECTION_STRING");
    assert!(ended(alone, "").complained.contains("--connection-string"));
}

/// A file as Storage Explorer writes it, with several pages of entities.
pub(crate) fn orders() -> String {
    let mut text =
        String::from("PartitionKey,RowKey,Timestamp,Cents,Cents@type,Note,Note@type,Placed,Placed@type\n");
    for n in 0..2_500_i64 {
        let note = if n % 3 == 0 { "\"a, \"\"b\"\"\",Edm.String" } else { "," };
        let shop = n % 40;
        writeln!(
            text,
            "shop-{shop:02},{n:06},2025-09-22T09:45:35Z,{},Edm.Int64,{note},1601-01-01T00:00:00Z,Edm.DateTime",
            n * 1_000_000_007
        )
        .expect("a text takes all");
    }
    text
}

/// What is left of an export that was killed: some parts, one file that is not noted, and a torn line.
fn tear(folder: &Path, ending: &str) {
    let manifest = folder.join("manifest.jsonl");
    let text = std::fs::read_to_string(&manifest).expect("it is there");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() >= 4, "{text}");
    std::fs::write(&manifest, format!("{}\n{}\n{{\"kind\":", lines[0], lines[1])).expect("there is room");
    std::fs::write(folder.join(format!("part-000999.{ending}")), "torn").expect("there is room");
}

#[test]
fn a_table_goes_through_every_format_and_comes_back_equal() {
    let home = Home::open();
    let csv = home.path("orders.csv");
    std::fs::write(&csv, orders()).expect("there is room");
    let imported = home.answers(&["table", "import", "-n", "orders", "--from", &csv]);
    assert_eq!((&imported["count"], &imported["moved"]), (&json!(2_500), &json!(2_500)));
    assert!(
        imported["compared"].as_str().expect("the table was empty").starts_with("compared"),
        "{imported}"
    );

    for format in ["parquet", "csv", "jsonl"] {
        let (folder, table) = (home.path(format), format!("from{format}"));
        let export = ["table", "export", "-n", "orders", "--to", &folder, "--format", format];
        let first = home.answers(&export);
        assert_eq!((&first["count"], &first["hash"]), (&imported["count"], &imported["hash"]), "{format}");
        assert_eq!(home.answers(&export)["moved"], json!(0), "it is complete");

        tear(Path::new(&folder), format);
        let import = ["table", "import", "-n", &table, "--from", &folder];
        assert!(home.refuses(&import).contains("is not complete"));
        let again = home.answers(&export);
        assert_eq!((&again["count"], &again["hash"]), (&imported["count"], &imported["hash"]), "{format}");
        assert!(again["moved"].as_u64() < Some(2_500), "{again}");

        let back = home.answers(&import);
        assert_eq!((&back["count"], &back["hash"]), (&imported["count"], &imported["hash"]), "{format}");
        assert!(back["compared"].as_str().is_some_and(|text| text.starts_with("compared")), "{back}");
    }

    let other = home.path("other");
    let other =
        ["table", "export", "-n", "fromcsv", "--to", &home.path("csv"), "--format", "csv", "--to", &other];
    assert_eq!(home.run(&other).code, Some(2), "one --to only");
    assert!(
        home.refuses(&["table", "export", "-n", "fromcsv", "--to", &home.path("csv")])
            .contains("another command")
    );
    damages(&home);
    copies(&home, &imported);
}

/// A file with another value is found, and so is a table that another client wrote to.
fn damages(home: &Home) {
    let folder = home.path("jsonl");
    let part = std::fs::read_dir(&folder).expect("it is there").map(|entry| entry.expect("a file").path());
    let part = part.filter(|path| path.to_string_lossy().contains("part-")).min().expect("there are parts");
    let text = std::fs::read_to_string(&part).expect("it is text");
    std::fs::write(&part, text.replacen("1601-01-01", "1602-01-01", 1)).expect("there is room");
    let why = home.refuses(&["table", "import", "-n", "damaged", "--from", &folder]);
    assert!(why.contains("is damaged"), "{why}");
}

fn copies(home: &Home, imported: &Value) {
    let copy = ["table", "copy", "-n", "orders", "--to-name", "copied"];
    assert!(home.refuses(&copy[..4]).contains("to itself"));
    let copied = home.answers(&copy);
    assert_eq!((&copied["count"], &copied["hash"]), (&imported["count"], &imported["hash"]));
    let text = home.says(&copy);
    assert!(text.contains("not compared: the table had entities before"), "{text}");
    let few = ["table", "copy", "-n", "orders", "--to-name", "few", "--filter", "PartitionKey eq 'shop-07'"];
    let few = home.answers(&[&few[..], &["--select", "Cents"]].concat());
    assert_eq!(few["count"], json!(63), "{few}");
    let shown = ["entity", "query", "-t", "few", "--num-results", "1"];
    assert_eq!(home.says(&shown), "PartitionKey  RowKey  Cents\nshop-07       000007  7000000049\n");
    let left = std::fs::read_dir(home.folder()).expect("it is there");
    let left =
        left.filter(|entry| entry.as_ref().expect("a file").file_name().to_string_lossy().contains("copy"));
    assert_eq!(left.count(), 0, "journals of finished copies are removed");
}
