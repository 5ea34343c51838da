//! What a page tells its reader to do, in its order. Pure.
//!
//! | a block of | is |
//! |---|---|
//! | `sh` | commands, one on each line |
//! | `console` | commands behind `$ `, each with what it prints; without any, what the block before prints |
//! | `python`, `js` | a program |
//! | `rust` | compiled with the documentation of `rangehold-client`, if that includes the page, and not `ignore` |
//!
//! A comment of HTML in the line before a block, which readers do not see, says what else is to be done with it:
//! `<!-- file: NAME -->` if the reader writes it into a file of this name, `<!-- not run: REASON -->` if it cannot be run
//! here; then the output that follows it is not looked for either. A block that is none of these is an error, and so is
//! code that is indented and not fenced: otherwise nothing would run it, and nobody would know.

/// Words that a reason has at least.
const REASON_WORDS_MIN: usize = 4;

/// A block of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The line of the page on which it begins.
    pub(super) line: usize,
    /// The first word behind its fence; all words if `ignore` is one of them.
    pub(super) language: String,
    mark: Option<Mark>,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark {
    File(String),
    NotRun(String),
}

/// What the reader does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// The line of the page, from 1.
    pub(super) line: usize,
    pub(super) act: Act,
    /// What it prints, if the page shows that.
    pub(super) shown: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Runs a command in a shell, which is the same for the whole page.
    Command(String),
    /// Runs a program in Python.
    Python(String),
    /// Runs a module of JavaScript in Node.js.
    Node(String),
    /// Writes a file.
    File { name: String, text: String },
}

/// The blocks of a page. The error names the line.
pub(super) fn blocks(page: &str) -> Result<Vec<Block>, String> {
    let (mut blocks, mut open, mut mark) = (Vec::new(), None::<Block>, None);
    let mut before = "";
    for (number, line) in (1..).zip(page.lines()) {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => block.text.extend([line, "\n"]),
            (None, Some(info)) => {
                // What the compiler is told to ignore, nothing compiles.
                let is_ignored = info.split([' ', ',']).any(|word| word == "ignore");
                let language = info.split([' ', ',']).next().filter(|_| !is_ignored);
                let language = language.unwrap_or(info).to_owned();
                open = Some(Block { line: number, language, mark: mark.take(), text: String::new() });
            }
            (None, None) if line.starts_with("    ") && before.is_empty() => {
                return Err(format!("line {number}: code that is only indented: put it between fences"));
            }
            (None, None) => mark = self::mark(line).map_err(|why| format!("line {number}: {why}"))?,
        }
        before = line;
    }
    match open {
        None => Ok(blocks),
        Some(block) => Err(format!("line {}: a block without an end", block.line)),
    }
}

/// What a line of the page says of the block below it.
fn mark(line: &str) -> Result<Option<Mark>, String> {
    let comment = line.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
    match comment.and_then(|comment| comment.split_once(':')) {
        Some((" file", name)) => Ok(Some(Mark::File(name.trim().to_owned()))),
        Some((" not run", reason)) if reason.split_whitespace().count() < REASON_WORDS_MIN => {
            Err(format!("{reason:?} is not a reason"))
        }
        Some((" not run", reason)) => Ok(Some(Mark::NotRun(reason.trim().to_owned()))),
        _ => Ok(None),
    }
}

/// What the blocks of a page ask for. Those in Rust are left to the compiler if `is_compiled`.
pub(super) fn steps(blocks: &[Block], is_compiled: bool) -> Result<Vec<Step>, String> {
    let (mut steps, mut was_left_out) = (Vec::<Step>::new(), false);
    for block in blocks {
        let line = block.line + 1;
        let is_output = block.language == "console" && !block.text.starts_with("$ ");
        let is_unheard = is_output && was_left_out;
        was_left_out = is_unheard || matches!(block.mark, Some(Mark::NotRun(_)));
        match (&block.mark, block.language.as_str()) {
            (Some(Mark::NotRun(_)), _) => {}
            (None, _) if is_unheard => {}
            (Some(Mark::File(name)), _) => {
                let act = Act::File { name: name.clone(), text: block.text.clone() };
                steps.push(Step { line, act, shown: None });
            }
            (None, "sh") => steps.extend(commands(block)),
            (None, "console") if !is_output => steps.extend(session(block)),
            (None, "console") => match steps.last_mut() {
                Some(step) if step.shown.is_none() => step.shown = Some(block.text.clone()),
                _ => return Err(format!("line {}: nothing before this block prints it", block.line)),
            },
            (None, "python") => {
                steps.push(Step { line, act: Act::Python(block.text.clone()), shown: None });
            }
            (None, "js") => steps.push(Step { line, act: Act::Node(block.text.clone()), shown: None }),
            (None, "rust") if is_compiled => {}
            (None, other) => {
                return Err(format!(
                    "line {}: no test runs a block of {other:?}: say why with <!-- not run: REASON --> in the line before",
                    block.line
                ));
            }
        }
    }
    Ok(steps)
}

