//! Buckets: what an insert makes, and what later requests may change.

use serde_json::json;

use super::*;
use crate::object::generation::{Draft, Projection};

const BORN: Micros = Micros::new(1_700_000_000_123_456);

fn map(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn insert(body: Value) -> Result<Bucket, ObjectError> {
    let mut all = json!({"name": "bucket"});
    crate::object::merge::merge_patch(&mut all, &body);
    Bucket::insert(BucketId(1), "p-1", &map(all), BucketParameters::default(), BORN)
}

fn patch(bucket: &Bucket, body: Value, seconds: u64) -> Result<Bucket, ObjectError> {
    let now = BORN.plus_seconds(seconds);
    bucket.changed(&map(body), BodyMode::Patch { whole: &[] }, BucketParameters::default(), now)
}

fn shown(bucket: &Bucket) -> Value {
    bucket.json("http://h", Projection::NoAcl)
}

fn status<T>(result: Result<T, ObjectError>) -> u16 {
    result.err().map_or(200, |error| error.kind.status())
}

#[test]
fn a_new_bucket_has_the_defaults_of_the_service() {
    let bucket = insert(json!({})).expect("a bucket");
    let access = json!({"enabled": false});
    assert_eq!(
        shown(&bucket),
        json!({
            "kind": "storage#bucket", "id": "bucket", "name": "bucket",
            "selfLink": "http://h/storage/v1/b/bucket",
            "projectNumber": bucket.project_number.to_string(),
            "generation": "1700000000123456", "metageneration": "1", "etag": "CAAAAAAAAAAB",
            "location": "US", "locationType": "multi-region", "rpo": "DEFAULT", "storageClass": "STANDARD",
            "timeCreated": "2023-11-14T22:13:20.123456Z", "updated": "2023-11-14T22:13:20.123456Z",
            "iamConfiguration": {
                "bucketPolicyOnly": access, "uniformBucketLevelAccess": access,
                "publicAccessPrevention": "inherited"
            },
            "softDeletePolicy": {
                "retentionDurationSeconds": "604800", "effectiveTime": "2023-11-14T22:13:20.123456Z"
            },
        })
    );
    assert_eq!(Bucket::decode(&bucket.encode()), Ok(bucket.clone()));
    let full = bucket.json("http://h", Projection::Full);
    assert_eq!(full["acl"].as_array().map(Vec::len), Some(3));
    assert_eq!(full["defaultObjectAcl"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_patch_changes_what_it_names_and_an_update_everything() {
    let body = json!({"labels": {"a": "1", "b": "2"}, "versioning": {"enabled": true}, "location": "eu"});
    let bucket = insert(body).expect("a bucket");
    let patched =
        patch(&bucket, json!({"labels": {"a": null, "c": "3"}, "location": "US"}), 1).expect("patched");
    assert_eq!(shown(&patched)["labels"], json!({"b": "2", "c": "3"}));
    assert_eq!((patched.metageneration, patched.keeps_versions()), (2, true));
    assert_eq!(shown(&patched)["location"], "EU");
    assert_ne!(patched.etag(), bucket.etag());
    let parameters = BucketParameters::default();
    let updated = patched.changed(&map(json!({"labels": {}})), BodyMode::Update, parameters, BORN);
    let updated = updated.expect("updated");
    assert!(!updated.keeps_versions());
    assert_eq!(shown(&updated)["location"], "EU");
}

#[test]
fn only_a_buckets_own_list_has_writers() {
    let list = |role: &str| json!([{"entity": "user-a@b", "role": role}]);
    for (role, own, of_objects) in [("READER", 200, 200), ("WRITER", 200, 400), ("OWNER", 200, 200)] {
        assert_eq!(status(insert(json!({"acl": list(role)}))), own, "{role}");
        assert_eq!(status(insert(json!({"defaultObjectAcl": list(role)}))), of_objects, "{role}");
        let bucket = insert(json!({})).expect("a bucket");
        assert_eq!(status(patch(&bucket, json!({"acl": list(role)}), 1)), own, "{role}");
        assert_eq!(status(patch(&bucket, json!({"defaultObjectAcl": list(role)}), 1)), of_objects, "{role}");
        let object = Draft::from_body(&map(json!({"acl": list(role)})), BORN);
        assert_eq!(status(object), of_objects, "{role}");
    }
}

#[test]
fn a_locked_retention_policy_can_only_be_prolonged() {
    let period = |seconds: u64| json!({"retentionPolicy": {"retentionPeriod": seconds.to_string()}});
    let bucket = insert(period(10)).expect("a bucket");
    assert_eq!(shown(&bucket)["retentionPolicy"]["effectiveTime"], "2023-11-14T22:13:20.123456Z");
    let none = patch(&bucket, json!({"retentionPolicy": null}), 1).expect("it is not locked");
    assert_eq!(none.retention_seconds(), None);
    assert_eq!(status(none.locked(BORN)), 400);
    let locked = bucket.locked(BORN).expect("locked");
    assert_eq!(shown(&locked)["retentionPolicy"]["isLocked"], true);
    assert_eq!(status(patch(&locked, period(9), 1)), 403);
    assert_eq!(status(patch(&locked, json!({"retentionPolicy": null}), 1)), 403);
    let refused = patch(&locked, json!({"retentionPolicy": null}), 1).expect_err("it is locked");
    assert!(refused.message.contains("has a locked Retention Policy which cannot be removed"), "{refused:?}");
    let longer = patch(&locked, period(11), 1).expect("longer");
    assert_eq!(shown(&longer)["retentionPolicy"]["isLocked"], true);
    assert_eq!(shown(&longer)["retentionPolicy"]["effectiveTime"], "2023-11-14T22:13:21.123456Z");
}

#[test]
fn uniform_access_puts_lists_out_of_use_and_keeps_them() {
    let uniform =
        |enabled: bool| json!({"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": enabled}}});
    let bucket = insert(json!({})).expect("a bucket");
    let on = patch(&bucket, uniform(true), 0).expect("switched on");
    let iam = &shown(&on)["iamConfiguration"];
    assert_eq!(iam["bucketPolicyOnly"], iam["uniformBucketLevelAccess"]);
    assert_eq!(iam["uniformBucketLevelAccess"]["lockedTime"], "2024-02-12T22:13:20.123456Z");
    assert_eq!(status(on.check_lists_in_use()), 400);
    let list = json!({"acl": [{"entity": "allUsers", "role": "READER"}]});
    assert_eq!(status(patch(&on, list, 1)), 400);
    let emptied = patch(&on, json!({"acl": [], "defaultObjectAcl": []}), 1).expect("it changes nothing");
    assert_eq!((&emptied.acl, &emptied.default_object_acl), (&on.acl, &on.default_object_acl));
    assert!(on.json("http://h", Projection::Full).get("acl").is_none());
    let off = patch(&on, uniform(false), 5).expect("it is not yet locked");
    assert_eq!(off.acl, bucket.acl);
    assert_eq!(status(patch(&on, uniform(false), 91 * 24 * 3600)), 412);
}

#[test]
fn public_access_is_prevented_where_the_bucket_says_so() {
    let public = json!({"acl": [{"entity": "allUsers", "role": "READER"}]});
    let prevent = json!({"iamConfiguration": {"publicAccessPrevention": "enforced"}});
    let bucket = insert(prevent).expect("a bucket");
    assert_eq!(status(patch(&bucket, public.clone(), 1)), 412);
    let open = patch(&bucket, json!({"iamConfiguration": {"publicAccessPrevention": "inherited"}}), 1);
    assert_eq!(status(patch(&open.expect("opened"), public, 2)), 200);
    let unknown = json!({"iamConfiguration": {"publicAccessPrevention": "sometimes"}});
    assert_eq!(status(patch(&bucket, unknown, 1)), 400);
}

#[test]
fn times_of_settings_are_those_of_their_last_change() {
    let autoclass = |body: Value| json!({ "autoclass": body });
    let bucket = insert(autoclass(json!({"enabled": true}))).expect("a bucket");
    assert_eq!(shown(&bucket)["autoclass"]["terminalStorageClass"], "NEARLINE");
    let archive =
        patch(&bucket, autoclass(json!({"terminalStorageClass": "ARCHIVE"})), 5).expect("another class");
    let (old, new) = (&shown(&bucket)["autoclass"], &shown(&archive)["autoclass"]);
    assert_eq!(new["toggleTime"], old["toggleTime"]);
    assert_ne!(new["terminalStorageClassUpdateTime"], old["terminalStorageClassUpdateTime"]);
    let off = patch(&archive, autoclass(json!({"enabled": false})), 9).expect("switched off");
    assert_eq!(
        shown(&off)["autoclass"],
        json!({"enabled": false, "toggleTime": "2023-11-14T22:13:29.123456Z"})
    );
    let restrict = |mode: &str| json!({"encryption": {"googleManagedEncryptionEnforcementConfig": {"restrictionMode": mode}}});
    let bucket = insert(restrict("FullyRestricted")).expect("a bucket");
    let config = &shown(&bucket)["encryption"]["googleManagedEncryptionEnforcementConfig"];
    assert_eq!(config["effectiveTime"], "2023-11-14T22:13:20.123456Z");
    assert_eq!(status(patch(&bucket, restrict("Sometimes"), 1)), 400);
}

#[test]
fn wrong_settings_are_refused_by_their_name() {
    for (body, field) in [
        (json!({"name": "Bad"}), "name"),
        (json!({"storageClass": "WARM"}), "storageClass"),
        (json!({"labels": {"A": "b"}}), "labels"),
        (json!({"labels": {"a": 5}}), "labels"),
        (json!({"softDeletePolicy": {"retentionDurationSeconds": "60"}}), "softDeletePolicy"),
        (json!({"rpo": "ASYNC_TURBO", "location": "EUROPE-WEST1"}), "rpo"),
        (json!({"lifecycle": {"rule": [{"action": {"type": "Burn"}}]}}), "lifecycle"),
        (json!({"hierarchicalNamespace": {"enabled": true}}), "hierarchicalNamespace"),
        (json!({"versioning": true}), "versioning"),
        (json!({"retentionPolicy": {"retentionPeriod": "9999999999"}}), "retentionPolicy"),
    ] {
        let error = insert(body).expect_err(field);
        assert_eq!((error.kind.status(), error.location.as_str()), (400, field), "{}", error.message);
    }
}

#[test]
fn the_ids_of_buckets_count_from_one() {
    let (first, row) = next_id(None).expect("there is no row before the first bucket");
    let (second, row) = next_id(Some(&row)).expect("it is a row");
    let (third, _) = next_id(Some(&row)).expect("it is a row");
    assert_eq!([first, second, third], [1, 2, 3].map(BucketId));
    assert!(next_id(Some(b"damaged")).is_err(), "a count that cannot be read must not begin again");
}

#[test]
fn a_bucket_of_two_regions_says_so() {
    let turbo = insert(json!({"location": "nam4", "rpo": "ASYNC_TURBO"})).expect("two regions");
    assert_eq!(shown(&turbo)["locationType"], "dual-region");
}

#[test]
fn a_deleted_bucket_is_over_when_it_can_no_longer_be_restored() {
    let mut bucket = insert(json!({})).expect("a bucket");
    assert!(!bucket.is_over(BORN.plus_seconds(9)));
    bucket.deleted = Some((BORN, BORN.plus_seconds(7)));
    assert!(!bucket.is_over(BORN.plus_seconds(6)) && bucket.is_over(BORN.plus_seconds(7)));
}

#[test]
fn labels_and_cors_rules_that_are_empty_are_not_shown() {
    let body = |value: serde_json::Value| value.as_object().expect("an object").clone();
    let settings = json!({"name": "photos", "labels": {"a": "b"}, "cors": [{"maxAgeSeconds": 1600}]});
    let bucket =
        Bucket::insert(BucketId(1), "p", &body(settings), BucketParameters::default(), Micros::new(1))
            .expect("a bucket");
    assert_eq!(bucket.settings.json()["cors"], json!([{"maxAgeSeconds": 1600}]));
    let patch = body(json!({"labels": {"a": null}, "cors": []}));
    let changed =
        bucket.changed(&patch, BodyMode::Patch { whole: &[] }, BucketParameters::default(), Micros::new(2));
    let shown = changed.expect("a bucket").settings.json();
    assert!(!shown.contains_key("labels") && !shown.contains_key("cors"), "{shown:?}");
}
