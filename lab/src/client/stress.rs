//! What `rangehold stress` says of the four designs of the marathon example.
//!
//! Each design has a server of its own, with the profile `cloud` and four partition servers. The first two must be limited by a
//! hot partition, the third must be called an append, and the fourth must have no limit but a price: a query in order asks each
//! prefix. In a test of a quarter of an hour it must also be on all servers at the end; a shorter one only prints on how many it is.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use rangehold_testkit::server::{Server, command};
use rangehold_testkit::workspace::root;
use serde_json::Value;

use super::Arguments;
use super::command::connection;
use crate::bench::{Missed, SERVERS};

/// Each design, with a finding that it must have, and whether it must be limited.
const DESIGNS: [(&str, &str, bool); 4] = [
    ("one-value", "too-coarse", true),
    ("event-distance", "too-coarse", true),
    ("number", "append", true),
    ("hashed-number", "fan-out", false),
];
/// The design that must spread over all servers, if the test has enough minutes for that.
const SPREAD: (&str, f64) = ("hashed-number", 15.0);
/// The exit code of a peak that is not borne.
const NOT_BORNE: i32 = 3;

/// Runs the four tests and prints what they say.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let mut missed = Missed::default();
    for (design, finding, is_limited) in DESIGNS {
        let said = test(arguments, design)?;
        print(design, &said);
        let findings: Vec<&str> =
            list(&said["findings"]).iter().filter_map(|one| one["kind"].as_str()).collect();
        missed
            .note(!findings.contains(&finding), || format!("{design}: {finding} is not among {findings:?}"));
        missed.note((said["outcome"] == "limited") != is_limited, || {
            format!("{design}: the outcome is {}", said["outcome"])
        });
        let on = list(&said["ranges"]["looks"]).last().and_then(|look| look["servers"].as_u64()).unwrap_or(0);
        println!("  at the end it was on {on} of {SERVERS} servers");
        missed
            .note((design, true) == (SPREAD.0, arguments.minutes >= SPREAD.1) && on < SERVERS as u64, || {
                format!("{design}: on {on} of {SERVERS} servers at the end")
            });
    }
    missed.conclude("stress")
}

fn test(arguments: &Arguments, design: &str) -> Result<Value> {
    let servers = SERVERS.to_string();
    let words = ["--profile", "cloud", "--servers", &servers];
    let setup = arguments.build.setup(&format!("client-stress-{design}"), &words)?;
    let server = Server::start(&setup)?;
    let (rate, minutes) = (arguments.rate.to_string(), arguments.minutes.to_string());
    let output = command(&setup.program)
        .args(["stress", "--design", design, "--rate", &rate, "--minutes", &minutes, "--seed", "1"])
        .args(["--output", "json", "--html"])
        .arg(setup.beside("report.html"))
        .args(["--admin", &server.admin.to_string(), "--data"])
        .arg(&setup.data)
        .env("AZURE_STORAGE_CONNECTION_STRING", connection(&server))
        .stderr(Stdio::inherit())
        .output()?;
    let code = output.status.code();
    ensure!(code == Some(0) || code == Some(NOT_BORNE), "stress --design {design} ended with {code:?}");
    server.stop()?;
    let said: Value = serde_json::from_slice(&output.stdout).context("the report is JSON")?;
    let is_borne = said["outcome"] == "bears";
    ensure!(is_borne == (code == Some(0)), "{design}: {} and the exit code {code:?}", said["outcome"]);
    let page = setup.beside("report.html");
    println!("{design}: the page is at {}", page.strip_prefix(root()).unwrap_or(&page).display());
    Ok(said)
}

fn print(design: &str, said: &Value) {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    println!("{design}: {}", said["headline"].as_str().unwrap_or_default());
    println!(
        "  asked {:.0} entities/s, answered {:.0}; the target partition {:.0} and {:.0}",
        number(&said["asked_entities_per_s"]),
        number(&said["done_entities_per_s"]),
        number(&said["target"]["asked_per_s"]),
        number(&said["target"]["done_per_s"])
    );
    for finding in list(&said["findings"]) {
        println!(
            "  {}: {}",
            finding["kind"].as_str().unwrap_or_default(),
            finding["text"].as_str().unwrap_or_default()
        );
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
