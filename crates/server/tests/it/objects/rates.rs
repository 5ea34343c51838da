//! Requests for objects that come too fast, in the profile `cloud`. The rates are so low that time adds nothing, or time is
//! paused.

use std::time::Duration;

use futures::future::join_all;
use rangehold_engine::Clock;
use rangehold_map::Timestamp;
use rangehold_map::capacity::Rules;
use rangehold_server::profile::{ObjectRules, Profile};
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use crate::support::wire::{Answer, Request, exchange};
use crate::support::{Service, Wanted, in_one_moment};

/// One write and one read, and then none for hours.
pub(super) const SLOW: f64 = 0.000_000_1;
pub(super) const HOUR: Duration = Duration::from_secs(3_600);
const UPLOADS: &str = "/upload/storage/v1/b/photos/o?uploadType=";

/// The profile `cloud` with these rates of buckets, and this time between two writes of a name.
pub(super) fn with_rates(rates: Rules, name_every: Duration) -> Profile {
    let objects = Some(ObjectRules { rates, name_every, ..ObjectRules::cloud() });
    Profile { objects, ..Profile::cloud() }
}

pub(super) async fn service(rates_scale: f64, name_every: Duration) -> Service {
    let profile = with_rates(Rules::documented().scaled(rates_scale), name_every);
    let service = Service::with_profile(profile).await;
    service.create_bucket("photos").await;
    service
}

/// A service in a test whose time is paused.
async fn paused(rates: Rules) -> Service {
    let clock = Some(Clock::manual(Timestamp::from_unix_seconds(1_800_000_000)));
    let profile = with_rates(rates, Duration::ZERO);
    let service = Service::open(Wanted { profile, clock, ..Wanted::default() }).await;
    service.create_bucket("photos").await;
    service
}

async fn insert(service: &Service, name: &str) -> Answer {
    service.object("POST", &format!("{UPLOADS}media&name={name}"), "{}").await
}

/// A metric, which is 0 before it is counted.
pub(super) async fn metric(service: &Service, name: &str) -> f64 {
    let metrics = service.send_admin("GET", "/metrics", &[]).await.body;
    let line = format!("rangehold_{name} ");
    metrics.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok()).unwrap_or(0.0)
}

/// The refusals with a cause.
pub(super) async fn counted(service: &Service, cause: &str) -> u64 {
    metric(service, &format!("throttled_total{{cause=\"{cause}\"}}")).await as u64
}

