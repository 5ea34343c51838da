//! `/retry_test`: errors that clients order, to test their retries. The API is that of Google's storage-testbench.
//!
//! A client makes a *test*, a list of instructions for each method:
//! `{"instructions": {"storage.buckets.list": ["return-503", "return-reset-connection"]}}`. Requests with the test's
//! id in `x-retry-test-id` carry the instructions of their method out, one after the other, in place of the operation
//! or around it. When all are carried out, the test is complete.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use parking_lot::Mutex;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::limits::JSON_BODY_BYTES_MAX;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::reply::Reply;

/// Tests that are kept. The oldest goes when there are more.
const TESTS_MAX: usize = 1_000;
/// Instructions of one test.
const INSTRUCTIONS_MAX: usize = 1_000;
/// The longest time that an instruction may stall.
const STALL_MAX: Duration = Duration::from_secs(60);

/// The method whose faults after so many bytes are those of the bytes that the client sends.
pub(super) const UPLOAD: &str = "storage.objects.insert";
/// How the names of methods begin that gRPC does not have.
const NOT_IN_GRPC: [&str; 6] = [
    "storage.bucket_acl.",
    "storage.default_object_acl.",
    "storage.object_acl.",
    "storage.hmacKey.",
    "storage.notifications.",
    "storage.serviceaccount.",
];

/// How a request comes. A test is met only by requests of its own transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// The JSON API or the XML API.
    Http,
    /// gRPC.
    Grpc,
}

impl Transport {
    /// Reads the transport of a test; tests of older clients have none.
    fn parse(text: Option<&str>) -> Result<Self, ObjectError> {
        match text {
            None => Ok(Self::Http),
            Some(http) if http.eq_ignore_ascii_case("HTTP") => Ok(Self::Http),
            Some(grpc) if grpc.eq_ignore_ascii_case("GRPC") => Ok(Self::Grpc),
            Some(other) => Err(ObjectError::invalid("transport", other, "Use HTTP or GRPC.")),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Grpc => "GRPC",
        }
    }

