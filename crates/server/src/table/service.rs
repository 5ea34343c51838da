//! Tables, access policies, service properties, stats, and CORS.

use rangehold_protocol::auth::Action;
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::entity::{Entity, KeyRule};
use rangehold_protocol::table::limits::{BODY_BYTES_MAX, XML_BYTES_MAX};
use rangehold_protocol::table::render::TableWriter;
use rangehold_protocol::table::value::Value;
use rangehold_protocol::table::{acl, cors, properties};

use super::TableService;
use super::exchange::{Authorised, Exchange, Prefer};
use super::failure::Failure;
use super::reply::Reply;

const XML: &str = "application/xml";

impl TableService {
    /// `POST /Tables`
    pub(super) async fn create_table(
        &self,
        request: &Authorised<'_>,
        body: &mut hyper::body::Incoming,
    ) -> Result<Reply, Failure> {
        let exchange = request.exchange;
        let level = exchange.level()?;
        super::expect_json(exchange)?;
        request.principal.permit(Action::CreateTable, None, None)?;
        let tenant = self.tenant(exchange, "");
        let body = self.body(exchange, tenant, body, BODY_BYTES_MAX).await?;
        let name = table_name(&body.bytes)?;
        request.principal.permit(Action::CreateTable, Some(&name), None)?;
        let account = exchange.address.account.as_str();
        self.catalogue(account).create(&name, exchange.deadline).await?;

        let uri = format!("{}/Tables('{name}')", exchange.address.base);
        let prefer = exchange.prefer();
        let mut reply = match prefer {
            Prefer::NoContent => Reply::empty(204).header("DataServiceId", &uri),
            Prefer::Content | Prefer::Unsaid => {
                let mut body = Vec::with_capacity(256);
                TableWriter { base: &exchange.address.base, account, level }.one(&mut body, &name);
                Reply::with_body(201, level.content_type(), body)
            }
        };
        if let Some(applied) = prefer.applied() {
            reply.set("Preference-Applied", applied);
        }
        Ok(reply.header("Location", uri))
    }

    /// `GET /Tables('x')`
    pub(super) async fn get_table(&self, request: &Authorised<'_>, name: &str) -> Result<Reply, Failure> {
        let exchange = request.exchange;
        let level = exchange.level()?;
        request.principal.permit(Action::ListTables, Some(name), None)?;
        let account = exchange.address.account.as_str();
        let table = self.catalogue(account).find(name).await?.ok_or(ErrorCode::ResourceNotFound)?;
        let mut body = Vec::with_capacity(256);
        TableWriter { base: &exchange.address.base, account, level }.one(&mut body, &table.name);
        Ok(Reply::with_body(200, level.content_type(), body))
    }

    /// `DELETE /Tables('x')`
    pub(super) async fn delete_table(&self, request: &Authorised<'_>, name: &str) -> Result<Reply, Failure> {
        let exchange = request.exchange;
        request.principal.permit(Action::DeleteTable, Some(name), None)?;
        self.catalogue(&exchange.address.account).delete(name, exchange.deadline).await?;
        Ok(Reply::empty(204))
    }

    /// `GET /x?comp=acl`
    pub(super) async fn get_acl(&self, request: &Authorised<'_>, name: &str) -> Result<Reply, Failure> {
        request.principal.permit(Action::GetAcl, Some(name), None)?;
        let table = self.catalogue(&request.exchange.address.account).open(name).await?;
        Ok(Reply::with_body(200, XML, acl::write(&table.policies)))
    }

    /// `PUT /x?comp=acl`
    pub(super) async fn set_acl(
        &self,
        request: &Authorised<'_>,
        name: &str,
        body: &mut hyper::body::Incoming,
    ) -> Result<Reply, Failure> {
        let exchange = request.exchange;
        request.principal.permit(Action::SetAcl, Some(name), None)?;
        let tenant = self.tenant(exchange, name);
        let body = self.body(exchange, tenant, body, XML_BYTES_MAX).await?;
        let policies = acl::parse(&body.bytes)?;
        self.catalogue(&exchange.address.account).set_policies(name, policies, exchange.deadline).await?;
        Ok(Reply::empty(204))
    }

    /// `GET /?restype=service&comp=properties`
    pub(super) async fn get_service_properties(&self, request: &Authorised<'_>) -> Result<Reply, Failure> {
        request.principal.permit(Action::GetProperties, None, None)?;
        let properties = self.catalogue(&request.exchange.address.account).service_properties().await?;
        Ok(Reply::with_body(200, XML, properties.write()))
    }

