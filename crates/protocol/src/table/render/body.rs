//! An entity as a client sends it.

use super::super::value::ValueRef;
use super::entity::put_value;
use super::json::Object;

/// Appends the body of a write: both keys, then the properties, each with its type.
///
/// Only the type of a String, a Boolean and an Int32 is left to the form of the value. A Double is annotated too: some
/// services read `5.0` as an integer.
pub fn put_body<'a>(
    out: &mut Vec<u8>,
    partition_key: &str,
    row_key: &str,
    properties: impl IntoIterator<Item = (&'a str, ValueRef<'a>)>,
) {
    let mut object = Object::begin(out);
    object.text("PartitionKey", partition_key);
    object.text("RowKey", row_key);
    for (name, value) in properties {
        if !matches!(value, ValueRef::String(_) | ValueRef::Boolean(_) | ValueRef::Int32(_)) {
            object.type_of(name, value.edm_type());
        }
        put_value(object.member(name), value);
    }
    object.end();
}

#[cfg(test)]
mod tests {
    use super::super::super::entity::{Entity, KeyRule};
    use super::super::super::value::Value;
    use super::*;

    #[test]
    fn a_body_is_read_back_with_all_types() {
        let properties = [
            ("text", Value::from("a \"quoted\" text\n")),
            ("bytes", Value::from(vec![0, 255])),
            ("flag", Value::from(true)),
            ("small", Value::from(-5)),
            ("large", Value::from(i64::MIN)),
            ("whole", Value::from(5.0)),
            ("endless", Value::from(f64::INFINITY)),
            ("time", Value::from(rangehold_map::Timestamp::MIN_DATE_TIME)),
            ("guid", Value::Guid([7; 16])),
        ];
        let mut body = Vec::new();
        put_body(&mut body, "p", "r'", properties.iter().map(|(name, value)| (*name, value.as_ref())));
        let read = Entity::from_json(&body, KeyRule::InBody).expect("it is an entity");
        assert_eq!((read.partition_key.as_deref(), read.row_key.as_deref()), (Some("p"), Some("r'")));
        assert_eq!(read.properties, properties.map(|(name, value)| (name.to_owned(), value)));
    }
}
