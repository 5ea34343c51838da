//! Objects: their resources, and how they change, end and come back.

use rangehold_map::key::{ObjectGeneration, ObjectRow};
use rangehold_protocol::object::bucket::{BodyMode, Bucket};
use rangehold_protocol::object::condition::{Conditions, Purpose};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::generation::{Generation, ObjectAddress, Projection, State};
use rangehold_protocol::object::write::{Change, Delete, Edit, Name, Restore};
use serde_json::json;

use super::ObjectService;
use super::encryption::{customer_key, has_key};
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::json::resource;
use super::located::Wants;
use super::reply::Reply;

impl ObjectService {
    /// A generation of an object, or the live one. Fails if there is none.
    pub(super) async fn generation(
        &self,
        bucket: &Bucket,
        name: &str,
        wanted: Option<u64>,
    ) -> Result<Generation, Failure> {
        let of = Name { bucket, name };
        match (self.live(of).await?, wanted) {
            (Some(live), None) => Ok(live),
            (Some(live), Some(wanted)) if live.id.0 == wanted => Ok(live),
            (_, None) => Err(of.missing(None).into()),
            (_, Some(number)) => {
                let row = self.row(of, &ObjectRow::NotLive(ObjectGeneration(number))).await?;
                let older = Generation::decode(&row.ok_or_else(|| of.missing(wanted))?)?;
                match older.state {
                    State::SoftDeleted { .. } => Err(of.missing(wanted).into()),
                    State::Live | State::Noncurrent(_) => Ok(older),
                }
            }
        }
    }

    pub(super) async fn get_object(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let (bucket, name) = self.place(exchange, bucket, name, Wants::There).await?;
        let generation = match exchange.query.flag("softDeleted")? {
            true => self.soft_deleted(&bucket, &name, exchange).await?,
            false => self.generation(&bucket, &name, exchange.generation()?).await?,
        };
        exchange.conditions()?.check(Some(&generation), Purpose::Read)?;
        self.object_resource(exchange, &bucket, &name, &generation, Projection::NoAcl)
    }

    /// One context of an object, with all that is known of it.
    pub(super) async fn full_context(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let key = exchange.query.required("contextKey")?;
        let (bucket, stored) = self.place(exchange, bucket, name, Wants::There).await?;
        let generation = self.generation(&bucket, &stored, exchange.generation()?).await?;
        let context = generation.settings.contexts.custom.get(key).ok_or_else(|| {
            let message = format!("The object {}/{name} has no context {key}.", bucket.name);
            ObjectError::new(ErrorKind::NotFound, message)
        })?;
        let shown = json!({
            "kind": "storage#objectFullContext",
            "type": "CUSTOM",
            "key": key,
            "value": context.value,
            "createTime": context.create_time,
            "updateTime": context.update_time,
        });
        resource(exchange, shown)
    }

    async fn soft_deleted(
        &self,
        bucket: &Bucket,
        name: &str,
        exchange: &Exchange<'_>,
    ) -> Result<Generation, Failure> {
        let wanted = exchange.generation()?.ok_or_else(|| ObjectError::required("generation"))?;
        let of = Name { bucket, name };
        let missing = || ObjectError::no_such_object(&bucket.name, of.shown());
        let row = self.row(of, &ObjectRow::NotLive(ObjectGeneration(wanted))).await?;
        let generation = Generation::decode(&row.ok_or_else(missing)?)?;
        if generation.can_be_restored(exchange.now.into()) { Ok(generation) } else { Err(missing().into()) }
    }

    pub(super) async fn change_settings(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        mode: BodyMode<'_>,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let body = self.body_object(exchange, body).await?;
        let (bucket, name) = self.place(exchange, bucket, name, Wants::There).await?;
        let of = Name { bucket: &bucket, name: &name };
        let edit = Edit::Body {
            body: &body,
            mode,
            acl: exchange.query.predefined("predefinedAcl", false)?,
            may_override: exchange.query.flag("overrideUnlockedRetention")?,
        };
        let conditions = exchange.conditions()?;
        let change = Change { of, generation: exchange.generation()?, conditions: &conditions, edit };
        let changed = self.change_object(&change, exchange.deadline()).await?;
        self.object_resource(exchange, &bucket, &name, &changed, Projection::Full)
    }

    pub(super) async fn delete_object(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let (bucket, name) = self.place(exchange, bucket, name, Wants::There).await?;
        self.delete_if(exchange, &bucket, &name, &exchange.conditions()?).await
    }

    /// Deletes an object if the conditions hold.
    pub(super) async fn delete_if(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        name: &str,
        conditions: &Conditions,
    ) -> Result<Reply, Failure> {
        let of = Name { bucket, name };
        let delete = Delete { of, generation: exchange.generation()?, conditions };
        self.change_object(&delete, exchange.deadline()).await?;
        Ok(Reply::empty(204))
    }

    pub(super) async fn restore_object(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let conditions = exchange.conditions()?;
        let (bucket, name) = self.place(exchange, bucket, name, Wants::There).await?;
        let generation = exchange.generation()?.ok_or_else(|| ObjectError::required("generation"))?;
        let of = Name { bucket: &bucket, name: &name };
        let copies_acl = exchange.query.flag("copySourceAcl")?;
        let generation = ObjectGeneration(generation);
        let token = exchange.parameter("restoreToken");
        let restore = Restore { of, generation, token, conditions: &conditions, copies_acl };
        let restored = self.change_object(&restore, exchange.deadline()).await?;
        self.object_resource(exchange, &bucket, &name, &restored, Projection::NoAcl)
    }

    /// The reply with the resource of a generation.
    pub(super) fn object_resource(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        name: &str,
        generation: &Generation,
        unsaid: Projection,
    ) -> Result<Reply, Failure> {
        Ok(Reply::json(200, self.object_json(exchange, bucket, name, generation, unsaid)?)
            .header("ETag", generation.etag()))
    }

    /// The resource of a generation, as the client wants it.
    pub(super) fn object_json(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        name: &str,
        generation: &Generation,
        unsaid: Projection,
    ) -> Result<Vec<u8>, Failure> {
        let address = address(exchange, bucket, name);
        let (projection, fields) = (exchange.query.projection(unsaid)?, exchange.fields()?);
        let shows = has_key(generation, customer_key(exchange, "x-goog-encryption")?);
        let mut out = Vec::with_capacity(1024);
        generation.put_json(&mut out, &address, projection, &fields, shows);
        Ok(out)
    }
}

/// What the resource of an object needs to know of its surroundings.
pub(super) fn address<'a>(
    exchange: &'a Exchange<'_>,
    bucket: &'a Bucket,
    name: &'a str,
) -> ObjectAddress<'a> {
    bucket.address(&exchange.base, name)
}
