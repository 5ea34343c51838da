//! The admin endpoint: who may see what, and what keeps web pages out.

use crate::support::{ADMIN_TOKEN, Service};

#[tokio::test]
async fn health_and_metrics_are_for_everybody() {
    let service = Service::start().await;
    for path in ["/livez", "/healthz", "/readyz"] {
        assert_eq!(service.send_admin("GET", path, &[]).await.status, 200, "{path}");
    }
    service.create_table("notes").await;
    let metrics = service.send_admin("GET", "/metrics", &[]).await;
    assert_eq!(metrics.status, 200);
    assert!(
        metrics
            .body
            .contains("rangehold_requests_total{operation=\"CreateTable\",response_type=\"Success\"} 1")
    );
    assert!(!metrics.body.contains("notes"), "names of tables are the users' data");
    assert_eq!(service.send_admin("GET", "/", &[]).await.status, 404);
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"] {
        assert_eq!(service.send_admin(method, "/healthz", &[]).await.status, 405, "{method}");
    }
}

#[tokio::test]
async fn the_status_asks_for_the_token() {
    let service = Service::start().await;
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let status = service.send_admin("GET", "/v1/status", &[("Authorization", &bearer)]).await;
    assert_eq!(status.status, 200);
    let status: serde_json::Value = serde_json::from_str(&status.body).expect("JSON");
    assert_eq!(status["ranges"].as_array().map(Vec::len), Some(1), "{status}");
    let longer = format!("{bearer}x");
    for wrong in ["", "Bearer", "Bearer ", ADMIN_TOKEN, &bearer[..bearer.len() - 1], &longer] {
        let answer = service.send_admin("GET", "/v1/status", &[("Authorization", wrong)]).await;
        assert_eq!(answer.status, 401, "{wrong}");
    }
    let answer = service.send_admin("GET", "/v1/status", &[]).await;
    assert_eq!(answer.status, 401);
    assert!(!answer.body.contains(ADMIN_TOKEN));
}

#[tokio::test]
async fn web_pages_are_kept_out() {
    let service = Service::start().await;
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let token = ("Authorization", bearer.as_str());
    for path in ["/healthz", "/metrics", "/v1/status"] {
        for origin in ["http://localhost", "null", "https://evil.example"] {
            let answer = service.send_admin("GET", path, &[token, ("Origin", origin)]).await;
            assert_eq!(answer.status, 403, "{path} {origin}");
        }
        for host in ["evil.example", "evil.example:10080", "127.0.0.1.evil.example", "198.51.100.7", ""] {
            let answer = service.send_admin("GET", path, &[token, ("Host", host)]).await;
            assert_eq!(answer.status, 403, "{path} {host}");
        }
        for host in ["localhost", "localhost:10080", "127.0.0.1", "[::1]:10080"] {
            let answer = service.send_admin("GET", path, &[token, ("Host", host)]).await;
            assert_eq!(answer.status, 200, "{path} {host}");
        }
    }
}
