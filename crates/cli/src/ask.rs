//! Asking a running server by its admin endpoint; `status` and `health`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use rangehold_server::admin::TOKEN_FILE;
use serde_json::Value;

/// How long a server may take to answer what it knows.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Which server.
#[derive(Debug, Args)]
pub(crate) struct Asking {
    /// Its admin endpoint.
    #[arg(long, env = "RANGEHOLD_ADMIN", value_name = "ADDR:PORT", default_value = "127.0.0.1:10080")]
    admin: SocketAddr,
    /// Its data directory, where the admin token is.
    #[arg(long, env = "RANGEHOLD_DATA", value_name = "DIR", default_value = "./rangehold-data")]
    data: PathBuf,
}

/// Prints the server's status.
pub(crate) fn status(asking: &Asking) -> Result<()> {
    let status = asking.get("/v1/status", ANSWER_WITHIN)?;
    println!("{status:#}");
    Ok(())
}

impl Asking {
    /// What the admin API says at `path`, waiting so long for it.
    pub(crate) fn get(&self, path: &str, within: Duration) -> Result<Value> {
        self.ask(&Request { method: "GET", path, body: "", within })
    }

    /// What the admin API answers to a command.
    pub(crate) fn post(&self, path: &str, body: &Value, within: Duration) -> Result<Value> {
        self.ask(&Request { method: "POST", path, body: &body.to_string(), within })
    }

    /// What the admin API answers when something is to go.
    pub(crate) fn delete(&self, path: &str) -> Result<Value> {
        self.ask(&Request { method: "DELETE", path, body: "", within: ANSWER_WITHIN })
    }

    fn ask(&self, request: &Request<'_>) -> Result<Value> {
        let path = self.data.join(TOKEN_FILE);
        let token = std::fs::read_to_string(&path).with_context(|| {
            format!("cannot read the admin token {}; is --data the server's directory?", path.display())
        })?;
        let (status, body) = exchange(self.admin, request, Some(token.trim()))?;
        if status == 200 {
            return serde_json::from_str(&body).context("the server's answer is not JSON");
        }
        // What the API refuses it says in a sentence; what comes before the API, as text.
        let refused: Option<Value> = serde_json::from_str(&body).ok();
        match refused.as_ref().and_then(|refused| refused["error"]["message"].as_str()) {
            Some(message) => bail!("{message}"),
            None => bail!("{} answered {status}: {}", self.admin, body.trim()),
        }
    }
}

/// One request.
struct Request<'a> {
    method: &'a str,
    path: &'a str,
    body: &'a str,
    /// How long the answer may take.
    within: Duration,
}

/// Succeeds if the server is ready.
pub(crate) fn health(asking: &Asking) -> Result<()> {
    let ready = Request { method: "GET", path: "/readyz", body: "", within: ANSWER_WITHIN };
    let (status, body) = exchange(asking.admin, &ready, None)?;
    let said = troubles(&body);
    if status != 200 {
        bail!("not ready: {}", said.join("; "));
    }
    println!("ready");
    said.iter().for_each(|trouble| println!("{trouble}"));
    Ok(())
}

/// The sentences in an answer about readiness; the answer itself, if it is another one.
fn troubles(body: &str) -> Vec<String> {
    let Ok(answer) = serde_json::from_str::<Value>(body) else { return vec![body.trim().to_owned()] };
    let sentence = |trouble: &Value| trouble["sentence"].as_str().map(str::to_owned);
    answer["troubles"].as_array().into_iter().flatten().filter_map(sentence).collect()
}

/// One HTTP/1.1 request of the plainest kind; a client library would be larger than its use here.
fn exchange(address: SocketAddr, request: &Request<'_>, token: Option<&str>) -> Result<(u16, String)> {
    let Request { method, path, body, within } = request;
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)
        .with_context(|| format!("no server answers at {address}; give its admin endpoint by --admin"))?;
    stream.set_read_timeout(Some(*within))?;
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{authorization}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).context("the server broke off its answer")?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the server's answer is not HTTP")?;
    let status =
        head.split(' ').nth(1).and_then(|s| s.parse().ok()).context("the server's answer is not HTTP")?;
    Ok((status, body.to_owned()))
}

/// Percent-encoded for a query.
pub(crate) fn encoded(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    key.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
