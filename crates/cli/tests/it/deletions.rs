//! Commands that delete many entities, that are killed, and that meet a service that pushes back.

use std::process::Stdio;

use serde_json::json;

use crate::home::Home;
use crate::program::rangehold;
use crate::tables::orders;

/// A server with 2,500 orders of 40 shops in the table `orders`, and the file that they come from.
fn shops() -> (Home, String) {
    let home = Home::open();
    let csv = home.path("orders.csv");
    std::fs::write(&csv, orders()).expect("there is room");
    home.says(&["table", "import", "-n", "orders", "--from", &csv]);
    (home, csv)
}

fn delete<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["entity", "delete-batch", "-t", "orders"], more].concat()
}

#[test]
fn many_entities_are_deleted_by_a_condition_by_a_file_or_all() {
    let (home, _) = shops();
    let counts = |deleted: u64, gone: u64| (json!(deleted), json!(gone), json!(0));
    let answers = |more: &[&str]| {
        let answer = home.answers(&delete(more));
        (answer["deleted"].clone(), answer["gone"].clone(), answer["changed"].clone())
    };
    assert_eq!(home.run(&delete(&[])).code, Some(2), "it must be said which");
    assert_eq!(home.run(&delete(&["--all", "--filter", "Cents eq 0L"])).code, Some(2));

    let shop = ["--filter", "PartitionKey eq 'shop-07'"];
    let counted = home.says(&delete(&[shop[0], shop[1], "--dryrun"]));
    assert_eq!(counted, "would delete 63 entities of orders\n");
    let said = home.says(&delete(&shop));
    assert!(said.starts_with("deleted 63 entities of orders; 0 were gone already\n"), "{said}");

    // A file of keys; its other columns do not count, and some of its entities are gone.
    let keys = home.path("keys.csv");
    let lines: String = orders().lines().take(1_001).map(|line| format!("{line}\n")).collect();
    std::fs::write(&keys, lines).expect("there is room");
    assert_eq!(answers(&["--from", &keys]), counts(1_000 - 25, 25));
    assert_eq!(answers(&["--from", &keys]), counts(0, 1_000));
    std::fs::write(&keys, "PartitionKey\nshop-01\n").expect("there is room");
    assert!(home.refuses(&delete(&["--from", &keys])).contains("keys.csv"));

    assert_eq!(answers(&["--all"]), counts(2_500 - 63 - 975, 0));
    assert_eq!(home.answers(&["entity", "query", "-t", "orders"]), json!([]));
    assert!(home.refuses(&["entity", "delete-batch", "-t", "absent", "--all"]).contains("404"));
}

#[test]
fn a_deletion_that_was_killed_is_finished_by_the_next_one() {
    let (home, _) = shops();
    let left = || home.answers(&["entity", "query", "-t", "orders"]).as_array().expect("a list").len();
    let delete = ["entity", "delete-batch", "-t", "orders", "--all"];
    // After the first batch the next one would come a minute later.
    let mut slow = rangehold();
    slow.args(delete).args(["--account-rate", "1"]);
    slow.env("AZURE_STORAGE_CONNECTION_STRING", &home.connection);
    let mut slow = slow.stderr(Stdio::null()).spawn().expect("the program starts");
    while left() == 2_500 {
        assert_eq!(slow.try_wait().expect("it can be asked"), None, "it has ended by itself");
    }
    slow.kill().expect("it runs");
    slow.wait().expect("it was killed");
    let rest = left();
    assert!((1..2_500).contains(&rest), "{rest}");
    let again = home.answers(&delete);
    assert_eq!((&again["deleted"], &again["gone"]), (&json!(rest), &json!(0)));
    assert_eq!(left(), 0);
}

#[test]
fn a_busy_service_slows_commands_down_and_does_not_end_them() {
    let (home, _) = shops();
    // Few batches, because a command takes its time afterwards.
    let few = home.path("few.csv");
    let lines = (0..400).map(|n| format!("shop-{},{n}\n", n % 4));
    std::fs::write(&few, format!("PartitionKey,RowKey\n{}", lines.collect::<String>()))
        .expect("there is room");
    let busy = || home.server().says(&["rehearse", "busy", "orders/shop-07", "--rate", "0.7", "--for", "1s"]);
    busy();
    let imported = home.answers(&["table", "import", "-n", "orders", "--from", &few]);
    assert_eq!(imported["moved"], json!(400));
    busy();
    let deleted = home.answers(&delete(&["--from", &few]));
    assert_eq!((&deleted["deleted"], &deleted["changed"]), (&json!(400), &json!(0)));
}
