//! The requests of the table service that the workloads send, and what replies to them mean.

use std::collections::BTreeMap;

use rangehold_server::accounts::WELL_KNOWN_ACCOUNT as ACCOUNT;
use serde_json::{Map, Value};

use super::http::{Reply, Request};
use super::sas::percent_encoded;

const BARE: &str = "application/json;odata=nometadata";
const MINIMAL: &str = "application/json;odata=minimalmetadata";

/// Names one entity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The table.
    pub table: String,
    /// Its PartitionKey.
    pub partition: String,
    /// Its RowKey.
    pub row: String,
}

/// How an entity is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Refused if the entity exists.
    Insert,
    /// Done in any case.
    Upsert,
    /// Refused if the entity does not exist, or is not what `If-Match` says.
    Replace,
    /// Refused for the same reasons.
    Delete,
}

impl Name {
    /// A name.
    pub fn new(table: &str, partition: &str, row: &str) -> Self {
        Self { table: table.to_owned(), partition: partition.to_owned(), row: row.to_owned() }
    }

    fn target(&self) -> String {
        format!("/{ACCOUNT}/{}(PartitionKey='{}',RowKey='{}')", self.table, self.partition, self.row)
    }
}

/// Reads an entity.
pub fn get(name: &Name) -> Request {
    Request {
        method: "GET",
        target: name.target(),
        headers: vec![("Accept", MINIMAL.to_owned())],
        body: Vec::new(),
    }
}

/// What an entity holds besides its keys.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// The property `value`.
    pub value: u64,
    /// Bytes of the property `padding`; none if 0.
    pub padding: usize,
    /// Other properties that are numbers.
    pub numbers: Vec<(&'static str, u64)>,
}

/// Changes an entity so that it holds `value`, and `padding` more bytes. `if_match` is an ETag, or `*`.
pub fn change(verb: Verb, name: &Name, value: u64, padding: usize, if_match: Option<&str>) -> Request {
    change_to(verb, name, &Content { value, padding, numbers: Vec::new() }, if_match)
}

/// Changes an entity so that it holds `content`. `if_match` is an ETag, or `*`.
pub fn change_to(verb: Verb, name: &Name, content: &Content, if_match: Option<&str>) -> Request {
    let mut headers = vec![("Accept", BARE.to_owned()), ("DataServiceVersion", "3.0".to_owned())];
    if let Some(etag) = if_match {
        headers.push(("If-Match", etag.to_owned()));
    }
    let mut body = Vec::new();
    if verb != Verb::Delete {
        headers.push(("Content-Type", "application/json".to_owned()));
        headers.push(("Prefer", "return-no-content".to_owned()));
        let mut entity = Map::new();
        entity.insert("PartitionKey".into(), name.partition.as_str().into());
        entity.insert("RowKey".into(), name.row.as_str().into());
        let number = |number: u64| Value::from(i32::try_from(number).unwrap_or(i32::MAX));
        entity.insert("value".into(), number(content.value));
        if content.padding > 0 {
            entity.insert("padding".into(), "x".repeat(content.padding).into());
        }
        entity.extend(content.numbers.iter().map(|(name, value)| ((*name).to_owned(), number(*value))));
        body = Value::Object(entity).to_string().into_bytes();
    }
    let (method, target) = match verb {
        Verb::Insert => ("POST", format!("/{ACCOUNT}/{}", name.table)),
        Verb::Upsert | Verb::Replace => ("PUT", name.target()),
        Verb::Delete => ("DELETE", name.target()),
    };
    Request { method, target, headers, body }
}

/// An entity group transaction of requests that [`change`] made.
pub fn batch(changes: &[Request]) -> Request {
    let mut body = String::from("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n");
    for change in changes {
        body += "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
        body += &format!("{} http://sim{} HTTP/1.1\r\n", change.method, change.target);
        for (name, value) in &change.headers {
            body += &format!("{name}: {value}\r\n");
        }
        body += "\r\n";
        body += &String::from_utf8_lossy(&change.body);
        body += "\r\n";
    }
    body += "--c--\r\n--b--\r\n";
    let headers = vec![
        ("Accept", BARE.to_owned()),
        ("Content-Type", "multipart/mixed; boundary=b".to_owned()),
        ("DataServiceVersion", "3.0".to_owned()),
    ];
    Request { method: "POST", target: format!("/{ACCOUNT}/$batch"), headers, body: body.into_bytes() }
}

