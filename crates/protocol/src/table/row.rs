//! The stored row of an entity: compact, and readable in place.
//!
//! A query filters rows, selects properties and writes JSON directly from these bytes, without building a
//! map of properties. The row does not contain PartitionKey and RowKey, because they are its key.
//!
//! ```text
//!   offset   size
//!   0        1      format of the row: 1
//!   1        8      Timestamp, ticks of 100 ns since 1970, little-endian
//!   9        2      n, the number of properties
//!   11       n*8    per property: name hash (u32), type (u8), end of its data (u24)
//!   11+n*8   ...    per property: name length in bytes (u16), name, value
//! ```
//!
//! Ends count from the first byte of data, so property `i` lies between end `i-1` and end `i`. A row with
//! 1 MiB of UTF-16 stays below 2^24. The hash is FNV-1a of the name's bytes; with it a look-up by name
//! compares one name and skips the others. A name has at most 255 UTF-16 units, and so at most 765 bytes. A
//! String is stored as UTF-8, a Binary as it is, a Boolean in one byte, an Int32 in four bytes, an Int64, a
//! Double and a DateTime in eight, little-endian, and a GUID in sixteen, in the order of its text.
//!
//! The format number is stored in every row. A reader refuses a number that it does not know.

use thiserror::Error;

use rangehold_map::Timestamp;

use super::value::{EdmType, ValueRef};

const FORMAT: u8 = 1;
const HEADER_BYTES: usize = 11;
const SLOT_BYTES: usize = 8;

/// Stored bytes that are not a row: the store is damaged, or a later release wrote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("stored row is damaged: {0}")]
pub struct DamagedRow(pub &'static str);

/// Writes a row of the given properties, in their order.
///
/// Panics if there are more than 65,535 properties, a name above 65,535 bytes or data above 16 MiB. The
/// limits of an entity are far below that, and are checked where input is parsed.
pub fn encode<'a>(
    timestamp: Timestamp,
    properties: impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>)>,
) -> Vec<u8> {
    let count = properties.len();
    let mut out = Vec::with_capacity(HEADER_BYTES + count * (SLOT_BYTES + 24));
    out.push(FORMAT);
    out.extend_from_slice(&timestamp.ticks().to_le_bytes());
    out.extend_from_slice(&u16::try_from(count).expect("properties are limited").to_le_bytes());
    out.resize(HEADER_BYTES + count * SLOT_BYTES, 0);
    let data = out.len();
    for (index, (name, value)) in properties.enumerate() {
        out.extend_from_slice(&u16::try_from(name.len()).expect("names are limited").to_le_bytes());
        out.extend_from_slice(name.as_bytes());
        put_value(&mut out, value);
        let end =
            u32::try_from(out.len() - data).ok().filter(|end| *end < 1 << 24).expect("rows are limited");
        let slot = &mut out[HEADER_BYTES + index * SLOT_BYTES..][..SLOT_BYTES];
        slot[..4].copy_from_slice(&name_hash(name).to_le_bytes());
        slot[4] = value.edm_type() as u8;
        slot[5..].copy_from_slice(&end.to_le_bytes()[..3]);
    }
    out
}

fn put_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::String(s) => out.extend_from_slice(s.as_bytes()),
        ValueRef::Binary(b) => out.extend_from_slice(b),
        ValueRef::Boolean(b) => out.push(u8::from(b)),
        ValueRef::Int32(n) => out.extend_from_slice(&n.to_le_bytes()),
        ValueRef::Int64(n) => out.extend_from_slice(&n.to_le_bytes()),
        ValueRef::Double(n) => out.extend_from_slice(&n.to_bits().to_le_bytes()),
        ValueRef::DateTime(t) => out.extend_from_slice(&t.ticks().to_le_bytes()),
        ValueRef::Guid(g) => out.extend_from_slice(&g),
    }
}

fn name_hash(name: &str) -> u32 {
    name.bytes().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A name that is looked up in many rows: its hash is computed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyName {
    text: String,
    hash: u32,
}

impl PropertyName {
    /// The name with this text.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), hash: name_hash(text) }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A row, read in place.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    timestamp: Timestamp,
    slots: &'a [[u8; SLOT_BYTES]],
    data: &'a [u8],
}

/// A property as it is stored. Its name and its value are checked when they are read.
#[derive(Debug, Clone, Copy)]
pub struct StoredProperty<'a> {
    name: &'a [u8],
    edm_type: EdmType,
    value: &'a [u8],
}

impl<'a> StoredProperty<'a> {
    /// The bytes of its name, which were not checked.
    pub fn name_bytes(&self) -> &'a [u8] {
        self.name
    }

    /// Its name.
    pub fn name(&self) -> Result<&'a str, DamagedRow> {
        std::str::from_utf8(self.name).map_err(|_| DamagedRow("a name that is not UTF-8"))
    }

    /// Its value.
    pub fn value(&self) -> Result<ValueRef<'a>, DamagedRow> {
        read_value(self.edm_type, self.value)
    }
}

