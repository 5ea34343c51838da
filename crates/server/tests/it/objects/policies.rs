//! Permissions by policies of buckets, managed folders and objects.

use rangehold_server::object::{Access, ObjectKeys};
use serde_json::{Value, json};

use crate::support::wire::{Answer, Request};
use crate::support::{Service, Wanted};

const READER: &str = "user:reader@example.com";

impl Service {
    /// A service that knows an owner of the project `p` and a reader, by their tokens. The bucket `photos` has uniform access
    /// and the objects `a/1` and `b/1`.
    async fn that_checks() -> Self {
        let accounts = json!({"accounts": [
            {"email": "owner@example.com", "tokens": ["owner"], "owns": ["p"]},
            {"email": "reader@example.com", "tokens": ["reader"]},
        ]});
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("keys.json");
        std::fs::write(&path, accounts.to_string()).expect("a file");
        let keys = ObjectKeys::from_file(&path).expect("keys");
        let service = Self::open(Wanted { access: Access::Checked(None), keys, ..Wanted::default() }).await;
        let uniform = json!({"uniformBucketLevelAccess": {"enabled": true}});
        let body = json!({"name": "photos", "iamConfiguration": uniform});
        assert_eq!(service.by("owner", "POST", "/b?project=p", body).await.status, 200);
        for name in ["a/1", "b/1"] {
            assert_eq!(service.put_as("owner", name).await.status, 200);
        }
        service
    }

    async fn by(&self, token: &str, method: &str, target: &str, body: Value) -> Answer {
        let authorization = format!("Bearer {token}");
        let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send_object(&Request::new(method, target, &headers, body.as_bytes())).await
    }

    async fn status_as(&self, token: &str, method: &str, target: &str) -> u16 {
        self.by(token, method, target, Value::Null).await.status
    }

    /// Uploads an object whose name is in the body.
    async fn put_as(&self, token: &str, name: &str) -> Answer {
        let authorization = format!("Bearer {token}");
        let headers =
            [("Authorization", authorization.as_str()), ("Content-Type", "multipart/related; boundary=b")];
        let body = format!(
            "--b\r\nContent-Type: application/json\r\n\r\n{{\"name\":\"{name}\"}}\r\n--b\r\n\r\nx\r\n--b--\r\n"
        );
        let target = "/upload/storage/v1/b/photos/o?uploadType=multipart";
        self.send_object(&Request::new("POST", target, &headers, body.as_bytes())).await
    }
}

fn binding(role: &str, condition: Option<&str>) -> Value {
    let mut binding = json!({"role": format!("roles/storage.{role}"), "members": [READER]});
    if let Some(condition) = condition {
        binding["condition"] = json!({"title": "here", "expression": condition});
    }
    binding
}

#[tokio::test]
async fn a_binding_with_a_condition_counts_where_it_holds() {
    let service = Service::that_checks().await;
    assert_eq!(service.status_as("reader", "GET", "/b/photos/o/a%2F1").await, 403);
    let condition = "resource.name.startsWith('projects/_/buckets/photos/objects/a/') || \
                     api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('a/')";
    let policy = |version: u32, condition: &str| json!({"version": version, "bindings": [binding("objectUser", Some(condition))]});
    for (wrong, said) in [
        (policy(3, "resource.size == '1'"), "at character 10"),
        (policy(3, "request.auth.claims"), "auth"),
        (policy(1, condition), "at least 3"),
    ] {
        let refused = service.by("owner", "PUT", "/b/photos/iam", wrong).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert!(refused.body.contains(said), "{}", refused.body);
    }
    let set = service.by("owner", "PUT", "/b/photos/iam", policy(3, condition)).await;
    assert_eq!(set.status, 200, "{}", set.body);
    for (method, target, expected) in [
        ("GET", "/b/photos/o/a%2F1", 200),
        ("GET", "/b/photos/o/b%2F1", 403),
        ("GET", "/photos/a/1", 200),
        ("GET", "/photos/b/1", 403),
        ("GET", "/b/photos/o?prefix=a/", 200),
        ("GET", "/b/photos/o?prefix=b/", 403),
        ("GET", "/b/photos/o", 403),
        ("GET", "/photos?prefix=a/1", 200),
        ("GET", "/photos", 403),
        ("POST", "/b/photos/o/a%2F1/copyTo/b/photos/o/a%2F2", 200),
        ("POST", "/b/photos/o/a%2F1/copyTo/b/photos/o/b%2F2", 403),
        ("DELETE", "/b/photos/o/b%2F1", 403),
        ("GET", "/b/photos", 403),
    ] {
        assert_eq!(service.status_as("reader", method, target).await, expected, "{method} {target}");
    }
    for (name, expected) in [("a/3", 200), ("b/3", 403)] {
        assert_eq!(service.put_as("reader", name).await.status, expected, "{name}");
    }
}

