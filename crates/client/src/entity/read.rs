//! From an entity to a struct, by serde.

use rangehold_map::Timestamp;
use rangehold_protocol::table::value::Value;
use serde::de::value::{Error, MapDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::{DateTime, Entity, Guid};

/// An entity as a source of serde.
pub(super) struct Fields<'a>(pub(super) &'a Entity);

impl<'a> Fields<'a> {
    /// What a struct with a field `name` gets, if that is not a property.
    fn of_the_service(&self, name: &'static str) -> Option<Field<'a>> {
        match name {
            "PartitionKey" => Some(Field::Key(&self.0.keys.partition_key)),
            "RowKey" => Some(Field::Key(&self.0.keys.row_key)),
            "Timestamp" => self.0.timestamp.map(Field::Time),
            _ => None,
        }
    }

    fn properties(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> {
        self.0.properties.iter().map(|(name, value)| (name.as_str(), Field::Property(value)))
    }
}

impl<'de> Deserializer<'de> for Fields<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(MapDeserializer::new(self.properties()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let service = fields.iter().filter_map(|&name| Some((name, self.of_the_service(name)?)));
        let mut all = MapDeserializer::new(service.chain(self.properties()));
        visitor.visit_map(&mut all)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// One field.
enum Field<'a> {
    Key(&'a str),
    Time(Timestamp),
    Property(&'a Value),
}

impl<'de> IntoDeserializer<'de, Error> for Field<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Key(key) => visitor.visit_borrowed_str(key),
            Self::Time(time) => visitor.visit_string(DateTime(time).to_string()),
            Self::Property(value) => match value {
                Value::String(text) => visitor.visit_borrowed_str(text),
                Value::Binary(bytes) => visitor.visit_borrowed_bytes(bytes),
                Value::Boolean(flag) => visitor.visit_bool(*flag),
                Value::Int32(number) => visitor.visit_i32(*number),
                Value::Int64(number) => visitor.visit_i64(*number),
                Value::Double(number) => visitor.visit_f64(*number),
                Value::DateTime(time) => visitor.visit_string(DateTime(*time).to_string()),
                Value::Guid(guid) => visitor.visit_string(Guid(*guid).to_string()),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// An enum without data is stored as the name of its variant.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Key(text) => visitor.visit_enum(text.into_deserializer()),
            Self::Property(Value::String(text)) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(de::Error::custom("the name of a variant is expected, which is a text")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
