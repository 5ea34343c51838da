//! `GET /v1/buckets/NAME/rates`: what a bucket bears, what is asked of it, and how its names grow.

use std::time::Duration;

use http::StatusCode;
use rangehold_map::Timestamp;
use rangehold_map::capacity::Usage;
use rangehold_map::names::{Finding, Namespace};
use rangehold_map::script::{BucketRef, KeyName, ObjectName};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::time::iso;
use serde_json::{Value, json};

use super::api::Refused;
use crate::admission::{RatesView, SpanRates};
use crate::object::NotShown;

/// The bucket that a path asks for; `None` if it asks for something else.
pub(super) fn bucket_in(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/v1/buckets/")?.strip_suffix("/rates")?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

/// The answer if the server has no objects.
pub(super) fn no_objects() -> Refused {
    conflict("this server serves no objects, so it has no buckets: see what it printed when it started")
}

/// The answer if the rates are not shown.
pub(super) fn refused(bucket: &str, why: &NotShown) -> Refused {
    match why {
        NotShown::NoRates => {
            conflict("buckets have no rates in the profile fast: start the server with --profile cloud")
        }
        NotShown::NoBucket => {
            let message = format!("there is no bucket {bucket:?}: create it first, or name another");
            Refused::with(StatusCode::NOT_FOUND, "absent", message)
        }
        NotShown::Failed(failure) => {
            let message = format!("the bucket cannot be read now: {failure}");
            Refused::with(StatusCode::SERVICE_UNAVAILABLE, "not-yet", message)
        }
    }
}

fn conflict(message: &str) -> Refused {
    Refused::with(StatusCode::CONFLICT, "refused", message)
}

/// The answer as JSON.
pub(super) fn answer(bucket: &Bucket, view: &RatesView, now: Timestamp) -> Value {
    let namespace = if bucket.has_folders() { Namespace::Folders } else { Namespace::Flat };
    let highs = view.spans.iter().skip(1).map(Some).chain([None]);
    let spans: Vec<Value> = view
        .spans
        .iter()
        .zip(highs)
        .map(|(span, next)| {
            json!({
                "low": key(bucket, span),
                "high": next.map(|next| key(bucket, next)),
                "bears": rates(span.bears),
                "asked": rates(span.asked),
                "used_for_s": span.used_for.map(seconds),
                "undivided": span.undivided.map(|undivided| undivided.name()),
                "sentence": sentence(span, view.grows_after),
            })
        })
        .collect();
    let bears = [0, 1].map(|usage: usize| view.spans.iter().map(|span| span.bears[usage]).sum());
    let found = view.found.as_ref();
    let findings = found.map_or(&[][..], |(_, findings)| findings);
    json!({
        "bucket": bucket.name,
        "at": iso(now),
        "threshold": rates(view.threshold),
        "bears": rates(bears),
        "grows_after_s": seconds(view.grows_after),
        "spans": spans,
        "sampled_for_s": seconds(view.sampled_for),
        "found_at": found.map(|(at, _)| iso(*at)),
        "findings": findings.iter().map(|(usage, found)| finding(*usage, found, namespace)).collect::<Vec<_>>(),
    })
}

/// Where the names of a span begin, as keys are written. A name that was cut within a character ends with U+FFFD.
fn key(bucket: &Bucket, span: &SpanRates) -> String {
    let bucket = BucketRef::Name(bucket.name.clone());
    let object = match String::from_utf8_lossy(&span.low).into_owned() {
        name if name.is_empty() => ObjectName::Bucket(bucket),
        name => ObjectName::Object { bucket, name },
    };
    KeyName::Objects(object).to_string()
}

fn rates([writes, reads]: [f64; 2]) -> Value {
    json!({ "writes_per_s": hundredths(writes), "reads_per_s": hundredths(reads) })
}

fn finding(usage: Usage, found: &Finding, namespace: Namespace) -> Value {
    json!({
        "of": usage.name(),
        "prefix": found.prefix,
        "share": hundredths(found.share),
        "growth": found.growth.name(),
        "example": found.example,
        "sentence": found.sentence(namespace),
    })
}

/// Why a part grows, or why it does not.
fn sentence(span: &SpanRates, grows_after: Duration) -> String {
    let after = seconds(grows_after);
    match (span.used_for, span.undivided) {
        (None, None) => "does not grow: less than half of what it bears is asked for".to_owned(),
        (None, Some(why)) => format!(
            "was not cut when it was last used for {after} s: {}; now less than half of what it bears is asked for",
            why.sentence()
        ),
        (Some(used), None) => format!(
            "for {} s, half or more of what it bears has been asked for; after {after} s it is cut in two, if its load \
             divides",
            seconds(used)
        ),
        (Some(used), Some(why)) => format!(
            "was not cut when it was last used for {after} s: {}; it has been looked at again for {} s",
            why.sentence(),
            seconds(used)
        ),
    }
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

fn hundredths(rate: f64) -> f64 {
    // The sum of an empty list is -0.0. Adding 0.0 makes it 0.0.
    (rate * 100.0).round() / 100.0 + 0.0
}

#[cfg(test)]
mod tests {
    use rangehold_map::capacity::Undivided;

    use super::*;

    #[test]
    fn a_path_names_one_bucket() {
        assert_eq!(bucket_in("/v1/buckets/photos/rates"), Some("photos"));
        assert_eq!(bucket_in("/v1/buckets/photos.example.com/rates"), Some("photos.example.com"));
        for other in
            ["/v1/buckets//rates", "/v1/buckets/a/b/rates", "/v1/buckets/photos", "/v1/buckets/rates"]
        {
            assert_eq!(bucket_in(other), None, "{other}");
        }
    }

    #[test]
    fn a_part_says_why_it_does_not_grow() {
        let said = |used: Option<u64>, undivided| {
            let used_for = used.map(Duration::from_secs);
            let span =
                SpanRates { low: Vec::new(), bears: [10.0, 50.0], asked: [6.0, 0.0], used_for, undivided };
            sentence(&span, Duration::from_secs(60))
        };
        assert_eq!(said(None, None), "does not grow: less than half of what it bears is asked for");
        assert_eq!(
            said(Some(36), None),
            "for 36 s, half or more of what it bears has been asked for; after 60 s it is cut in two, if its load divides"
        );
        assert_eq!(
            said(Some(36), Some(Undivided::Append)),
            "was not cut when it was last used for 60 s: its load goes to ever higher names, and so past any cut; it has been \
             looked at again for 36 s"
        );
        assert!(
            said(None, Some(Undivided::OneName))
                .ends_with("; now less than half of what it bears is asked for")
        );
    }
}