#[tokio::test]
async fn a_policy_of_a_managed_folder_counts_for_the_names_below_it() {
    let service = Service::that_checks().await;
    let made = service.by("owner", "POST", "/b/photos/managedFolders", json!({"name": "a/"})).await;
    assert_eq!(made.status, 200, "{}", made.body);
    let policy = json!({"bindings": [binding("objectUser", None)]});
    assert_eq!(
        service.by("reader", "PUT", "/b/photos/managedFolders/a%2F/iam", policy.clone()).await.status,
        403
    );
    let set = service.by("owner", "PUT", "/b/photos/managedFolders/a%2F/iam", policy).await;
    assert_eq!(set.status, 200, "{}", set.body);
    let shown = service.by("owner", "GET", "/b/photos/managedFolders/a%2F/iam", Value::Null).await;
    assert!(shown.body.contains(READER) && shown.body.contains("managedFolders/a/"), "{}", shown.body);
    assert_eq!(service.status_as("owner", "GET", "/b/photos/managedFolders/x%2F/iam").await, 404);
    for (method, target, expected) in [
        ("GET", "/b/photos/o/a%2F1", 200),
        ("GET", "/b/photos/o/b%2F1", 403),
        ("GET", "/b/photos/o?prefix=a/", 200),
        ("GET", "/b/photos/o", 403),
        ("GET", "/b/photos/managedFolders/a%2F", 200),
        ("GET", "/b/photos/managedFolders", 403),
    ] {
        assert_eq!(service.status_as("reader", method, target).await, expected, "{method} {target}");
    }
    assert_eq!(service.put_as("reader", "a/2").await.status, 200);
    assert_eq!(service.put_as("reader", "ab").await.status, 403);
    let target = "/b/photos/managedFolders/a%2F/iam/testPermissions?permissions=storage.objects.get\
                  &permissions=storage.managedFolders.setIamPolicy";
    let held = service.by("reader", "GET", target, Value::Null).await;
    let held: Value = serde_json::from_str(&held.body).expect("JSON");
    assert_eq!(held["permissions"], json!(["storage.objects.get"]));
    assert_eq!(
        service.status_as("reader", "DELETE", "/b/photos/managedFolders/a%2F?allowNonEmpty=true").await,
        403,
        "it may not change the policy"
    );
    let gone = service.status_as("owner", "DELETE", "/b/photos/managedFolders/a%2F?allowNonEmpty=true").await;
    assert_eq!(gone, 204);
    assert_eq!(service.status_as("reader", "GET", "/b/photos/o/a%2F1").await, 403, "the policy is gone too");
}

