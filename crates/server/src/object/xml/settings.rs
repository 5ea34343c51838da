//! Settings of buckets, and access control lists of objects: each has a document of its own.

use rangehold_protocol::object::acl::Predefined;
use rangehold_protocol::object::bucket::{BodyMode, Bucket, BucketParameters};
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::write::{Change, Edit, Name};
use rangehold_protocol::object::xml::acl;
use rangehold_protocol::object::xml::request::Setting;
use serde_json::{Map, Value};

use super::{XmlApi, conditions, xml_reply};
use crate::object::exchange::{Exchange, RequestBody};
use crate::object::failure::Failure;
use crate::object::located::Wants;
use crate::object::reply::Reply;

impl XmlApi<'_> {
    pub(super) async fn get_setting(&self, name: &str, setting: Setting) -> Result<Reply, Failure> {
        let bucket = self.bucket(name).await?;
        Ok(xml_reply(200, setting.render(&bucket)?)
            .header("x-goog-metageneration", bucket.metageneration.to_string()))
    }

    pub(super) async fn set_setting(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
        setting: Setting,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let document = self.document(exchange, body).await?;
        let list = predefined(exchange, setting == Setting::Acl)?.filter(|_| setting.is_list());
        let patch = match list {
            Some(_) => Map::new(),
            None => setting.read(&document)?,
        };
        let parameters = BucketParameters {
            acl: list.filter(|_| setting == Setting::Acl),
            default_object_acl: list.filter(|_| setting == Setting::DefaultAcl),
            enable_object_retention: false,
        };
        // A key for encryption changes alone; all other settings are replaced as wholes.
        let whole = match setting {
            Setting::Encryption => Vec::new(),
            _ => vec![setting.field().to_owned()],
        };
        let mode = BodyMode::Patch { whole: &whole };
        let change = |bucket: &Bucket, now: Micros| bucket.changed(&patch, mode, parameters, now);
        let conditions = Conditions { tag_match: None, tag_not_match: None, ..conditions(exchange)? };
        self.change_bucket(name, &conditions, exchange.deadline(), change).await?;
        Ok(Reply::empty(200))
    }

    pub(super) async fn get_acl(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let (bucket, name) = self.place_with_list(exchange, bucket, name).await?;
        let generation = self.generation(&bucket, &name, exchange.generation()?).await?;
        let entries = generation.acl.entries(bucket.project_number, Some(&generation.owner));
        Ok(xml_reply(200, acl::rendered(Some(&generation.owner), &entries))
            .header("x-goog-generation", generation.id.0.to_string())
            .header("x-goog-metageneration", generation.metageneration.to_string()))
    }

    pub(super) async fn set_acl(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let document = self.document(exchange, body).await?;
        let list = predefined(exchange, false)?;
        let patch: Map<String, Value> = match list {
            Some(_) => Map::new(),
            None => Map::from_iter([("acl".to_owned(), acl::read(&document, false)?)]),
        };
        let (bucket, name) = self.place(exchange, bucket, name, Wants::There).await?;
        let conditions = conditions(exchange)?;
        let edit =
            Edit::Body { body: &patch, mode: BodyMode::Patch { whole: &[] }, acl: list, may_override: false };
        let of = Name { bucket: &bucket, name: &name };
        let change = Change { of, generation: exchange.generation()?, conditions: &conditions, edit };
        let changed = self.change_object(&change, exchange.deadline()).await?;
        Ok(Reply::empty(200)
            .header("x-goog-generation", changed.id.0.to_string())
            .header("x-goog-metageneration", changed.metageneration.to_string()))
    }
}

/// The list that a request names instead of sending one.
fn predefined(exchange: &Exchange<'_>, for_bucket: bool) -> Result<Option<Predefined>, ObjectError> {
    exchange.header("x-goog-acl").map(|list| Predefined::parse_header(list, for_bucket)).transpose()
}
