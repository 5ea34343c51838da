//! Rust's crate `object_store` as a client of Google Cloud Storage.
//!
//! Its requests, its retries and what it makes of answers are its own. Only the connections are made here, by hyper: with the
//! library that it would take for them, many more would have to be built.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::TokioExecutor;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::{ClientOptions, Result};

/// The key of a service account by which the crate asks nobody for tokens.
const NO_TOKENS: &str = r#"{"disable_oauth":true,"client_email":"","private_key":"","private_key_id":""}"#;

/// A bucket at an address, with the crate's default retries and an empty token. `refusals` counts the answers 429 and 503
/// that it gets.
///
/// # Errors
/// None for an address and the name of a bucket; the crate reports settings that do not fit together.
pub fn google_store(
    address: SocketAddr,
    bucket: &str,
    refusals: &Arc<AtomicU64>,
) -> Result<GoogleCloudStorage> {
    GoogleCloudStorageBuilder::new()
        .with_base_url(&format!("http://{address}"))
        .with_bucket_name(bucket)
        .with_service_account_key(NO_TOKENS)
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_http_connector(Connections { refusals: Arc::clone(refusals) })
        .build()
}

#[derive(Debug)]
struct Connections {
    refusals: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Service {
    client: Client<TcpConnector, HttpRequestBody>,
    refusals: Arc<AtomicU64>,
}

impl HttpConnector for Connections {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        let client = Client::builder(TokioExecutor::new()).build(TcpConnector::new());
        Ok(HttpClient::new(Service { client, refusals: Arc::clone(&self.refusals) }))
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let failed = |error: hyper_util::client::legacy::Error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
            HttpError::new(kind, error)
        };
        let answer = self.client.request(request).await.map_err(failed)?;
        if matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            self.refusals.fetch_add(1, Ordering::Relaxed);
        }
        let broken = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(answer.map(|body| HttpResponseBody::new(body.map_err(broken))))
    }
}
