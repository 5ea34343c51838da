//! The transport of production.

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::{Cause, Lost, Transport};
use crate::limits::{ANSWER_BYTES_MAX, ANSWER_WAIT, CONNECT_WAIT, IDLE_WAIT};

type Pool<C> = Client<C, Full<Bytes>>;

/// Connections over the network.
pub struct Http(Connections);

enum Connections {
    Plain(Pool<HttpConnector>),
    Tls(Pool<HttpsConnector<HttpConnector>>),
}

impl Http {
    /// Connections without TLS, for emulators on this machine.
    pub fn plain() -> Self {
        Self(Connections::Plain(pool(connector())))
    }

    /// Connections with TLS, which trust the certificate authorities of this system. Fails if there are none.
    pub fn tls() -> std::io::Result<Self> {
        let native = HttpsConnectorBuilder::new().with_native_roots()?;
        let mut connector = connector();
        connector.enforce_http(false);
        Ok(Self(Connections::Tls(pool(native.https_only().enable_http1().wrap_connector(connector)))))
    }

    /// Connections with TLS as `config` says, for example with the certificate of a development server.
    pub fn tls_with(config: rustls::ClientConfig) -> Self {
        let mut connector = connector();
        connector.enforce_http(false);
        let builder = HttpsConnectorBuilder::new().with_tls_config(config);
        Self(Connections::Tls(pool(builder.https_only().enable_http1().wrap_connector(connector))))
    }
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_WAIT));
    connector
}

fn pool<C>(connector: C) -> Pool<C>
where
    C: hyper_util::client::legacy::connect::Connect + Clone,
{
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_WAIT);
    builder.build(connector)
}

impl Transport for Http {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, Lost>> {
        let request = request.map(Full::new);
        let sent = match &self.0 {
            Connections::Plain(pool) => pool.request(request),
            Connections::Tls(pool) => pool.request(request),
        };
        async move {
            match tokio::time::timeout(ANSWER_WAIT, whole(sent)).await {
                Ok(answer) => answer,
                Err(late) => Err(Lost::Unanswered(Box::new(late))),
            }
        }
        .boxed()
    }
}

/// The answer with its whole body.
async fn whole(sent: hyper_util::client::legacy::ResponseFuture) -> Result<Response<Bytes>, Lost> {
    let answer = sent.await.map_err(|error| match error.is_connect() {
        true => Lost::Unsent(Box::new(error)),
        false => Lost::Unanswered(Box::new(error)),
    })?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error: Cause| Lost::Unanswered(error))?.to_bytes();
    Ok(Response::from_parts(head, body))
}
