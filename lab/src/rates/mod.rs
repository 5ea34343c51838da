//! `cargo xtask objects --rates simulated|live`: how buckets bear load that doubles, by the form of their names.
//!
//! *Simulated*: the pure rules of the crate `map` at full rates, on a virtual clock. *Live*: real clients and real servers, at a
//! hundredth of the rates, and with a clock of the ramp that runs twenty times as fast.
//!
//! Both print what was asked for and what was let in, and draw curves. Both fail if a story is not as `docs/objects.md` says: the
//! error names the story, what was expected and what was seen.

mod expected;
mod judge;
mod live;
mod play;
mod story;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rangehold_map::names::{Namespace, findings};

use crate::balance::{Curve, draw_curves};
use crate::bench::{Build, Missed};
use story::STORIES;

/// Which rates are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Rates {
    /// The rules alone, at full rates, on a virtual clock.
    Simulated,
    /// A real server and clients, scaled.
    Live,
}

/// Plays the stories, prints what was seen, and draws pictures into a directory if one is given.
pub(crate) fn run(rates: Rates, pictures: Option<&Path>, build: &Build) -> Result<()> {
    match rates {
        Rates::Simulated => simulated(pictures),
        Rates::Live => live::run(pictures, build),
    }
}

fn simulated(pictures: Option<&Path>) -> Result<()> {
    let mut missed = Missed::default();
    for story in &STORIES {
        let played = play::play(story);
        println!("{}: {}", story.file, story.title);
        for (minute, line) in played.table() {
            println!("  minute {minute:>4}: {line}");
        }
        let [earlier, later] = played.samples.each_ref().map(|names| strs(names));
        for finding in findings(&earlier, &later) {
            println!("  {}", finding.sentence(Namespace::Flat));
        }
        for sentence in judge::missed(story, &played) {
            println!("  MISS {sentence}");
            missed.note(true, || sentence);
        }
        draw(pictures, story.file, "writes", played.curves())?;
    }
    missed.conclude("rates")
}

fn strs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Draws what was asked for and let in of reads or writes.
fn draw(pictures: Option<&Path>, file: &str, usage: &str, curves: Vec<Curve>) -> Result<()> {
    let Some(directory) = pictures else { return Ok(()) };
    let svg = draw_curves(&format!("{usage}/s, over seconds"), None, &curves);
    let svg =
        svg.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" ", 1);
    let path: PathBuf = directory.join(format!("{file}.svg"));
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    std::fs::write(&path, svg + "\n").with_context(|| format!("cannot write {}", path.display()))
}
