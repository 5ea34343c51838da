//! The entrance: the service, and its buckets.

use std::sync::Arc;

use futures::{Stream, TryStreamExt, stream};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::Access;
use super::bucket::Bucket;
use super::call::{Call, segment};
use super::error::Error;
use super::line::{Line, Shared, parsed};
use super::resource::{BucketInfo, Metageneration};
use super::settle;
use crate::account::Endpoint;
use crate::request::Invalid;
use crate::wire::{Options, Sender};

/// The address of the real service.
pub const GOOGLE: &str = "https://storage.googleapis.com";
/// The end of the names of all its hosts.
const GOOGLE_HOSTS: &str = "googleapis.com";

/// An object service. Cheap to clone; all clones and their buckets share their connections.
#[derive(Clone)]
pub struct Storage(Shared);

impl Storage {
    /// The service at `endpoint`, such as `http://127.0.0.1:4443`; without a scheme it is `http`, as in
    /// `STORAGE_EMULATOR_HOST`. Nothing is sent yet.
    pub fn at(endpoint: &str, access: Access) -> Result<Self, Error> {
        Self::new(endpoint, access, Options::default())
    }

    /// The real service.
    pub fn google(access: Access) -> Result<Self, Error> {
        Self::at(GOOGLE, access)
    }

    /// As [`Self::at`], with options. Fails if the endpoint needs TLS and this system has no certificate authorities.
    pub fn new(endpoint: &str, access: Access, options: Options) -> Result<Self, Error> {
        let with_scheme = match endpoint.contains("://") {
            true => endpoint.to_owned(),
            false => format!("http://{endpoint}"),
        };
        let endpoint = Endpoint::parse(&with_scheme).map_err(|_| {
            Invalid(format!("{endpoint:?} is not an endpoint: write it as http://127.0.0.1:4443 or {GOOGLE}"))
        })?;
        let sender = Sender::new(endpoint.https, options).map_err(Error::NoAuthorities)?;
        Ok(Self(Arc::new(Line { endpoint, access, sender })))
    }

    /// Whether `endpoint` is the real service, whose request rates grow over minutes.
    pub fn is_google(endpoint: &str) -> bool {
        let host = endpoint.rsplit_once("://").map_or(endpoint, |(_, rest)| rest);
        let host = host.split(['/', ':']).next().unwrap_or_default();
        host.strip_suffix(GOOGLE_HOSTS).is_some_and(|front| front.is_empty() || front.ends_with('.'))
    }

    /// A bucket, which may not exist yet. Fails if the name is empty or has a slash in it.
    pub fn bucket(&self, name: &str) -> Result<Bucket, Error> {
        if name.is_empty() || name.contains('/') {
            return Err(Invalid(format!("{name:?} is not the name of a bucket")).into());
        }
        Ok(Bucket::new(self.0.clone(), name))
    }

    /// Makes a bucket in `project` with `settings`, in the form of the JSON API, without `name`.
    /// Fails with status 409 if there is one of this name.
    pub async fn create_bucket(
        &self,
        project: &str,
        name: &str,
        settings: &Value,
    ) -> Result<BucketInfo, Error> {
        let mut body = json!({ "name": name });
        for (field, value) in settings.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        let call = Call::api(Method::POST, "/b").parameter("project", project).json(&body).idempotent(true);
        match self.0.send(&call).await {
            Ok(answer) => parsed(&answer),
            Err(failure) => Err(settle::of_bucket(failure, name)),
        }
    }

    /// What the service says about a bucket. Fails with status 404 if it does not exist.
    pub async fn describe_bucket(&self, name: &str) -> Result<BucketInfo, Error> {
        self.0.read(&Call::api(Method::GET, &format!("/b/{}", segment(name)))).await
    }

    /// Changes those settings of a bucket that `changes` has; `null` takes one away. Fails with status 412 if the settings
    /// are of another version than `expected`.
    pub async fn update_bucket(
        &self,
        name: &str,
        changes: &Value,
        expected: Option<Metageneration>,
    ) -> Result<BucketInfo, Error> {
        let call = Call::api(Method::PATCH, &format!("/b/{}", segment(name)))
            .maybe("ifMetagenerationMatch", expected.map(|expected| expected.to_string()))
            .json(changes)
            .idempotent(expected.is_some());
        match self.0.send(&call).await {
            Ok(answer) => parsed(&answer),
            Err(failure) => Err(settle::of_bucket(failure, name)),
        }
    }

    /// Deletes an empty bucket. Fails with status 409 if it has objects, and 404 if it does not exist.
    pub async fn delete_bucket(&self, name: &str) -> Result<(), Error> {
        let call = Call::api(Method::DELETE, &format!("/b/{}", segment(name))).idempotent(true);
        self.0.send(&call).await.map(drop).map_err(|failure| settle::of_bucket(failure, name))
    }

    /// The buckets of a project, in the order of their names.
    pub fn buckets(
        &self,
        project: &str,
        prefix: &str,
    ) -> impl Stream<Item = Result<BucketInfo, Error>> + Send + 'static {
        let (line, project, prefix) = (self.0.clone(), project.to_owned(), prefix.to_owned());
        let fetch = move |place: Option<Option<String>>| {
            let (line, project, prefix) = (line.clone(), project.clone(), prefix.clone());
            async move {
                let Some(token) = place else { return Ok(None) };
                let call = Call::api(Method::GET, "/b").parameter("project", project);
                let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
                let page: Buckets =
                    line.read(&call.maybe("prefix", prefix).maybe("pageToken", token)).await?;
                let next = page.next_page_token.map(Some);
                Ok::<_, Error>(Some((stream::iter(page.items.into_iter().map(Ok)), next)))
            }
        };
        stream::try_unfold(Some(None), fetch).try_flatten()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Buckets {
    #[serde(default)]
    items: Vec<BucketInfo>,
    next_page_token: Option<String>,
}
