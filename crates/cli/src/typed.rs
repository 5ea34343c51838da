//! Values as text with a type beside it, as CSV files and command lines have them.

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rangehold_client::{DateTime, EdmType, Guid, Value};
use rangehold_protocol::table::value::parse_guid;
use rangehold_protocol::time::parse_iso;

/// Reads a type, with or without the `Edm.` in front: Storage Explorer has written both.
pub(crate) fn edm_type(text: &str) -> Result<EdmType> {
    let name = if text.starts_with("Edm.") { text.to_owned() } else { format!("Edm.{text}") };
    let known = name.parse().ok();
    known.with_context(|| {
        format!(
            "{text:?} is not a type: take Edm.String, Edm.Binary, Edm.Boolean, Edm.Int32, Edm.Int64, Edm.Double, \
             Edm.DateTime or Edm.Guid"
        )
    })
}

/// Reads a value of a known type.
pub(crate) fn read(edm_type: EdmType, text: &str) -> Result<Value> {
    let value = match edm_type {
        EdmType::String => Some(Value::from(text)),
        EdmType::Binary => STANDARD.decode(text).ok().map(Value::Binary),
        EdmType::Boolean if text.eq_ignore_ascii_case("true") => Some(Value::Boolean(true)),
        EdmType::Boolean if text.eq_ignore_ascii_case("false") => Some(Value::Boolean(false)),
        EdmType::Boolean => None,
        EdmType::Int32 => text.parse().ok().map(Value::Int32),
        EdmType::Int64 => text.parse().ok().map(Value::Int64),
        EdmType::Double => double(text).map(Value::Double),
        EdmType::DateTime => parse_iso(text).map(Value::DateTime),
        EdmType::Guid => parse_guid(text).map(Value::Guid),
    };
    match value {
        Some(value) => Ok(value),
        None => bail!("{text:?} is not a value of the type {}", edm_type.name()),
    }
}

/// A number, or one of the words for the three values that are not one. Rust reads more words, and makes infinity of a
/// number that is too large.
fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

/// Reads a value whose type is not given: a number if it is one, as `az storage entity` does, and else a text.
pub(crate) fn guess(text: &str) -> Value {
    let looks_like_a_number =
        text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.'));
    let number = |edm_type| read(edm_type, text).ok().filter(|_| looks_like_a_number);
    number(EdmType::Int32)
        .or_else(|| number(EdmType::Int64))
        .or_else(|| number(EdmType::Double))
        .unwrap_or_else(|| Value::from(text))
}

/// Writes a value so that [`read`] reads it back.
pub(crate) fn write(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Binary(bytes) => STANDARD.encode(bytes),
        Value::Boolean(flag) => flag.to_string(),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => number.to_string(),
        Value::Double(number) if number.is_infinite() => {
            if *number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
        }
        Value::Double(number) => number.to_string(),
        Value::DateTime(time) => DateTime(*time).to_string(),
        Value::Guid(guid) => Guid(*guid).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_a_type_is_a_number_only_if_it_looks_like_one() {
        for (text, value) in [
            ("17", Value::Int32(17)),
            ("0", Value::Int32(0)),
            ("-3000000000", Value::Int64(-3_000_000_000)),
            ("1.5", Value::Double(1.5)),
            ("NaN", Value::from("NaN")),
            ("17 men", Value::from("17 men")),
            ("true", Value::from("true")),
            ("", Value::from("")),
        ] {
            assert_eq!(guess(text), value, "{text:?}");
        }
        assert_eq!(edm_type("Int32").expect("Storage Explorer writes it"), EdmType::Int32);
        let error =
            read(edm_type("Edm.Int32").expect("a type"), "1.5").expect_err("it has a fraction").to_string();
        assert!(error.contains("1.5") && error.contains("Edm.Int32"), "{error}");
    }
}
