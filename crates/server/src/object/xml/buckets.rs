//! Buckets: the list of them, new ones, and their end.

use rangehold_protocol::object::acl::Predefined;
use rangehold_protocol::object::bucket::BucketParameters;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::project::project_number;
use rangehold_protocol::object::xml::buckets::{listed, read_create};

use super::{XmlApi, conditions, xml_reply};
use crate::limits::XML_BUCKETS_MAX;
use crate::object::buckets::{Select, name_in_token, token_of};
use crate::object::exchange::{Exchange, RequestBody};
use crate::object::failure::Failure;
use crate::object::keys::DEVELOPMENT_PROJECT;
use crate::object::reply::Reply;

impl XmlApi<'_> {
    /// The project in whose name buckets are made and listed: that of the header `x-goog-project-id`, or the only one that the
    /// sender owns. With open access it may be missing; then it is the project of development.
    pub(super) fn named_project<'e>(&self, exchange: &'e Exchange<'_>) -> Result<&'e str, ObjectError> {
        if let Some(named) = exchange.header("x-goog-project-id").filter(|named| !named.is_empty()) {
            return Ok(named);
        }
        let mut owned = exchange.principal.owned.iter();
        match (owned.next(), owned.next()) {
            (Some(only), None) => Ok(only),
            _ if self.options.access.is_open() => Ok(DEVELOPMENT_PROJECT),
            _ => Err(ObjectError::required("x-goog-project-id")),
        }
    }

    pub(super) async fn list_buckets(&self, exchange: &Exchange<'_>) -> Result<Reply, Failure> {
        let project = self.named_project(exchange)?;
        let wanted = exchange.query.number("max-buckets")?.map_or(XML_BUCKETS_MAX, |most| most as usize);
        let after = exchange.parameter("continuation-token");
        let select = Select {
            project,
            prefix: exchange.parameter("prefix").unwrap_or_default(),
            deleted: false,
            after: after.map(|token| name_in_token("continuation-token", token)).transpose()?,
            wanted: wanted.clamp(1, XML_BUCKETS_MAX),
        };
        let (buckets, next) = self.selected_buckets(&select, exchange.now.into()).await?;
        let owner = format!("project-owners-{}", project_number(project));
        Ok(xml_reply(200, listed(&owner, &buckets, next.map(token_of).as_deref())))
    }

    pub(super) async fn create_bucket(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let project = self.named_project(exchange)?;
        let document = self.document(exchange, body).await?;
        let description = read_create(name, &document)?;
        let list =
            exchange.header("x-goog-acl").map(|list| Predefined::parse_header(list, true)).transpose()?;
        let locks = exchange.header("x-goog-bucket-object-lock-enabled");
        let parameters = BucketParameters {
            acl: list,
            default_object_acl: None,
            enable_object_retention: locks.is_some_and(|text| text.eq_ignore_ascii_case("true")),
        };
        let made = self.make_bucket(exchange, project, &description, parameters).await?;
        Ok(Reply::empty(200).header("Location", format!("/{}", made.name)))
    }

    pub(super) async fn head_bucket(&self, name: &str) -> Result<Reply, Failure> {
        let bucket = self.bucket(name).await?;
        Ok(Reply::empty(200)
            .header("x-goog-metageneration", bucket.metageneration.to_string())
            .header("x-amz-bucket-region", bucket.settings.location.unwrap_or_default().to_ascii_lowercase()))
    }

    pub(super) async fn delete_bucket(&self, exchange: &Exchange<'_>, name: &str) -> Result<Reply, Failure> {
        let conditions = Conditions { tag_match: None, tag_not_match: None, ..conditions(exchange)? };
        self.end_bucket(exchange, name, &conditions).await
    }
}
