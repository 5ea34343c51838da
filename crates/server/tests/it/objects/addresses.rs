//! By which names the object service is reached.

use crate::support::Service;
use crate::support::wire::Request;

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
