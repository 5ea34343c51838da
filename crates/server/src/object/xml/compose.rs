//! Compositions: a put whose bytes are those of other objects of the bucket, one behind another.

use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::xml::compose::{Component, read};

use super::object::described;
use super::{XmlApi, conditions};
use crate::object::compose::{Composed, Composition};
use crate::object::exchange::{Exchange, RequestBody};
use crate::object::failure::Failure;
use crate::object::media::written;
use crate::object::reply::Reply;

impl XmlApi<'_> {
    pub(super) async fn compose(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let draft = described(exchange, name)?.draft;
        let components = read(&self.document_about_object(exchange, body).await?)?;
        let source = |component: Component| {
            let Component { name, generation, generation_match } = component;
            (name, generation, Conditions { generation_match, ..Conditions::default() })
        };
        let wanted = Composition {
            sources: components.into_iter().map(source).collect(),
            draft,
            conditions: conditions(exchange)?,
            deletes: false,
        };
        let Composed { made, .. } = self.composed(exchange, bucket, name, wanted).await?;
        let count = made.component_count.unwrap_or(1);
        Ok(written(200, &made).header("x-goog-component-count", count.to_string()))
    }
}
