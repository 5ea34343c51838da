//! A client of the admin API of a running server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use rangehold_server::admin::TOKEN_FILE;
use serde_json::Value;

/// How long a server may take to answer a question that needs no work.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of an answer at most.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// The server to ask, and how to reach it.
#[derive(Debug, Clone, Args)]
pub(crate) struct AdminClient {
    /// The server's admin endpoint.
    #[arg(long, env = "RANGEHOLD_ADMIN", value_name = "ADDR:PORT", default_value = "127.0.0.1:10080")]
    admin: SocketAddr,
    /// The server's data directory, which holds the admin token.
    #[arg(long, env = "RANGEHOLD_DATA", value_name = "DIR", default_value = "./rangehold-data")]
    data: PathBuf,
    /// The admin token of a server that keeps it in no file.
    #[arg(long, env = "RANGEHOLD_ADMIN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    admin_token: Option<String>,
}

impl AdminClient {
    /// Reads `path`. Waits for the answer no longer than `within`.
    pub(crate) fn get(&self, path: &str, within: Duration) -> Result<Value> {
        self.send(&Request { method: "GET", path, body: "", within })
    }

    /// Sends `body` to `path`. Waits for the answer no longer than `within`.
    pub(crate) fn post(&self, path: &str, body: &Value, within: Duration) -> Result<Value> {
        self.send(&Request { method: "POST", path, body: &body.to_string(), within })
    }

    /// Deletes the resource at `path`.
    pub(crate) fn delete(&self, path: &str) -> Result<Value> {
        self.send(&Request { method: "DELETE", path, body: "", within: ANSWER_WITHIN })
    }

    /// Asks whether the server is ready, which needs no token: the status of the answer, and its body.
    pub(crate) fn readiness(&self) -> Result<(u16, String)> {
        let ready = Request { method: "GET", path: "/readyz", body: "", within: ANSWER_WITHIN };
        exchange(self.admin, &ready, None)
    }

    fn token(&self) -> Result<String> {
        if let Some(token) = &self.admin_token {
            return Ok(token.clone());
        }
        let path = self.data.join(TOKEN_FILE);
        std::fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read the admin token {}; is --data the server's directory? (a server with --in-memory prints its \
                 token: give it by --admin-token)",
                path.display()
            )
        })
    }

    fn send(&self, request: &Request<'_>) -> Result<Value> {
        let token = self.token()?;
        let (status, body) = exchange(self.admin, request, Some(token.trim()))?;
        if status == 200 {
            return serde_json::from_str(&body).context("the server's answer is not JSON");
        }
        // The API's errors are JSON. An error from before the API, such as a refused connection limit, is text.
        let refused: Option<Value> = serde_json::from_str(&body).ok();
        match refused.as_ref().and_then(|refused| refused["error"]["message"].as_str()) {
            Some(message) => bail!("{message}"),
            None => bail!("{} answered {status}: {}", self.admin, body.trim()),
        }
    }
}

struct Request<'a> {
    method: &'a str,
    path: &'a str,
    body: &'a str,
    /// How long the answer may take.
    within: Duration,
}

/// Sends one simple HTTP/1.1 request. This use does not justify a client library.
fn exchange(address: SocketAddr, request: &Request<'_>, token: Option<&str>) -> Result<(u16, String)> {
    let Request { method, path, body, within } = request;
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN).with_context(|| {
        format!("no server answers at {address}; give the address of its admin endpoint by --admin")
    })?;
    stream.set_read_timeout(Some(*within))?;
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{authorization}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream
        .take(ANSWER_BYTES_MAX)
        .read_to_string(&mut answer)
        .context("the server closed the connection before its answer was complete")?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the server's answer is not HTTP")?;
    let status =
        head.split(' ').nth(1).and_then(|s| s.parse().ok()).context("the server's answer is not HTTP")?;
    Ok((status, body.to_owned()))
}

/// A key, percent-encoded for the query of a URI.
pub(crate) fn encoded(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    key.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