#[tokio::test]
async fn folders_are_changed_by_those_who_may_at_both_names_and_deleted_with_what_they_may_delete() {
    let service = Service::that_checks().await;
    let uniform = json!({"uniformBucketLevelAccess": {"enabled": true}});
    let body =
        json!({"name": "tree", "iamConfiguration": uniform, "hierarchicalNamespace": {"enabled": true}});
    assert_eq!(service.by("owner", "POST", "/b?project=p", body).await.status, 200);
    for name in ["a/", "a/in/", "b/", "d/e/"] {
        let made = service.by("owner", "POST", "/b/tree/folders?recursive=true", json!({"name": name})).await;
        assert_eq!(made.status, 200, "{}", made.body);
    }
    let of =
        |sort: &str, name: &str| format!("resource.name.startsWith('projects/_/buckets/tree/{sort}/{name}')");
    let here =
        [of("folders", "a/"), of("objects", "a/"), of("folders", "d/"), of("objects", "d/e/f")].join(" || ");
    let policy = json!({"version": 3, "bindings": [binding("objectUser", Some(&here))]});
    assert_eq!(service.by("owner", "PUT", "/b/tree/iam", policy).await.status, 200);
    let folders = "/storage/v1/b/tree/folders";
    for (method, path, expected) in [
        ("GET", "/a%2F", 200),
        ("GET", "/b%2F", 403),
        ("GET", "", 403),
        ("POST", "/a%2Fin%2F/renameTo/folders/a%2Fnew%2F", 200),
        ("POST", "/a%2Fnew%2F/renameTo/folders/b%2Fnew%2F", 403),
        ("POST", "/b%2F/renameTo/folders/a%2Fb%2F", 403),
        ("DELETE", "/b%2F", 403),
        ("DELETE", "/a%2Fnew%2F", 204),
        // The folder may be deleted, but not all that could lie in it.
        ("POST", "/d%2F/deleteRecursive", 403),
        ("POST", "/a%2F/deleteRecursive", 200),
    ] {
        let target = format!("{folders}{path}");
        assert_eq!(service.status_as("reader", method, &target).await, expected, "{method} {target}");
    }
    for (name, expected) in [("a/", 200), ("c/", 403)] {
        let made = service.by("reader", "POST", folders, json!({"name": name})).await;
        assert_eq!(made.status, expected, "{name}");
    }
}

#[tokio::test]
async fn the_policy_of_an_object_is_its_list_in_other_words() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let target = "/upload/storage/v1/b/photos/o?uploadType=media&name=a";
    service.object_json("POST", target, "x").await;
    let shown = service.object_json("GET", "/b/photos/o/a/iam", "").await;
    assert_eq!(shown["bindings"][1]["members"], json!(["projectViewer:test-project"]));
    let reader = json!({"role": "roles/storage.legacyObjectReader", "members": ["allUsers"]});
    let body = json!({"etag": shown["etag"], "bindings": [shown["bindings"][0], reader]}).to_string();
    let set = service.object_json("PUT", "/b/photos/o/a/iam", &body).await;
    assert_eq!(set["bindings"][1], reader);
    assert_eq!(service.object_json("GET", "/b/photos/o/a/acl/allUsers", "").await["role"], "READER");
    assert_eq!(service.object("PUT", "/b/photos/o/a/iam", &body).await.status, 412, "the etag is old");
    let other = json!({"bindings": [{"role": "roles/storage.objectViewer", "members": ["allUsers"]}]});
    assert_eq!(service.object("PUT", "/b/photos/o/a/iam", &other.to_string()).await.status, 400);
}

#[tokio::test]
async fn a_sender_composes_what_it_may_read_and_removes_what_it_may_delete() {
    let service = Service::that_checks().await;
    let below = "resource.name.startsWith('projects/_/buckets/photos/objects/a/')";
    let roles = ["objectViewer", "objectCreator"];
    let bindings: Vec<Value> = roles.iter().map(|role| binding(role, Some(below))).collect();
    let policy = json!({"version": 3, "bindings": bindings});
    assert_eq!(service.by("owner", "PUT", "/b/photos/iam", policy).await.status, 200);
    let compose = |source: &str, deletes: bool| json!({"sourceObjects": [{"name": source}], "deleteSourceObjects": deletes});
    let target = |name: &str| format!("/b/photos/o/a%2F{name}/compose?ifGenerationMatch=0");
    for (name, source, deletes, expected) in
        [("2", "b/1", false, 403), ("2", "a/1", true, 403), ("2", "a/1", false, 200)]
    {
        let answer = service.by("reader", "POST", &target(name), compose(source, deletes)).await;
        assert_eq!(answer.status, expected, "{source} {deletes}: {}", answer.body);
    }
    let authorization = [("Authorization", "Bearer reader"), ("x-goog-if-generation-match", "0")];
    for (source, expected) in [("b/1", 403), ("a/1", 200)] {
        let body = format!("<ComposeRequest><Component><Name>{source}</Name></Component></ComposeRequest>");
        let request = Request::new("PUT", "/photos/a/3?compose", &authorization, body.as_bytes());
        let answer = service.send_object(&request).await;
        assert_eq!(answer.status, expected, "{source}: {}", answer.body);
    }
    assert_eq!(service.status_as("owner", "GET", "/b/photos/o/a%2F1").await, 200);
    let answer = service.by("owner", "POST", &target("4"), compose("a/1", true)).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(service.status_as("owner", "GET", "/b/photos/o/a%2F1").await, 404);
}