    /// Refuses a test of a method that no request of this transport has.
    fn check(self, method: &str) -> Result<(), ObjectError> {
        if self == Self::Grpc && NOT_IN_GRPC.iter().any(|prefix| method.starts_with(prefix)) {
            return Err(ObjectError::not_implemented(&format!("A retry test of {method} over gRPC")));
        }
        Ok(())
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The reply is an error with this status, and nothing is done.
    Status(u16),
    /// As `Status`, but so many bytes of an upload are stored before.
    StatusAfter(u16, u64),
    /// The connection ends without a reply.
    Reset,
    /// The body of the reply breaks off after so many bytes.
    BrokenStream(u64),
    /// The same, if it has more.
    BrokenBeyond(u64),
    /// The first byte of the reply's body is another one.
    Corrupted,
    /// The reply, or an upload whose next byte has come, stands still for some time after so many bytes.
    Stall(Duration, u64),
}

impl Fault {
    fn parse(text: &str) -> Option<Self> {
        if text == "return-reset-connection" {
            return Some(Self::Reset);
        }
        if let Some(rest) = text.strip_prefix("return-broken-stream") {
            let after =
                match rest.strip_prefix("-final-chunk-after-").or_else(|| rest.strip_prefix("-after-")) {
                    Some(bytes) => size(bytes)?,
                    None if rest.is_empty() => 0,
                    None => return None,
                };
            return Some(Self::BrokenStream(after));
        }
        if let Some(rest) = text.strip_prefix("stall-for-") {
            let (seconds, after) = match rest.split_once("-after-") {
                Some((seconds, bytes)) => (seconds, size(bytes)?),
                None => (rest, 0),
            };
            let stall = Duration::from_secs(seconds.strip_suffix('s')?.parse().ok()?);
            return (stall <= STALL_MAX).then_some(Self::Stall(stall, after));
        }
        let rest = text.strip_prefix("return-")?;
        let (status, after) = match rest.split_once("-after-") {
            Some((status, bytes)) => (status, Some(size(bytes)?)),
            None => (rest, None),
        };
        let status = status.parse().ok().filter(|status| (400..600).contains(status))?;
        Some(after.map_or(Self::Status(status), |after| Self::StatusAfter(status, after)))
    }
}

/// Bytes of `256K` or `512B`.
fn size(text: &str) -> Option<u64> {
    match text.strip_suffix('K') {
        Some(kib) => kib.parse::<u64>().ok()?.checked_mul(1024),
        None => text.strip_suffix('B').unwrap_or(text).parse().ok(),
    }
}

/// All tests of a process.
#[derive(Default)]
pub(super) struct RetryTests(Mutex<Tests>);

#[derive(Default)]
struct Tests {
    /// In the order in which they were made: the first is the oldest.
    order: VecDeque<String>,
    by_id: BTreeMap<String, Test>,
}

struct Test {
    transport: Transport,
    /// The instructions of each method that are left, with their texts.
    left: BTreeMap<String, VecDeque<(String, Fault)>>,
}

#[derive(Deserialize)]
struct Ordered {
    instructions: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    transport: Option<String>,
}

impl ObjectService {
    /// Answers a request about retry tests; `None` if it is about something else.
    pub(super) async fn retry_test(
        &self,
        exchange: &Exchange<'_>,
        body: &mut RequestBody,
    ) -> Option<Result<Reply, Failure>> {
        let path = exchange.head.uri.path();
        let id = path.strip_prefix("/retry_test/").filter(|id| !id.is_empty());
        let missing = || ObjectError::new(ErrorKind::NotFound, "There is no such retry test.");
        let found = match (exchange.head.method.as_str(), path, id) {
            ("POST", "/retry_test", _) => {
                let body = match self.whole_body(exchange, body, JSON_BODY_BYTES_MAX).await {
                    Ok(body) => body,
                    Err(error) => return Some(Err(error)),
                };
                self.retry_tests.create(exchange.id.to_owned(), &body)
            }
            ("GET", "/retry_tests", _) => Ok(self.retry_tests.list()),
            ("GET", _, Some(id)) => self.retry_tests.get(id).ok_or_else(missing),
            ("DELETE", _, Some(id)) => match self.retry_tests.delete(id) {
                true => Ok(json!({})),
                false => Err(missing()),
            },
            _ => return None,
        };
        Some(found.map(|shown| Reply::json(200, shown.to_string())).map_err(Failure::from))
    }
}

impl RetryTests {
    /// Makes a test of this id, and returns its resource.
    pub(super) fn create(&self, id: String, body: &[u8]) -> Result<Value, ObjectError> {
        let hint = "Send {\"instructions\": {\"storage.buckets.list\": [\"return-503\"]}}.";
        let ordered: Ordered =
            serde_json::from_slice(body).map_err(|error| ObjectError::invalid("body", error, hint))?;
        if ordered.instructions.values().map(Vec::len).sum::<usize>() > INSTRUCTIONS_MAX {
            let message = format!("a test has at most {INSTRUCTIONS_MAX} instructions");
            return Err(ObjectError::new(ErrorKind::Invalid, message));
        }
        let transport = Transport::parse(ordered.transport.as_deref())?;
        let mut left = BTreeMap::new();
        for (method, texts) in ordered.instructions {
            transport.check(&method)?;
            let mut faults = VecDeque::new();
            for text in texts {
                let fault = Fault::parse(&text).ok_or_else(|| {
                    ObjectError::invalid("instructions", &text, "This instruction is not known.")
                })?;
                faults.push_back((text, fault));
            }
            left.insert(method, faults);
        }
        let test = Test { transport, left };
        let shown = test.shown(&id);
        let tests = &mut *self.0.lock();
        tests.order.push_back(id.clone());
        tests.by_id.insert(id, test);
        while tests.order.len() > TESTS_MAX
            && let Some(oldest) = tests.order.pop_front()
        {
            tests.by_id.remove(&oldest);
        }
        Ok(shown)
    }

    /// Whether there is a test with this id.
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.lock().by_id.contains_key(id)
    }

    /// The resource of a test.
    pub(super) fn get(&self, id: &str) -> Option<Value> {
        self.0.lock().by_id.get(id).map(|test| test.shown(id))
    }

    /// The resources of all tests, the oldest first.
    pub(super) fn list(&self) -> Value {
        let tests = self.0.lock();
        let shown = tests.order.iter().filter_map(|id| tests.by_id.get(id).map(|test| test.shown(id)));
        json!({ "retry_test": shown.collect::<Vec<_>>() })
    }

    /// Removes a test; false if there is none.
    pub(super) fn delete(&self, id: &str) -> bool {
        let tests = &mut *self.0.lock();
        tests.order.retain(|kept| kept != id);
        tests.by_id.remove(id).is_some()
    }

    /// The next instruction of a test for a request of `method`, which counts as carried out from now on.
    ///
    /// `bytes` are those of an object that are about to be stored, counted from its beginning. With them, only an
    /// instruction that waits for bytes is taken, and without them only one that does not.
    pub(super) fn take(
        &self,
        id: &str,
        transport: Transport,
        method: &str,
        bytes: Option<&Range<u64>>,
    ) -> Option<Fault> {
        let tests = &mut *self.0.lock();
        let test = tests.by_id.get_mut(id).filter(|test| test.transport == transport)?;
        let left = test.left.get_mut(method)?;
        let (_, fault) = left.front()?;
        let is_due = match (fault, bytes) {
            (Fault::StatusAfter(_, after), Some(bytes)) => bytes.end >= *after,
            (Fault::StatusAfter(..), None) => false,
            (Fault::Stall(_, after), Some(bytes)) => bytes.contains(after),
            (Fault::Stall(..), None) => method != UPLOAD,
            (_, bytes) => bytes.is_none(),
        };
        if is_due { left.pop_front().map(|(_, fault)| fault) } else { None }
    }
}

