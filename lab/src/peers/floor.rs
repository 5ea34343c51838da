//! The bare HTTP server: hyper, and 300 bytes for every request.

use std::convert::Infallible;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// What it answers: as long as a small entity.
static ANSWER: [u8; 300] = [b'x'; 300];

/// Serves until the process is killed. The address that it prints is where it listens.
pub(crate) fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(async move {
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
                // A client that goes away ends its connection only.
                let _ended = connection.await;
            });
        }
    })
}

async fn answer(request: Request<hyper::body::Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    // The body has to be read before the connection can be used again.
    let _body = request.into_body().collect().await;
    Ok(Response::new(Full::new(Bytes::from_static(&ANSWER))))
}