/// Each generation has a list of its own: that of the one whose bytes are copied counts.
#[tokio::test]
async fn a_copy_of_a_generation_needs_what_its_own_list_gives() {
    let service = Service::that_checks().await;
    let bucket = json!({"name": "lists", "versioning": {"enabled": true}});
    assert_eq!(service.by("owner", "POST", "/b?project=p", bucket).await.status, 200);
    let policy = service.by("owner", "GET", "/b/lists/iam", Value::Null).await;
    let mut policy: Value = serde_json::from_str(&policy.body).expect("JSON");
    policy["bindings"].as_array_mut().expect("a list").push(binding("objectCreator", None));
    assert_eq!(service.by("owner", "PUT", "/b/lists/iam", policy).await.status, 200);
    let mut generations = Vec::new();
    for (name, list) in [("x", "private"), ("x", "publicRead"), ("y", "publicRead"), ("y", "private")] {
        let target =
            format!("/upload/storage/v1/b/lists/o?uploadType=media&name={name}&predefinedAcl={list}");
        let made = service.by("owner", "POST", &target, json!({})).await;
        assert_eq!(made.status, 200, "{}", made.body);
        let made: Value = serde_json::from_str(&made.body).expect("JSON");
        generations.push(made["generation"].as_str().expect("a number").to_owned());
    }
    // The name, what is asked for in the query, the generation that is named for the source, and the answer.
    let (hidden, shown) = (generations[0].as_str(), generations[2].as_str());
    for (number, (name, query, generation, status)) in [
        ("x", "", None, 200),
        ("x", "", Some(hidden), 403),
        ("y", "", None, 403),
        ("y", "", Some(shown), 200),
        ("y", shown, None, 403),
        ("x", hidden, None, 200),
    ]
    .into_iter()
    .enumerate()
    {
        let query = if query.is_empty() { String::new() } else { format!("&generation={query}") };
        let new = |sort: &str| format!("{sort}-{number}");
        let mut source = json!({"name": name});
        let (mut asked, mut in_xml) = (String::new(), String::new());
        if let Some(generation) = generation {
            source["generation"] = json!(generation);
            asked = format!("&sourceGeneration={generation}");
            in_xml = format!("<Generation>{generation}</Generation>");
        }
        let target = format!("/b/lists/o/{}/compose?ifGenerationMatch=0{query}", new("compose"));
        let answer = service.by("reader", "POST", &target, json!({"sourceObjects": [source]})).await;
        assert_eq!(answer.status, status, "compose {number}: {}", answer.body);
        for way in ["copyTo", "rewriteTo"] {
            let to = new(way);
            let target = format!("/b/lists/o/{name}/{way}/b/lists/o/{to}?ifGenerationMatch=0{asked}{query}");
            let answer = service.by("reader", "POST", &target, json!({})).await;
            assert_eq!(answer.status, status, "{way} {number}: {}", answer.body);
        }
        let (copied, named) = (format!("/lists/{name}"), generation.unwrap_or_default());
        let mut headers = vec![("Authorization", "Bearer reader"), ("x-goog-if-generation-match", "0")];
        let document =
            format!("<ComposeRequest><Component><Name>{name}</Name>{in_xml}</Component></ComposeRequest>");
        let target = format!("/lists/{}?compose{query}", new("xml"));
        let answer = service.send_object(&Request::new("PUT", &target, &headers, document.as_bytes())).await;
        assert_eq!(answer.status, status, "xml compose {number}: {}", answer.body);
        headers.push(("x-goog-copy-source", &copied));
        if generation.is_some() {
            headers.push(("x-goog-copy-source-generation", named));
        }
        let target = format!("/lists/{}?{query}", new("xml-copy"));
        let answer = service.send_object(&Request::new("PUT", &target, &headers, b"")).await;
        assert_eq!(answer.status, status, "xml copy {number}: {}", answer.body);
    }
}

