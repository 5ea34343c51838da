//! A table whose keys only grow does not spread, and is told why.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use rand::rngs::StdRng;
use rangehold_map::load::LoadPolicy;

use super::observe::{Seen, TABLE, Writing, observe};
use super::within;
use rangehold_testkit::server::Server;

/// The table gets about 2,300 entities a second, a little more than one range should bear; in few requests, which a
/// busy machine bears too.
const WRITING: Writing = Writing { batch: 20, pace: Duration::from_millis(35) };
/// How many times the load is watched from the beginning until there is a verdict: a pause of the machine at the wrong
/// moment makes all that was seen useless.
const ATTEMPTS_MAX: u32 = 2;

/// A table whose PartitionKeys only grow must be told why it is not cut, and must not be cut for `after` from
/// then on either.
pub(super) fn run(server: &Server, load: &LoadPolicy, after: Duration) -> Result<()> {
    let next = AtomicU64::new(0);
    let key = |_: &mut StdRng| format!("{:012}", next.fetch_add(1, Ordering::Relaxed));
    let told_within = within::judged(load) * ATTEMPTS_MAX;
    let mut told = None;
    let seen = observe(server, &WRITING, &key, |seen| {
        check_whole(seen)?;
        match told {
            None if seen.not_split.is_some() => {
                check_sentence(seen)?;
                println!("{:5.0} s  {}", seen.after.as_secs_f64(), sentence(seen));
                told = Some((seen.after, seen.entities));
                Ok(after.is_zero())
            }
            None if seen.after > told_within => bail!("append: after {told_within:?} nothing is said of it"),
            None => Ok(false),
            Some((at, _)) => {
                check_sentence(seen)?;
                Ok(seen.after >= at + after)
            }
        }
    })?;
    let Some((at, entities)) = told else {
        bail!("append: the writers ended before anything was said of it")
    };
    check_load(&seen, at, entities, load)?;
    println!("append: told why after {:.0} s, and not cut in {after:?} after that", at.as_secs_f64());
    Ok(())
}

fn sentence(seen: &Seen) -> &str {
    seen.not_split.as_deref().unwrap_or_default()
}

/// It is in one piece, and no change to that is planned.
fn check_whole(seen: &Seen) -> Result<()> {
    let seconds = seen.after.as_secs();
    if seen.pieces > 1 {
        bail!("append: a table whose keys only grow was cut into {} ranges, {seconds} s on", seen.pieces);
    }
    if let Some(sentence) = &seen.to_be_split {
        bail!("append: a table whose keys only grow is to be cut, {seconds} s on: {sentence}");
    }
    Ok(())
}

fn check_sentence(seen: &Seen) -> Result<()> {
    let (sentence, seconds) = (sentence(seen), seen.after.as_secs());
    if !sentence.contains("append") || !sentence.contains(TABLE) {
        bail!("append: the sentence does not name cause and table, {seconds} s on: {sentence:?}");
    }
    Ok(())
}

/// Checks that the range was hot all the time. If the load were smaller, a missing split would prove nothing.
fn check_load(seen: &Seen, at: Duration, entities: u64, load: &LoadPolicy) -> Result<()> {
    let took = seen.after.saturating_sub(at).as_secs_f64();
    let (rate, hot) = ((seen.entities - entities) as f64 / took, load.cap * load.hot_share);
    if took > 0.0 && rate < hot {
        bail!(
            "append: {rate:.0} entities a second came after the verdict; below {hot:.0} nothing is split anyway"
        );
    }
    Ok(())
}
