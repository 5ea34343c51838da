//! Backups while everything goes on, each compared with what it must hold.
//!
//! A backup holds everything that was acknowledged before it began. So each entity that was certainly there when it
//! began, and that nobody deleted before it ended, must be in it, as it was then or newer. Nothing may be in it that no
//! writer wrote.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use anyhow::{Context, Result, bail};

use rangehold_testkit::client::Credential;
use rangehold_testkit::load::{Finding, Kind, Ledger, Observed, Stayed, WRITERS, observe};
use rangehold_testkit::server::{Server, Setup, command};
use rangehold_testkit::workspace;

/// What came of the backups.
#[derive(Debug, Default)]
pub(super) struct Backups {
    /// How many were opened and compared.
    pub(super) compared: u32,
    /// Entities that they had to hold, in all of them together.
    pub(super) entities: usize,
    pub(super) findings: Vec<Finding>,
}

/// Makes a backup each time that it is asked to, until nobody can ask any more.
pub(super) fn run(setup: &Setup, ledger: &Ledger, asked: &Receiver<()>) -> Backups {
    let mut backups = Backups::default();
    while asked.recv().is_ok() {
        if let Err(error) = backups.one(setup, ledger) {
            backups.findings.push(Finding::new(Kind::Wrong, format!("a backup: {error:#}")));
        }
    }
    backups
}

impl Backups {
    fn one(&mut self, setup: &Setup, ledger: &Ledger) -> Result<()> {
        let copy = setup.beside("backup");
        let begun = ledger.moment();
        make(&setup.program, &setup.data, &copy)?;
        let stayed = ledger.stayed(&begun);
        let observed = open(setup, copy.clone()).context("opening it")?;
        self.compared += 1;
        self.entities += stayed.len();
        self.findings.extend(compare(&stayed, begun.tally, &observed));
        workspace::empty(&copy)?;
        Ok(std::fs::remove_dir(&copy)?)
    }
}

/// Runs `rangehold backup` into a fresh directory.
fn make(program: &Path, from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        // Left by a backup that failed.
        std::fs::remove_dir_all(to)?;
    }
    let output = command(program).arg("backup").arg("--from").arg(from).arg("--to").arg(to).output()?;
    if !output.status.success() {
        bail!("it ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Everything in a backup, by a server of its own.
fn open(setup: &Setup, copy: PathBuf) -> Result<Observed> {
    let setup = Setup { data: copy, log: setup.beside("backup.log"), ..setup.clone() };
    let server = Server::start(&setup)?;
    let observed = observe(server.address, Credential::SharedKey, WRITERS)?;
    server.stop()?;
    Ok(observed)
}

/// What is not in the backup, or older than it must be, and what nobody wrote.
fn compare(stayed: &[Stayed], tally: u64, observed: &Observed) -> Vec<Finding> {
    let mut findings: Vec<Finding> = observed
        .strangers
        .iter()
        .map(|what| Finding::new(Kind::Phantom, format!("a backup: {what}")))
        .collect();
    for Stayed { key, serial } in stayed {
        let row = observed.writers.iter().find_map(|state| state.rows.get(key));
        let found = row.map(|row| row.get("n").and_then(|number| number.as_u64()).unwrap_or_default());
        let lost = match found {
            None => format!("a backup lacks {key}, from operation {serial}"),
            Some(found) if found < *serial => {
                format!("a backup has {key} as operation {found} left it, {serial} was acknowledged before")
            }
            Some(_) => continue,
        };
        findings.push(Finding::new(Kind::Lost, lost));
    }
    if observed.tally.is_none_or(|found| found < tally) {
        let what = format!("a backup has the tally {:?}, {tally} was acknowledged before", observed.tally);
        findings.push(Finding::new(Kind::Lost, what));
    }
    findings
}

#[cfg(test)]
mod tests {
    use rangehold_testkit::client::row;
    use rangehold_testkit::load::{Key, State};

    use super::*;

    fn key(row: &str) -> Key {
        Key { table: "load".into(), partition: "p0".into(), row: row.into() }
    }

    fn holding(rows: &[(&str, u64)]) -> Observed {
        let mut state = State::default();
        for (name, serial) in rows {
            state.rows.insert(key(name), row([("n", (*serial).into())]));
        }
        Observed { writers: vec![state], tally: Some(5), ..Observed::default() }
    }

    #[test]
    fn what_was_there_must_be_in_it_or_newer() {
        let stayed = [("w0-1", 3), ("w0-2", 4)].map(|(row, serial)| Stayed { key: key(row), serial });
        assert!(compare(&stayed, 5, &holding(&[("w0-1", 3), ("w0-2", 9), ("w0-8", 8)])).is_empty());
        let kinds = |observed: &Observed, tally| {
            compare(&stayed, tally, observed).iter().map(|finding| finding.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&holding(&[("w0-1", 3)]), 5), [Kind::Lost], "one is missing");
        assert_eq!(kinds(&holding(&[("w0-1", 2), ("w0-2", 4)]), 5), [Kind::Lost], "one is older");
        assert_eq!(kinds(&holding(&[("w0-1", 3), ("w0-2", 4)]), 6), [Kind::Lost], "the tally is lower");
        let mut stranger = holding(&[("w0-1", 3), ("w0-2", 4)]);
        stranger.strangers.push("table x".into());
        assert_eq!(kinds(&stranger, 5), [Kind::Phantom]);
    }
}
