//! Shared access signatures: an unsigned token is refused, a signed token never causes a panic, and a token for a
//! table reaches only that table and its keys.
//!
//! Each line of the input is the value of one field of a token.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;
use rangehold_map::Timestamp;
use rangehold_protocol::auth::sas::{AccountSas, TableSas};
use rangehold_protocol::auth::{AccountKey, Action, AuthRequest, Principal};
use rangehold_protocol::uri::Query;

const VERSION: &str = "2020-12-06";

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let key = AccountKey::from_base64("a2V5IG9mIHRoZSBhY2NvdW50").expect("it is base64");
    unsigned(text, &key);
    let lines: Vec<&str> = text.lines().collect();
    account(&lines, &key);
    table(&lines, &key);
});

/// Uses the text as the whole query of a request. Its signature cannot be right.
fn unsigned(text: &str, key: &AccountKey) {
    let Ok(query) = Query::parse(text) else { return };
    let request = request(&query);
    assert!(AccountSas::authenticate(&request, "acct", std::slice::from_ref(key), now()).is_err());
    assert!(TableSas::authenticate(&request, "acct", std::slice::from_ref(key)).is_err());
}

fn account(lines: &[&str], key: &AccountKey) {
    let fields = ["sp", "ss", "srt", "st", "se", "sip", "spr"].map(|name| (name, field(lines, name)));
    let values: Vec<&str> = fields.iter().map(|(_, value)| *value).collect();
    let text = format!("acct\n{}\n{VERSION}\n\n", values.join("\n"));
    let raw = query_text(&fields, &[("sv", VERSION), ("sig", &key.sign(&text))]);
    let Ok(query) = Query::parse(&raw) else { return };
    let request = request(&query);
    let taken = AccountSas::authenticate(&request, "acct", std::slice::from_ref(key), now());
    let Ok(principal) = taken else { return };
    assert!(matches!(principal, Principal::AccountSas { .. }), "{principal:?}");
    assert!(AccountSas::authenticate(&request, "other", std::slice::from_ref(key), now()).is_err());
    // One character of the signed text is changed.
    let changed = raw.replacen("sp=", "sp=r", 1);
    if let Ok(query) = Query::parse(&changed) {
        let request = AuthRequest { query: &query, ..request };
        assert!(AccountSas::authenticate(&request, "acct", std::slice::from_ref(key), now()).is_err());
    }
}

fn table(lines: &[&str], key: &AccountKey) {
    let names = ["sp", "st", "se", "tn", "si", "sip", "spr", "spk", "srk", "epk", "erk"];
    let fields = names.map(|name| (name, field(lines, name)));
    let get = |name: &str| fields.iter().find(|(given, _)| *given == name).map_or("", |(_, value)| *value);
    let resource = format!("/table/acct/{}", get("tn").to_lowercase());
    let parts = [
        get("sp"),
        get("st"),
        get("se"),
        &resource,
        get("si"),
        get("sip"),
        get("spr"),
        VERSION,
        get("spk"),
        get("srk"),
        get("epk"),
        get("erk"),
    ];
    let raw = query_text(&fields, &[("sv", VERSION), ("sig", &key.sign(&parts.join("\n")))]);
    let Ok(query) = Query::parse(&raw) else { return };
    let request = request(&query);
    let Ok(sas) = TableSas::authenticate(&request, "acct", std::slice::from_ref(key)) else {
        return;
    };
    let Ok(principal) = sas.resolve(&[], &request, now()) else {
        return;
    };
    assert!(principal.permit(Action::CreateTable, Some(sas.table()), None).is_err(), "makes tables");
    let other = format!("{}x", sas.table());
    assert!(
        principal.permit(Action::QueryEntities, Some(&other), Some(("a", "a"))).is_err(),
        "another table"
    );
    let bounds = principal.key_bounds().expect("a table's token has bounds");
    let range = bounds.to_range("acct", rangehold_map::TableId(1));
    for (partition_key, row_key) in
        [("", ""), (get("spk"), get("srk")), (get("epk"), get("erk")), ("\u{FFFF}", "z")]
    {
        let stored = rangehold_map::PartitionPrefix::entity("acct", rangehold_map::TableId(1), partition_key);
        let inside = range.contains(&stored.key(row_key));
        assert_eq!(bounds.contains(partition_key, row_key), inside, "({partition_key:?}, {row_key:?})");
    }
}

/// Each field has a fixed line. For an empty line the field keeps a value that is accepted.
fn field<'a>(lines: &[&'a str], name: &str) -> &'a str {
    let (index, usual) = match name {
        "sp" => (0, "raud"),
        "ss" => (1, "t"),
        "srt" => (2, "sco"),
        "st" => (3, ""),
        "se" => (4, "2099-01-01T00:00:00Z"),
        "sip" => (5, ""),
        "spr" => (6, ""),
        "tn" => (7, "people"),
        "si" => (8, ""),
        "spk" => (9, ""),
        "srk" => (10, ""),
        "epk" => (11, ""),
        _ => (12, ""),
    };
    lines.get(index).copied().filter(|line| !line.is_empty()).unwrap_or(usual)
}

fn query_text(fields: &[(&str, &str)], more: &[(&str, &str)]) -> String {
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let pairs = fields.iter().chain(more).filter(|(_, value)| !value.is_empty());
    pairs.map(|(name, value)| format!("{name}={}", encode(value))).collect::<Vec<_>>().join("&")
}

fn request(query: &Query) -> AuthRequest<'_> {
    AuthRequest {
        method: "GET",
        path: "/people",
        query,
        authorization: None,
        date: None,
        x_ms_date: None,
        content_md5: None,
        content_type: None,
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        https: false,
    }
}

fn now() -> Timestamp {
    Timestamp::from_ticks(17_000_000_000_000_000)
}
