//! Copies and deletions at a server whose buckets bear ten writes a second.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rangehold_testkit::http::{Connection, Request};

use super::Home;

const FILES: usize = 48;
const CLOUD: [&str; 4] = ["--profile", "cloud", "--rate-scale", "0.01"];

impl Home {
    /// A server of the profile `cloud`, a bucket and files.
    fn busy() -> Self {
        let home = Self::open_with(&CLOUD);
        home.says(&["bucket", "create", "gs://busy"]);
        for file in 0..FILES {
            home.write(&format!("files/{}/{file}", file % 4), format!("{file:04}"));
        }
        home
    }

    /// Requests that were refused: because the bucket was asked for more than it bears or, on a slow machine, because the
    /// server had too much to do.
    fn refused(&self) -> u64 {
        let mut connection = Connection::open(self.server.admin).expect("the server listens");
        let metrics = connection.send(&Request::new("GET", "/metrics", &[], b"")).expect("an answer");
        let refused = metrics.body.lines().filter(|line| line.starts_with("rangehold_throttled_total{"));
        refused.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// What a command says that writes or deletes each of the files. It was pushed back, unless the machine took much longer
    /// than the bucket needs, which is four to seven seconds.
    fn says_although_pushed_back(&self, line: &[&str]) -> String {
        let (refused, begun) = (self.refused(), Instant::now());
        let said = self.says(line);
        let is_slow = begun.elapsed() > Duration::from_secs(12);
        assert!(self.refused() > refused || is_slow, "32 requests at once are more than it bears");
        said
    }
}

/// The numbers of `copied 1, 2 bytes; skipped 3; failed 4`: those of the files.
fn counts(said: &str) -> [usize; 3] {
    let numbers = said.split([' ', ',', ';', '\n']).filter_map(|word| word.parse().ok());
    let numbers: Vec<usize> = numbers.collect();
    [numbers[0], numbers[2], numbers[3]]
}

#[test]
fn a_copy_and_a_deletion_end_well_where_they_are_pushed_back() {
    let home = Home::busy();
    assert_eq!(
        home.says_although_pushed_back(&["object", "cp", "-r", "files", "gs://busy"]),
        "copied 48, 192 bytes; skipped 0; failed 0\n"
    );
    assert_eq!(counts(&home.says(&["object", "cp", "-r", "files", "gs://busy"])), [0, FILES, 0]);
    assert_eq!(
        home.says_although_pushed_back(&["object", "rm", "-r", "gs://busy/files"]),
        "deleted 48, 192 bytes; skipped 0; failed 0\n"
    );
    assert_eq!(home.says(&["object", "ls", "-r", "gs://busy"]), "");
}

#[test]
fn with_the_ramp_a_killed_copy_goes_on_where_it_ended() {
    let home = Home::busy();
    let copy = ["object", "cp", "-r", "files", "gs://busy", "--ramp", "on"];
    let mut child =
        home.command(&copy).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let there = || home.says(&["object", "ls", "-r", "gs://busy"]).lines().count();
    // On a slow machine the copy may end while the files are listed.
    let mut ended = None;
    while ended.is_none() && there() < 5 {
        ended = child.try_wait().expect("it is a child");
    }
    let ended = ended.or(child.try_wait().expect("it is a child"));
    assert!(ended.is_none_or(|status| status.success()), "{ended:?}");
    child.kill().expect("it is a child");
    child.wait().expect("it is a child");
    let [copied, skipped, failed] = counts(&home.says(&copy));
    assert!((copied > 0 || ended.is_some()) && skipped >= 5, "{copied} copied, {skipped} skipped");
    assert_eq!((copied + skipped, failed), (FILES, 0));
    home.says(&["object", "cp", "-r", "gs://busy/files", "down", "--ramp", "on"]);
    for file in 0..FILES {
        assert_eq!(home.read(&format!("down/{}/{file}", file % 4)), format!("{file:04}").into_bytes());
    }
    let deleted = home.says(&["object", "rm", "-r", "gs://busy", "--ramp", "on"]);
    assert!(deleted.ends_with("deleted 49, 192 bytes; skipped 0; failed 0\n"), "{deleted}");
}
