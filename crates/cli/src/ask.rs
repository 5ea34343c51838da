//! `status` and `health`: asking a running server by its admin endpoint.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use rangehold_server::admin::TOKEN_FILE;

/// How long a server may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

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

impl Asking {
    /// What the server answers to whoever has its admin token; an error if it refuses.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> Result<String> {
        let file = self.data.join(TOKEN_FILE);
        let token = std::fs::read_to_string(&file).with_context(|| {
            format!("cannot read the admin token {}; is --data the server's directory?", file.display())
        })?;
        let (status, answer) = send(self.admin, method, path, Some(token.trim()), body)?;
        if status != 200 {
            bail!("{} answered {status}: {}", self.admin, answer.trim());
        }
        Ok(answer)
    }
}

/// Prints the server's status.
pub(crate) fn status(asking: &Asking) -> Result<()> {
    print!("{}", asking.send("GET", "/v1/status", "")?);
    Ok(())
}

/// Succeeds if the server is ready.
pub(crate) fn health(asking: &Asking) -> Result<()> {
    let (status, body) = send(asking.admin, "GET", "/readyz", None, "")?;
    if status != 200 {
        bail!("not ready: {}", body.trim());
    }
    println!("ready");
    Ok(())
}

/// One HTTP/1.1 request of the plainest kind; a client library would be larger than its use here.
fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &str,
) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)
        .with_context(|| format!("no server answers at {address}; give its admin endpoint by --admin"))?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
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