    /// `PUT /?restype=service&comp=properties`
    pub(super) async fn set_service_properties(
        &self,
        request: &Authorised<'_>,
        body: &mut hyper::body::Incoming,
    ) -> Result<Reply, Failure> {
        let exchange = request.exchange;
        request.principal.permit(Action::SetProperties, None, None)?;
        let tenant = self.tenant(exchange, "");
        let body = self.body(exchange, tenant, body, XML_BYTES_MAX).await?;
        let update = properties::parse_update(&body.bytes)?;
        self.catalogue(&exchange.address.account)
            .change_service_properties(|properties| properties.apply(update.clone()), exchange.deadline)
            .await?;
        Ok(Reply::empty(202))
    }

    /// `GET /?restype=service&comp=stats`, on the secondary endpoint only. There is only one copy of the data, so the
    /// reply says that the replica is live, and that it is never late.
    pub(super) async fn get_service_stats(&self, request: &Authorised<'_>) -> Result<Reply, Failure> {
        request.principal.permit(Action::GetStats, None, None)?;
        if !request.exchange.address.secondary {
            return Err(ErrorCode::InvalidQueryParameterValue.into());
        }
        Ok(Reply::with_body(200, XML, properties::stats(request.exchange.now)))
    }

    /// `OPTIONS`: a browser asks whether it may send a request. Browsers send no credentials with this, so none are
    /// checked.
    pub(super) async fn preflight(&self, exchange: &Exchange<'_>) -> Result<Reply, Failure> {
        let (Some(origin), Some(method)) =
            (exchange.header("origin"), exchange.header("access-control-request-method"))
        else {
            return Err(TableError::new(
                ErrorCode::MissingRequiredHeader,
                "An HTTP header that's mandatory for this request is not specified: Origin and Access-Control-Request-Method.",
            )
            .into());
        };
        let headers = exchange.header("access-control-request-headers").unwrap_or_default();
        let properties = self.known_properties(exchange).await?;
        let allowed = properties
            .and_then(|properties| cors::preflight(&properties.cors, origin, method, headers))
            .ok_or(ErrorCode::CorsPreflightFailure)?;
        let mut reply = Reply::empty(200);
        reply.headers.extend(allowed);
        Ok(reply)
    }

    /// Adds the CORS headers to the reply to an actual request. A browser needs them to show the reply to a page of
    /// another origin, and a cache needs them to distinguish it from other replies.
    pub(super) async fn add_cors(&self, exchange: &Exchange<'_>, reply: &mut Reply) {
        let (origin, method) = (exchange.header("origin"), exchange.head.method.as_str());
        // If the request has no origin, only a reply that a cache may keep gets a header. So for writes the rules are
        // not needed.
        if origin.is_none() && !matches!(method, "GET" | "HEAD") {
            return;
        }
        // A reply that is ready is sent even if the CORS rules cannot be read. Without the headers the browser does
        // not show it to the page.
        let Ok(Some(properties)) = self.known_properties(exchange).await else {
            return;
        };
        reply.headers.extend(match origin {
            Some(origin) => cors::actual(&properties.cors, origin, method).unwrap_or_default(),
            None => cors::without_origin(&properties.cors, method),
        });
    }

    /// The service properties of the account, if the account exists. They are looked for in any case, so that the
    /// reply does not simply tell a stranger which accounts there are.
    async fn known_properties(
        &self,
        exchange: &Exchange<'_>,
    ) -> Result<Option<properties::ServiceProperties>, Failure> {
        let account = exchange.address.account.as_str();
        let exists = self.accounts.load().get(account).is_some();
        let properties = self.catalogue(account).service_properties().await?;
        Ok(exists.then_some(properties))
    }
}

/// The name in the body of a create: `{"TableName":"x"}`, which is read like an entity.
fn table_name(body: &[u8]) -> Result<String, TableError> {
    let properties = Entity::from_json(body, KeyRule::InUri)?.properties;
    let name = properties.into_iter().find(|(name, _)| name == "TableName");
    match name {
        Some((_, Value::String(name))) => Ok(name),
        Some(_) => Err(ErrorCode::InvalidInput.into()),
        None => Err(ErrorCode::PropertiesNeedValue.into()),
    }
}
