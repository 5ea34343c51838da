//! By which names the object service is reached.

use rangehold_server::object::Access;

use crate::support::wire::Request;
use crate::support::{Service, Wanted};

#[tokio::test]
async fn a_host_that_is_not_ours_is_refused_before_anything_is_done() {
    let service = Service::start().await;
    for (host, status) in [("evil.example", 400), ("localhost.evil.example", 400), ("localhost:4443", 501)] {
        let request = Request::new("GET", "/storage/v1/b/x/anywhereCaches", &[("Host", host)], b"");
        let answer = service.send_object(&request).await;
        assert_eq!(answer.status, status, "{host}: {}", answer.body);
        assert!(answer.header("X-GUploader-UploadID").is_some());
    }
}

#[tokio::test]
async fn an_early_refusal_has_the_form_of_its_api() {
    let service = Service::open(Wanted { access: Access::Checked(None), ..Wanted::default() }).await;
    let other_host = ("Host", "evil.example");
    let page = ("Origin", "https://page.example");
    let token = ("Authorization", "Bearer wrong");
    let (xml, text, json) = ("application/xml", "text/html", "application/json");
    for (target, header, status, form) in [
        ("/photos/x", token, 401, xml),
        ("/photos/x", page, 403, xml),
        ("/photos/x", other_host, 400, xml),
        ("/photos?prefix=%FF", ("Accept", "*/*"), 400, xml),
        ("/b/photos/o/x?alt=media", other_host, 400, text),
        ("/storage/v1/b/photos/o/x?alt=media", token, 401, text),
        ("/storage/v1/b/photos/o/x?prettyPrint=false&alt=media", page, 403, text),
        ("/storage/v1/b/photos/o/%FF?alt=media", ("Accept", "*/*"), 400, text),
        ("/download/storage/v1/b/photos/o/x", other_host, 400, text),
        ("/storage/v1/b/photos/o/x", other_host, 400, json),
        ("/b/photos/o/x", token, 401, json),
        ("/b/photos/o?prefix=%FF", ("Accept", "*/*"), 400, json),
    ] {
        let answer = service.send_object(&Request::new("GET", target, &[header], b"")).await;
        let found = answer.header("Content-Type").expect("a body");
        assert!(answer.status == status && found.starts_with(form), "{target} {header:?}: {answer:?}");
        assert_eq!(answer.body.contains("<Error><Code>"), form == xml, "{}", answer.body);
        assert_eq!(answer.body.starts_with('{'), form == json, "{}", answer.body);
    }
}
