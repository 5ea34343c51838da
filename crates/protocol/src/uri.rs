//! The request URI: percent-decoding and query parameters.
//!
//! A URI is decoded once, and strictly: the text that was checked is the text that is used. Decoding
//! refuses a percent sign without two hexadecimal digits, bytes that are not UTF-8 (overlong forms
//! included), and NUL. Characters that are forbidden in keys are refused later, where keys are checked,
//! with an error that says so.

use crate::error::{ErrorCode, TableError};

/// Parameters that grant a permission or choose the operation. If one of them came twice, it would be
/// unclear which of the two was signed and which of them is obeyed.
const ONCE_ONLY: [&str; 26] = [
    "comp", "restype", "sv", "ss", "srt", "sp", "st", "se", "sip", "spr", "ses", "sig", "tn", "si", "spk",
    "srk", "epk", "erk", "sr", "skoid", "sktid", "skt", "ske", "sks", "skv", "sdd",
];

/// The query parameters of a request, decoded, in the order in which they came.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl std::fmt::Debug for Query {
    /// Shows the names only, because a value may be a signature.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.pairs.iter().map(|(name, _)| name)).finish()
    }
}

impl Query {
    /// Reads the text after the `?` of a URI (without it). `+` means a space, as in HTML
    /// forms; the SDKs expect that. Fails with `InvalidUri` on malformed encoding, with
    /// `InvalidQueryParameterValue` where a parameter that matters for authorisation comes twice, and with
    /// `InvalidInput` where an option of OData does (the text is that of WCF Data Services, which the real service
    /// is made of).
    pub fn parse(raw: &str) -> Result<Self, TableError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut seen = [false; ONCE_ONLY.len()];
        for item in raw.split('&').filter(|item| !item.is_empty()) {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            let name = decode_bytes(name, true)?;
            let value = decode_bytes(value, true)?;
            if let Some(at) = ONCE_ONLY.iter().position(|once| name.eq_ignore_ascii_case(once)) {
                if seen[at] {
                    return Err(TableError::new(
                        ErrorCode::InvalidQueryParameterValue,
                        format!("{} The parameter {name} is given twice; give it once.", invalid_value()),
                    ));
                }
                seen[at] = true;
            }
            if name.starts_with('$') && pairs.iter().any(|(given, _)| given.eq_ignore_ascii_case(&name)) {
                return Err(TableError::invalid_input(format!(
                    "Query parameter '{name}' is specified, but it should be specified exactly once."
                )));
            }
            pairs.push((name, value));
        }
        Ok(Self { pairs })
    }

    /// The first value of a parameter. Names match in either ASCII case, as they do in the real service.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// All parameters, as name and value, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

const fn invalid_value() -> &'static str {
    ErrorCode::InvalidQueryParameterValue.text()
}

/// Decodes the percent-encoding of a path or of a part of one; `+` stays a plus sign. Fails with
/// `InvalidUri`.
pub fn decode(raw: &str) -> Result<String, TableError> {
    decode_bytes(raw, false)
}

fn decode_bytes(raw: &str, plus_is_space: bool) -> Result<String, TableError> {
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let digits = (bytes.next().and_then(hex_digit), bytes.next().and_then(hex_digit));
                let (Some(high), Some(low)) = digits else {
                    return Err(invalid("a percent sign is not followed by two hexadecimal digits"));
                };
                high << 4 | low
            }
            b'+' if plus_is_space => b' ',
            other => other,
        };
        if byte == 0 {
            return Err(invalid("it holds a NUL character"));
        }
        out.push(byte);
    }
    String::from_utf8(out).map_err(|_| invalid("its percent-encoded bytes are not UTF-8"))
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn invalid(why: &str) -> TableError {
    TableError::new(ErrorCode::InvalidUri, format!("The requested URI is invalid: {why}."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(raw: &str) -> Option<ErrorCode> {
        decode(raw).err().map(|error| error.code)
    }

    #[test]
    fn decodes_what_clients_send() {
        assert_eq!(decode("/T(RowKey='RK%27%27%40%2A')").unwrap(), "/T(RowKey='RK''@*')");
        assert_eq!(decode("%E5%95%8A+").unwrap(), "啊+");
        let query = Query::parse("%24filter=RowKey+eq+%271%27&$TOP=5&flag&&sig=a%2Bb%3D").unwrap();
        assert_eq!(query.get("$filter"), Some("RowKey eq '1'"));
        assert_eq!(query.get("$top"), Some("5"));
        assert_eq!(query.get("flag"), Some(""));
        assert_eq!(query.get("sig"), Some("a+b="));
        assert_eq!(query.get("absent"), None);
    }

    #[test]
    fn refuses_malformed_encodings() {
        for raw in ["%", "%4", "%zz", "%+1", "a%00b", "%C0%AF", "%E0%80%AF", "%FF", "%ED%A0%80"] {
            assert_eq!(code(raw), Some(ErrorCode::InvalidUri), "{raw}");
            assert!(Query::parse(&format!("a={raw}")).is_err(), "{raw}");
            assert!(Query::parse(&format!("{raw}=a")).is_err(), "{raw}");
        }
    }

    #[test]
    fn a_signed_parameter_that_comes_twice_is_refused() {
        for raw in ["sig=a&sig=a", "comp=acl&Comp=list", "sp=r&%73p=raud"] {
            let error = Query::parse(raw).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidQueryParameterValue, "{raw}");
        }
        assert!(Query::parse("timeout=1&timeout=2").is_ok());
    }

    #[test]
    fn an_option_of_odata_that_comes_twice_is_refused() {
        for raw in ["$filter=a&$filter=b", "%24top=1&$TOP=1", "$select=a&x=y&$select=", "$format=a&$format=a"]
        {
            let error = Query::parse(raw).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidInput, "{raw}");
            assert!(error.text.ends_with("exactly once."), "{raw}: {}", error.text);
        }
    }

    #[test]
    fn values_are_not_shown() {
        assert!(!format!("{:?}", Query::parse("sig=secret").unwrap()).contains("secret"));
    }

    proptest! {
        #[test]
        fn never_panics(raw in ".*") {
            let _ = decode(&raw);
            let _ = Query::parse(&raw);
        }

        #[test]
        fn an_encoded_query_is_read_back(pairs in prop::collection::vec(("[^\0]{1,6}", "[^\0]{0,6}"), 0..5)) {
            let encode = |text: &str| text.bytes().map(|b| format!("%{b:02X}")).collect::<String>();
            let raw: Vec<String> = pairs.iter().map(|(n, v)| format!("{}={}", encode(n), encode(v))).collect();
            let query = Query::parse(&raw.join("&")).unwrap();
            let read: Vec<(String, String)> =
                query.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
            prop_assert_eq!(read, pairs);
        }
    }
}
