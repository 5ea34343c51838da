//! Long-running operations: what is begun by a request and ends later.
//!
//! An operation is a row beside its bucket's. It says whether the work is done, and then with which response or error. Its id
//! is the microsecond in which it was begun; the times of a bucket's writes grow, so an id is never used again.
//!
//! Work that goes on after its request has a [`job`](Operation::job), a text from which any process can go on after a
//! crash. An operation that was done when it was stored has none.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::{ErrorKind, ObjectError};
use super::link::{bucket_link, segment};
use super::micros::Micros;
use super::row::{decode_row, encode_row};

/// Cancelled, as a code of `google.rpc.Code`.
pub const CANCELLED: u32 = 1;
/// An error of this server, or damage: `INTERNAL` of `google.rpc.Code`.
pub const INTERNAL: u32 = 13;

/// An operation as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// What it does, as its metadata calls it: `BulkRestoreObjects`, `RenameFolder`.
    pub sort: String,
    /// When it was begun.
    pub begun: Micros,
    /// When it was last changed; for one that has ended, when it ended.
    pub updated: Micros,
    /// Members of its metadata beside the common ones, as a JSON object.
    pub details: String,
    /// What a process must know to go on with it. Empty if there is nothing to go on with.
    pub job: String,
    /// How much of it is done, from 0 to 100; `None` if nobody knows.
    pub percent: Option<u8>,
    /// Whether a client asked to cancel it.
    pub is_cancelled: bool,
    /// Whether and how it ended.
    pub outcome: Outcome,
}

/// Whether and how an operation ended. The order of the variants is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It goes on.
    Running,
    /// It ended with this response, a JSON object.
    Done(String),
    /// It ended with this code of `google.rpc.Code` and message.
    Failed(u32, String),
}

impl Operation {
    /// An operation that begins at `now`.
    pub fn begun(sort: &str, details: &Value, job: String, now: Micros) -> Self {
        Self {
            sort: sort.to_owned(),
            begun: now,
            updated: now,
            details: details.to_string(),
            job,
            percent: None,
            is_cancelled: false,
            outcome: Outcome::Running,
        }
    }

    /// An operation that is done at `now`, when it is stored.
    pub fn done(sort: &str, details: &Value, response: &Value, now: Micros) -> Self {
        Self::begun(sort, details, String::new(), now).ended(Outcome::Done(response.to_string()), now)
    }

    /// The operation when it has ended at `now`.
    pub fn ended(self, outcome: Outcome, now: Micros) -> Self {
        let percent = if matches!(outcome, Outcome::Done(_)) { Some(100) } else { self.percent };
        Self { outcome, percent, updated: now, job: String::new(), ..self }
    }

    /// The operation after a client asked at `now` to cancel it. The work stops where it is; what it did stays done.
    ///
    /// # Errors
    /// `Invalid` if it has ended.
    pub fn cancelled(&self, now: Micros) -> Result<Self, ObjectError> {
        match self.is_running() {
            true => Ok(Self { is_cancelled: true, ..self.clone() }
                .ended(Outcome::Failed(CANCELLED, "The operation was cancelled.".to_owned()), now)),
            false => {
                Err(ObjectError::new(ErrorKind::Invalid, "The operation has ended and cannot be cancelled."))
            }
        }
    }

    /// Whether it has not ended.
    pub fn is_running(&self) -> bool {
        self.outcome == Outcome::Running
    }

    /// The resource. `base` is the address of the server.
    pub fn json(&self, base: &str, bucket: &str, id: &str) -> Value {
        let mut common = json!({
            "type": self.sort,
            "createTime": self.begun,
            "updateTime": self.updated,
            "requestedCancellation": self.is_cancelled,
            "progressPercent": self.percent.map_or(-1, i32::from),
        });
        if !self.is_running() {
            common["endTime"] = json!(self.updated);
        }
        let mut metadata: Map<String, Value> = serde_json::from_str(&self.details).unwrap_or_default();
        let name = format!("type.googleapis.com/google.storage.control.v2.{}Metadata", self.sort);
        metadata.insert("@type".to_owned(), name.into());
        metadata.insert("commonMetadata".to_owned(), common);
        let mut out = json!({
            "kind": "storage#operation",
            "name": format!("projects/_/buckets/{bucket}/operations/{id}"),
            "selfLink": format!("{}/operations/{}", bucket_link(base, bucket), segment(id)),
            "metadata": metadata,
            "done": !self.is_running(),
        });
        match &self.outcome {
            Outcome::Running => {}
            Outcome::Done(response) => {
                out["response"] = serde_json::from_str(response).unwrap_or_else(|_| json!({}));
            }
            Outcome::Failed(code, message) => out["error"] = json!({"code": code, "message": message}),
        }
        out
    }

    /// The stored row.
    pub fn encode(&self) -> Vec<u8> {
        encode_row(self)
    }

    /// Reads the row of an operation.
    pub fn decode(row: &[u8]) -> Result<Self, ObjectError> {
        decode_row("an operation", row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_ends_once() {
        let now = Micros::new(1_000_000);
        let begun = Operation::begun("RenameFolder", &json!({"sourceFolderId": "a/"}), "job".to_owned(), now);
        let shown = begun.json("http://h", "b", "7");
        assert_eq!((&shown["done"], shown.get("response")), (&json!(false), None));
        assert_eq!(shown["metadata"]["sourceFolderId"], "a/");
        assert_eq!(shown["name"], "projects/_/buckets/b/operations/7");
        assert_eq!(Operation::decode(&begun.encode()), Ok(begun.clone()));

        let cancelled = begun.cancelled(now).expect("it runs");
        assert_eq!((cancelled.is_running(), cancelled.job.as_str()), (false, ""));
        let shown = cancelled.json("http://h", "b", "7");
        assert_eq!((&shown["done"], &shown["error"]["code"]), (&json!(true), &json!(1)));
        assert_eq!(cancelled.cancelled(now).expect_err("it has ended").kind.status(), 400);

        let done = Operation::done("RenameFolder", &json!({}), &json!({"name": "c/"}), now);
        assert_eq!(done.json("http://h", "b", "7")["response"]["name"], "c/");
    }
}
