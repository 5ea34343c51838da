//! The figures of a run, and the verdict.

use std::time::Duration;

use anyhow::Result;

use super::Outcome;
use super::changes::{Kind, Made};
use super::pauses::{Distribution, Window, by_change, waits};
use crate::bench::Missed;

/// No pause, and no request that meets a change, is to be above this aim.
const LONGEST_AIM: Duration = Duration::from_secs(2);
/// What pauses of writes aim at, in durable files, and reads that meet a change.
const WRITES_P50_AIM: f64 = 30.0;
const WRITES_P99_AIM: f64 = 100.0;
const READS_P99_AIM: f64 = 10.0;
/// Errors and wrong entities that are printed in full; the rest is counted.
const PRINTED_MAX: usize = 20;

/// Prints everything; an error if something is not as it must be after `rounds` rounds. Times are printed next to
/// their aims and never judged.
pub(super) fn conclude(outcome: &Outcome, rounds: u32) -> Result<()> {
    let (unit, quiet) = (outcome.created.at(50), outcome.created_quiet.at(50));
    print_summary(outcome);
    println!(
        "one durable file: p50 {} ms, p99 {}, max {} under this load ({} made); p50 {} before it",
        ms(unit),
        ms(outcome.created.at(99)),
        ms(outcome.created.max()),
        outcome.created.len(),
        ms(quiet)
    );
    println!(
        "\n{:<30} {:>6} {:>9} {:>9} {:>9} {:>11} {:>11}",
        "ms", "of", "p50", "p99", "max", "p50/file", "p99/file"
    );
    let mut longest = Duration::ZERO;
    let connections = &outcome.connections;
    for kind in Kind::ALL {
        let made: Vec<&Made> = outcome.made.iter().filter(|made| made.kind == kind).collect();
        let windows: Vec<Window> = made.iter().map(|made| made.window).collect();
        let named = |what: &str| format!("{}: {what}", kind.label());
        let pauses = Distribution::of(made.iter().map(|made| made.held_for));
        row(&named("pause of writes"), &pauses, unit);
        aim("p50", ratio(pauses.at(50), unit), WRITES_P50_AIM);
        aim("p99", ratio(pauses.at(99), unit), WRITES_P99_AIM);
        let (during, _) = by_change(connections, &windows);
        row(&named("reads meanwhile"), &during.reads, unit);
        aim("p99", ratio(during.reads.at(99), unit), READS_P99_AIM);
        row(&named("writes meanwhile"), &during.writes, unit);
        for (writes, what) in [(true, "longest write of each"), (false, "longest read of each")] {
            let waits = waits(connections, &windows, writes);
            longest = longest.max(waits.max());
            row(&named(what), &waits, unit);
        }
        longest = longest.max(pauses.max());
        let whole = windows.iter().map(|window| window.to - window.from);
        row(&named("asked to answered"), &Distribution::of(whole), unit);
    }
    let windows: Vec<Window> = outcome.made.iter().map(|made| made.window).collect();
    let (_, apart) = by_change(connections, &windows);
    row("no change: writes", &apart.writes, unit);
    row("no change: reads", &apart.reads, unit);
    let word = if longest <= LONGEST_AIM { "met" } else { "missed" };
    println!("\nlongest of all {} ms; aim: {word} (at most {})", ms(longest), ms(LONGEST_AIM));
    judge(outcome, rounds)
}

/// An error that names what is not as it must be on any machine.
fn judge(outcome: &Outcome, rounds: u32) -> Result<()> {
    let mut missed = Missed::default();
    let errors = outcome.writer_errors as usize + outcome.errors.len();
    missed.note(errors > 0, || format!("{errors} errors"));
    let wrong = outcome.wrong.len();
    missed.note(wrong > 0, || format!("{wrong} entities wrong or missing"));
    for kind in Kind::ALL {
        let made = count(outcome, kind);
        missed.note(made != rounds as usize, || {
            format!("{made} changes of the kind {} instead of {rounds}", kind.label())
        });
    }
    missed.conclude("handoff")
}

fn count(outcome: &Outcome, kind: Kind) -> usize {
    outcome.made.iter().filter(|made| made.kind == kind).count()
}

fn print_summary(outcome: &Outcome) {
    let requests: usize = outcome.connections.iter().map(|connection| connection.times.len()).sum();
    println!(
        "{} splits, {} merges, {} moves in {:.0} s; {} connections, {requests} requests, {} listings",
        count(outcome, Kind::Split),
        count(outcome, Kind::Merge),
        count(outcome, Kind::Move),
        outcome.took.as_secs_f64(),
        outcome.connections.len(),
        outcome.listings,
    );
    println!(
        "errors: {} of writers, {} others; wrong or missing entities: {}; changes asked for again: {}",
        outcome.writer_errors,
        outcome.errors.len(),
        outcome.wrong.len(),
        outcome.again.len()
    );
    let lists = [
        ("ERROR", &outcome.errors),
        ("ERROR", &outcome.refusals),
        ("WRONG", &outcome.wrong),
        ("again", &outcome.again),
    ];
    for (what, list) in lists {
        for line in list.iter().take(PRINTED_MAX) {
            println!("  {what} {line}");
        }
    }
}

fn row(name: &str, times: &Distribution, unit: Duration) {
    println!(
        "{name:<30} {:>6} {:>9} {:>9} {:>9} {:>11.1} {:>11.1}",
        times.len(),
        ms(times.at(50)),
        ms(times.at(99)),
        ms(times.max()),
        ratio(times.at(50), unit),
        ratio(times.at(99), unit)
    );
}

fn aim(what: &str, is: f64, aim: f64) {
    println!("    aim for {what}: {} (at most {aim})", if is <= aim { "met" } else { "missed" });
}

fn ratio(time: Duration, unit: Duration) -> f64 {
    time.as_secs_f64() / unit.as_secs_f64().max(1e-9)
}

fn ms(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}