#[tokio::test]
async fn an_anonymous_sender_is_denied_by_the_xml_api_and_asked_who_it_is_by_the_json_api() {
    let service = Service::that_checks().await;
    let said = "Anonymous caller does not have storage.objects.get access";
    for (target, status) in [
        ("/photos/a/1", 403),
        ("/b/photos/o/a%2F1", 401),
        ("/b/photos/o/a%2F1?alt=media", 401),
        ("/download/storage/v1/b/photos/o/a%2F1?alt=media", 401),
    ] {
        let refused = service.send_object(&Request::new("GET", target, &[], b"")).await;
        assert!(refused.status == status && refused.body.contains(said), "{target}: {refused:?}");
        let is_denied = refused.body.contains("<Error><Code>AccessDenied</Code>");
        assert_eq!(is_denied, status == 403, "{}", refused.body);
    }
}

#[tokio::test]
async fn where_requesters_pay_all_but_the_owners_name_a_project() {
    let service = Service::that_checks().await;
    let policy = json!({"bindings": [binding("objectViewer", None)]});
    assert_eq!(service.by("owner", "PUT", "/b/photos/iam", policy).await.status, 200);
    assert_eq!(service.status_as("reader", "GET", "/b/photos/o/a%2F1").await, 200);
    let paying = json!({"billing": {"requesterPays": true}});
    assert_eq!(service.by("owner", "PATCH", "/b/photos", paying).await.status, 200);
    let said = "Bucket is a requester pays bucket but no user project provided.";
    let token = ("Authorization", "Bearer reader");
    let project = ("x-goog-user-project", "payer");
    for (target, headers, status) in [
        ("/b/photos/o/a%2F1", vec![token], 400),
        ("/b/photos/o/a%2F1?userProject=payer", vec![token], 200),
        ("/b/photos/o/a%2F1", vec![token, project], 200),
        ("/b/photos/o", vec![token], 400),
        ("/b/photos/o", vec![], 400),
        ("/b/photos/o?userProject=payer", vec![], 401),
        ("/photos/a/1", vec![token], 400),
        ("/photos/a/1", vec![token, project], 200),
        ("/b/photos/o/a%2F1", vec![("Authorization", "Bearer owner")], 200),
    ] {
        let answer = service.send_object(&Request::new("GET", target, &headers, b"")).await;
        assert_eq!(answer.status, status, "{target} {headers:?}: {}", answer.body);
        assert_eq!(answer.body.contains(said), status == 400, "{}", answer.body);
        let in_xml = answer.body.contains("<Code>UserProjectMissing</Code>");
        assert_eq!(in_xml, status == 400 && target.starts_with("/photos"), "{}", answer.body);
    }
}

#[tokio::test]
async fn permissions_are_asked_for_one_by_one() {
    let service = Service::with_photos().await;
    let target = "/b/photos/iam/testPermissions?permissions=storage.objects.get";
    let held = service.object_json("GET", target, "").await;
    assert_eq!(held["permissions"], json!(["storage.objects.get"]));
    for wildcard in ["storage.*", "*"] {
        let refused = service.object("GET", &format!("{target}&permissions={wildcard}"), "").await;
        assert!(refused.status == 400 && refused.body.contains(wildcard), "{}", refused.body);
    }
}