impl<'a> RowView<'a> {
    /// Reads the header of a row, and checks that all of the row is there. Each property is checked only
    /// when it is read.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DamagedRow> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(DamagedRow("no header"))?;
        if header[0] != FORMAT {
            return Err(DamagedRow("unknown format"));
        }
        let ticks = i64::from_le_bytes(header[1..9].try_into().expect("eight bytes"));
        let count = usize::from(u16::from_le_bytes([header[9], header[10]]));
        let (slots, data) = rest.split_at_checked(count * SLOT_BYTES).ok_or(DamagedRow("slots cut off"))?;
        let (slots, _) = slots.as_chunks();
        let row = Self { timestamp: Timestamp::from_ticks(ticks), slots, data };
        if row.end(count) != data.len() {
            return Err(DamagedRow("data cut off"));
        }
        Ok(row)
    }

    /// When the entity was last written. The entity's ETag is made from this time.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// How many properties the row has, without the three system properties.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the row has no properties except the system properties.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Where property `count - 1` ends.
    fn end(&self, count: usize) -> usize {
        match count {
            0 => 0,
            _ => (u64::from_le_bytes(self.slots[count - 1]) >> 40) as usize,
        }
    }

    fn property(&self, index: usize) -> Result<StoredProperty<'a>, DamagedRow> {
        let bytes = self
            .data
            .get(self.end(index)..self.end(index + 1))
            .ok_or(DamagedRow("a property out of place"))?;
        let (length, rest) = bytes.split_first_chunk::<2>().ok_or(DamagedRow("no name"))?;
        let (name, value) = rest
            .split_at_checked(usize::from(u16::from_le_bytes(*length)))
            .ok_or(DamagedRow("name cut off"))?;
        let edm_type = EdmType::from_repr(self.slots[index][4]).ok_or(DamagedRow("unknown type"))?;
        Ok(StoredProperty { name, edm_type, value })
    }

    /// All properties in the order in which they were written.
    pub fn properties(&self) -> impl Iterator<Item = Result<(&'a str, ValueRef<'a>), DamagedRow>> + use<'a> {
        self.stored_properties().map(|property| {
            let property = property?;
            Ok((property.name()?, property.value()?))
        })
    }

    /// The same properties, unread.
    pub fn stored_properties(
        &self,
    ) -> impl Iterator<Item = Result<StoredProperty<'a>, DamagedRow>> + use<'a> {
        let row = *self;
        (0..row.len()).map(move |index| row.property(index))
    }

    /// The value of a property by its name, which is case-sensitive; `None` if the row lacks it.
    pub fn get(&self, name: &str) -> Result<Option<ValueRef<'a>>, DamagedRow> {
        self.find(name, name_hash(name))
    }

    /// The same as [`Self::get`], for a name that is looked up in many rows.
    pub fn get_named(&self, name: &PropertyName) -> Result<Option<ValueRef<'a>>, DamagedRow> {
        self.find(&name.text, name.hash)
    }

    fn find(&self, name: &str, hash: u32) -> Result<Option<ValueRef<'a>>, DamagedRow> {
        for (index, slot) in self.slots.iter().enumerate() {
            if u64::from_le_bytes(*slot) as u32 == hash {
                let property = self.property(index)?;
                if property.name == name.as_bytes() {
                    return property.value().map(Some);
                }
            }
        }
        Ok(None)
    }
}

fn read_value(edm_type: EdmType, bytes: &[u8]) -> Result<ValueRef<'_>, DamagedRow> {
    fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], DamagedRow> {
        bytes.try_into().map_err(|_| DamagedRow("a value of the wrong size"))
    }
    Ok(match edm_type {
        EdmType::String => {
            ValueRef::String(std::str::from_utf8(bytes).map_err(|_| DamagedRow("a text that is not UTF-8"))?)
        }
        EdmType::Binary => ValueRef::Binary(bytes),
        EdmType::Boolean => ValueRef::Boolean(fixed::<1>(bytes)?[0] != 0),
        EdmType::Int32 => ValueRef::Int32(i32::from_le_bytes(fixed(bytes)?)),
        EdmType::Int64 => ValueRef::Int64(i64::from_le_bytes(fixed(bytes)?)),
        EdmType::Double => ValueRef::Double(f64::from_bits(u64::from_le_bytes(fixed(bytes)?))),
        EdmType::DateTime => ValueRef::DateTime(Timestamp::from_ticks(i64::from_le_bytes(fixed(bytes)?))),
        EdmType::Guid => ValueRef::Guid(fixed(bytes)?),
    })
}
