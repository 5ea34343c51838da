//! Values of properties: the eight types of the Entity Data Model that Azure tables take.
//!
//! A GUID is kept as the sixteen bytes of its text, not in the mixed byte order of .NET's `Guid`.

use rangehold_map::Timestamp;

/// The type of a value. The numbers are stored in rows and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EdmType {
    /// `Edm.String`
    String = 1,
    /// `Edm.Binary`
    Binary = 2,
    /// `Edm.Boolean`
    Boolean = 3,
    /// `Edm.Int32`
    Int32 = 4,
    /// `Edm.Int64`
    Int64 = 5,
    /// `Edm.Double`
    Double = 6,
    /// `Edm.DateTime`
    DateTime = 7,
    /// `Edm.Guid`
    Guid = 8,
}

impl EdmType {
    /// The name on the wire, such as `Edm.Int32`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "Edm.String",
            Self::Binary => "Edm.Binary",
            Self::Boolean => "Edm.Boolean",
            Self::Int32 => "Edm.Int32",
            Self::Int64 => "Edm.Int64",
            Self::Double => "Edm.Double",
            Self::DateTime => "Edm.DateTime",
            Self::Guid => "Edm.Guid",
        }
    }

    /// The type with this name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// The type with this stored number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|t| *t as u8 == number)
    }

    const ALL: [Self; 8] = [
        Self::String,
        Self::Binary,
        Self::Boolean,
        Self::Int32,
        Self::Int64,
        Self::Double,
        Self::DateTime,
        Self::Guid,
    ];
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
    /// Its type.
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
    /// The value without its ownership.
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

/// Reads a GUID in a form that .NET reads: `c9da6455-213d-42c9-9a79-3e9149a57833`, the same without
/// hyphens, in braces or in parentheses; letters in either case. `None` for any other text.
pub fn parse_guid(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    let text = match text {
        [b'{', inner @ .., b'}'] | [b'(', inner @ .., b')'] if inner.len() == 36 => inner,
        _ => text,
    };
    let with_hyphens = text.len() == 36;
    if !with_hyphens && text.len() != 32 {
        return None;
    }
    let mut digits = text.iter();
    let mut guid = [0; 16];
    for (index, byte) in guid.iter_mut().enumerate() {
        if with_hyphens && matches!(index, 4 | 6 | 8 | 10) && digits.next() != Some(&b'-') {
            return None;
        }
        for _ in 0..2 {
            *byte = *byte << 4 | char::from(*digits.next()?).to_digit(16)? as u8;
        }
    }
    Some(guid)
}

/// Appends a GUID as the service writes it: lower case, with hyphens.
pub fn put_guid(out: &mut Vec<u8>, guid: [u8; 16]) {
    for (index, byte) in guid.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        for digit in [byte >> 4, byte & 0x0F] {
            out.push(b"0123456789abcdef"[usize::from(digit)]);
        }
    }
}
