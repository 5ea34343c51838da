//! Stories with real servers and real clients, and with a clock of the ramp that runs twenty times as fast: 20 minutes are one.
//!
//! Each story has a server and a bucket of its own, with rates that are divided by a hundred, so that all stories together fit on
//! a small machine. They run side by side. Before that the objects that are read are written, by a server that has no limits.
//!
//! | module | what it knows |
//! |---|---|
//! | `story` | the stories: names, what is asked for, what the page says is borne |
//! | `schedule` | when each request is due |
//! | `client` | sends requests, and knows which answers there may be |
//! | `failed` | whether a client has failed, which ends all others |
//! | `seen` | what was asked for and refused, by the second |
//! | `verdict` | whether that is as the page says |
//!
//! The speed of the machine decides nothing. What was asked for is what was really sent: a client that is held up leaves requests out.

mod client;
mod failed;
mod schedule;
mod seen;
mod story;
mod verdict;

use std::path::Path;
use std::thread;

use anyhow::Result;
use rangehold_map::capacity::Usage;
use rangehold_testkit::server::{Server, Setup};

use self::failed::Failed;
use self::seen::Seen;
use self::story::{STORIES, Story};
use self::verdict::Verdict;
use super::draw;
use crate::balance::Curve;
use crate::bench::{Build, Missed, allow_many_connections};

/// Seconds of one point of a picture.
const POINT: usize = 2;

pub(super) fn run(pictures: Option<&Path>, build: &Build) -> Result<()> {
    allow_many_connections()?;
    let setups: Vec<Setup> = STORIES.iter().map(|story| prepare(story, build)).collect::<Result<_>>()?;
    let failed = &Failed::default();
    let seen = thread::scope(|scope| -> Result<Vec<Vec<Seen>>> {
        let play = |(story, setup)| scope.spawn(move || failed.note(play(story, setup, failed)));
        let playing: Vec<_> = STORIES.iter().zip(&setups).map(play).collect();
        playing.into_iter().map(|story| story.join().expect("a story does not panic")).collect()
    })?;
    let (mut missed, mut not_judged) = (Missed::default(), 0);
    for (story, lanes) in STORIES.iter().zip(&seen) {
        println!("{}: {}", story.file, story.title);
        not_judged += tell(story, lanes, &mut missed);
        let usages: Vec<Usage> = story.usages().collect();
        for usage in &usages {
            let word = usage.name();
            let file = match usages.len() {
                1 => story.file.to_owned(),
                _ => format!("{}-{word}", story.file),
            };
            draw(pictures, &file, word, curves(story, lanes, *usage))?;
        }
    }
    println!("stretches in which the least was not judged, as the clients were held up before: {not_judged}");
    missed.conclude("rates")
}

/// Makes the bucket, and the objects that will be read. Returns how the server of the story is started.
fn prepare(story: &Story, build: &Build) -> Result<Setup> {
    let setup = build.setup(&format!("rates-{}", story.file), &[])?;
    let server = Server::start(&setup)?;
    client::write_before(story, server.objects)?;
    server.stop()?;
    Ok(Setup { arguments: story::arguments(), ..setup })
}

/// Plays a story on its server, and returns what was seen of each of its lanes.
fn play(story: &Story, setup: &Setup, failed: &Failed) -> Result<Vec<Seen>> {
    let server = Server::start(setup)?;
    let seen = client::play(story, server.objects, failed)?;
    server.stop()?;
    Ok(seen)
}

/// Prints what was seen, and notes what is not as the page says. Returns how often the least was not judged.
fn tell(story: &Story, lanes: &[Seen], missed: &mut Missed) -> usize {
    let mut not_judged = 0;
    let counts: Vec<_> = lanes.iter().map(Seen::counts).collect();
    for stretch in 0..story.stretches {
        for (at, lane) in story.lanes.iter().enumerate() {
            let (asked, refused) = counts[at].of(stretch);
            let [asked, let_in] = [asked, asked - refused].map(|count| count / story::STRETCH.as_secs_f64());
            let (minute, usage, label) = (20 * stretch, lane.usage.name(), lane.label);
            let borne = story::threshold(lane.usage) * (lane.borne)(stretch);
            println!(
                "  minute {minute:>4}: {label}: asked {asked:.1} {usage}/s, let in {let_in:.1}; borne {borne:.1}"
            );
            match verdict::judge(story, &counts, at, stretch) {
                Verdict::AsTold => {}
                Verdict::OnlyTheMost => {
                    not_judged += 1;
                    println!("    the clients could not ask for all before that, so the least is not judged");
                }
                Verdict::Missed(sentence) => {
                    println!("    MISS {sentence}");
                    missed.note(true, || sentence);
                }
            }
        }
    }
    let refused =
        lanes.iter().map(Seen::refused).fold([0, 0], |sum, lane| [sum[0] + lane[0], sum[1] + lane[1]]);
    println!("  refused: {} with 429, {} with 503", refused[0], refused[1]);
    if let Some(sentence) = verdict::judge_refusals(story, refused) {
        println!("    MISS {sentence}");
        missed.note(true, || sentence);
    }
    not_judged
}

/// What was asked for and let in of a usage, and what is borne if it has one lane only.
fn curves(story: &Story, lanes: &[Seen], usage: Usage) -> Vec<Curve> {
    let lanes: Vec<_> = story.lanes.iter().zip(lanes).filter(|(lane, _)| lane.usage == usage).collect();
    let point = |counts: &[f64]| counts.iter().sum::<f64>() / counts.len() as f64;
    let points = |counts: Vec<f64>| counts.chunks(POINT).map(point).collect::<Vec<f64>>();
    let curve = |name: &str, rates: Vec<f64>| {
        let times: Vec<f64> = (0..rates.len()).map(|at| (at * POINT) as f64).collect();
        Curve::new(name, &times, &rates)
    };
    let mut curves = Vec::new();
    for (at, (lane, seen)) in lanes.iter().enumerate() {
        let counts = seen.counts();
        if at == 0 {
            let name = if lanes.len() == 1 { "asked" } else { "asked of each" };
            curves.push(curve(name, points(counts.asked.clone())));
        }
        let let_in = counts.asked.iter().zip(&counts.refused).map(|(asked, refused)| asked - refused);
        let name = if lanes.len() == 1 { "let in" } else { lane.label };
        curves.push(curve(name, points(let_in.collect())));
    }
    if let [(lane, _)] = lanes[..] {
        let stretch = |second: u64| (second / story::STRETCH.as_secs()) as u32;
        let borne = (0..story.whole().as_secs())
            .map(|second| story::threshold(usage) * (lane.borne)(stretch(second)));
        curves.push(curve("borne, as the page says", points(borne.collect())));
    }
    curves
}
