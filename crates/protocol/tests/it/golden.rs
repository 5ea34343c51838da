//! Golden files with one case in a line: a text, ` => `, and the answer to it.

/// Compares the answers of `answer` with those in a file. Empty lines and lines that begin with `#` are not cases.
/// Shows every line that differs.
pub(crate) fn holds(file: &str, answer: impl Fn(&str) -> String) {
    let mut differ = Vec::new();
    for (number, line) in (1..).zip(file.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (text, expected) = line.split_once(" => ").expect("text => answer");
        let now = answer(text);
        if now != expected {
            differ.push(format!("line {number}: {text} => {now}"));
        }
    }
    assert!(differ.is_empty(), "these lines are now:\n{}", differ.join("\n"));
}
