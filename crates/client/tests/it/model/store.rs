//! The store of the model: rows in a map, and one request at a time.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::{Request, Response};
use rangehold_client::Timestamp;
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::batch::{self, BatchReply};
use rangehold_protocol::table::entity::{Entity, KeyRule};
use rangehold_protocol::table::filter::Subject;
use rangehold_protocol::table::format::MetadataLevel;
use rangehold_protocol::table::query::EntityQuery;
use rangehold_protocol::table::render::EntityWriter;
use rangehold_protocol::table::request::{Conditions, EntityName, Method, Operation, Target};
use rangehold_protocol::table::row::RowView;
use rangehold_protocol::table::write::{Change, Write, WriteKind, judge};
use rangehold_protocol::table::{error_reply, etag};
use rangehold_protocol::uri::Query;

const ACCOUNT: &str = "devstoreaccount1";

type Row = (String, String, String);

/// What a write leaves: the row (`None` after a deletion), and its version.
struct Written {
    row: Row,
    bytes: Option<Vec<u8>>,
    version: Option<String>,
}

/// Tables and rows. Each write gets the next tick as its time.
#[derive(Default)]
pub(crate) struct Store {
    tables: BTreeSet<String>,
    rows: BTreeMap<Row, Vec<u8>>,
    ticks: i64,
}

impl Store {
    /// Carries out a request and answers it.
    pub(crate) fn carry_out(&mut self, request: &Request<Bytes>) -> Response<Bytes> {
        self.answer(request).unwrap_or_else(|error| error_answer(&error))
    }

    fn answer(&mut self, request: &Request<Bytes>) -> Result<Response<Bytes>, TableError> {
        let header =
            |name: &str| request.headers().get(name).map(|value| value.to_str().expect("headers are text"));
        let path = request.uri().path();
        let path = path.strip_prefix(&format!("/{ACCOUNT}")).expect("the client uses path style");
        let query = Query::parse(request.uri().query().unwrap_or_default())?;
        let conditions = Conditions { if_match: header("if-match"), if_none_match: None };
        let method = Method::of(request.method().as_str(), std::iter::empty())?;
        match Operation::of(method, Target::parse(ACCOUNT, path)?, &query, conditions)? {
            Operation::CreateTable => self.create_table(request.body()),
            Operation::GetEntity(name) => self.get(&name),
            Operation::QueryEntities(table) => self.query(&table, &EntityQuery::from_query(&query)?),
            Operation::Batch => Ok(self.batch(header("content-type").unwrap_or_default(), request.body())),
            operation => {
                let Written { row, bytes, version } = self.write(operation, request.body())?;
                self.put(row, bytes);
                Ok(done(version.as_deref()))
            }
        }
    }

    fn create_table(&mut self, body: &[u8]) -> Result<Response<Bytes>, TableError> {
        let body: serde_json::Value = serde_json::from_slice(body).expect("the client writes JSON");
        let name = body["TableName"].as_str().expect("it names the table").to_owned();
        match self.tables.insert(name) {
            true => Ok(answer(204, Vec::new())),
            false => Err(ErrorCode::TableAlreadyExists.into()),
        }
    }

    fn known(&self, table: &str) -> Result<(), TableError> {
        match self.tables.contains(table) {
            true => Ok(()),
            false => Err(ErrorCode::TableNotFound.into()),
        }
    }

    fn get(&self, name: &EntityName) -> Result<Response<Bytes>, TableError> {
        self.known(&name.table)?;
        let row = (name.table.clone(), name.partition_key.clone(), name.row_key.clone());
        let bytes = self.rows.get(&row).ok_or(ErrorCode::ResourceNotFound)?;
        let mut out = Vec::new();
        let view = RowView::new(bytes).expect("the model wrote it");
        writer(&name.table).one(&mut out, &row.1, &row.2, &view).expect("the model wrote it");
        Ok(answer(200, out))
    }

    fn query(&self, table: &str, query: &EntityQuery) -> Result<Response<Bytes>, TableError> {
        self.known(table)?;
        let mut out = Vec::new();
        let mut page = writer(table).page(&mut out);
        let (mut count, mut next) = (0, None);
        for ((_, partition_key, row_key), bytes) in self.rows.iter().filter(|((of, ..), _)| of == table) {
            let after = query.from.as_ref().is_none_or(|(from, row)| {
                (partition_key, row_key.as_str()) >= (from, row.as_deref().unwrap_or_default())
            });
            let row = RowView::new(bytes).expect("the model wrote it");
            let subject = Subject { partition_key, row_key, row: &row };
            let meets = |filter: &rangehold_protocol::table::filter::Filter| filter.matches(&subject);
            if !after || !query.filter.as_ref().map(meets).transpose().expect("it is whole").unwrap_or(true) {
                continue;
            }
            if count == query.top.unwrap_or(1000) {
                next = Some((partition_key.clone(), row_key.clone()));
                break;
            }
            page.item(&mut out, partition_key, row_key, &row).expect("it is whole");
            count += 1;
        }
        page.end(&mut out);
        let mut page = answer(200, out);
        if let Some((partition_key, row_key)) = next {
            let token = rangehold_protocol::table::continuation::Continuation::Entity {
                partition_key,
                row_key: Some(row_key),
            };
            for (name, value) in token.headers() {
                let name: http::HeaderName = name.parse().expect("it is a name");
                page.headers_mut().insert(name, value.parse().expect("it is encoded"));
            }
        }
        Ok(page)
    }

