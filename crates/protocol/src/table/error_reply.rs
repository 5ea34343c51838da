//! The bodies of error replies, byte for byte as recordings of the service show them.
//!
//! Operations on tables and entities answer in JSON, operations on access policies and service
//! properties in XML. Both have the code, and a text that ends with the request's id and the time, which
//! has seven digits after the second.

use rangehold_map::Timestamp;

use super::xml::escape_text;
use crate::error::TableError;
use crate::time::iso7;

/// An error as JSON:
/// `{"odata.error":{"code":..,"message":{"lang":"en-US","value":"text\nRequestId:..\nTime:.."}}}`.
///
/// In a batch the text begins with the index of the operation that failed; the caller writes it there.
pub fn json(error: &TableError, request_id: &str, now: Timestamp) -> Vec<u8> {
    // The code is an identifier and needs no escapes; the text may quote anything.
    let value = serde_json::Value::from(message(error, request_id, now));
    format!(
        r#"{{"odata.error":{{"code":"{}","message":{{"lang":"en-US","value":{value}}}}}}}"#,
        error.code.name()
    )
    .into_bytes()
}

/// An error as XML, in the namespace that the service uses. Unlike its other XML it has no byte
/// order mark.
pub fn xml(error: &TableError, request_id: &str, now: Timestamp) -> Vec<u8> {
    format!(
        concat!(
            r#"<?xml version="1.0" encoding="utf-8"?>"#,
            r#"<m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">"#,
            r#"<m:code>{}</m:code><m:message xml:lang="en-US">{}</m:message></m:error>"#
        ),
        error.code.name(),
        escape_text(&message(error, request_id, now)),
    )
    .into_bytes()
}

fn message(error: &TableError, request_id: &str, now: Timestamp) -> String {
    format!("{}\nRequestId:{request_id}\nTime:{}", error.text, iso7(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::time::parse_iso;

    #[test]
    fn json_is_as_recorded() {
        let now = parse_iso("2021-08-02T18:01:40.3296350Z").unwrap();
        let error = TableError::new(ErrorCode::EntityAlreadyExists, "2:The specified entity already exists.");
        assert_eq!(
            String::from_utf8(json(&error, "a05b4e53-9002-0057-1cc8-874646000000", now)).unwrap(),
            r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"2:The specified entity already exists.\nRequestId:a05b4e53-9002-0057-1cc8-874646000000\nTime:2021-08-02T18:01:40.3296350Z"}}}"#
        );
    }

    #[test]
    fn xml_is_as_recorded() {
        let now = parse_iso("2021-08-02T18:01:32.9924757Z").unwrap();
        let reply = xml(&ErrorCode::InvalidXmlDocument.into(), "a05b41e1-9002-0057-54c8-874646000000", now);
        assert_eq!(
            String::from_utf8(reply.clone()).unwrap(),
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><m:code>InvalidXmlDocument</m:code><m:message xml:lang=\"en-US\">XML specified is not syntactically valid.\nRequestId:a05b41e1-9002-0057-54c8-874646000000\nTime:2021-08-02T18:01:32.9924757Z</m:message></m:error>"
        );
        // The recording's Content-Length.
        assert_eq!(reply.len(), 327);
    }

    #[test]
    fn input_that_is_quoted_cannot_end_the_text() {
        let now = Timestamp::from_ticks(0);
        let error = TableError::invalid_input("Syntax error at position 7 in '\"}</m:message>\u{1}&'.");
        let parsed: serde_json::Value = serde_json::from_slice(&json(&error, "id", now)).unwrap();
        let value = parsed["odata.error"]["message"]["value"].as_str().unwrap();
        assert!(value.starts_with(&*error.text), "{value}");
        let text = String::from_utf8(xml(&error, "id", now)).unwrap();
        assert!(text.contains("\"}&lt;/m:message&gt;\u{FFFD}&amp;"), "{text}");
    }
}
