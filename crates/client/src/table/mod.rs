//! One table: reading, changing and querying entities.

mod page;
mod settle;

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use http::Response;

pub use page::Page;

use crate::entity::{ETag, Entity, Keys, from_json};
use crate::error::{Error, Found};
use crate::request::{Call, Change, Condition, Query, Token, batch, next_page};
use crate::wire::Wire;

/// A table of an account. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Table {
    wire: Arc<Wire>,
    name: Arc<str>,
    /// The property that carries the token of a write, if there is one.
    token: Option<Arc<str>>,
    /// Whether it looks at what is there after a change in doubt.
    looks: bool,
}

impl Table {
    pub(crate) fn new(wire: Arc<Wire>, name: &str) -> Self {
        Self { wire, name: name.into(), token: None, looks: true }
    }

    /// A handle that marks each write with a token: a random text in the property `property`, which your entities must
    /// not use for anything else.
    ///
    /// With it a write whose answer was lost is recognised when it is tried again: by the token the client knows its own
    /// insert. Without it there is only an entity that some client made, and an
    /// [`OutcomeUnknown`](crate::OutcomeUnknown). Deletions leave nothing behind, so a token cannot help them.
    /// A write that is refused costs one more read.
    #[must_use]
    pub fn with_token(mut self, property: &str) -> Self {
        self.token = Some(property.into());
        self
    }

