//! The members of a JSON object, each with the annotation of its type.
//!
//! A serde visitor goes over the bytes once, and borrows from them where it can. It is written by hand
//! because a map type would lose the order of the members, and would hide that a member comes twice.
//!
//! An object or an array inside the entity is refused where it begins, so no input can make the reader
//! recurse. A member is compared with all members before it: for the usual dozen this is faster than
//! hashing, and [`MEMBERS_MAX`] limits the time for the worst body.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::super::limits::MEMBERS_MAX;
use super::super::value::EdmType;
use crate::error::{ErrorCode, TableError};

/// A JSON value that an entity can have.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    /// A number without a fraction and an exponent.
    Integer(i64),
    /// Any other number.
    Number(f64),
    Text(Cow<'a, str>),
}

/// The type that an annotation declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    Known(EdmType),
    /// A name that is not a type of the table service.
    Unknown,
}

/// A property, with the declared type if it has an annotation.
#[derive(Debug, PartialEq)]
pub(super) struct Member<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) declared: Option<Declared>,
    pub(super) value: Json<'a>,
}

/// Reads the properties of the object in `body`, in their order.
///
/// Fails with `DuplicatePropertiesSpecified` if a property comes twice, with `TooManyProperties` above
/// [`MEMBERS_MAX`] names, and with `InvalidInput` if the body is not a flat JSON object.
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

/// The service's error for a body that it cannot read (recorded for an Int64 of 2^63). It does not say what
/// is wrong.
pub(super) fn unreadable() -> TableError {
    TableError::invalid_input("An error occurred while processing this request.")
}

/// What the reader has seen for one name so far: the annotation, the value, or both.
struct Slot<'a> {
    name: Cow<'a, str>,
    declared: Option<Declared>,
    value: Option<Json<'a>>,
}

struct ObjectVisitor<'e> {
    /// Why the visit ended early. Serde's own error type cannot carry this.
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
                Role::Ignored => {
                    map.next_value::<Json<'de>>()?;
                }
                Role::Type(name) => {
                    let Json::Text(declared) = map.next_value()? else {
                        return Err(A::Error::custom("a type that is not a text"));
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

/// What a member's name makes it.
enum Role<'a> {
    Property(Cow<'a, str>),
    /// The type of the property with this name.
    Type(Cow<'a, str>),
    /// Metadata that the service ignores.
    Ignored,
}

impl<'a> Role<'a> {
    fn of(name: Cow<'a, str>) -> Self {
        match name.find('@') {
            None if name.starts_with("odata.") => Self::Ignored,
            None => Self::Property(name),
            Some(at) if &name[at..] == "@odata.type" => Self::Type(match name {
                Cow::Borrowed(name) => Cow::Borrowed(&name[..at]),
                Cow::Owned(mut name) => {
                    name.truncate(at);
                    Cow::Owned(name)
                }
            }),
            Some(_) => Self::Ignored,
        }
    }
}

/// The slot of `name`, or a new one. It is usually the last one, because most SDKs write the annotation
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
            _ => Err(D::Error::custom("a name that is not a text")),
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

    // Objects and arrays have no method below. By serde's defaults they are errors.
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
