//! The runner: sends the requests of a file one after the other, and compares the replies.
//!
//! A pair that fails does not stop the run, so that one report shows all differences. But later pairs of a file may
//! depend on earlier ones, so look at the first difference first.

mod expectation;
mod pair;

use std::path::PathBuf;

use rangehold_map::Timestamp;
use rangehold_protocol::time::iso;
use rangehold_server::accounts::{WELL_KNOWN_ACCOUNT, WELL_KNOWN_KEY};

use self::expectation::Expectation;
use self::pair::{Auth, Pair};
use crate::support::Service;
use crate::support::wire::{Answer, Request};
use rangehold_testkit::sign::{Signer, bearer_token};

const GUID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
const VERSION: &str = "2019-02-02";
/// A key that no account has.
const WRONG_KEY: &str = "d3Jvbmcga2V5";

/// Replays one file. Panics with everything that differs.
pub(crate) async fn file(name: &str) {
    let text = std::fs::read_to_string(directory().join(name)).expect("a file of exchanges");
    let service = Service::start().await;
    let mut known = Known { base: service.base(), etag: String::new(), next: Vec::new() };
    let mut differences = Vec::new();
    let pairs = pair::parse(&text);
    for pair in &pairs {
        let answer = service.send_raw(&known.request(pair, &service)).await;
        if let Err(difference) = known.expectation().check(pair, &answer) {
            differences.push(format!("{name}: {}\n{difference}", pair.title));
        }
        known.learn(&answer);
    }
    let count = differences.len();
    assert!(count == 0, "{count} of {} replies differ\n\n{}", pairs.len(), differences.join("\n\n"));
}

/// The names of all files, in order.
pub(crate) fn files() -> Vec<String> {
    let entries = std::fs::read_dir(directory()).expect("the folder of exchanges");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".txt")).collect();
    names.sort();
    names
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

/// What the placeholders of later requests stand for.
struct Known {
    base: String,
    etag: String,
    /// The values of continuation headers, each with the last part of its header's name.
    next: Vec<(String, String)>,
}

impl Known {
    fn learn(&mut self, answer: &Answer) {
        if let Some(etag) = answer.header("etag") {
            self.etag = etag;
        }
        for (name, value) in &answer.headers {
            if let Some(part) = name.strip_prefix("x-ms-continuation-") {
                self.next.retain(|(given, _)| given != part);
                self.next.push((part.to_owned(), value.clone()));
            }
        }
    }

    fn expectation(&self) -> Expectation<'_> {
        Expectation { base: &self.base, account: WELL_KNOWN_ACCOUNT }
    }

    /// The request of a pair, with its placeholders filled in, and signed.
    fn request(&self, pair: &Pair, service: &Service) -> Request {
        let now = service.clock.wall();
        let signer = Signer::new(WELL_KNOWN_ACCOUNT, WELL_KNOWN_KEY);
        let mut body = self.fill(&pair.body);
        let multipart = pair.header("content-type").is_some_and(|value| value.starts_with("multipart/"));
        if multipart && !pair.title.contains("[LF]") {
            body = body.replace('\n', "\r\n");
        }
        let mut target = format!("/{WELL_KNOWN_ACCOUNT}{}", self.fill(&pair.target));
        if let Auth::Sas(fields) = &pair.auth {
            target.push(if target.contains('?') { '&' } else { '?' });
            target += &signer.sas(&sas_fields(fields, now));
        }
        let mut request = Request::new(&pair.method, &target, &[], body.as_bytes());
        for (name, value) in &pair.headers {
            request.set(name, self.fill(value));
        }
        if request.header("x-ms-version").is_none() {
            request.set("x-ms-version", VERSION);
        }
        match &pair.auth {
            Auth::Key => signer.sign(&mut request, now.unix_seconds()),
            Auth::Lite => signer.sign_lite(&mut request, now.unix_seconds()),
            Auth::WrongKey => {
                Signer::new(WELL_KNOWN_ACCOUNT, WRONG_KEY).sign(&mut request, now.unix_seconds())
            }
            Auth::Bearer => {
                request.set("Authorization", format!("Bearer {}", bearer_token(now.unix_seconds())))
            }
            Auth::None | Auth::Sas(_) => {}
        }
        request
    }

    fn fill(&self, template: &str) -> String {
        let mut text = template.replace("{base}", &self.base).replace("{account}", WELL_KNOWN_ACCOUNT);
        text = text.replace("{guid}", GUID).replace("{etag}", &self.etag);
        for (part, value) in &self.next {
            // Names of headers arrive in lower case, but placeholders have them as the service writes them.
            let placeholder = regex::Regex::new(&format!(r"\{{next\.(?i-u:{part})\}}")).expect("a pattern");
            text = placeholder.replace_all(&text, regex::NoExpand(value)).into_owned();
        }
        let repeated = regex::Regex::new(r"\{([a-z])\*([0-9]+)\}").expect("a pattern");
        let expand = |found: &regex::Captures<'_>| found[1].repeat(found[2].parse().expect("a number"));
        repeated.replace_all(&text, expand).into_owned()
    }
}

/// The fields of a token: those that are given, with relative times made absolute, and the version.
fn sas_fields(fields: &[(String, String)], now: Timestamp) -> Vec<(&str, String)> {
    let mut filled: Vec<(&str, String)> = Vec::new();
    for (name, value) in fields {
        let value = match value.as_str() {
            "+1h" => iso(Timestamp::from_unix_seconds(now.unix_seconds() + 3600)),
            "-1h" => iso(Timestamp::from_unix_seconds(now.unix_seconds() - 3600)),
            _ => value.clone(),
        };
        filled.push((name, value));
    }
    if !filled.iter().any(|(name, _)| *name == "sv") {
        filled.push(("sv", VERSION.to_owned()));
    }
    filled
}