#[tokio::test]
async fn a_bucket_that_is_too_busy_answers_in_the_words_of_the_real_service() {
    let service = service(SLOW, Duration::ZERO).await;
    assert_eq!(insert(&service, "a").await.status, 200);
    let limited = insert(&service, "b").await;
    assert_eq!(limited.status, 429, "{}", limited.body);
    assert!(
        limited.body.contains(r#""domain":"usageLimits","reason":"rateLimitExceeded""#),
        "{}",
        limited.body
    );
    assert_eq!(limited.header("Retry-After"), None);
    let xml = service.send_object(&Request::new("PUT", "/photos/c", &[], b"x")).await;
    assert_eq!(xml.status, 429);
    assert!(
        xml.body.contains("<Code>SlowDown</Code><Message>Please reduce your request rate.</Message>"),
        "{}",
        xml.body
    );
    // The name of a multipart upload comes in its body.
    let parts = "--x\r\nContent-Type: application/json\r\n\r\n{\"name\":\"d\"}\r\n--x\r\nContent-Type: text/plain\r\n\r\nbytes\r\n--x--";
    let form = [("Content-Type", "multipart/related; boundary=x")];
    let target = format!("{UPLOADS}multipart");
    assert_eq!(
        service.send_object(&Request::new("POST", &target, &form, parts.as_bytes())).await.status,
        429
    );
    let backend = service.object("DELETE", "/storage/v1/b/photos/o/a", "").await;
    assert_eq!(backend.status, 503);
    assert!(backend.body.contains(r#""reason":"backendError""#), "{}", backend.body);
    // Reads have a budget of their own. The settings of a bucket have none.
    assert_eq!(service.object("GET", "/storage/v1/b/photos/o/a", "").await.status, 200);
    assert_eq!(service.object("GET", "/storage/v1/b/photos/o?prefix=a", "").await.status, 429);
    assert_eq!(service.object("GET", "/storage/v1/b/photos", "").await.status, 200);
    assert_eq!(counted(&service, "BucketRate").await, 5);
}

#[tokio::test]
async fn a_name_that_is_written_again_at_once_is_refused_and_other_names_are_not() {
    let service = service(1.0, HOUR).await;
    assert_eq!(insert(&service, "a").await.status, 200);
    let again = insert(&service, "a").await;
    assert_eq!(again.status, 429);
    let told = "The object photos/a exceeded the rate limit for object mutation operations";
    assert!(again.body.contains(told), "{}", again.body);
    let xml = service.send_object(&Request::new("DELETE", "/photos/a", &[], b"")).await;
    assert!(
        xml.body.contains("<Details>Changing object photos/a too quickly, please slow down</Details>"),
        "{}",
        xml.body
    );
    assert_eq!(insert(&service, "b").await.status, 200);
    assert_eq!(service.object("GET", "/storage/v1/b/photos/o/a?alt=media", "").await.body, "{}");
    assert_eq!(counted(&service, "ObjectName").await, 2);
}

#[tokio::test]
async fn a_write_that_the_bucket_refuses_can_be_repeated_at_once() {
    let service = service(SLOW, HOUR).await;
    // A move writes both of its names, and this bucket bears one write.
    let moved = async || service.object("POST", "/storage/v1/b/photos/o/a/moveTo/o/b", "").await;
    for answer in [moved().await, moved().await, insert(&service, "b").await] {
        assert_eq!(answer.status, 429);
        assert!(answer.body.contains("The bucket photos exceeded the rate limit"), "{}", answer.body);
    }
    assert_eq!(counted(&service, "ObjectName").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_above_the_rate_waits_and_is_counted_as_late() {
    // Five reads a second.
    let service = paused(Rules::documented().scaled(0.001)).await;
    let read = Request::new("GET", "/storage/v1/b/photos/o/none", &[], b"");
    let mut late = None;
    in_one_moment(async {
        for _ in 0..5 {
            assert_eq!(service.send_object(&read).await.status, 404);
        }
        assert_eq!(metric(&service, "late_total").await, 0.0);
        let (address, read) = (service.running.object_address.expect("objects are served"), read.clone());
        let sent = tokio::spawn(async move {
            let begun = Instant::now();
            (exchange(address, &read).await.status, begun.elapsed())
        });
        while metric(&service, "late_total").await == 0.0 && !sent.is_finished() {
            yield_now().await;
        }
        // Others are answered meanwhile.
        for _ in 0..3 {
            service.object_json("GET", "/storage/v1/b/photos", "").await;
        }
        late = Some(sent);
    })
    .await;
    let (status, waited) = late.expect("it was sent").await.expect("an answer");
    assert_eq!(status, 404);
    assert!(waited >= Duration::from_millis(200), "{waited:?}");
    assert_eq!(metric(&service, "late_total").await, 1.0);
    assert_eq!(metric(&service, "late_seconds_total").await, 0.2);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_with_folders_begins_with_eight_times_the_rates() {
    // Five reads a second, without waiting.
    let rates = Rules { delay_max: Duration::ZERO, ..Rules::documented().scaled(0.001) };
    let service = paused(rates).await;
    tree(&service).await;
    let borne = async |bucket: &str| {
        let target = format!("/storage/v1/b/{bucket}/o/none");
        let mut reads = 0;
        while service.object("GET", &target, "").await.status == 404 {
            reads += 1;
        }
        reads
    };
    assert_eq!(in_one_moment(async { [borne("photos").await, borne("tree").await] }).await, [5, 40]);
}

/// A bucket with folders.
async fn tree(service: &Service) {
    let body = r#"{"name":"tree","hierarchicalNamespace":{"enabled":true},
        "iamConfiguration":{"uniformBucketLevelAccess":{"enabled":true}}}"#;
    service.object_json("POST", "/storage/v1/b?project=p", body).await;
}

#[tokio::test]
async fn calls_about_folders_are_counted() {
    let service = service(SLOW, Duration::ZERO).await;
    tree(&service).await;
    let status = async |method: &str, target: &str, body: &str| {
        service.object(method, &format!("/storage/v1/b/tree/folders{target}"), body).await.status
    };
    assert_eq!(status("POST", "", r#"{"name":"a"}"#).await, 200);
    assert_eq!(status("POST", "", r#"{"name":"b"}"#).await, 429);
    assert_eq!(status("POST", "/a/renameTo/folders/c", "").await, 429);
    assert_eq!(status("DELETE", "/a", "").await, 429);
    assert_eq!(status("POST", "/a/deleteRecursive", "").await, 503);
    assert_eq!(status("GET", "", "").await, 200);
    assert_eq!(status("GET", "/a", "").await, 429);
    assert_eq!(counted(&service, "BucketRate").await, 5);
}

#[tokio::test]
async fn a_folder_is_made_renamed_and_deleted_within_a_second() {
    let service = service(1.0, HOUR).await;
    tree(&service).await;
    service.object_json("POST", "/storage/v1/b/tree/folders", r#"{"name":"a"}"#).await;
    service.object_json("POST", "/storage/v1/b/tree/folders/a/renameTo/folders/b", "").await;
    assert_eq!(service.object("DELETE", "/storage/v1/b/tree/folders/b", "").await.status, 204);
}

/// The findings by prefix.
fn findings(told: &Value) -> Vec<[Value; 3]> {
    let finding = |found: &Value| ["of", "prefix", "growth"].map(|member| found[member].clone());
    told["findings"].as_array().expect("a list").iter().map(finding).collect()
}

/// Each part that was looked at and not cut, with the reason.
fn undivided(told: &Value) -> Vec<[Value; 2]> {
    let spans = told["spans"].as_array().expect("a list").iter();
    let spans = spans.filter(|span| !span["undivided"].is_null());
    spans.map(|span| ["low", "undivided"].map(|member| span[member].clone())).collect()
}

/// A part grows after four seconds of use, and names are sampled for a second at a time. Requests are sent until all is seen,
/// however long that takes.
#[tokio::test]
async fn people_see_which_parts_of_a_bucket_grow_and_which_names_scale() {
    const ROUNDS_MAX: u64 = 5_000;
    const BETWEEN: Duration = Duration::from_millis(20);
    let scaled = Rules::documented().scaled(0.02);
    let rates = Rules { doubles_after: Duration::from_secs(4), delay_max: Duration::ZERO, ..scaled };
    let service = Service::with_profile(with_rates(rates, Duration::ZERO)).await;
    service.create_bucket("photos").await;
    let told = service.told("/v1/buckets/photos/rates").await;
    assert_eq!(told["threshold"], json!({ "writes_per_s": 20.0, "reads_per_s": 100.0 }));
    assert_eq!((&told["grows_after_s"], &told["sampled_for_s"]), (&json!(4.0), &json!(1.0)));
    assert_eq!((&told["found_at"], &told["findings"]), (&Value::Null, &json!([])));
    let lone = &told["spans"][0];
    assert_eq!((&lone["low"], &lone["high"]), (&json!("gs://photos/*"), &Value::Null));
    assert_eq!(lone["sentence"], "does not grow: less than half of what it bears is asked for");

    let written = |prefix: &str, growth: &str| [json!("writes"), json!(prefix), json!(growth)];
    let expected = [written("images/animals/", "spreads"), written("images/clouds/", "append")];
    let mut told = Value::Null;
    for round in 0..ROUNDS_MAX {
        let names = (0..12).map(|n| match (n % 2, round * 12 + n) {
            (0, number) => format!("images%2Fclouds%2F{number:08}.jpg"),
            (_, number) => {
                format!("images%2Fanimals%2F{:016x}%2F1.jpg", number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            }
        });
        let names: Vec<String> = names.collect();
        join_all(names.iter().map(|name| insert(&service, name))).await;
        // Refusals come at once, and a part grows with time.
        sleep(BETWEEN).await;
        told = service.told("/v1/buckets/photos/rates").await;
        let is_divided = told["spans"].as_array().is_some_and(|spans| spans.len() > 1);
        let says_append = undivided(&told).iter().any(|[_, why]| *why == "append");
        if findings(&told) == expected && is_divided && says_append {
            break;
        }
    }
    assert_eq!(findings(&told), expected, "{told}");
    let undivided = undivided(&told);
    let [low, why] = undivided.last().unwrap_or_else(|| panic!("all parts grow: {told}"));
    assert!(low.as_str().is_some_and(|low| low > "gs://photos/images/animals/"), "{told}");
    assert_eq!(why, "append", "{told}");
    // The advice is shown on a name that was written.
    let clouds = &told["findings"][1];
    let (sentence, example) = (clouds["sentence"].as_str(), clouds["example"].as_str());
    let (sentence, example) = (sentence.expect("a sentence"), example.expect("an example"));
    assert!(sentence.starts_with("names under \"images/clouds/\""), "{sentence}");
    assert!(
        sentence.contains("do not scale") && sentence.contains("first 6 hex digits of its MD5"),
        "{sentence}"
    );
    assert!(sentence.ends_with(&format!("-{example}\" in place of {example:?}")), "{sentence}");
}

#[tokio::test]
async fn rates_that_cannot_be_shown_are_refused_with_the_reason() {
    let path = "/v1/buckets/photos/rates";
    let fast = Service::start().await;
    fast.create_bucket("photos").await;
    let refused = fast.order("GET", path, "").await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains("start the server with --profile cloud"), "{}", refused.body);
    assert_eq!(fast.send_admin("GET", path, &[]).await.status, 401);

    let cloud = service(1.0, HOUR).await;
    let absent = cloud.order("GET", "/v1/buckets/none/rates", "").await;
    assert_eq!(absent.status, 404, "{}", absent.body);
    assert!(absent.body.contains("there is no bucket \\\"none\\\""), "{}", absent.body);
    assert_eq!(cloud.order("POST", path, "").await.status, 405);
    assert_eq!(cloud.order("GET", path, "").await.status, 200);
}
