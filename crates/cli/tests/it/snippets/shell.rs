//! Runs what a page asks for, as its reader would: in one shell and one folder.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rangehold_testkit::ports::free_ports;
use rangehold_testkit::server::command;
use tempfile::TempDir;

use super::page::{Act, Step};
use super::shown::agrees;

/// A text of the page that stands for another one in the test.
pub(super) struct Swap {
    pub(super) page: &'static str,
    pub(super) test: String,
}

impl Swap {
    /// The development account is at a port that may be in use: here it is at another one.
    pub(super) fn development(connection: &str) -> Self {
        Self { page: "UseDevelopmentStorage=true", test: connection.to_owned() }
    }
}

/// Where a page is run.
pub(super) struct Shell {
    directory: TempDir,
    variables: Vec<(&'static str, String)>,
    swaps: Vec<Swap>,
    /// The Python for programs of the page.
    python: Option<PathBuf>,
}

impl Shell {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for folder in ["work", "home", "results"] {
            fs::create_dir(directory.path().join(folder)).expect("a folder");
        }
        Self { directory, variables: Vec::new(), swaps: Vec::new(), python: None }
    }

    /// A shell for a page that starts servers: they take free ports, and keep their data in a folder of the test. Also
    /// where tables, objects and the admin endpoint will be.
    pub(super) fn with_ports() -> (Self, [SocketAddr; 3]) {
        let mut shell = Self::new();
        let [table, object, admin] = free_ports().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        shell.variable("RANGEHOLD_TABLE_PORT", table.port().to_string());
        shell.variable("RANGEHOLD_OBJECT_PORT", object.port().to_string());
        shell.variable("RANGEHOLD_ADMIN_PORT", admin.port().to_string());
        shell.variable("RANGEHOLD_ADMIN", admin.to_string());
        let data = shell.directory.path().join("data");
        shell.variable("RANGEHOLD_DATA", data.to_str().expect("it is text").to_owned());
        (shell, [table, object, admin])
    }

