//! The requests of the table service that the tests need: functions that turn what is wanted into bytes.

use serde_json::{Map, Value};

use super::{ACCOUNT, Answer, Request, percent_encode};

/// The ways to change one entity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Refused when the entity exists.
    Insert,
    /// Refused when it does not exist.
    Replace,
    /// Refused when it does not exist; keeps properties that are not named.
    Merge,
    /// Insert or replace.
    Upsert,
    /// Insert or merge.
    UpsertMerge,
    /// Refused when it does not exist.
    Delete,
}

impl Step {
    fn method(self) -> &'static str {
        match self {
            Self::Insert => "POST",
            Self::Replace | Self::Upsert => "PUT",
            Self::Merge | Self::UpsertMerge => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether the request must name the ETag that it expects.
    fn needs_match(self) -> bool {
        matches!(self, Self::Replace | Self::Merge | Self::Delete)
    }
}

const JSON: &str = "application/json";
const BARE: &str = "application/json;odata=nometadata";

/// The path of one entity. Keys of the tests need no encoding.
pub fn entity_path(table: &str, partition_key: &str, row_key: &str) -> String {
    format!("/{ACCOUNT}/{table}(PartitionKey='{partition_key}',RowKey='{row_key}')")
}

/// The properties of an entity.
pub fn row<const COUNT: usize>(properties: [(&str, Value); COUNT]) -> Map<String, Value> {
    properties.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

/// One change of one entity; `etag` is `*` if any state of the entity will do.
pub fn change(
    step: Step,
    table: &str,
    keys: (&str, &str),
    properties: &Map<String, Value>,
    etag: &str,
) -> Request {
    let target =
        if step == Step::Insert { format!("/{ACCOUNT}/{table}") } else { entity_path(table, keys.0, keys.1) };
    let mut request =
        Request::new(step.method(), &target, &[("Accept", BARE), ("DataServiceVersion", "3.0")], b"");
    if step.needs_match() {
        request.set("If-Match", etag);
    }
    if step != Step::Delete {
        request.set("Content-Type", JSON);
        request.set("Prefer", "return-no-content");
        request.body = entity_body(keys, properties);
    }
    request
}

fn entity_body(keys: (&str, &str), properties: &Map<String, Value>) -> Vec<u8> {
    let mut entity = properties.clone();
    entity.insert("PartitionKey".into(), keys.0.into());
    entity.insert("RowKey".into(), keys.1.into());
    Value::Object(entity).to_string().into_bytes()
}

/// An entity group transaction of requests made by [`change`].
pub fn batch(changes: &[Request]) -> Request {
    let mut body =
        String::from("--batch_all\r\nContent-Type: multipart/mixed; boundary=changeset_all\r\n\r\n");
    for change in changes {
        body.push_str("--changeset_all\r\nContent-Type: application/http\r\n");
        body.push_str("Content-Transfer-Encoding: binary\r\n\r\n");
        body.push_str(&format!("{} http://127.0.0.1{} HTTP/1.1\r\n", change.method, change.target));
        for (name, value) in &change.headers {
            body.push_str(&format!("{name}: {value}\r\n"));
        }
        body.push_str("\r\n");
        body.push_str(std::str::from_utf8(&change.body).expect("JSON is UTF-8"));
        body.push_str("\r\n");
    }
    body.push_str("--changeset_all--\r\n--batch_all--\r\n");
    let headers = [
        ("Accept", BARE),
        ("Content-Type", "multipart/mixed; boundary=batch_all"),
        ("DataServiceVersion", "3.0"),
    ];
    Request::new("POST", &format!("/{ACCOUNT}/$batch"), &headers, body.as_bytes())
}

/// Makes a table.
pub fn create_table(name: &str) -> Request {
    let headers = [("Accept", BARE), ("Content-Type", JSON), ("Prefer", "return-no-content")];
    let body = format!("{{\"TableName\":\"{name}\"}}");
    Request::new("POST", &format!("/{ACCOUNT}/Tables"), &headers, body.as_bytes())
}

/// Deletes a table with all that is in it.
pub fn delete_table(name: &str) -> Request {
    Request::new("DELETE", &format!("/{ACCOUNT}/Tables('{name}')"), &[("Accept", BARE)], b"")
}

/// Reads what is at `target`, without metadata.
pub fn get(target: String) -> Request {
    Request::new("GET", &target, &[("Accept", BARE)], b"")
}

/// One page of an answer to a query.
pub struct Page {
    pub items: Vec<Value>,
    /// The query parameters that lead to the next page, or `None` at the end.
    pub next: Option<String>,
}

/// Reads a page; an answer that is not a page is returned as it is.
pub fn page(response: Answer) -> Result<Page, Answer> {
    if response.status != 200 {
        return Err(response);
    }
    let Ok(Value::Object(mut body)) = serde_json::from_str(&response.body) else {
        return Err(response);
    };
    let Some(Value::Array(items)) = body.remove("value") else {
        return Err(response);
    };
    let parts: Vec<String> = ["NextPartitionKey", "NextRowKey", "NextTableName"]
        .iter()
        .filter_map(|name| {
            let value = response.header(&format!("x-ms-continuation-{name}"))?;
            Some(format!("{name}={}", percent_encode(&value)))
        })
        .collect();
    let next = if parts.is_empty() { None } else { Some(parts.join("&")) };
    Ok(Page { items, next })
}

/// The time inside an ETag, as digits that compare as text. The fraction is filled up to seven digits, because ETags
/// leave out zeros at its end. `None` if the text is not an ETag of this service.
pub fn etag_time(etag: &str) -> Option<String> {
    let time = etag.strip_prefix("W/\"datetime'")?.strip_suffix("Z'\"")?;
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    Some(format!("{whole}.{fraction:0<7}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_compare_by_time() {
        let order = ["37Z", "37.9Z", "37.91Z", "37.9100001Z"]
            .map(|end| etag_time(&format!("W/\"datetime'2021-09-21T01%3A04%3A{end}'\"")).expect("an ETag"));
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
        assert_eq!(etag_time("\"0x8D\""), None);
    }
}
