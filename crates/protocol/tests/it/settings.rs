//! Access policies, service properties and stats: the XML that clients and the service send.

use rangehold_protocol::error::ErrorCode;
use rangehold_protocol::table::acl::{self, AccessPolicy};
use rangehold_protocol::table::properties::{ServiceProperties, parse_update, stats};
use rangehold_protocol::time::parse_iso;

const PREAMBLE: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the service writes UTF-8")
}

fn policies(count: usize) -> String {
    let each = |id| format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>");
    format!("<SignedIdentifiers>{}</SignedIdentifiers>", (0..count).map(each).collect::<String>())
}

#[test]
fn policies_come_back_as_recorded() {
    let sent = "<SignedIdentifiers><SignedIdentifier><Id>empty</Id></SignedIdentifier><SignedIdentifier><AccessPolicy><Permission>r</Permission></AccessPolicy><Id>partial</Id></SignedIdentifier><SignedIdentifier><AccessPolicy><Permission>r</Permission><Expiry>2021-06-08T02:10:09Z</Expiry><Start>2021-06-08T02:10:09Z</Start></AccessPolicy><Id>full</Id></SignedIdentifier></SignedIdentifiers>";
    let expected = format!(
        "{PREAMBLE}<SignedIdentifiers><SignedIdentifier><Id>empty</Id></SignedIdentifier><SignedIdentifier><Id>partial</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>full</Id><AccessPolicy><Start>2021-06-08T02:10:09.0000000Z</Start><Expiry>2021-06-08T02:10:09.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    );
    let read = acl::parse(sent.as_bytes()).expect("policies");
    assert_eq!(text(acl::write(&read)), expected);
    // Written XML can be read, with its byte order mark.
    assert_eq!(acl::parse(expected.as_bytes()).expect("policies"), read);
    let stored = serde_json::to_vec(&read).expect("JSON");
    assert_eq!(serde_json::from_slice::<Vec<AccessPolicy>>(&stored).expect("JSON"), read);
}

#[test]
fn there_may_be_no_policies_and_empty_ones() {
    for none in ["", " \r\n", "<SignedIdentifiers />", &policies(0)] {
        assert_eq!(acl::parse(none.as_bytes()), Ok(Vec::new()), "{none:?}");
    }
    assert_eq!(text(acl::write(&[])), format!("{PREAMBLE}<SignedIdentifiers />"));
    let empty = "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start/><Expiry></Expiry><Permission /></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    let read = acl::parse(empty.as_bytes()).expect("a policy");
    assert_eq!(read, acl::parse(policies(1).replace('0', "a").as_bytes()).expect("a policy"));
}

#[test]
fn policies_have_limits() {
    assert_eq!(acl::parse(policies(5).as_bytes()).map(|all| all.len()), Ok(5));
    let with =
        |policy: &str| policies(1).replace("</Id>", &format!("</Id><AccessPolicy>{policy}</AccessPolicy>"));
    assert!(acl::parse(with("<Permission>dura</Permission>").as_bytes()).is_ok());
    assert!(acl::parse(policies(1).replace('0', &"x".repeat(64)).as_bytes()).is_ok());
    let refused = [
        policies(6),
        policies(2).replace('1', "0"),
        policies(1).replace('0', ""),
        policies(1).replace('0', &"x".repeat(65)),
        policies(1).replace("<Id>0</Id>", ""),
        with("<Permission>rw</Permission>"),
        with("<Permission>rr</Permission>"),
        with("<Start>soon</Start>"),
        with("<Other>1</Other>"),
        policies(1).replace("SignedIdentifiers", "Signed"),
        policies(1).replace("</Id>", ""),
        format!("<!DOCTYPE x>{}", policies(1)),
    ];
    for body in refused {
        let error = acl::parse(body.as_bytes()).expect_err(&body);
        assert_eq!(error.code, ErrorCode::InvalidXmlDocument, "{body}");
    }
}

/// The properties of a recorded account.
const RECORDED: &str = "<StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read><Write>true</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors /></StorageServiceProperties>";

#[test]
fn properties_come_back_as_recorded() {
    let update = parse_update(RECORDED.as_bytes()).expect("properties");
    let properties = ServiceProperties::default().apply(update);
    assert_eq!(text(properties.write()), format!("{PREAMBLE}{RECORDED}"));
    assert_eq!(ServiceProperties::decode(&properties.encode()).expect("stored"), properties);
    assert!(ServiceProperties::decode(b"{}").is_err());
    let later = text(properties.encode()).replace("\"format\":1", "\"format\":2");
    assert!(ServiceProperties::decode(later.as_bytes()).is_err());
}

#[test]
fn rules_come_back_as_recorded() {
    let sent = "<?xml version='1.0' encoding='utf-8'?>\n<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>www.xyz.com</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>0</MaxAgeInSeconds></CorsRule><CorsRule><AllowedOrigins>www.xyz.com,www.ab.com,www.bc.com</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-meta-data*,x-ms-meta-target*,x-ms-meta-xyz,x-ms-meta-foo</AllowedHeaders><ExposedHeaders>x-ms-meta-data*,x-ms-meta-source*,x-ms-meta-abc,x-ms-meta-bcd</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
    let expected = "<Cors><CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>www.xyz.com</AllowedOrigins><AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>0</MaxAgeInSeconds></CorsRule><CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>www.xyz.com,www.ab.com,www.bc.com</AllowedOrigins><AllowedHeaders>x-ms-meta-xyz,x-ms-meta-foo,x-ms-meta-data*,x-ms-meta-target*</AllowedHeaders><ExposedHeaders>x-ms-meta-abc,x-ms-meta-bcd,x-ms-meta-data*,x-ms-meta-source*</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
    let before = ServiceProperties::default().apply(parse_update(RECORDED.as_bytes()).expect("properties"));
    let after = before.clone().apply(parse_update(sent.as_bytes()).expect("rules"));
    assert!(text(after.write()).ends_with(expected), "{}", text(after.write()));
    assert_eq!(
        (&after.logging, &after.hour_metrics),
        (&before.logging, &before.hour_metrics),
        "what is not named stays"
    );
}

#[test]
fn properties_have_limits() {
    let rule = "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods></CorsRule>";
    let cors =
        |rules: &str| format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>");
    assert!(parse_update(cors(&rule.repeat(5)).as_bytes()).is_ok());
    assert!(parse_update(RECORDED.replace("<Days>7", "<Days>365").as_bytes()).is_ok());
    assert!(parse_update(RECORDED.replace("HourMetrics", "Metrics").as_bytes()).is_ok());
    let headers = |list: &str| {
        cors(&rule.replace("</CorsRule>", &format!("<AllowedHeaders>{list}</AllowedHeaders></CorsRule>")))
    };
    assert!(parse_update(headers("a*,b*,c").as_bytes()).is_ok());
    let refused = [
        RECORDED.replace("<Days>7", "<Days>366"),
        RECORDED.replace("<Days>7", "<Days>0"),
        RECORDED.replace("<Days>7", "<Days>-1"),
        RECORDED.replace("<Days>7</Days>", ""),
        RECORDED.replace("<IncludeAPIs>true</IncludeAPIs>", ""),
        RECORDED.replace("<Read>true", "<Read>yes"),
        RECORDED.replace("<Read>true</Read>", ""),
        RECORDED.replace("<Version>1.0", "<Version>7"),
        RECORDED.replace("MinuteMetrics", "HourMetrics"),
        RECORDED.replace("Logging", "Loging"),
        cors(&rule.repeat(6)),
        cors(&rule.replace("GET", "")),
        cors(&rule.replace("GET", "TRACE")),
        cors(&rule.replace('*', "")),
        cors(&rule.replace('*', &"x".repeat(257))),
        cors(&rule.replace("CorsRule", "Rule")),
        headers("a*,b*,c*"),
        headers(&(0..65).map(|n| format!("h{n},")).collect::<String>()),
        String::new(),
    ];
    for body in refused {
        let error = parse_update(body.as_bytes()).expect_err(&body);
        assert_eq!(error.code, ErrorCode::InvalidXmlDocument, "{body}");
    }
}

#[test]
fn stats_are_as_recorded() {
    let synced = parse_iso("2021-09-08T16:46:37Z").expect("a time");
    assert_eq!(
        text(stats(synced)),
        format!(
            "{PREAMBLE}<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>Wed, 08 Sep 2021 16:46:37 GMT</LastSyncTime></GeoReplication></StorageServiceStats>"
        )
    );
}