    /// A handle that does not look at what is there after a change in doubt, and so sends no request that it was not asked for:
    /// for programs that measure a service. [`OutcomeUnknown`](crate::OutcomeUnknown) then says that nothing was read.
    #[must_use]
    pub fn without_look(mut self) -> Self {
        self.looks = false;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the table. Fails with status 409 if it exists.
    pub async fn create(&self) -> Result<(), Error> {
        let sent = self.wire.send_one(&Call::create_table(&self.name)).await;
        sent.map(drop).map_err(|failure| settle::of_table(failure, 409, Found::Table))
    }

    /// Makes the table if it does not exist.
    pub async fn create_if_absent(&self) -> Result<(), Error> {
        match self.create().await {
            Err(Error::OutcomeUnknown(unknown)) if matches!(unknown.found, Found::Table) => Ok(()),
            Err(error) if error.has_status(409) => Ok(()),
            other => other,
        }
    }

    /// Deletes the table with all its entities. Fails with status 404 if it does not exist.
    ///
    /// The cloud needs some time until the name can be used again; until then `create` fails with status 409.
    pub async fn delete(&self) -> Result<(), Error> {
        let sent = self.wire.send_one(&Call::delete_table(&self.name)).await;
        sent.map(drop).map_err(|failure| settle::of_table(failure, 404, Found::Nothing))
    }

    /// Reads an entity; `None` if it does not exist. Fails with status 404 if the table does not exist.
    pub async fn get(&self, partition_key: &str, row_key: &str) -> Result<Option<Entity>, Error> {
        let call = Call::get(&self.name, &Keys::new(partition_key, row_key))?;
        match self.wire.send_one(&call).await.map_err(Error::from) {
            Ok(answer) => Ok(Some(from_json(answer.body())?)),
            Err(error) if error.refusal().is_some_and(|refusal| refusal.code == "ResourceNotFound") => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Carries out one change; returns the new version of the entity, or `None` after a deletion.
    ///
    /// Fails with status 409 if an entity to insert exists, 404 if the entity to change does not exist, and 412 if it
    /// has another version than the condition wants. Fails with [`Error::OutcomeUnknown`] if an attempt had no answer and
    /// what is there now does not tell whether it was carried out. There is no version either if a write was recognised
    /// by its token, but its own version is not the present one.
    pub async fn apply(&self, mut change: Change) -> Result<Option<ETag>, Error> {
        let token = self.mark(std::slice::from_mut(&mut change));
        let call = Call::change(&self.name, &change)?;
        match self.wire.send_one(&call).await {
            Ok(answer) => Ok(etag_of(&answer)),
            Err(failure) => Ok(self.settle(failure, &[change], token).await?.swap_remove(0)),
        }
    }

    /// Carries out changes of one partition, all of them or none; returns the new version of each entity.
    ///
    /// Fails as [`Self::apply`] does, with the number of the change that the service refused. Changes that cannot be one
    /// batch are not sent; [`groups`](crate::groups) cuts them.
    pub async fn batch(&self, mut changes: Vec<Change>) -> Result<Vec<Option<ETag>>, Error> {
        let token = self.mark(&mut changes);
        let call = batch::call(&self.wire.account.endpoint, &self.name, &changes)?;
        match self.wire.send(&call).await {
            Ok(answers) => Ok(answers.iter().map(etag_of).collect()),
            Err(failure) => self.settle(failure, &changes, token).await,
        }
    }

    /// [`Change::Insert`].
    pub async fn insert(&self, entity: Entity) -> Result<Option<ETag>, Error> {
        self.apply(Change::Insert(entity)).await
    }

    /// [`Change::Replace`].
    pub async fn replace(&self, entity: Entity, condition: Condition) -> Result<Option<ETag>, Error> {
        self.apply(Change::Replace(entity, condition)).await
    }

    /// [`Change::Merge`].
    pub async fn merge(&self, entity: Entity, condition: Condition) -> Result<Option<ETag>, Error> {
        self.apply(Change::Merge(entity, condition)).await
    }

    /// [`Change::InsertOrReplace`].
    pub async fn insert_or_replace(&self, entity: Entity) -> Result<Option<ETag>, Error> {
        self.apply(Change::InsertOrReplace(entity)).await
    }

    /// [`Change::InsertOrMerge`].
    pub async fn insert_or_merge(&self, entity: Entity) -> Result<Option<ETag>, Error> {
        self.apply(Change::InsertOrMerge(entity)).await
    }

    /// [`Change::Delete`].
    pub async fn remove(&self, keys: Keys, condition: Condition) -> Result<(), Error> {
        self.apply(Change::Delete(keys, condition)).await.map(drop)
    }

    /// The entities of a query, in the order of their keys. Pages are fetched when the stream comes to their end.
    pub fn query(&self, query: Query) -> impl Stream<Item = Result<Entity, Error>> + Send + 'static {
        let pages = self.pages(query, None);
        pages.map_ok(|page| stream::iter(page.entities.into_iter().map(Ok))).try_flatten()
    }

    /// The pages of a query, from `token` on, or from the beginning. A page may be empty and still not be the last:
    /// the service ends a page after 1,000 entities, after 5 seconds, and where a partition server's keys end.
    pub fn pages(
        &self,
        query: Query,
        token: Option<Token>,
    ) -> impl Stream<Item = Result<Page, Error>> + Send + use<> {
        let table = self.clone();
        let fetch = move |place: Place| {
            let (table, query) = (table.clone(), query.clone());
            async move {
                let token = match place {
                    Place::Begin => None,
                    Place::At(token) => Some(token),
                    Place::End => return Ok(None),
                };
                let page = table.page(&query, token.as_ref()).await?;
                let next = page.next.clone().map_or(Place::End, Place::At);
                Ok(Some((page, next)))
            }
        };
        stream::try_unfold(token.map_or(Place::Begin, Place::At), fetch)
    }

    /// A text that nothing else has.
    pub(crate) fn fresh(&self) -> String {
        self.wire.fresh().to_string()
    }

    /// A number of at least 0 and below 1.
    pub(crate) fn chance(&self) -> f64 {
        self.wire.chance()
    }

    async fn page(&self, query: &Query, token: Option<&Token>) -> Result<Page, Error> {
        let answer = self.wire.send_one(&Call::query(&self.name, query, token)).await?;
        Page::read(answer.body(), next_page(answer.headers()))
    }
}

/// How far a stream of pages has come.
enum Place {
    Begin,
    At(Token),
    End,
}

fn etag_of(answer: &Response<Bytes>) -> Option<ETag> {
    answer.headers().get("etag")?.to_str().ok().map(ETag::from_text)
}
