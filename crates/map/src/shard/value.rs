//! Values of Rust types as shard keys.

use uuid::Uuid;

use super::key::{NotAKey, ShardKey};
use super::key_type::{ShardKeyType, TEXT_BYTES_MAX};
use super::time::{DateTime, DateTimeOffset, TimeSpan, flipped, flipped_back};

/// A type whose values are keys of shard maps.
///
/// [`ShardKey`] is one too, for programs that learn a map's key type only at run time.
pub trait ShardKeyValue: Clone + Send + Sync + 'static {
    /// The key type; `None` if each value has its own, as with [`ShardKey`].
    const KEY_TYPE: Option<ShardKeyType>;

    /// The key of this value.
    ///
    /// # Errors
    ///
    /// [`NotAKey::Length`] for a text or bytes that are too long.
    fn to_key(&self) -> Result<ShardKey, NotAKey>;

    /// The value of this key.
    ///
    /// # Errors
    ///
    /// [`NotAKey::OtherType`], and [`NotAKey::Unreadable`] for bytes that are not a text.
    fn from_key(key: &ShardKey) -> Result<Self, NotAKey>;
}

/// The bytes of the value of a key, which must be of the wanted type.
fn written(key: &ShardKey, wanted: ShardKeyType) -> Result<&[u8], NotAKey> {
    match key.key_type() {
        given if given == wanted => Ok(key.written()),
        given => Err(NotAKey::OtherType { wanted, given }),
    }
}

impl ShardKeyValue for ShardKey {
    const KEY_TYPE: Option<ShardKeyType> = None;

    fn to_key(&self) -> Result<ShardKey, NotAKey> {
        Ok(self.clone())
    }

    fn from_key(key: &ShardKey) -> Result<Self, NotAKey> {
        Ok(key.clone())
    }
}

impl ShardKeyValue for i32 {
    const KEY_TYPE: Option<ShardKeyType> = Some(ShardKeyType::Int32);

    fn to_key(&self) -> Result<ShardKey, NotAKey> {
        ShardKey::from_raw(ShardKeyType::Int32, &(self ^ i32::MIN).to_be_bytes())
    }

    fn from_key(key: &ShardKey) -> Result<Self, NotAKey> {
        let raw = written(key, ShardKeyType::Int32)?;
        let bytes = raw.try_into().expect("a key of this type has four bytes");
        Ok(i32::from_be_bytes(bytes) ^ i32::MIN)
    }
}

impl ShardKeyValue for i64 {
    const KEY_TYPE: Option<ShardKeyType> = Some(ShardKeyType::Int64);

    fn to_key(&self) -> Result<ShardKey, NotAKey> {
        ShardKey::from_raw(ShardKeyType::Int64, &flipped(*self))
    }

    fn from_key(key: &ShardKey) -> Result<Self, NotAKey> {
        written(key, ShardKeyType::Int64).map(flipped_back)
    }
}

impl ShardKeyValue for Uuid {
    const KEY_TYPE: Option<ShardKeyType> = Some(ShardKeyType::Guid);

    fn to_key(&self) -> Result<ShardKey, NotAKey> {
        ShardKey::from_raw(ShardKeyType::Guid, &GUID_ORDER.map(|from| self.as_bytes()[from]))
    }

    fn from_key(key: &ShardKey) -> Result<Self, NotAKey> {
        let raw = written(key, ShardKeyType::Guid)?;
        let mut bytes = [0; 16];
        for (&to, &byte) in GUID_ORDER.iter().zip(raw) {
            bytes[to] = byte;
        }
        Ok(Uuid::from_bytes(bytes))
    }
}

/// A UUID whose keys are in the order of RFC 9562. The keys of [`Uuid`] itself are in SQL Server's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderedUuid(pub Uuid);

impl ShardKeyValue for OrderedUuid {
    const KEY_TYPE: Option<ShardKeyType> = Some(ShardKeyType::Uuid);

