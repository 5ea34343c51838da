//! The files' format: titles, requests, expected replies.

/// How a request is authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Auth {
    /// `SharedKey`, with the account's key.
    Key,
    /// `SharedKeyLite`.
    Lite,
    /// `SharedKey`, with a key that is not the account's.
    WrongKey,
    /// A bearer token.
    Bearer,
    /// A shared access signature of these fields.
    Sas(Vec<(String, String)>),
    /// Not at all.
    None,
}

/// One request, and the reply to it.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) title: String,
    pub(crate) auth: Auth,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) status: u16,
    /// Headers that the reply must have. A header without a value must be absent.
    pub(crate) expected_headers: Vec<(String, Option<String>)>,
    pub(crate) expected_body: Body,
}

/// What the body of a reply must be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Any body.
    Free,
    /// No body.
    Empty,
    /// A body that contains this text.
    Contains(String),
    /// Exactly this text.
    Whole(String),
}

impl Pair {
    /// The value of a header of the request.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// All pairs of a file.
pub(crate) fn parse(text: &str) -> Vec<Pair> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("=== ") {
            blocks.push(Vec::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push(line);
        }
    }
    assert!(!blocks.is_empty(), "no exchange begins with ===");
    blocks.iter().map(|lines| pair(lines)).collect()
}

fn pair(lines: &[&str]) -> Pair {
    let title = lines[0].trim_start_matches('=').trim();
    let end = lines.iter().position(|line| *line == "---").unwrap_or_else(|| panic!("{title}: no line ---"));
    let (mut request, reply) = (&lines[1..end], &lines[end + 1..]);
    let mut auth = Auth::Key;
    if let Some(written) = request[0].strip_prefix("@auth ") {
        auth = self::auth(written);
        request = &request[1..];
    }
    let (method, target) = request[0].split_once(' ').unwrap_or_else(|| panic!("{title}: no request line"));
    let (headers, body) = head_and_body(&request[1..]);
    let (expected, expected_body) = head_and_body(&reply[1..]);
    let expected_headers = expected.iter().map(|line| match line.strip_prefix('!') {
        Some(absent) => (absent.to_owned(), None),
        None => {
            let (name, value) = field(line);
            (name, Some(value))
        }
    });
    Pair {
        title: title.to_owned(),
        auth,
        method: method.to_owned(),
        target: target.to_owned(),
        headers: headers.iter().map(|line| field(line)).collect(),
        body: body.unwrap_or_default(),
        status: reply[0].parse().unwrap_or_else(|_| panic!("{title}: {:?} is not a status", reply[0])),
        expected_headers: expected_headers.collect(),
        expected_body: match expected_body.as_deref() {
            None => Body::Free,
            Some("-") => Body::Empty,
            Some(text) => match text.strip_prefix('~').filter(|_| !text.contains('\n')) {
                Some(part) => Body::Contains(part.to_owned()),
                None => Body::Whole(text.to_owned()),
            },
        },
    }
}

/// The lines up to the first blank one, and the text after it without the line ends at its end.
fn head_and_body<'a>(lines: &'a [&'a str]) -> (&'a [&'a str], Option<String>) {
    match lines.iter().position(|line| line.is_empty()) {
        None => (lines, None),
        Some(blank) => {
            (&lines[..blank], Some(lines[blank + 1..].join("\n").trim_end_matches('\n').to_owned()))
        }
    }
}

fn field(line: &str) -> (String, String) {
    let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("{line:?} is not a header"));
    (name.to_owned(), value.trim().to_owned())
}

fn auth(written: &str) -> Auth {
    match written.split_once(' ').unwrap_or((written, "")) {
        ("none", _) => Auth::None,
        ("wrong-key", _) => Auth::WrongKey,
        ("lite", _) => Auth::Lite,
        ("bearer", _) => Auth::Bearer,
        ("sas", fields) => {
            let pairs = fields.split('&').map(|pair| pair.split_once('=').expect("a field of a signature"));
            Auth::Sas(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
        }
        _ => panic!("@auth {written}: unknown"),
    }
}