/// The statuses in the reply to a batch: those of all operations if the batch was made, and that of the operation that
/// failed if it was not made.
pub fn batch_statuses(reply: &Reply) -> Vec<u16> {
    let lines = reply.body.split("\r\n").filter_map(|line| line.strip_prefix("HTTP/1.1 "));
    lines.filter_map(|line| line.get(..3)?.parse().ok()).collect()
}

/// Creates a table.
pub fn create_table(table: &str) -> Request {
    let headers = vec![
        ("Accept", BARE.to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("Prefer", "return-no-content".to_owned()),
    ];
    let body = format!("{{\"TableName\":\"{table}\"}}").into_bytes();
    Request { method: "POST", target: format!("/{ACCOUNT}/Tables"), headers, body }
}

/// Deletes a table.
pub fn delete_table(table: &str) -> Request {
    let headers = vec![("Accept", BARE.to_owned())];
    Request { method: "DELETE", target: format!("/{ACCOUNT}/Tables('{table}')"), headers, body: Vec::new() }
}

/// Asks for a page of a table, or of one partition of it, from a token on.
pub fn query(table: &str, partition: Option<&str>, top: Option<usize>, token: Option<&str>) -> Request {
    let mut target = format!("/{ACCOUNT}/{table}()?");
    if let Some(partition) = partition {
        target += &format!("$filter={}&", percent_encoded(&format!("PartitionKey eq '{partition}'")));
    }
    if let Some(top) = top {
        target += &format!("$top={top}&");
    }
    target += token.unwrap_or_default();
    let target = target.trim_end_matches(['?', '&']).to_owned();
    Request { method: "GET", target, headers: vec![("Accept", MINIMAL.to_owned())], body: Vec::new() }
}

/// An entity as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Its PartitionKey.
    pub partition: String,
    /// Its RowKey.
    pub row: String,
    /// Its value.
    pub value: u64,
    /// Its ETag.
    pub etag: String,
    /// Its other properties that are numbers.
    pub numbers: BTreeMap<String, u64>,
}

impl Entity {
    /// The property `name`, a number; 0 if there is none.
    pub fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }
}

/// A page as it was read.
#[derive(Debug)]
pub struct Page {
    /// Its entities in their order.
    pub entities: Vec<Entity>,
    /// The query parameters of the next page; `None` at the end.
    pub next: Option<String>,
}

/// The entity in a reply to [`get`]; `None` if the reply is not an entity.
pub fn entity(reply: &Reply) -> Option<Entity> {
    entity_in(&serde_json::from_str(&reply.body).ok()?)
}

fn entity_in(json: &Value) -> Option<Entity> {
    let text = |name: &str| json[name].as_str().map(str::to_owned);
    Some(Entity {
        partition: text("PartitionKey")?,
        row: text("RowKey")?,
        value: json["value"].as_u64()?,
        etag: text("odata.etag")?,
        numbers: json
            .as_object()?
            .iter()
            .filter(|(name, _)| *name != "value")
            .filter_map(|(name, value)| Some((name.clone(), value.as_u64()?)))
            .collect(),
    })
}

/// The page in a reply to [`query`]; `None` if the reply is not a page.
pub fn page(reply: &Reply) -> Option<Page> {
    let json: Value = serde_json::from_str(&reply.body).ok()?;
    let entities = json["value"].as_array()?.iter().map(entity_in).collect::<Option<_>>()?;
    let parts: Vec<String> = ["NextPartitionKey", "NextRowKey"]
        .iter()
        .filter_map(|name| {
            let value = reply.header(&format!("x-ms-continuation-{}", name.to_ascii_lowercase()))?;
            Some(format!("{name}={}", percent_encoded(value)))
        })
        .collect();
    Some(Page { entities, next: (!parts.is_empty()).then(|| parts.join("&")) })
}

/// The time in an ETag, in ticks of 100 ns within its century or so: greater is later. `None` for a
/// text that is not an ETag of the service.
pub fn etag_time(etag: &str) -> Option<u64> {
    let time = etag.strip_prefix("W/\"datetime'")?.strip_suffix("Z'\"")?.replace("%3A", ":");
    let (whole, fraction) = time.split_once('.').unwrap_or((&time, ""));
    // As one number of digits: 2021-09-21T01:04:37.9678478 -> 20210921010437 9678478 without its
    // first two digits, which all times here share.
    let digits: String =
        whole.chars().chain(format!("{fraction:0<7}").chars()).filter(char::is_ascii_digit).collect();
    digits.get(2..)?.parse().ok()
}
