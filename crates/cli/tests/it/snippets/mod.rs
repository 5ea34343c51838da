//! The snippets of the pages about the client and its commands, and of the recipes: each is run here, or compiled, or its
//! page says why not. Of two other pages the programs for Google's client are run, and of one the way to restore a table.
//!
//! ```text
//!   page     what a page asks for, in its order      pure
//!   shown    whether the output is what it shows     pure
//!   shell    runs it in one shell
//!   flags    commands and flags in sentences
//! ```
//!
//! A page is run against real servers. Where it speaks of a second service, that is Azurite in the step `client` of
//! `cargo xtask test`, and otherwise another server of ours. Recipes in Python and JavaScript
//! need the libraries of that step.

mod flags;
mod page;
mod shell;
mod shown;

use std::fs;
use std::path::{Path, PathBuf};

use rangehold_testkit::client::{self, change, create_table, entity_path, must};
use rangehold_testkit::needs::{
    GOOGLE_NODE, GOOGLE_PYTHON, OTHER_SERVICE, RECIPES_NODE, RECIPES_PYTHON, given,
};
use rangehold_testkit::server::{Server, Setup};
use rangehold_testkit::workspace::{root, sources};
use serde_json::Map;
use tempfile::TempDir;

use self::page::Step;
use self::shell::{Shell, Swap};
use crate::program::{connection, ended, rangehold};

/// Where a server of objects listens that was told nothing else.
const OBJECTS: &str = "http://127.0.0.1:4443";

/// Folders whose pages have snippets that must be run.
const FOLDERS: [&str; 2] = ["docs/client/", "docs/recipes/"];