impl Test {
    fn shown(&self, id: &str) -> Value {
        let left = self.left.iter().filter(|(_, faults)| !faults.is_empty());
        let instructions = left.map(|(method, faults)| {
            (method.clone(), faults.iter().map(|(text, _)| Value::from(text.as_str())).collect())
        });
        json!({
            "id": id,
            "instructions": Value::Object(instructions.collect()),
            "transport": self.transport.text(),
            "completed": self.left.values().all(VecDeque::is_empty),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_those_of_the_testbench() {
        let second = Duration::from_secs(1);
        for (text, fault) in [
            ("return-503", Fault::Status(503)),
            ("return-408-after-256K", Fault::StatusAfter(408, 256 << 10)),
            ("return-reset-connection", Fault::Reset),
            ("return-broken-stream", Fault::BrokenStream(0)),
            ("return-broken-stream-after-1K", Fault::BrokenStream(1024)),
            ("return-broken-stream-final-chunk-after-512B", Fault::BrokenStream(512)),
            ("stall-for-1s-after-128K", Fault::Stall(second, 128 << 10)),
        ] {
            assert_eq!(Fault::parse(text), Some(fault), "{text}");
        }
        for wrong in [
            "",
            "return-",
            "return-200",
            "return-503-after-",
            "stall-for-900s-after-1K",
            "return-broken-streams",
        ] {
            assert_eq!(Fault::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_test_is_complete_when_its_instructions_were_taken() {
        let tests = RetryTests::default();
        let body = br#"{"instructions": {"storage.buckets.list": ["return-503", "return-408-after-256K"]}}"#;
        assert_eq!(tests.create("t".to_owned(), body).unwrap()["completed"], false);
        let take = |method: &str, bytes: Option<Range<u64>>| {
            assert_eq!(tests.take("t", Transport::Grpc, method, bytes.as_ref()), None);
            tests.take("t", Transport::Http, method, bytes.as_ref())
        };
        assert_eq!(take("storage.buckets.get", None), None);
        assert_eq!(take("storage.buckets.list", Some(0..1)), None, "it does not wait for bytes");
        assert_eq!(take("storage.buckets.list", None), Some(Fault::Status(503)));
        assert_eq!(take("storage.buckets.list", Some(0..1)), None, "there are too few bytes");
        assert_eq!(
            tests.get("t").unwrap()["instructions"]["storage.buckets.list"][0],
            "return-408-after-256K"
        );
        let taken = take("storage.buckets.list", Some(1..256 << 10));
        assert_eq!(taken, Some(Fault::StatusAfter(408, 256 << 10)));
        assert_eq!(tests.get("t").unwrap()["completed"], true);
        assert!(tests.delete("t") && !tests.delete("t"));
        assert!(tests.get("t").is_none());
    }

    #[test]
    fn an_upload_stands_still_where_its_bytes_cross_the_place() {
        let tests = RetryTests::default();
        let body = br#"{"instructions": {"storage.objects.insert": ["stall-for-1s-after-2B"]}}"#;
        tests.create("t".to_owned(), body).unwrap();
        let take = |bytes: Option<Range<u64>>| tests.take("t", Transport::Http, UPLOAD, bytes.as_ref());
        for bytes in [None, Some(0..2), Some(3..9)] {
            assert_eq!(take(bytes.clone()), None, "{bytes:?}");
        }
        assert_eq!(take(Some(2..3)), Some(Fault::Stall(Duration::from_secs(1), 2)));
    }

    #[test]
    fn a_test_has_a_known_transport_and_methods_of_it() {
        let tests = RetryTests::default();
        let create = |method: &str, transport: &str| {
            let body = json!({"instructions": {method: ["return-503"]}, "transport": transport}).to_string();
            tests.create("t".to_owned(), body.as_bytes()).map_err(|error| error.kind)
        };
        assert_eq!(create("storage.objects.get", "grpc").unwrap()["transport"], "GRPC");
        assert_eq!(create("storage.objects.get", "QUIC"), Err(ErrorKind::Invalid));
        assert_eq!(create("storage.hmacKey.list", "GRPC"), Err(ErrorKind::NotImplemented));
        assert!(create("storage.hmacKey.list", "HTTP").is_ok());
    }
}