    fn to_key(&self) -> Result<ShardKey, NotAKey> {
        ShardKey::from_raw(ShardKeyType::Uuid, self.0.as_bytes())
    }

    fn from_key(key: &ShardKey) -> Result<Self, NotAKey> {
        let raw = written(key, ShardKeyType::Uuid)?;
        Ok(Self(Uuid::from_bytes(raw.try_into().expect("a key of this type has 16 bytes"))))
    }
}

/// For each byte of the key, its index in the written form. This is the order in which SQL Server compares
/// GUIDs.
const GUID_ORDER: [usize; 16] = [10, 11, 12, 13, 14, 15, 8, 9, 7, 6, 5, 4, 3, 2, 1, 0];

impl ShardKeyValue for Vec<u8> {
    const KEY_TYPE: Option<ShardKeyType> = Some(ShardKeyType::Binary);

    fn to_key(&self) -> Result<ShardKey, NotAKey> {
        let end = self.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        ShardKey::from_raw(ShardKeyType::Binary, &self[..end])
    }

    fn from_key(key: &ShardKey) -> Result<Self, NotAKey> {
        written(key, ShardKeyType::Binary).map(<[u8]>::to_vec)
    }
}

impl ShardKeyValue for String {
    const KEY_TYPE: Option<ShardKeyType> = Some(ShardKeyType::Text);

    fn to_key(&self) -> Result<ShardKey, NotAKey> {
        if self.len() > TEXT_BYTES_MAX {
            let (key_type, length) = (ShardKeyType::Text, self.len());
            return Err(NotAKey::Length { key_type, length, allowed: "at most 128" });
        }
        ShardKey::from_raw(ShardKeyType::Text, self.as_bytes())
    }

    fn from_key(key: &ShardKey) -> Result<Self, NotAKey> {
        let raw = written(key, ShardKeyType::Text)?;
        String::from_utf8(raw.to_vec()).map_err(|_| NotAKey::Unreadable {
            key_type: ShardKeyType::Text,
            text: raw.escape_ascii().to_string(),
            example: "UTF-8",
        })
    }
}

impl ShardKeyValue for DateTime {
    const KEY_TYPE: Option<ShardKeyType> = Some(ShardKeyType::DateTime);

    fn to_key(&self) -> Result<ShardKey, NotAKey> {
        ShardKey::from_raw(ShardKeyType::DateTime, &flipped(self.ticks()))
    }

    fn from_key(key: &ShardKey) -> Result<Self, NotAKey> {
        let ticks = flipped_back(written(key, ShardKeyType::DateTime)?);
        Ok(DateTime::from_ticks(ticks).expect("a key of this type is within its years"))
    }
}

impl ShardKeyValue for TimeSpan {
    const KEY_TYPE: Option<ShardKeyType> = Some(ShardKeyType::TimeSpan);

    fn to_key(&self) -> Result<ShardKey, NotAKey> {
        ShardKey::from_raw(ShardKeyType::TimeSpan, &flipped(self.0))
    }

    fn from_key(key: &ShardKey) -> Result<Self, NotAKey> {
        written(key, ShardKeyType::TimeSpan).map(flipped_back).map(TimeSpan)
    }
}

impl ShardKeyValue for DateTimeOffset {
    const KEY_TYPE: Option<ShardKeyType> = Some(ShardKeyType::DateTimeOffset);

    fn to_key(&self) -> Result<ShardKey, NotAKey> {
        ShardKey::from_raw(ShardKeyType::DateTimeOffset, &self.reference_bytes())
    }

    fn from_key(key: &ShardKey) -> Result<Self, NotAKey> {
        let ticks = flipped_back(written(key, ShardKeyType::DateTimeOffset)?);
        let utc = DateTime::from_ticks(ticks).expect("a key of this type is within its years");
        Ok(Self::new(utc, TimeSpan(0)))
    }
}
