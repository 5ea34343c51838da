//! Whether two sets of entities are the same.

use std::fmt;
use std::ops::{Add, AddAssign};

use md5::{Digest, Md5};
use rangehold_protocol::table::value::ValueRef;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::entity::Entity;

/// The number of entities, and the sum of their hashes.
///
/// An entity's hash covers its keys and the names, types and values of its properties, and neither Timestamp nor ETag.
/// The sum does not depend on the order, so parts can be added that were seen at the same time. It finds
/// mistakes; it is not made to find a forgery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fingerprint {
    /// How many entities.
    pub count: u64,
    /// The sum of their hashes, modulo 2^128.
    pub sum: u128,
}

impl Fingerprint {
    /// The fingerprint of some entities.
    pub fn of<'a>(entities: impl IntoIterator<Item = &'a Entity>) -> Self {
        entities.into_iter().map(Self::of_one).fold(Self::default(), Self::add)
    }

    fn of_one(entity: &Entity) -> Self {
        let mut hash = Md5::new();
        put(&mut hash, entity.keys.partition_key.as_bytes());
        put(&mut hash, entity.keys.row_key.as_bytes());
        for (name, value) in &entity.properties {
            put(&mut hash, name.as_bytes());
            hash.update([value.as_ref().edm_type() as u8]);
            put_value(&mut hash, value.as_ref());
        }
        Self { count: 1, sum: u128::from_be_bytes(hash.finalize().into()) }
    }

    /// The sum as text: 32 hexadecimal digits.
    pub fn hash(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

/// Each text comes after its length, so that two neighbours cannot be mistaken for two others.
fn put(hash: &mut Md5, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn put_value(hash: &mut Md5, value: ValueRef<'_>) {
    match value {
        ValueRef::String(text) => put(hash, text.as_bytes()),
        ValueRef::Binary(bytes) => put(hash, bytes),
        ValueRef::Boolean(flag) => hash.update([u8::from(flag)]),
        ValueRef::Int32(number) => hash.update(number.to_le_bytes()),
        ValueRef::Int64(number) => hash.update(number.to_le_bytes()),
        // All NaN are one value: the wire has one word for them.
        ValueRef::Double(number) if number.is_nan() => hash.update(f64::NAN.to_le_bytes()),
        ValueRef::Double(number) => hash.update(number.to_le_bytes()),
        ValueRef::DateTime(time) => hash.update(time.ticks().to_le_bytes()),
        ValueRef::Guid(guid) => hash.update(guid),
    }
}

impl Add for Fingerprint {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum.wrapping_add(other.sum) }
    }
}

impl AddAssign for Fingerprint {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Fingerprint {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entities, hash {}", self.count, self.hash())
    }
}

/// As it is written down: the hash as text, because few readers of JSON have integers of this size.
#[derive(Serialize, Deserialize)]
struct Written {
    count: u64,
    hash: String,
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written { count: self.count, hash: self.hash() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { count, hash } = Written::deserialize(deserializer)?;
        let sum = u128::from_str_radix(&hash, 16);
        let sum =
            sum.map_err(|_| D::Error::custom(format!("{hash:?} is not a hash of 32 hexadecimal digits")))?;
        Ok(Self { count, sum })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::{ETag, Timestamp};

    fn entity() -> Entity {
        Entity::new("p", "r").with("A", 1).with("B", "text")
    }

    #[test]
    fn only_what_is_moved_counts_and_all_of_it() {
        let one = Fingerprint::of([&entity()]);
        let mut read = entity();
        read.etag = Some(ETag::from_text("W/\"1\""));
        read.timestamp = Some(Timestamp::MIN_DATE_TIME);
        assert_eq!(Fingerprint::of([&read]), one, "version and time do not count");
        for other in [
            Entity { keys: crate::Keys::new("pr", ""), ..entity() },
            entity().with("A", 1_i64),
            entity().with("A", 2),
            entity().with("C", 1),
            Entity::new("p", "r").with("B", 1).with("A", "text"),
            Entity::new("p", "r").with("A", 1).with("B", "text".as_bytes().to_vec()),
        ] {
            assert_ne!(Fingerprint::of([&other]), one, "{other:?}");
        }
    }

    #[test]
    fn parts_add_up_in_any_order_and_a_double_is_seen() {
        let all: Vec<Entity> = (0..5).map(|n| Entity::new("p", n.to_string())).collect();
        let whole = Fingerprint::of(&all);
        assert_eq!(Fingerprint::of(all[2..].iter().rev()) + Fingerprint::of(&all[..2]), whole);
        assert_ne!(Fingerprint::of([&all[0], &all[0]]), Fingerprint::of([&all[1], &all[1]]));
        let text = serde_json::to_string(&whole).expect("it is JSON");
        assert_eq!(serde_json::from_str::<Fingerprint>(&text).expect("it is read back"), whole);
    }
}