    /// The folder in which the commands run.
    pub(super) fn folder(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    pub(super) fn variable(&mut self, name: &'static str, value: String) {
        self.variables.push((name, value));
    }

    pub(super) fn swap(&mut self, swap: Swap) {
        self.swaps.push(swap);
    }

    pub(super) fn python(&mut self, python: PathBuf) {
        self.python = Some(python);
    }

    /// Runs the steps of `page`, and fails with the line of the page at the first that fails or prints something else.
    pub(super) fn run(&self, page: &str, steps: &[Step]) {
        let swapped: Vec<Step> =
            steps.iter().map(|step| Step { act: self.swapped(&step.act), ..step.clone() }).collect();
        for swap in &self.swaps {
            assert!(
                steps.iter().any(|step| step.asks_for(swap.page)),
                "{page} has no {:?} any more: take it out of the test",
                swap.page
            );
        }
        let script = self.directory.path().join("script.sh");
        fs::write(&script, self.script(&swapped)).expect("there is room");
        let status = self.bash(&script).status().expect("bash starts");
        for (number, step) in steps.iter().enumerate() {
            let result = |kind: &str| fs::read_to_string(self.result(number, kind)).unwrap_or_default();
            let (code, said) = (result("code"), result("said"));
            let place = format!("{page}, line {}: {}", step.line, step.act.text().trim_end());
            assert!(
                step.act.may_end_with(code.trim()),
                "{place}\nended with {code:?} ({status}) and said\n{said}{}",
                result("warned")
            );
            if let Some(shown) = &step.shown {
                assert!(agrees(shown, &said), "{place}\nshows\n{shown}\nand prints\n{said}");
            }
        }
        assert!(status.success(), "{page}: the shell ended with {status}");
    }

    fn bash(&self, script: &Path) -> std::process::Command {
        let mut bash = command("bash");
        let program = Path::new(env!("CARGO_BIN_EXE_rangehold"));
        let mut path = vec![program.parent().expect("it lies in a folder").to_owned()];
        path.extend(self.python.iter().filter_map(|python| Some(python.parent()?.to_owned())));
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        bash.arg(script).env("PATH", std::env::join_paths(path).expect("no folder has a colon in its name"));
        let home = self.directory.path().join("home");
        bash.current_dir(self.folder()).env("HOME", &home).env_remove("XDG_STATE_HOME");
        for name in ["CONNECTION_STRING", "ACCOUNT", "KEY", "SAS_TOKEN", "SERVICE_ENDPOINT"] {
            bash.env_remove(format!("AZURE_STORAGE_{name}"));
        }
        bash.envs(self.variables.iter().map(|(name, value)| (name, value)));
        bash
    }

    fn swapped(&self, act: &Act) -> Act {
        let swapped = |text: &String, quote: &str| {
            let swaps = self.swaps.iter();
            // A connection string has semicolons, which would end a command.
            let quote = |text: &str| {
                if text.contains(';') { format!("{quote}{text}{quote}") } else { text.to_owned() }
            };
            swaps.fold(text.clone(), |text, swap| text.replace(swap.page, &quote(&swap.test)))
        };
        match act {
            Act::Command(text) => Act::Command(swapped(text, "'")),
            Act::Python(text) => Act::Python(swapped(text, "")),
            Act::Node(text) => Act::Node(swapped(text, "")),
            Act::File { name, text } => Act::File { name: name.clone(), text: swapped(text, "") },
        }
    }

    /// The path, in quotes, of a file with this text.
    fn written(&self, number: usize, kind: &str, text: &str) -> String {
        let path = self.result(number, kind);
        fs::write(&path, text).expect("there is room");
        quoted(&path)
    }

    fn result(&self, number: usize, kind: &str) -> PathBuf {
        self.directory.path().join("results").join(format!("{number}.{kind}"))
    }

    /// All steps, with what each prints and its exit code in files.
    fn script(&self, steps: &[Step]) -> String {
        let mut script = String::from("trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT\n");
        for (number, step) in steps.iter().enumerate() {
            let command = match &step.act {
                Act::Command(text) => text.clone(),
                Act::Python(text) => format!("python {}", self.written(number, "py", text)),
                // Modules are looked for beside the program.
                Act::Node(text) => {
                    format!("cp {} program.mjs && node program.mjs", self.written(number, "mjs", text))
                }
                Act::File { name, text } => format!("cp {} {name}", self.written(number, "file", text)),
            };
            let (said, code) = (self.result(number, "said"), self.result(number, "code"));
            // A reader sees both outputs of a command in one terminal. Libraries of other people may warn as they like.
            let warned = match &step.act {
                Act::Python(_) | Act::Node(_) => quoted(&self.result(number, "warned")),
                Act::Command(_) | Act::File { .. } => "&1".to_owned(),
            };
            writeln!(
                script,
                "{{ {command}\n}} > {} 2>{warned} < /dev/null; code=$?; echo $code > {}",
                quoted(&said),
                quoted(&code)
            )
            .expect("a text takes all");
            let codes = step.act.codes().iter().map(|code| format!("$code != {code}")).collect::<Vec<_>>();
            writeln!(script, "if [[ {} ]]; then exit 1; fi", codes.join(" && ")).expect("a text takes all");
            if step.act.starts_server() {
                // A server that ends instead of getting ready has failed at this step: what it said is shown.
                writeln!(
                    script,
                    "until rangehold health > /dev/null 2>&1; do\n\
                     kill -0 $! || {{ echo ended > {}; exit 1; }}; sleep 0.05\ndone",
                    quoted(&code)
                )
                .expect("a text takes all");
            }
        }
        script
    }
}

impl Step {
    /// Whether this text is in what is run.
    pub(super) fn asks_for(&self, text: &str) -> bool {
        self.act.text().contains(text)
    }
}

impl Act {
    fn text(&self) -> &str {
        match self {
            Self::Command(text) | Self::Python(text) | Self::Node(text) | Self::File { text, .. } => text,
        }
    }

    /// The exit codes of a success. A stress test succeeds too if it finds that the peak is not borne: whether a peak is
    /// borne depends on the machine.
    fn codes(&self) -> &'static [&'static str] {
        if self.text().starts_with("rangehold stress ") { &["0", "3"] } else { &["0"] }
    }

    fn may_end_with(&self, code: &str) -> bool {
        self.codes().contains(&code)
    }

    /// The reader waits until a server is ready, and so does the test.
    fn starts_server(&self) -> bool {
        matches!(self, Self::Command(text) if text.starts_with("rangehold dev") && text.ends_with('&'))
    }
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_str().expect("it is text"))
}
