//! Values of properties: the eight types of the Entity Data Model that Azure tables take.
//!
//! A GUID is kept as the sixteen bytes in the order of its text, not in the mixed order of .NET's `Guid`.

use rangehold_map::Timestamp;
use strum::{EnumString, FromRepr, IntoStaticStr};

/// The type of a value. The numbers are stored in rows and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, FromRepr, IntoStaticStr)]
#[repr(u8)]
pub enum EdmType {
    /// `Edm.String`
    #[strum(serialize = "Edm.String")]
    String = 1,
    /// `Edm.Binary`
    #[strum(serialize = "Edm.Binary")]
    Binary = 2,
    /// `Edm.Boolean`
    #[strum(serialize = "Edm.Boolean")]
    Boolean = 3,
    /// `Edm.Int32`
    #[strum(serialize = "Edm.Int32")]
    Int32 = 4,
    /// `Edm.Int64`
    #[strum(serialize = "Edm.Int64")]
    Int64 = 5,
    /// `Edm.Double`
    #[strum(serialize = "Edm.Double")]
    Double = 6,
    /// `Edm.DateTime`
    #[strum(serialize = "Edm.DateTime")]
    DateTime = 7,
    /// `Edm.Guid`
    #[strum(serialize = "Edm.Guid")]
    Guid = 8,
}

impl EdmType {
    /// The name on the wire, such as `Edm.Int32`. `parse` reads it back.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A value that borrows its bytes from a stored row or from a [`Value`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    /// Text.
    String(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
    /// True or false.
    Boolean(bool),
    /// A 32-bit integer.
    Int32(i32),
    /// A 64-bit integer.
    Int64(i64),
    /// A 64-bit float; NaN and the infinities are values too.
    Double(f64),
    /// A point in time, in ticks of 100 ns.
    DateTime(Timestamp),
    /// A GUID, in the byte order of its text.
    Guid([u8; 16]),
}

impl ValueRef<'_> {
    /// The value's type.
    pub const fn edm_type(&self) -> EdmType {
        match self {
            Self::String(_) => EdmType::String,
            Self::Binary(_) => EdmType::Binary,
            Self::Boolean(_) => EdmType::Boolean,
            Self::Int32(_) => EdmType::Int32,
            Self::Int64(_) => EdmType::Int64,
            Self::Double(_) => EdmType::Double,
            Self::DateTime(_) => EdmType::DateTime,
            Self::Guid(_) => EdmType::Guid,
        }
    }

    /// A copy that owns its bytes.
    pub fn to_value(&self) -> Value {
        match *self {
            Self::String(s) => Value::String(s.to_owned()),
            Self::Binary(b) => Value::Binary(b.to_owned()),
            Self::Boolean(b) => Value::Boolean(b),
            Self::Int32(n) => Value::Int32(n),
            Self::Int64(n) => Value::Int64(n),
            Self::Double(n) => Value::Double(n),
            Self::DateTime(t) => Value::DateTime(t),
            Self::Guid(g) => Value::Guid(g),
        }
    }
}

/// A value that owns its bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    String(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// True or false.
    Boolean(bool),
    /// A 32-bit integer.
    Int32(i32),
    /// A 64-bit integer.
    Int64(i64),
    /// A 64-bit float.
    Double(f64),
    /// A point in time.
    DateTime(Timestamp),
    /// A GUID, in the byte order of its text.
    Guid([u8; 16]),
}

impl Value {
    /// The same value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::String(s) => ValueRef::String(s),
            Self::Binary(b) => ValueRef::Binary(b),
            Self::Boolean(b) => ValueRef::Boolean(*b),
            Self::Int32(n) => ValueRef::Int32(*n),
            Self::Int64(n) => ValueRef::Int64(*n),
            Self::Double(n) => ValueRef::Double(*n),
            Self::DateTime(t) => ValueRef::DateTime(*t),
            Self::Guid(g) => ValueRef::Guid(*g),
        }
    }
}

/// Each of these Rust types stands for one type of the service.
macro_rules! value_from {
    ($($rust:ty => $variant:ident),* $(,)?) => {
        $(impl From<$rust> for Value {
            fn from(value: $rust) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

value_from! {
    &str => String, String => String, Vec<u8> => Binary, bool => Boolean, i32 => Int32, i64 => Int64, f64 => Double,
    Timestamp => DateTime,
}

/// Where the hyphens of a GUID stand.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Reads a GUID in a form that .NET reads: `c9da6455-213d-42c9-9a79-3e9149a57833`, the same without
/// hyphens, in braces or in parentheses; letters in either case. `None` for any other text.
pub fn parse_guid(text: &str) -> Option<[u8; 16]> {
    let in_braces = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let in_parentheses = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    match in_braces.or(in_parentheses) {
        Some(inner) if inner.len() == 36 => parse_bare_guid(inner),
        _ => parse_bare_guid(text),
    }
}

/// Reads 32 hexadecimal digits, with all four hyphens or with none of them.
pub(super) fn parse_bare_guid(text: &str) -> Option<[u8; 16]> {
    if text.len() != 36 {
        return parse_hex(text)?.try_into().ok();
    }
    let well_placed = text.char_indices().all(|(at, c)| (c == '-') == HYPHENS.contains(&at));
    well_placed.then(|| parse_hex(&text.replace('-', "")))??.try_into().ok()
}

/// Reads pairs of hexadecimal digits, letters in either case. `None` for any other text.
pub(super) fn parse_hex(text: &str) -> Option<Vec<u8>> {
    // `decode` alone would also take a `0x` at the beginning.
    const_hex::check_raw(text).then(|| const_hex::decode(text).ok())?
}

/// Appends a GUID as the service writes it: lower case, with hyphens.
pub fn put_guid(out: &mut Vec<u8>, guid: [u8; 16]) {
    let digits = const_hex::const_encode::<16, false>(&guid);
    for (index, pair) in digits.as_bytes().chunks_exact(2).enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend_from_slice(pair);
    }
}
