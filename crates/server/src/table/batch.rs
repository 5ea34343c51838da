//! Entity group transactions: up to a hundred writes to one partition, all of them or none; or a single
//! read.
//!
//! Parts are routed by the same code as single requests, and each is authorised by itself: a SAS signs only the outer
//! URI, but its permissions and key ranges apply to every part.

use std::collections::BTreeSet;

use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::batch::{self, Batch, BatchReply, Part};
use rangehold_protocol::table::error_reply;
use rangehold_protocol::table::format::MetadataLevel;
use rangehold_protocol::table::limits::{BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX};
use rangehold_protocol::table::request::{Conditions, Method, Operation, Target};
use rangehold_protocol::table::write::Write;
use rangehold_protocol::uri::Query;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::TableService;
use super::exchange::{Authorised, Exchange, Prefer};
use super::failure::Failure;
use super::prepared::{Prepared, ReplyWish};
use super::reply::Reply;
use crate::limits;

impl TableService {
    /// `POST /$batch`
    pub(super) async fn batch(
        &self,
        request: &Authorised<'_>,
        body: &mut hyper::body::Incoming,
    ) -> Result<Reply, Failure> {
        let content_type = request.exchange.header("content-type").unwrap_or_default();
        let tenant = self.tenant(request.exchange, "");
        let body = self.body(request.exchange, tenant, body, BATCH_BYTES_MAX).await?;
        let batch = self.turns.run(tenant, async { batch::parse(content_type, &body.bytes) }).await?;
        let boundaries = self.ids.next();
        let mut reply =
            BatchReply::new(format!("batchresponse_{boundaries}"), format!("changesetresponse_{boundaries}"));
        if batch.query {
            // Not in a turn: a query takes turns of its own, and would wait for one that its batch has.
            let part = self.read_alone(request, &batch).await?;
            reply.query(part.status, &part.headers, &part.body);
        } else {
            match self.turns.run(tenant, self.transaction(request, &batch)).await {
                Ok(parts) => parts.iter().for_each(|p| reply.operation(p.status, &p.headers, &p.body)),
                // The recordings have this error inside of the batch's reply, and also in place of that reply. SDKs
                // look for it in the second place when they decide whether to try again.
                Err(failure) if failure.error.code == ErrorCode::ServerBusy => return Err(failure),
                Err(failure) => {
                    let part = failed_part(request.exchange, &batch, failure);
                    reply.operation(part.status, &part.headers, &part.body);
                }
            }
        }
        let content_type = reply.content_type();
        Ok(Reply::with_body(202, content_type, reply.finish()))
    }

    async fn transaction(&self, request: &Authorised<'_>, batch: &Batch<'_>) -> Result<Vec<Reply>, Failure> {
        let exchange = request.exchange;
        if batch.operations.is_empty() {
            return Ok(Vec::new());
        }
        if batch.operations.len() > BATCH_OPERATIONS_MAX {
            let text = "The batch request operation exceeds the maximum 100 changes per change set.";
            return Err(Failure::from(TableError::invalid_input(text)).of_operation(BATCH_OPERATIONS_MAX - 1));
        }
        let account = exchange.address.account.as_str();
        let mut prepared: Vec<Prepared> = Vec::with_capacity(batch.operations.len());
        let mut row_keys = BTreeSet::new();
        let mut begun = Instant::now();
        for (index, part) in batch.operations.iter().enumerate() {
            if begun.elapsed() >= limits::TURN {
                yield_now().await;
                begun = Instant::now();
            }
            let next = prepare(request, part).map_err(|failure| failure.of_operation(index))?;
            let fits = check_fits(prepared.first(), &mut row_keys, &next);
            fits.map_err(|code| Failure::from(code).of_operation(index))?;
            prepared.push(next);
        }
        let table = self.catalogue(account).open(&prepared[0].table).await.map_err(|f| f.of_operation(0))?;
        let writes: Vec<&Write> = prepared.iter().map(|prepared| &prepared.write).collect();
        let body_bytes = batch.operations.iter().map(|part| part.body.len()).sum();
        let written = self.apply(exchange, table.id, &writes, body_bytes).await?;
        prepared
            .iter()
            .zip(&batch.operations)
            .map(|(prepared, part)| {
                Ok(dress(prepared.reply(&exchange.address.base, account, written)?, Some(part)))
            })
            .collect()
    }

    /// A batch that holds one GET, of an entity or of a query.
    async fn read_alone(&self, request: &Authorised<'_>, batch: &Batch<'_>) -> Result<Reply, Failure> {
        let part =
            batch.operations.first().ok_or_else(|| TableError::invalid_input("The batch is empty."))?;
        let (path, raw_query) = request.exchange.address.inner_path(part.uri);
        let query = Query::parse(raw_query)?;
        let mut head = http::Request::new(()).into_parts().0;
        for (name, value) in &part.headers {
            if let (Ok(name), Ok(value)) =
                (http::header::HeaderName::try_from(*name), http::header::HeaderValue::try_from(*value))
            {
                head.headers.append(name, value);
            }
        }
        let account = request.exchange.address.account.as_str();
        let method = Method::of(part.method, std::iter::empty())?;
        let target = Target::parse(account, path)?;
        let operation = Operation::of(method, target, &query, Conditions::default());
        let exchange =
            Exchange { head: &head, query, address: request.exchange.address.clone(), ..*request.exchange };
        let inner = Authorised { exchange: &exchange, principal: request.principal.clone() };
        let read = match operation {
            Ok(Operation::GetEntity(name)) => self.get_entity(&inner, &name).await,
            Ok(Operation::QueryEntities(table)) => self.query_entities(&inner, &table).await,
            Ok(_) => {
                Err(TableError::invalid_input("A batch holds changes, or one query of entities alone.")
                    .into())
            }
            Err(error) => Err(error.into()),
        };
        Ok(match read {
            Ok(reply) => dress(reply, Some(part)),
            Err(failure) if failure.error.code == ErrorCode::ServerBusy => return Err(failure),
            Err(failure) => failed_part(request.exchange, batch, failure.of_operation(0)),
        })
    }
}

