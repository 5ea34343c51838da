//! How requests travel.
//!
//! [`Http`] is a pool of HTTP/1.1 connections, with TLS by rustls where the endpoint asks for it. [`Transport`] is the
//! seam at the network: a program's tests put a model of the service in its place, as ours do.

mod http;

use bytes::Bytes;
use futures::future::BoxFuture;

pub use self::http::Http;

/// The cause of a failure, as libraries give it.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no answer. Only the first kind is certain to have no effect.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// There was no connection, so the service never got the request.
    #[error("no connection to the service")]
    Unsent(#[source] Cause),
    /// The request was sent, perhaps in part, and no whole answer came. The service may have carried it out.
    #[error("the request was sent, and no answer came")]
    Unanswered(#[source] Cause),
}

/// Takes one request to the service and brings its answer.
pub trait Transport: Send + Sync {
    /// Sends once, and never again by itself if the service may have got it.
    fn send(&self, request: ::http::Request<Bytes>) -> BoxFuture<'_, Result<::http::Response<Bytes>, Lost>>;
}
