//! The objects of one bucket: metadata, copies, deletions.

use std::sync::Arc;

use http::Method;
use rangehold_protocol::object::limits::COMPOSE_SOURCES_MAX;
use rangehold_protocol::object::name::check_object;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Call, segment};
use super::error::Error;
use super::line::{Failure, Shared, parsed};
use super::resource::{Condition, Generation, Metageneration, Object};
use super::settle;
use crate::request::Invalid;

/// A bucket. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Bucket {
    pub(super) line: Shared,
    name: Arc<str>,
    token: Option<Arc<str>>,
}

/// An object that is copied or composed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Which of its generations; `None` is the live one at that moment.
    pub generation: Option<Generation>,
}

/// The answer to one call of a rewrite.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rewritten {
    rewrite_token: Option<String>,
    resource: Option<Object>,
}

impl Bucket {
    pub(super) fn new(line: Shared, name: &str) -> Self {
        Self { line, name: name.into(), token: None }
    }

    /// A handle that marks each upload with a random text in the metadata `key` of the object. With it an upload whose
    /// answer was lost is recognised. Without it there is only an object that some client made, and
    /// [`Error::OutcomeUnknown`].
    #[must_use]
    pub fn with_token(mut self, key: &str) -> Self {
        self.token = Some(key.into());
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key of the token and a new token, if uploads are marked.
    pub(super) fn mark(&self) -> Option<(String, String)> {
        let fresh = || u128::from_be_bytes(self.line.sender.fresh());
        self.token.as_ref().map(|key| (key.to_string(), format!("{:032x}", fresh())))
    }

    /// What the service says about an object; `None` if there is no live object of this name, or no such generation.
    pub async fn stat(&self, name: &str, generation: Option<Generation>) -> Result<Option<Object>, Error> {
        absent_is_none(self.line.read(&self.get(name, generation)?).await)
    }

    /// The same with every field, in the form of the JSON API.
    pub async fn describe(&self, name: &str, generation: Option<Generation>) -> Result<Option<Value>, Error> {
        absent_is_none(self.line.read(&self.get(name, generation)?).await)
    }

    fn get(&self, name: &str, generation: Option<Generation>) -> Result<Call, Error> {
        checked(name)?;
        Ok(Call::object(Method::GET, &self.name, name, "").generation(generation))
    }

    /// Changes those fields of an object's metadata that `changes` has; `null` takes one away. Fails with status 412 if the
    /// metadata is of another version than `expected`.
    pub async fn update(
        &self,
        name: &str,
        changes: &Value,
        condition: Condition,
        expected: Option<Metageneration>,
    ) -> Result<Object, Error> {
        checked(name)?;
        let mut call = Call::object(Method::PATCH, &self.name, name, "").condition(condition).json(changes);
        // A condition on the generation alone does not tell a second change from the first.
        call = call.idempotent(expected.is_some());
        self.changed(name, &call.maybe("ifMetagenerationMatch", expected.map(|one| one.to_string()))).await
    }

    /// Deletes the live object, if it meets `condition`. Fails with status 404 if there is none.
    pub async fn delete(&self, name: &str, condition: Condition) -> Result<(), Error> {
        checked(name)?;
        self.deleted(name, Call::object(Method::DELETE, &self.name, name, "").condition(condition)).await
    }

    /// Removes one generation, live or not. Its bytes are kept only as long as the bucket's soft-delete policy says.
    pub async fn delete_generation(&self, name: &str, generation: Generation) -> Result<(), Error> {
        checked(name)?;
        let call = Call::object(Method::DELETE, &self.name, name, "").generation(Some(generation));
        self.deleted(name, call.idempotent(true)).await
    }

    async fn deleted(&self, name: &str, call: Call) -> Result<(), Error> {
        match self.line.send(&call).await {
            Ok(_) => Ok(()),
            Err(failure) => self.settle(name, failure, |_| false).await.map(drop),
        }
    }

    /// Copies an object of the bucket `from` to `name`, bytes and metadata. The service copies; no byte passes through the
    /// client. Large objects take several calls, which this method makes.
    pub async fn copy(
        &self,
        from: &Self,
        source: &Source,
        name: &str,
        condition: Condition,
    ) -> Result<Object, Error> {
        checked(&source.name)?;
        checked(name)?;
        let rest = format!("/rewriteTo/b/{}/o/{}", segment(&self.name), segment(name));
        let mut token = None;
        loop {
            let call = Call::object(Method::POST, &from.name, &source.name, &rest)
                .maybe("sourceGeneration", source.generation.map(|one| one.to_string()))
                .condition(condition)
                .maybe("rewriteToken", token.take())
                .header("Content-Length", "0");
            let answer = match self.line.send(&call).await {
                Ok(answer) => answer,
                Err(failure) => return self.settle(name, failure, |_| false).await,
            };
            let Rewritten { rewrite_token, resource } = parsed(&answer)?;
            match (resource, rewrite_token) {
                (Some(object), _) => return Ok(object),
                (None, Some(next)) => token = Some(next),
                (None, None) => {
                    let what = "a rewrite without an object and without a token".to_owned();
                    return Err(Error::Unreadable { what, cause: None });
                }
            }
        }
    }

    /// Makes one object of the bytes of others of this bucket, in their order: at most 32.
    pub async fn compose(
        &self,
        sources: &[Source],
        name: &str,
        content_type: Option<&str>,
        condition: Condition,
    ) -> Result<Object, Error> {
        checked(name)?;
        if sources.is_empty() || sources.len() > COMPOSE_SOURCES_MAX {
            let count = sources.len();
            return Err(Invalid(format!("{count} sources: compose takes 1 to {COMPOSE_SOURCES_MAX}")).into());
        }
        let sources: Vec<Value> = sources
            .iter()
            .map(|source| match source.generation {
                Some(generation) => json!({ "name": source.name, "generation": generation.to_string() }),
                None => json!({ "name": source.name }),
            })
            .collect();
        let mut body = json!({ "sourceObjects": sources, "destination": {} });
        if let Some(content_type) = content_type {
            body["destination"]["contentType"] = content_type.into();
        }
        let call = Call::object(Method::POST, &self.name, name, "/compose").condition(condition).json(&body);
        self.changed(name, &call).await
    }

    /// Gives an object another name in its bucket.
    pub async fn rename(&self, source: &Source, name: &str, condition: Condition) -> Result<Object, Error> {
        checked(&source.name)?;
        checked(name)?;
        let rest = format!("/moveTo/o/{}", segment(name));
        let expected = source.generation.map(|one| one.to_string());
        let call = Call::object(Method::POST, &self.name, &source.name, &rest)
            .condition(condition)
            .maybe("ifSourceGenerationMatch", expected)
            .header("Content-Length", "0");
        // A second execution would not find the source, and its 404 would hide the first.
        self.changed(name, &call.idempotent(source.generation.is_some())).await
    }

    /// What became of a failed change of an object.
    pub(super) async fn settle(
        &self,
        name: &str,
        failure: Failure,
        is_ours: impl Fn(&Object) -> bool,
    ) -> Result<Object, Error> {
        let target = format!("{}/{name}", self.name());
        settle::of_object(failure, target, self.stat(name, None), is_ours).await
    }

    async fn changed(&self, name: &str, call: &Call) -> Result<Object, Error> {
        match self.line.send(call).await {
            Ok(answer) => parsed(&answer),
            Err(failure) => self.settle(name, failure, |_| false).await,
        }
    }
}

/// Checks the name of an object, so that a wrong one is refused before anything is sent.
pub(super) fn checked(name: &str) -> Result<(), Error> {
    check_object(name)
        .map_err(|error| Invalid(format!("{name:?} is not the name of an object: {}", error.message)).into())
}

/// `None` in place of the status 404.
pub(super) fn absent_is_none<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.has_status(404) => Ok(None),
        Err(error) => Err(error),
    }
}