/// The tests that run pages, each with its page.
macro_rules! pages {
    ($($test:ident: $page:literal, $run:ident;)*) => {
        const RUN: &[&str] = &[$($page),*];
        $(#[test] fn $test() { $run($page); })*
    };
}

pages! {
    the_guide_can_be_followed: "docs/client/guide.md", guide;
    tables_move_as_the_page_shows: "docs/client/moving.md", moving;
    objects_are_copied_as_the_page_shows: "docs/client/objects.md", objects;
    stress_tests_end_as_the_page_shows: "docs/client/stress.md", stress;
    the_recipe_for_parquet_works: "docs/recipes/parquet.md", python;
    the_recipe_for_parquet_by_gs_names_works: "docs/recipes/parquet-objects.md", python;
    the_recipe_for_python_works: "docs/recipes/python.md", python;
    the_recipe_for_javascript_works: "docs/recipes/javascript.md", javascript;
    the_recipe_for_objects_in_python_works: "docs/recipes/python-objects.md", google_python;
    the_recipe_for_objects_in_javascript_works: "docs/recipes/javascript-objects.md", google_javascript;
    the_first_page_shows_what_googles_client_prints: "README.md", google_samples;
    the_page_about_objects_shows_what_googles_client_prints: "docs/objects.md", google_samples;
    a_table_is_restored_as_the_page_about_operating_shows: "docs/operating.md", restored_table;
}

/// The pages of [`FOLDERS`] by their paths, with their texts.
fn pages() -> Vec<(String, String)> {
    let paths = sources().expect("the repository can be listed").into_iter();
    let paths =
        paths.filter(|path| path.ends_with(".md") && FOLDERS.iter().any(|folder| path.starts_with(folder)));
    paths.map(|path| (path.clone(), text(&path))).collect()
}

fn text(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The part of a page below a heading. Its lines have the numbers that they have in the page.
fn section(page: &str, heading: &str) -> String {
    let mut is_in = false;
    let mut part = String::new();
    for line in text(page).lines() {
        if line.starts_with("## ") {
            is_in = line == heading;
        }
        part.extend([if is_in { line } else { "" }, "\n"]);
    }
    part
}

fn steps(page: &str) -> Vec<Step> {
    // The documentation of the client includes the page, and so its examples are compiled with it.
    let is_compiled =
        text("crates/client/src/lib.rs").contains(&format!("include_str!(\"../../../{page}\")"));
    let steps = page::blocks(&text(page)).and_then(|blocks| page::steps(&blocks, is_compiled));
    steps.unwrap_or_else(|why| panic!("{page}, {why}"))
}

#[test]
fn no_snippet_is_left_out_without_a_reason() {
    let mut left_out = Vec::new();
    for (page, _) in pages() {
        if let Some(step) = steps(&page).first().filter(|_| !RUN.contains(&page.as_str())) {
            left_out.push(format!("{page}, line {}", step.line));
        }
    }
    assert!(
        left_out.is_empty(),
        "no test runs these pages, and these snippets do not say why:\n{}",
        left_out.join("\n")
    );
}

#[test]
fn pages_name_commands_and_flags_that_exist() {
    let flags = flags::flags();
    let unknown: Vec<String> = pages()
        .iter()
        .flat_map(|(page, text)| {
            flags::unknown(text, &flags).into_iter().map(move |fault| format!("{page}: {fault}"))
        })
        .collect();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

/// A server that a page expects to run already.
struct Running {
    server: Server,
    directory: TempDir,
}

impl Running {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (data, log) = (directory.path().join("data"), directory.path().join("log"));
        let setup = Setup::new(Path::new(env!("CARGO_BIN_EXE_rangehold")), &data, &log);
        Self { server: Server::start(&setup).expect("the server starts"), directory }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn connection(&self) -> String {
        connection(self.server.address)
    }

    /// The page names the port of objects that a server takes by default.
    fn objects(&self) -> Swap {
        Swap { page: OBJECTS, test: format!("http://{}", self.server.objects) }
    }
}

fn guide(page: &str) {
    with_its_own_server(page, "--minutes 1");
}

/// `$OURS`, `$AZURITE` and `$OTHER_ACCOUNT` are of the reader.
fn moving(page: &str) {
    let (one, two, three) = (Running::start(), Running::start(), Running::start());
    let mut shell = Shell::new();
    shell.swap(Swap::development(&one.connection()));
    shell.variable("OTHER_ACCOUNT", two.connection());
    shell.variable("OURS", two.connection());
    shell.variable("AZURITE", std::env::var(OTHER_SERVICE).unwrap_or_else(|_| three.connection()));
    shell.run(page, &steps(page));
}

fn objects(page: &str) {
    let running = Running::start();
    let mut shell = Shell::new();
    shell.swap(running.objects());
    fs::create_dir_all(shell.folder().join("trip/day1")).expect("a folder");
    fs::write(shell.folder().join("trip/a.txt"), "hello\n").expect("there is room");
    fs::write(shell.folder().join("trip/day1/b.txt"), "b\n").expect("there is room");
    shell.run(page, &steps(page));
}

fn stress(page: &str) {
    with_its_own_server(page, "--minutes 15");
}

/// The page starts the server itself. Its peaks take minutes; here they take seconds, because the verdict is not about
/// the time.
fn with_its_own_server(page: &str, minutes: &'static str) {
    let (mut shell, [table, ..]) = Shell::with_ports();
    shell.swap(Swap::development(&connection(table)));
    shell.swap(Swap { page: minutes, test: "--minutes 0.04".to_owned() });
    shell.run(page, &steps(page));
}

/// A recipe begins with a running server.
fn python(page: &str) {
    python_of(page, RECIPES_PYTHON);
}

fn google_python(page: &str) {
    python_of(page, GOOGLE_PYTHON);
}

/// With the Python that a variable names.
fn python_of(page: &str, variable: &str) {
    let Some(python) = given(variable) else { return };
    let (running, steps, mut shell) = (Running::start(), steps(page), Shell::new());
    shell.python(python.into());
    for swap in [Swap::development(&running.connection()), running.objects()] {
        if steps.iter().any(|step| step.asks_for(swap.page)) {
            shell.swap(swap);
        }
    }
    shell.run(page, &steps);
}

fn javascript(page: &str) {
    let Some(modules) = given(RECIPES_NODE) else { return };
    let (running, mut shell) = (Running::start(), Shell::new());
    // What it would install is there, in the version of the lock file.
    shell.swap(Swap {
        page: "npm install @azure/data-tables",
        test: format!("ln -s '{modules}' node_modules"),
    });
    // The SDK speaks plain HTTP to the development account, and elsewhere only if it is told to.
    shell.swap(Swap {
        page: "\"UseDevelopmentStorage=true\", \"cities\"",
        test: format!("\"{}\", \"cities\", {{ allowInsecureConnection: true }}", running.connection()),
    });
    shell.run(page, &steps(page));
}

/// The page starts two servers, one after the other.
fn google_javascript(page: &str) {
    let Some(modules) = given(GOOGLE_NODE) else { return };
    let (mut shell, [_, objects, _]) = Shell::with_ports();
    shell.swap(Swap { page: OBJECTS, test: format!("http://{objects}") });
    let install = "npm install @google-cloud/storage";
    shell.swap(Swap { page: install, test: format!("ln -s '{modules}' node_modules") });
    shell.run(page, &steps(page));
}

/// The page begins with a backup, and with a server whose rows were deleted since. It shows the figures of a table that is not
/// here, so what the commands print is not compared; what they restore is.
fn restored_table(page: &str) {
    let orders = ["0001", "0002", "0003"];
    let running = Running::start();
    let mut writer = running.server.client();
    let mut write = |step: client::Step, row: &str| {
        let request = change(step, "orders", ("shop-01", row), &Map::new(), "*");
        must(&mut writer, request, 204).expect("it is written");
    };
    must(&mut running.server.client(), create_table("orders"), 204).expect("a table");
    orders.iter().for_each(|row| write(client::Step::Insert, row));

    let (mut shell, [table, object, admin]) = Shell::with_ports();
    let mut backup = rangehold();
    backup.arg("backup").arg("--from").arg(running.data());
    backup.arg("--to").arg(shell.folder().join("backup"));
    let backed_up = ended(backup, "");
    assert_eq!(backed_up.code, Some(0), "{backed_up:?}");
    orders.iter().for_each(|row| write(client::Step::Delete, row));

    shell.swap(Swap::development(&running.connection()));
    for (shown, free) in [("11002", table), ("11443", object), ("11080", admin)] {
        shell.swap(Swap { page: shown, test: free.port().to_string() });
    }
    let part = section(page, "## Restore one table");
    let steps = page::blocks(&part).and_then(|blocks| page::steps(&blocks, false));
    let steps = steps.unwrap_or_else(|why| panic!("{page}, {why}"));
    let steps: Vec<Step> = steps.into_iter().map(|step| Step { shown: None, ..step }).collect();
    shell.run(page, &steps);
    for row in orders {
        let read = client::get(entity_path("orders", "shop-01", row));
        must(&mut running.server.client(), read, 200).expect("it was restored");
    }
}

/// A page that shows much, and programs for Google's client among it. Only these are run; the page says in words how the
/// environment is set.
fn google_samples(page: &str) {
    let Some(python) = given(GOOGLE_PYTHON) else { return };
    let programs = page::blocks(&text(page)).and_then(|blocks| page::programs(&blocks, "google.cloud"));
    let programs = programs.unwrap_or_else(|why| panic!("{page}, {why}"));
    assert!(programs.iter().any(|step| step.shown.is_some()), "{page} shows no output of such a program");
    let (running, mut shell) = (Running::start(), Shell::new());
    shell.python(python.into());
    shell.variable("STORAGE_EMULATOR_HOST", running.objects().test);
    shell.variable("GOOGLE_CLOUD_PROJECT", "test".to_owned());
    shell.run(page, &programs);
}
