//! The quiet client: it sends one request after the other, with pauses.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rangehold_testkit::client::{self, Client, Request, Step, create_table, entity_path, must};
use serde_json::Map;

const TABLE: &str = "quiet";
const PARTITION: &str = "p";
/// Entities that are read; a page returns all of them.
const ROWS: usize = 100;
/// The pause after each request.
const PAUSE: Duration = Duration::from_millis(5);

/// The requests of the quiet client.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Get,
    Insert,
    Page,
}

/// What the quiet client met, by kind of request.
#[derive(Debug, Default)]
pub(super) struct Met {
    took: [Vec<Duration>; Kind::ALL.len()],
    refused: [u64; Kind::ALL.len()],
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Get, Self::Insert, Self::Page];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Get => "point read",
            Self::Insert => "upsert",
            Self::Page => "page of 100",
        }
    }

    fn request(self, number: usize) -> Request {
        let row = format!("{:04}", number % ROWS);
        match self {
            Self::Get => client::get(entity_path(TABLE, PARTITION, &row)),
            Self::Insert => upsert(&row),
            Self::Page => client::get(format!("/{}/{TABLE}()", client::ACCOUNT)),
        }
    }
}

impl Met {
    pub(super) fn percentile(&self, kind: Kind, percent: usize) -> Duration {
        let took = &self.took[kind as usize];
        took.get((took.len() * percent / 100).min(took.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    pub(super) fn answered(&self, kind: Kind) -> usize {
        self.took[kind as usize].len()
    }

    pub(super) fn refused(&self, kind: Kind) -> u64 {
        self.refused[kind as usize]
    }
}

fn upsert(row: &str) -> Request {
    let text = Map::from_iter([("Text".to_owned(), "x".repeat(200).into())]);
    client::change(Step::Upsert, TABLE, (PARTITION, row), &text, "*")
}

/// Makes the table, and the entities in it.
pub(super) fn prepare(client: &mut Client) -> Result<()> {
    must(client, create_table(TABLE), 204)?;
    let rows: Vec<Request> = (0..ROWS).map(|row| upsert(&format!("{row:04}"))).collect();
    must(client, client::batch(&rows), 202)?;
    Ok(())
}

/// Sends requests of all kinds in turn, for so long.
pub(super) fn measure(client: &mut Client, time: Duration) -> Result<Met> {
    let mut met = Met::default();
    let begun = Instant::now();
    let mut number = 0;
    while begun.elapsed() < time {
        for kind in Kind::ALL {
            let sent = Instant::now();
            match client.send(kind.request(number), "quiet") {
                Ok(answer) if answer.status < 300 => met.took[kind as usize].push(sent.elapsed()),
                Ok(answer) if answer.status < 500 && answer.status != 408 => {
                    bail!("a {} was answered {}: {}", kind.label(), answer.status, answer.body)
                }
                Ok(_) | Err(_) => met.refused[kind as usize] += 1,
            }
            thread::sleep(PAUSE);
        }
        number += 1;
    }
    met.took.iter_mut().for_each(|took| took.sort_unstable());
    Ok(met)
}
