//! Whether the sentence that a user reads tells what was found.
//!
//! What a reader must find in it is written here once more, apart from the code that writes sentences: the cause in
//! words, no second cause, and, for a cut and for a hot key, the partition where that is.

use rangehold_map::load::{Cause, Titles, Verdict};

use super::keys::Keys;

/// Each cause by its name, with the words that tell it.
const WORDS: [(&str, &str); 6] = [
    ("split", "to be split at"),
    ("hot-key", "hot key"),
    ("append", "append"),
    ("prepend", "prepend"),
    ("scan", "scans"),
    ("unclear", "unclear"),
];
/// The table of the keys, as its user calls it.
const TABLE: &str = "Load";

/// The sentence, as the user of the table gets it.
pub(super) fn sentence(verdict: &Verdict) -> String {
    verdict.sentence(Titles { table: &|_, _| Some(TABLE.to_owned()), ..Titles::UNKNOWN })
}

/// Whether a verdict's sentence names its cause, and the place if it has one.
pub(super) fn are_told(verdict: &Verdict, keys: &mut Keys) -> bool {
    let sentence = sentence(verdict);
    let told = WORDS.into_iter().filter(|(_, words)| sentence.contains(words)).map(|(name, _)| name);
    if !told.eq([verdict.cause.name()]) {
        return false;
    }
    let names = |words: &str, partition: String| {
        sentence.contains(&format!("{words} partition {partition:?} of table {TABLE}"))
    };
    match &verdict.cause {
        Cause::Split { at, .. } => {
            // A cut is where a partition begins, or just above the one before.
            let place = keys.place_of(at);
            names("split at", keys.text(place))
                || place > 0 && names("split at just above", keys.text(place - 1))
        }
        Cause::HotKey { key, .. } => {
            let place = keys.place_of(key);
            names("hot key;", keys.text(place))
        }
        Cause::Append(_) | Cause::Prepend(_) | Cause::Scan { .. } | Cause::Unclear(_) => true,
    }
}
