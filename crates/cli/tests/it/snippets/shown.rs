//! Whether a command printed what its page shows. Pure.
//!
//! Everything counts but the spaces between words, empty lines at the end, and what differs in each run: times and
//! rates, ports, seeds, and names that were chosen by chance. A line `...` on the page stands for lines that are left
//! out, and ` ...` at the end of a line for the rest of that line.

/// Units of numbers that differ in each run.
const MEASURED: [&str; 3] = ["s", "ms", "entities/s"];
/// What a page writes where it leaves something out.
const MORE: &str = "...";

/// Whether `said` is what `shown` says.
pub(super) fn agrees(shown: &str, said: &str) -> bool {
    let lines = |text: &str| text.trim_end().lines().map(steady).collect::<Vec<_>>();
    lines_agree(&lines(shown), &lines(said))
}

fn lines_agree(shown: &[Vec<String>], said: &[Vec<String>]) -> bool {
    match (shown.split_first(), said.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == &[MORE] => {
            (0..=said.len()).any(|from| lines_agree(rest, &said[from..]))
        }
        (Some((wanted, rest)), Some((found, more))) => line_agrees(wanted, found) && lines_agree(rest, more),
        _ => false,
    }
}

fn line_agrees(wanted: &[String], found: &[String]) -> bool {
    match wanted.split_last() {
        Some((last, begin)) if last == MORE => found.starts_with(begin),
        _ => wanted == found,
    }
}

/// The words of a line, with `#` where they differ in each run.
fn steady(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let unit = |at: usize| words.get(at + 1).map(|word| word.trim_end_matches([',', '.', ';', ')']));
    let steady = words.iter().enumerate().map(|(at, word)| {
        let is_measured = is_number(word) && unit(at).is_some_and(|unit| MEASURED.contains(&unit));
        let is_seed = is_number(word) && at > 0 && words[at - 1] == "seed";
        if is_measured || is_seed { "#".to_owned() } else { without_chance(word) }
    });
    steady.collect()
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',')
}

/// A word without ports, and without the number in the name of the table of a stress test.
fn without_chance(word: &str) -> String {
    const TABLE: &str = "stress";
    if let Some((number, rest)) = word.strip_prefix(TABLE).and_then(|rest| rest.split_at_checked(8))
        && number.chars().all(|c| c.is_ascii_hexdigit())
    {
        return format!("{TABLE}#{rest}");
    }
    match word.split_once("127.0.0.1:") {
        Some((before, after)) => {
            format!("{before}127.0.0.1:#{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => word.to_owned(),
    }
}

#[test]
fn times_rates_ports_and_seeds_may_differ_and_nothing_else() {
    for (shown, said, wanted) in [
        (
            "imported 3 entities\n0.1 s, 40 entities/s\n",
            "imported 3 entities\n2.0 s, 1,540 entities/s\n",
            true,
        ),
        ("imported 3 entities\n", "imported 4 entities\n", false),
        ("to http://127.0.0.1:21002/a: 3", "to http://127.0.0.1:8/a: 3", true),
        ("to http://127.0.0.1:21002/a: 3", "to http://127.0.0.1:8/b: 3", false),
        ("Table stress01234567, seed 17", "Table stressabcdef01, seed 4", true),
        ("a   b\n", "a b\n\n", true),
        ("a\n...\nd\n", "a\nb\nc\nd\n", true),
        ("a\n...\n", "a\n", true),
        ("a\n...\nd\n", "a\nb\nc\n", false),
        ("LIMITED by ...", "LIMITED by a hot partition", true),
        ("LIMITED by ...", "BEARS the peak", false),
        ("", "a\n", false),
        ("a\n", "", false),
    ] {
        assert_eq!(agrees(shown, said), wanted, "{shown:?} and {said:?}");
    }
}
