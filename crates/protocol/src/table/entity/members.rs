//! The members of a JSON object, each with the annotation of its type.
//!
//! A visitor of serde goes over the bytes once and borrows what it can from them. It is written by
//! hand because a map type would lose what counts here: the order of the members, and that one is
//! there twice.
//!
//! Nothing nests: an object or an array is refused where it begins, so that no input can drive the
//! reader deep. A body of many short members costs time linear in the body times
//! [`MEMBERS_MAX`]: a member is looked up among those before it by going over them, which for the
//! usual dozen beats hashing.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::super::limits::MEMBERS_MAX;
use super::super::value::EdmType;
use crate::error::{ErrorCode, TableError};

/// A value as JSON has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    /// A number written without fraction and exponent.
    Integer(i64),
    /// Any other number.
    Number(f64),
    Text(Cow<'a, str>),
}

/// The type that an annotation gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    Known(EdmType),
    /// A name that is no type of the table service.
    Unknown,
}

/// A member that is a property, and the type that its annotation gives, if there is one.
#[derive(Debug, PartialEq)]
pub(super) struct Member<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) declared: Option<Declared>,
    pub(super) value: Json<'a>,
}

/// Reads the members of the object that is `body`, in their order.
///
/// `DuplicatePropertiesSpecified` if one is there twice, `TooManyProperties` above
/// [`MEMBERS_MAX`], `InvalidInput` if the body is no such object.
pub(super) fn read(body: &[u8]) -> Result<Vec<Member<'_>>, TableError> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let mut refusal = None;
    let found = reader
        .deserialize_map(ObjectVisitor { refusal: &mut refusal })
        .and_then(|found| reader.end().map(|()| found))
        .map_err(|_| refusal.unwrap_or_else(unreadable))?;
    let members = found.into_iter().filter_map(|slot| {
        slot.value.map(|value| Member { name: slot.name, declared: slot.declared, value })
    });
    Ok(members.collect())
}

/// The service's answer to a body that it cannot read (recorded for an Int64 of 2^63): it does not
/// say what was wrong.
pub(super) fn unreadable() -> TableError {
    TableError::invalid_input("An error occurred while processing this request.")
}

/// What is known of one name so far: its annotation, its value or both.
struct Slot<'a> {
    name: Cow<'a, str>,
    declared: Option<Declared>,
    value: Option<Json<'a>>,
}

struct ObjectVisitor<'e> {
    /// Why the visit was given up, where serde's error type cannot say it.
    refusal: &'e mut Option<TableError>,
}

impl ObjectVisitor<'_> {
    fn refuse<T, E: Error>(self, refusal: impl Into<TableError>) -> Result<T, E> {
        *self.refusal = Some(refusal.into());
        Err(E::custom("refused"))
    }
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = Vec<Slot<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entity")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut slots: Vec<Slot<'de>> = Vec::with_capacity(16);
        while let Some(Name(name)) = map.next_key()? {
            match Role::of(name) {
                Role::Passed => {
                    map.next_value::<Json<'de>>()?;
                }
                Role::Type(name) => {
                    let Json::Text(declared) = map.next_value()? else {
                        return Err(A::Error::custom("a type that is no text"));
                    };
                    let declared = declared.parse().map_or(Declared::Unknown, Declared::Known);
                    let slot = slot_of(&mut slots, name);
                    if slot.declared.replace(declared).is_some() {
                        return Err(A::Error::custom("two types of one property"));
                    }
                }
                Role::Property(name) => {
                    let value = map.next_value()?;
                    let slot = slot_of(&mut slots, name);
                    if slot.value.replace(value).is_some() {
                        return self.refuse(ErrorCode::DuplicatePropertiesSpecified);
                    }
                }
            }
            if slots.len() > MEMBERS_MAX {
                return self.refuse(ErrorCode::TooManyProperties);
            }
        }
        Ok(slots)
    }
}

/// What a member is, by its name.
enum Role<'a> {
    Property(Cow<'a, str>),
    /// The type of the property so named.
    Type(Cow<'a, str>),
    /// Metadata that the service takes no notice of.
    Passed,
}

impl<'a> Role<'a> {
    fn of(name: Cow<'a, str>) -> Self {
        match name.find('@') {
            None if name.starts_with("odata.") => Self::Passed,
            None => Self::Property(name),
            Some(at) if &name[at..] == "@odata.type" => Self::Type(match name {
                Cow::Borrowed(name) => Cow::Borrowed(&name[..at]),
                Cow::Owned(mut name) => {
                    name.truncate(at);
                    Cow::Owned(name)
                }
            }),
            Some(_) => Self::Passed,
        }
    }
}

/// The slot of `name`, a new one if there is none. It is mostly the last: an annotation stands
/// beside its property.
fn slot_of<'s, 'a>(slots: &'s mut Vec<Slot<'a>>, name: Cow<'a, str>) -> &'s mut Slot<'a> {
    let index = slots.iter().rposition(|slot| slot.name == name).unwrap_or_else(|| {
        slots.push(Slot { name, declared: None, value: None });
        slots.len() - 1
    });
    &mut slots[index]
}

/// The name of a member, borrowed from the body unless it holds escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_str(JsonVisitor)? {
            Json::Text(name) => Ok(Self(name)),
            _ => Err(D::Error::custom("a name that is no text")),
        }
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    // What is not visited below, objects and arrays, is an error by serde's defaults.
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, a boolean or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Json::Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).map_or(Json::Number(value as f64), Json::Integer))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Json::Number(value))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Owned(value.to_owned())))
    }
}