    fn put(&mut self, row: Row, bytes: Option<Vec<u8>>) {
        match bytes {
            Some(bytes) => self.rows.insert(row, bytes),
            None => self.rows.remove(&row),
        };
    }

    /// Judges a write. The caller stores what it leaves.
    fn write(&mut self, operation: Operation, body: &[u8]) -> Result<Written, TableError> {
        let (name, kind) = match operation {
            Operation::InsertEntity(table) => {
                let entity = Entity::from_json(body, KeyRule::InBody)?;
                let keys = (entity.partition_key.unwrap_or_default(), entity.row_key.unwrap_or_default());
                (EntityName { table, partition_key: keys.0, row_key: keys.1 }, WriteKind::Insert)
            }
            Operation::WriteEntity(name, kind) => (name, kind),
            other => panic!("the model does not know {}", other.name()),
        };
        self.known(&name.table)?;
        let properties = match kind {
            WriteKind::Delete(_) => Vec::new(),
            _ => Entity::from_json(body, KeyRule::InUri)?.properties,
        };
        self.ticks += 1;
        let now = Timestamp::from_ticks(self.ticks);
        let row = (name.table, name.partition_key.clone(), name.row_key.clone());
        let write = Write { kind, partition_key: name.partition_key, row_key: name.row_key, properties };
        let current = self.rows.get(&row).map(|bytes| RowView::new(bytes).expect("the model wrote it"));
        match judge(&write, current.as_ref(), now).expect("the model wrote it")? {
            Change::Put(bytes) => Ok(Written { row, bytes: Some(bytes), version: Some(etag::format(now)) }),
            Change::Delete => Ok(Written { row, bytes: None, version: None }),
        }
    }

    fn batch(&mut self, content_type: &str, body: &[u8]) -> Response<Bytes> {
        let parts = batch::parse(content_type, body).expect("the client writes batches");
        let mut reply = BatchReply::new("batchresponse_a".to_owned(), "changesetresponse_b".to_owned());
        let mut rows = Vec::new();
        for (index, part) in parts.operations.iter().enumerate() {
            match self.part(part) {
                Ok(written) => {
                    let headers: Vec<_> = written.version.iter().map(|version| ("ETag", version)).collect();
                    reply.operation(204, &headers, b"");
                    rows.push(written);
                }
                Err(error) => return envelope(failed(&error, index)),
            }
        }
        for Written { row, bytes, .. } in rows {
            self.put(row, bytes);
        }
        envelope(reply)
    }

    fn part(&mut self, part: &batch::Part<'_>) -> Result<Written, TableError> {
        let (_, path) = part.uri.split_once(ACCOUNT).expect("the URI names the account");
        let conditions = Conditions { if_match: part.header("If-Match"), if_none_match: None };
        let method = Method::of(part.method, std::iter::empty())?;
        let operation = Operation::of(method, Target::parse(ACCOUNT, path)?, &Query::default(), conditions)?;
        self.write(operation, part.body)
    }
}

fn writer(table: &str) -> EntityWriter<'_> {
    EntityWriter { base: "http://m", account: ACCOUNT, table, level: MetadataLevel::Minimal, select: None }
}

fn answer(status: u16, body: Vec<u8>) -> Response<Bytes> {
    Response::builder().status(status).body(Bytes::from(body)).expect("it is an answer")
}

fn done(version: Option<&str>) -> Response<Bytes> {
    let mut answer = answer(204, Vec::new());
    if let Some(version) = version {
        answer.headers_mut().insert("etag", version.parse().expect("a version is ASCII"));
    }
    answer
}

fn error_answer(error: &TableError) -> Response<Bytes> {
    answer(error.code.status(), error_reply::json(error, "r", Timestamp::from_ticks(0)))
}

/// The refusal of a batch: one part, whose text begins with the number of the change.
fn failed(error: &TableError, index: usize) -> BatchReply {
    let mut reply = BatchReply::new("batchresponse_a".to_owned(), "changesetresponse_b".to_owned());
    let text = TableError::new(error.code, format!("{index}:{}", error.text));
    let body = error_reply::json(&text, "r", Timestamp::from_ticks(0));
    reply.operation(error.code.status(), &[("Content-Type", "application/json")], &body);
    reply
}

fn envelope(reply: BatchReply) -> Response<Bytes> {
    let content_type = reply.content_type();
    let mut answer = answer(202, reply.finish());
    answer.headers_mut().insert("content-type", content_type.parse().expect("it is ASCII"));
    answer
}

/// A refusal with `status`, which the service or something before it sends. In a batch it is inside of the 202.
pub(super) fn refusal(status: u16, request: &Request<Bytes>) -> Response<Bytes> {
    let code = if status == 503 { ErrorCode::ServerBusy } else { ErrorCode::OperationTimedOut };
    match request.uri().path().ends_with("$batch") && (status == code.status()) {
        true => envelope(failed(&code.into(), 0)),
        false => answer(status, Vec::new()),
    }
}