/// The programs in Python in which `word` stands, each with what it prints; nothing else of the page.
pub(super) fn programs(blocks: &[Block], word: &str) -> Result<Vec<Step>, String> {
    let (mut kept, mut was_kept) = (Vec::new(), false);
    for block in blocks {
        let is_output = block.language == "console" && !block.text.starts_with("$ ");
        was_kept = block.language == "python" && block.text.contains(word) || is_output && was_kept;
        kept.extend(was_kept.then(|| block.clone()));
    }
    steps(&kept, false)
}

/// The commands of a block of `sh`. A backslash at the end of a line joins it with the next.
fn commands(block: &Block) -> Vec<Step> {
    let (mut steps, mut command) = (Vec::new(), String::new());
    for (line, text) in (block.line + 1..).zip(block.text.lines()) {
        command.push_str(text);
        match command.strip_suffix('\\') {
            Some(begun) => command = format!("{begun}\\\n"),
            None if command.trim().is_empty() => command.clear(),
            None => {
                let act = Act::Command(std::mem::take(&mut command));
                steps.push(Step { line, act, shown: None });
            }
        }
    }
    steps
}

/// The commands of a block of `console`, with what they print.
fn session(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (line, text) in (block.line + 1..).zip(block.text.lines()) {
        match (text.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                let act = Act::Command(command.to_owned());
                steps.push(Step { line, act, shown: Some(String::new()) });
            }
            (None, Some(step)) => step.shown.get_or_insert_default().extend([text, "\n"]),
            (None, None) => {}
        }
    }
    steps
}

#[test]
fn commands_programs_and_files_come_in_their_order_with_what_they_print() {
    let page = "# A page\n\n```sh\ncd x\n\nls \\\n  -l\n```\n\n<!-- file: a.toml -->\n```toml\na = 1\n```\n\
                ```python\nprint(1)\n```\n```console\n1\n```\n```console\n$ a\nb\nc\n$ d\n```\n\
                <!-- not run: no such machine here -->\n```java\nx\n```\n\
                ```console\nits output\n```\n";
    let steps = steps(&blocks(page).expect("it is well formed"), false).expect("all have a place");
    let command = |line, text: &str, shown: Option<&str>| Step {
        line,
        act: Act::Command(text.to_owned()),
        shown: shown.map(str::to_owned),
    };
    let file = Act::File { name: "a.toml".to_owned(), text: "a = 1\n".to_owned() };
    assert_eq!(
        steps,
        [
            command(4, "cd x", None),
            command(7, "ls \\\n  -l", None),
            Step { line: 12, act: file, shown: None },
            Step { line: 15, act: Act::Python("print(1)\n".to_owned()), shown: Some("1\n".to_owned()) },
            command(21, "a", Some("b\nc\n")),
            command(24, "d", Some("")),
        ]
    );
}

#[test]
fn programs_with_a_word_are_taken_without_the_rest_of_their_page() {
    let page = "```java\nx\n```\n```python\nother\n```\n```console\n0\n```\n```python\nthis one\n```\n\
                ```console\n1\n```\n```console\n$ a\n```\n```python\nthis too\n```\n";
    let programs = programs(&blocks(page).expect("it is well formed"), "this").expect("they can be run");
    let python = |line, text: &str, shown: Option<&str>| Step {
        line,
        act: Act::Python(text.to_owned()),
        shown: shown.map(str::to_owned),
    };
    assert_eq!(programs, [python(11, "this one\n", Some("1\n")), python(20, "this too\n", None)]);
}

#[test]
fn a_snippet_that_nothing_would_run_is_an_error() {
    for (page, says) in [
        ("```java\nx\n```\n", "line 1: no test runs a block of \"java\""),
        ("```\nx\n```\n", "line 1: no test runs a block of \"\""),
        ("```rust,ignore\nx\n```\n", "line 1: no test runs a block of \"rust,ignore\""),
        ("```rust\nx\n```\n", "line 1: no test runs a block of \"rust\""),
        ("```console\nx\n```\n", "line 1: nothing before this block prints it"),
        ("words\n\n    x\n", "line 3: code that is only indented"),
        ("<!-- not run: because -->\n```java\n```\n", "line 1: \" because \" is not a reason"),
        ("```sh\nx\n", "line 1: a block without an end"),
        ("<!-- not run: this is of another block -->\n\n```java\n```\n", "line 3: no test runs"),
    ] {
        let found = blocks(page).and_then(|blocks| steps(&blocks, page.contains("ignore")));
        assert!(found.as_ref().is_err_and(|why| why.starts_with(says)), "{page:?}: {found:?}");
    }
}
