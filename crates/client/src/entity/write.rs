//! From a struct to properties, by serde. A struct or a map gives the names; each field gives a value or, for `None`,
//! nothing.

use std::collections::BTreeMap;

use rangehold_protocol::table::value::{Value, parse_guid};
use rangehold_protocol::time::parse_iso;
use serde::ser::{self, Impossible, Serialize, SerializeMap, SerializeStruct, Serializer};

use super::types::{DATE_TIME, GUID};

/// Why a struct cannot be an entity.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotAValue(String);

impl ser::Error for NotAValue {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// The fields of `fields` as properties.
pub(super) fn properties_of(fields: &impl Serialize) -> Result<BTreeMap<String, Value>, NotAValue> {
    fields.serialize(Whole)
}

/// Names that belong to the service.
const OF_THE_SERVICE: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];

/// Methods of serde for types that cannot stand here.
macro_rules! refuse {
    ($ok:ty, $what:expr => $($method:ident($($argument:ty),*)),* $(,)?) => {
        $(fn $method(self, $(_: $argument),*) -> Result<$ok, NotAValue> {
            Err(NotAValue($what.to_owned()))
        })*
    };
}

/// Takes the struct or the map.
struct Whole;

type Properties = BTreeMap<String, Value>;

impl Serializer for Whole {
    type Ok = Properties;
    type Error = NotAValue;
    type SerializeSeq = Impossible<Properties, NotAValue>;
    type SerializeTuple = Impossible<Properties, NotAValue>;
    type SerializeTupleStruct = Impossible<Properties, NotAValue>;
    type SerializeTupleVariant = Impossible<Properties, NotAValue>;
    type SerializeMap = Collected;
    type SerializeStruct = Collected;
    type SerializeStructVariant = Impossible<Properties, NotAValue>;

    refuse! { Properties, "an entity is made from a struct with named fields or from a map" =>
        serialize_bool(bool), serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64),
        serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64), serialize_f32(f32),
        serialize_f64(f64), serialize_char(char), serialize_str(&str), serialize_bytes(&[u8]), serialize_none(),
        serialize_unit(), serialize_unit_struct(&'static str),
        serialize_unit_variant(&'static str, u32, &'static str),
    }
    refuse! { Impossible<Properties, NotAValue>, "an entity is made from a struct with named fields, not from a list" =>
        serialize_seq(Option<usize>), serialize_tuple(usize), serialize_tuple_struct(&'static str, usize),
        serialize_tuple_variant(&'static str, u32, &'static str, usize),
        serialize_struct_variant(&'static str, u32, &'static str, usize),
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<Properties, NotAValue> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Properties, NotAValue> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<Properties, NotAValue> {
        Err(NotAValue(format!("the enum {name} cannot be an entity; use a struct with named fields")))
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Collected, NotAValue> {
        Ok(Collected::default())
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Collected, NotAValue> {
        Ok(Collected::default())
    }
}

/// The properties so far, and the name whose value comes next.
#[derive(Default)]
struct Collected {
    properties: Properties,
    name: Option<String>,
}

impl Collected {
    fn add<T: ?Sized + Serialize>(&mut self, name: &str, value: &T) -> Result<(), NotAValue> {
        if OF_THE_SERVICE.contains(&name) {
            return Ok(());
        }
        let value = value.serialize(One).map_err(|error| NotAValue(format!("the field {name}: {error}")))?;
        if let Some(value) = value {
            self.properties.insert(name.to_owned(), value);
        }
        Ok(())
    }
}

impl SerializeStruct for Collected {
    type Ok = Properties;
    type Error = NotAValue;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), NotAValue> {
        self.add(key, value)
    }

    fn end(self) -> Result<Properties, NotAValue> {
        Ok(self.properties)
    }
}

impl SerializeMap for Collected {
    type Ok = Properties;
    type Error = NotAValue;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), NotAValue> {
        match key.serialize(One)? {
            Some(Value::String(name)) => self.name = Some(name),
            _ => return Err(NotAValue("the names of properties must be texts".to_owned())),
        }
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), NotAValue> {
        let name = self.name.take().expect("serde gives a key before each value");
        self.add(&name, value)
    }

    fn end(self) -> Result<Properties, NotAValue> {
        Ok(self.properties)
    }
}

/// Takes one value; `None` is a property that is not stored.
struct One;

/// Methods of serde for numbers that become `$variant`.
macro_rules! numbers {
    ($($method:ident($number:ty) => $variant:ident),* $(,)?) => {
        $(fn $method(self, number: $number) -> Result<Option<Value>, NotAValue> {
            Ok(Some(Value::$variant(number.into())))
        })*
    };
}

const NESTED: &str = "a list or an object cannot be a property; store it as text or in entities of its own";

impl Serializer for One {
    type Ok = Option<Value>;
    type Error = NotAValue;
    type SerializeSeq = Impossible<Option<Value>, NotAValue>;
    type SerializeTuple = Impossible<Option<Value>, NotAValue>;
    type SerializeTupleStruct = Impossible<Option<Value>, NotAValue>;
    type SerializeTupleVariant = Impossible<Option<Value>, NotAValue>;
    type SerializeMap = Impossible<Option<Value>, NotAValue>;
    type SerializeStruct = Impossible<Option<Value>, NotAValue>;
    type SerializeStructVariant = Impossible<Option<Value>, NotAValue>;

    numbers! {
        serialize_bool(bool) => Boolean, serialize_i8(i8) => Int32, serialize_i16(i16) => Int32,
        serialize_i32(i32) => Int32, serialize_u8(u8) => Int32, serialize_u16(u16) => Int32,
        serialize_i64(i64) => Int64, serialize_u32(u32) => Int64, serialize_f32(f32) => Double,
        serialize_f64(f64) => Double, serialize_char(char) => String, serialize_str(&str) => String,
        serialize_bytes(&[u8]) => Binary,
    }

    fn serialize_u64(self, number: u64) -> Result<Option<Value>, NotAValue> {
        match i64::try_from(number) {
            Ok(number) => Ok(Some(Value::Int64(number))),
            Err(_) => Err(NotAValue(format!("{number} is above the largest Int64, {}", i64::MAX))),
        }
    }

    fn serialize_none(self) -> Result<Option<Value>, NotAValue> {
        Ok(None)
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<Option<Value>, NotAValue> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Option<Value>, NotAValue> {
        Ok(None)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Option<Value>, NotAValue> {
        Ok(None)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Option<Value>, NotAValue> {
        Ok(Some(variant.into()))
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Option<Value>, NotAValue> {
        let value = value.serialize(self)?;
        let typed = match (name, &value) {
            (GUID, Some(Value::String(text))) => parse_guid(text).map(Value::Guid),
            (DATE_TIME, Some(Value::String(text))) => parse_iso(text).map(Value::DateTime),
            _ => value,
        };
        Ok(typed)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<Option<Value>, NotAValue> {
        Err(NotAValue(NESTED.to_owned()))
    }

    refuse! { Impossible<Option<Value>, NotAValue>, NESTED =>
        serialize_seq(Option<usize>), serialize_tuple(usize), serialize_tuple_struct(&'static str, usize),
        serialize_tuple_variant(&'static str, u32, &'static str, usize), serialize_map(Option<usize>),
        serialize_struct(&'static str, usize),
        serialize_struct_variant(&'static str, u32, &'static str, usize),
    }
}
