//! What is found about each prefix of a bucket, in two samples of the names that were used.

use std::collections::BTreeMap;

use super::clock::time_prefix;
use super::group::{below, folders, prefixes};
use super::order::{count_above, count_below};
use super::{Namespace, spread_name};

/// The part of the names of a prefix that decides what they are.
const MOST: f64 = 0.7;
/// The least names of a prefix by which it is judged.
const NAMES_MIN: usize = 8;
/// The most places in which names may grow at once to be told apart from names that spread.
const FRONTS_MAX: usize = 64;

/// How the names of a prefix grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// New names are everywhere among the old ones.
    Spreads,
    /// New names are above the old ones.
    Append,
    /// New names are below the old ones.
    Prepend,
    /// New names are above the old ones, in so many places.
    Fronts(usize),
    /// They spread behind a time; with the next time all names are new.
    NewPrefixes,
    /// Most requests are for one name.
    OneName,
}

/// What was found about one prefix.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The prefix; empty for all names of the bucket.
    pub prefix: String,
    /// Its share of the requests, from 0 to 1.
    pub share: f64,
    /// How its names grow.
    pub growth: Growth,
    /// One of its names.
    pub example: String,
}

/// Judges the names of a bucket by two samples of its requests, an earlier one and a later one. Prefixes with less than a
/// tenth of the requests are left out. Nothing is found in samples of fewer than eight names.
pub fn findings(earlier: &[&str], later: &[&str]) -> Vec<Finding> {
    if earlier.len() < NAMES_MIN || later.len() < NAMES_MIN {
        return Vec::new();
    }
    let mut found = Vec::new();
    prefixes("", later, later.len(), &mut found);
    let finding = |prefix: String| {
        let (before, now) = (below(&prefix, earlier), below(&prefix, later));
        let growth = growth(&prefix, &before, &now)?;
        let share = now.len() as f64 / later.len() as f64;
        let example = now[now.len() / 2].to_owned();
        Some(Finding { prefix, share, growth, example })
    };
    found.into_iter().filter_map(finding).collect()
}

fn growth(prefix: &str, before: &[&str], now: &[&str]) -> Option<Growth> {
    if now.len() < NAMES_MIN {
        return None;
    }
    let is_most = |count: usize| count as f64 >= MOST * now.len() as f64;
    let mut counts = BTreeMap::<&str, usize>::new();
    now.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    if is_most(counts.values().copied().max().unwrap_or(0)) {
        return Some(Growth::OneName);
    }
    if is_most(count_above(now, before)) {
        return Some(Growth::Append);
    }
    if is_most(count_below(now, before)) {
        return Some(Growth::Prepend);
    }
    let is_long_time =
        |name: &&str| time_prefix(name).is_some_and(|time| time.is_long && time.prefix == prefix);
    if is_most(now.iter().filter(|name| is_long_time(name)).count()) {
        return Some(Growth::NewPrefixes);
    }
    // Without earlier names under this prefix, nothing is known of how they grow.
    (!before.is_empty()).then(|| fronts(prefix, before, now).unwrap_or(Growth::Spreads))
}

/// The places in which names grow: a character or folder behind the prefix, or one more character.
fn fronts(prefix: &str, before: &[&str], now: &[&str]) -> Option<Growth> {
    let by_folder: Vec<String> = folders(prefix, now).into_keys().map(str::to_owned).collect();
    let by_letters = |letters: usize| {
        let cut = |name: &&str| name[prefix.len()..].chars().take(letters).collect::<String>();
        let mut heads: Vec<String> = now.iter().map(|name| prefix.to_owned() + &cut(name)).collect();
        heads.sort();
        heads.dedup();
        heads
    };
    let growing = |heads: &Vec<String>| {
        let (mut places, mut names) = (0, 0);
        for head in heads {
            let now = below(head, now);
            let above = count_above(&now, &below(head, before));
            places += usize::from(above as f64 >= MOST * now.len() as f64);
            names += above;
        }
        (places >= 2 && names as f64 >= MOST * now.len() as f64).then_some(places)
    };
    [by_folder, by_letters(1), by_letters(2)]
        .iter()
        .filter(|heads| (2..=FRONTS_MAX).contains(&heads.len()))
        .find_map(growing)
        .map(Growth::Fronts)
}

impl Growth {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spreads => "spreads",
            Self::Append => "append",
            Self::Prepend => "prepend",
            Self::Fronts(_) => "fronts",
            Self::NewPrefixes => "new-prefixes",
            Self::OneName => "one-name",
        }
    }
}

impl Finding {
    /// What was found and what to do about it, for people, in a bucket of this sort.
    pub fn sentence(&self, namespace: Namespace) -> String {
        let Self { prefix, share, growth, example } = self;
        let names = match prefix.as_str() {
            "" => "all names".to_owned(),
            prefix => format!("names under {prefix:?} ({:.0} % of the requests)", share * 100.0),
        };
        match growth {
            Growth::Spreads => {
                format!(
                    "{names} scale: they are spread, so the rate that they may have doubles each time it is used for long enough"
                )
            }
            Growth::Append | Growth::Prepend => {
                let above = if *growth == Growth::Append { "above" } else { "below" };
                format!(
                    "{names} do not scale: each new one is {above} those before, so all load is in one place, which is \
                     never divided; {}",
                    self.hash_remedy(namespace)
                )
            }
            Growth::Fronts(places) => format!(
                "{names} scale to {places} times the threshold and no further: they grow in {places} places, and none \
                 of these is ever divided; {}",
                self.hash_remedy(namespace)
            ),
            Growth::NewPrefixes => {
                format!(
                    "{names} scale only until names get another prefix: {}",
                    time_advice(prefix, example, namespace)
                )
            }
            Growth::OneName => format!(
                "{names} do not scale: most requests are for {example:?}; a name takes about one write a second, and its \
                 reads are in one place; write to several names, and let readers keep a copy"
            ),
        }
    }

    /// How names are mended that grow. If folders are what grows, a hash in one of them does not help, and a hash in front
    /// would make still more folders.
    fn hash_remedy(&self, namespace: Namespace) -> String {
        let behind = &self.example[self.prefix.len()..];
        let grows = match self.growth {
            // Each place is a folder, or a few characters.
            Growth::Fronts(_) => behind.split_once('/').map_or(behind, |(_, rest)| rest),
            _ => behind,
        };
        match namespace {
            Namespace::Folders if grows.contains('/') => {
                "use the same folders all the time, and begin the names in them with something that spreads them, such as a hash"
                    .to_owned()
            }
            _ => hash_advice(&self.example, namespace),
        }
    }
}

/// How a name is mended that grows with time.
pub(crate) fn hash_advice(example: &str, namespace: Namespace) -> String {
    let place = match namespace {
        Namespace::Flat => "begin each name",
        Namespace::Folders => "in its folder, begin each name",
    };
    let mended = spread_name(example, namespace);
    format!("{place} with the first 6 hex digits of its MD5: {mended:?} in place of {example:?}")
}

/// How names are mended that are random behind a time.
pub(crate) fn time_advice(prefix: &str, example: &str, namespace: Namespace) -> String {
    let remedy = match namespace {
        Namespace::Flat => format!(
            "spread new prefixes over all names, with the first 6 hex digits of the MD5 in front: {:?} in place of \
             {example:?}",
            spread_name(example, namespace)
        ),
        Namespace::Folders => {
            "use the same folders all the time, and put the time behind what is random".to_owned()
        }
    };
    format!(
        "{prefix:?} looks like a time, and names under the next one are all new and begin at the threshold; what is \
         random behind a time spreads the load of that time only, and does not last; {remedy}"
    )
}
