//! Several accounts, their keys, and their secondary endpoints.

use rangehold_protocol::time::parse_http_date;
use rangehold_server::accounts::Accounts;

use crate::support::wire::{Answer, Request};
use crate::support::{JSON, MULTIPART, Service};
use rangehold_testkit::sign::Signer;

const PLAIN: (&str, &str) = ("Accept", "application/json;odata=nometadata");
const KEYS: [&str; 4] = ["a2V5IG9uZQ==", "a2V5IHR3bw==", "a2V5IHRocmVl", "a2V5IGZvdXI="];

async fn two_accounts() -> Service {
    let text = format!("alpha:{}:{};bravo:{}:{}", KEYS[0], KEYS[1], KEYS[2], KEYS[3]);
    Service::with_accounts(Accounts::parse(&text).expect("two accounts")).await
}

async fn create(service: &Service, signer: &Signer, table: &str) -> u16 {
    let body = format!(r#"{{"TableName":"{table}"}}"#);
    service.send_as(signer, Request::new("POST", "/Tables", &[JSON], body.as_bytes())).await.status
}

async fn tables(service: &Service, signer: &Signer) -> Answer {
    service.send_as(signer, Request::new("GET", "/Tables", &[PLAIN], b"")).await
}

#[tokio::test]
async fn accounts_have_their_own_tables_and_two_keys_each() {
    let service = two_accounts().await;
    for (account, keys) in [("alpha", &KEYS[..2]), ("bravo", &KEYS[2..])] {
        for (index, key) in keys.iter().enumerate() {
            let signer = Signer::new(account, key);
            assert_eq!(create(&service, &signer, &format!("of{account}{index}")).await, 201);
        }
        let expected =
            format!(r#"{{"value":[{{"TableName":"of{account}0"}},{{"TableName":"of{account}1"}}]}}"#);
        assert_eq!(tables(&service, &Signer::new(account, keys[0])).await.body, expected);
    }
    for (account, key) in [("alpha", KEYS[2]), ("bravo", KEYS[0]), ("alph", KEYS[0])] {
        assert_eq!(tables(&service, &Signer::new(account, key)).await.status, 403, "{account}");
    }
    // A signature for one account is not valid for the path of another.
    let mut request = Request::new("GET", "/alpha/Tables", &[], b"");
    Signer::new("alpha", KEYS[0]).sign(&mut request, service.clock.wall().unix_seconds());
    request.target = "/bravo/Tables".to_owned();
    assert_eq!(service.send_raw(&request).await.status, 403);
}

#[tokio::test]
async fn replaced_accounts_take_effect_at_once() {
    let service = two_accounts().await;
    let (old, new) = (Signer::new("alpha", KEYS[0]), Signer::new("alpha", KEYS[3]));
    assert_eq!(create(&service, &old, "kept").await, 201);
    let text = format!("alpha:{}:{};charlie:{}", KEYS[3], KEYS[1], KEYS[0]);
    service.accounts.replace(Accounts::parse(&text).expect("two accounts"));
    assert_eq!(tables(&service, &old).await.status, 403);
    assert_eq!(tables(&service, &Signer::new("bravo", KEYS[2])).await.status, 403);
    for signer in [&new, &Signer::new("alpha", KEYS[1])] {
        assert_eq!(tables(&service, signer).await.body, r#"{"value":[{"TableName":"kept"}]}"#);
    }
    assert_eq!(tables(&service, &Signer::new("charlie", KEYS[0])).await.body, r#"{"value":[]}"#);
}

#[tokio::test]
async fn the_secondary_endpoint_reads_and_writes_nothing() {
    let service = Service::start().await;
    service.create_table("notes").await;
    let signer = Signer::well_known();
    let send = async |method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]| {
        let target = format!("/devstoreaccount1-secondary{path}");
        let mut request = Request::new(method, &target, headers, body);
        signer.sign(&mut request, service.clock.wall().unix_seconds());
        service.send_raw(&request).await
    };
    let entity = "/notes(PartitionKey='p',RowKey='r')";
    assert_eq!(service.send("PUT", entity, &[JSON], br#"{"n":1}"#).await.status, 204);
    assert_eq!(send("GET", "/Tables", &[PLAIN], b"").await.body, r#"{"value":[{"TableName":"notes"}]}"#);
    assert_eq!(send("GET", &format!("{entity}?$select=n"), &[PLAIN], b"").await.body, r#"{"n":1}"#);
    let stats = send("GET", "/?restype=service&comp=stats", &[], b"").await;
    assert!(stats.body.contains("<Status>live</Status>"), "{stats:?}");
    let synced = stats.body.split(['<', '>']).skip_while(|part| *part != "LastSyncTime").nth(1);
    let synced = synced.and_then(parse_http_date).expect("a time");
    assert!((service.clock.wall().unix_seconds() - synced.unix_seconds()).abs() < 3600, "{stats:?}");
    // Some clients sign the path of the primary endpoint, and then send the request to the secondary one.
    let mut moved = Request::new("GET", "/devstoreaccount1/?restype=service&comp=stats", &[], b"");
    signer.sign(&mut moved, service.clock.wall().unix_seconds());
    moved.target = moved.target.replace("devstoreaccount1", "devstoreaccount1-secondary");
    assert_eq!(service.send_raw(&moved).await.status, 200);
    let primary = service.send("GET", "/?restype=service&comp=stats", &[], b"").await;
    assert_eq!((primary.status, primary.code()), (400, "InvalidQueryParameterValue"));

    let any = ("If-Match", "*");
    for (method, path, headers) in [
        ("POST", "/Tables", &[JSON][..]),
        ("DELETE", "/Tables('notes')", &[]),
        ("POST", "/notes", &[JSON]),
        ("PUT", entity, &[JSON]),
        ("MERGE", entity, &[JSON]),
        ("DELETE", entity, &[any]),
        ("POST", "/$batch", &[MULTIPART]),
        ("PUT", "/notes?comp=acl", &[]),
        ("PUT", "/?restype=service&comp=properties", &[]),
    ] {
        let answer = send(method, path, headers, b"{}").await;
        assert_eq!(
            (answer.status, answer.code()),
            (403, "InsufficientAccountPermissions"),
            "{method} {path}"
        );
        assert!(answer.body.contains("Write operations are not allowed."));
    }
    assert_eq!(service.send("GET", &format!("{entity}?$select=n"), &[PLAIN], b"").await.body, r#"{"n":1}"#);
}