/// The only part in the reply to a failed batch. Its text begins with the index of the operation that failed. But if
/// a transaction has only one operation, an error that the store found has no index.
fn failed_part(exchange: &Exchange<'_>, batch: &Batch<'_>, failure: Failure) -> Reply {
    let operation = failure.operation.unwrap_or(0);
    let lone_change = !batch.query && batch.operations.len() == 1 && failure.error.code.is_found_by_store();
    let error = match lone_change {
        true => failure.error,
        false => TableError::new(failure.error.code, format!("{operation}:{}", failure.error.text)),
    };
    // When there are too many operations, no single one is wrong. So the ids and preferences of the parts do not
    // matter.
    let too_many = batch.operations.len() > BATCH_OPERATIONS_MAX;
    let part = batch.operations.get(operation).or(batch.operations.first()).filter(|_| !too_many);
    let wish = part.map(wish);
    let level = wish.map_or_else(MetadataLevel::default, |wish| wish.level);
    let body = error_reply::json(&error, exchange.request_id, exchange.now);
    let mut reply = Reply::with_body(error.code.status(), level.content_type(), body);
    if let Some(applied) = wish.and_then(|wish| wish.prefer.applied()) {
        reply.set("Preference-Applied", applied);
    }
    dress(reply, part)
}

/// The headers of a part that concern its reply.
fn wish(part: &Part<'_>) -> ReplyWish {
    let accepts = part.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
    let level = MetadataLevel::negotiate(None, accepts.map(|(_, value)| *value)).unwrap_or_default();
    ReplyWish { prefer: Prefer::of(part.header("prefer")), level }
}

/// Reads and checks one operation of a transaction.
fn prepare(request: &Authorised<'_>, part: &Part<'_>) -> Result<Prepared, Failure> {
    let (path, raw_query) = request.exchange.address.inner_path(part.uri);
    let query = Query::parse(raw_query)?;
    let tunnelled = part.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("x-http-method"));
    let method = Method::of(part.method, tunnelled.map(|(_, value)| *value))?;
    let conditions =
        Conditions { if_match: part.header("if-match"), if_none_match: part.header("if-none-match") };
    let account = request.exchange.address.account.as_str();
    let target = Target::parse(account, path)?;
    let prepared = match Operation::of(method, target, &query, conditions)? {
        Operation::InsertEntity(table) => Prepared::insert(table, part.body, wish(part))?,
        Operation::WriteEntity(name, kind) => Prepared::write(name, kind, part.body, wish(part))?,
        _ => {
            return Err(TableError::invalid_input(
                "One of the request inputs is not valid: a change set holds inserts, updates, merges and deletes of entities.",
            )
            .into());
        }
    };
    let keys = (prepared.write.partition_key.as_str(), prepared.write.row_key.as_str());
    request.principal.permit(prepared.action(), Some(&prepared.table), Some(keys))?;
    Ok(prepared)
}

/// Checks that `next` may be in one transaction with the operations before it, of which `first` is the first. Adds its
/// RowKey to those of the transaction.
fn check_fits(
    first: Option<&Prepared>,
    row_keys: &mut BTreeSet<String>,
    next: &Prepared,
) -> Result<(), ErrorCode> {
    let fits = first.is_none_or(|first| {
        first.table.eq_ignore_ascii_case(&next.table) && first.write.partition_key == next.write.partition_key
    });
    if !fits {
        return Err(ErrorCode::CommandsInBatchActOnDifferentPartitions);
    }
    match row_keys.insert(next.write.row_key.clone()) {
        true => Ok(()),
        false => Err(ErrorCode::InvalidDuplicateRow),
    }
}

/// Puts the headers of a part into the order that they have in the recordings of the service.
fn dress(mut reply: Reply, part: Option<&Part<'_>>) -> Reply {
    let content_id = part.and_then(|part| part.content_id()).map(|id| ("Content-ID", id.to_owned()));
    let own = std::mem::take(&mut reply.headers);
    let named = |wanted: &'static [&'static str]| {
        wanted.iter().filter_map(|wanted| own.iter().find(|(name, _)| name == wanted)).cloned()
    };
    let nosniff = ("X-Content-Type-Options", "nosniff".to_owned());
    let no_cache = ("Cache-Control", "no-cache".to_owned());
    let posted = part.is_some_and(|part| part.method.eq_ignore_ascii_case("POST"));
    let changed_in_place = reply.status == 204 && !posted;
    let version = ("DataServiceVersion", if changed_in_place { "1.0;" } else { "3.0;" }.to_owned());
    if reply.status < 400 && !reply.body.is_empty() {
        reply.headers.push(version);
        reply.headers.extend(named(&["Content-Type"]));
        reply.headers.extend(content_id);
        reply.headers.extend([nosniff, no_cache]);
        reply.headers.extend(named(&["Preference-Applied", "Location", "ETag"]));
        reply.headers.extend(own.iter().filter(|(name, _)| name.starts_with("x-ms-continuation")).cloned());
    } else {
        reply.headers.extend(content_id);
        reply.headers.extend([nosniff, no_cache]);
        reply.headers.extend(named(&["Preference-Applied"]));
        reply.headers.push(version);
        reply.headers.extend(named(&["Content-Type", "Location", "DataServiceId", "ETag"]));
    }
    reply
}
