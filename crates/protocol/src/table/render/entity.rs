//! One entity, and what a page of them shares with it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rangehold_map::Timestamp;

use super::double::put_double;
use super::json::Object;
use super::uri::put_entity_path;
use crate::json::{put_number, put_text, put_text_open};
use crate::table::etag;
use crate::table::format::MetadataLevel;
use crate::table::row::{DamagedRow, RowView};
use crate::table::select::Select;
use crate::table::value::{EdmType, ValueRef, put_guid};
use crate::time::put_iso;

/// Writes entities of one table for one reply.
#[derive(Debug, Clone, Copy)]
pub struct EntityWriter<'a> {
    /// The part of a table's URI before its name, without the slash: `https://host`, or
    /// `https://host/account` in path style.
    pub base: &'a str,
    /// The account's name.
    pub account: &'a str,
    /// The table's name, as the request spelled it.
    pub table: &'a str,
    /// How much metadata to write.
    pub level: MetadataLevel,
    /// The properties to write; `None` for all.
    pub select: Option<&'a Select>,
}

/// A row with its keys.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) partition_key: &'a str,
    pub(super) row_key: &'a str,
    pub(super) row: &'a RowView<'a>,
}

impl EntityWriter<'_> {
    /// Writes the body of a reply with one entity. If the row is damaged, `out` holds a part of it.
    pub fn one(
        &self,
        out: &mut Vec<u8>,
        partition_key: &str,
        row_key: &str,
        row: &RowView<'_>,
    ) -> Result<(), DamagedRow> {
        let mut object = Object::begin(out);
        if self.writes_metadata() {
            self.put_metadata(object.member("odata.metadata"), "/@Element");
        }
        let source = Source { partition_key, row_key, row };
        self.put_links(&mut object, source);
        match self.select {
            Some(select) => self.put_selected(&mut object, source, select)?,
            None => {
                self.put_own(&mut object, source);
                for property in row.properties() {
                    let (name, value) = property?;
                    self.put_property(&mut object, name, value);
                }
            }
        }
        object.end();
        Ok(())
    }

    pub(super) fn writes_metadata(&self) -> bool {
        self.level != MetadataLevel::None
    }

    /// `"<base>/$metadata#<table><kind>&$select=<names>"`
    pub(super) fn put_metadata(&self, out: &mut Vec<u8>, kind: &str) {
        out.push(b'"');
        for part in [self.base, "/$metadata#", self.table, kind] {
            put_text_open(out, part);
        }
        for (index, name) in self.select.into_iter().flat_map(Select::names).enumerate() {
            put_text_open(out, if index == 0 { "&$select=" } else { "," });
            put_text_open(out, name);
        }
        out.push(b'"');
    }

    /// The properties that the service itself gives an entity.
    pub(super) fn put_own(&self, object: &mut Object<'_>, source: Source<'_>) {
        object.text("PartitionKey", source.partition_key);
        object.text("RowKey", source.row_key);
        self.put_timestamp(object, source.row.timestamp());
    }

    /// The properties that the client has chosen.
    pub(super) fn put_selected(
        &self,
        object: &mut Object<'_>,
        source: Source<'_>,
        select: &Select,
    ) -> Result<(), DamagedRow> {
        for name in select.names() {
            match name.as_str() {
                "PartitionKey" => object.text(name, source.partition_key),
                "RowKey" => object.text(name, source.row_key),
                "Timestamp" => self.put_timestamp(object, source.row.timestamp()),
                _ => match source.row.get(name)? {
                    Some(value) => self.put_property(object, name, value),
                    None => object.member(name).extend_from_slice(b"null"),
                },
            }
        }
        Ok(())
    }

    /// The metadata of an entity, in the recorded order.
    pub(super) fn put_links(&self, object: &mut Object<'_>, source: Source<'_>) {
        if self.level == MetadataLevel::Full {
            let out = object.member("odata.type");
            out.push(b'"');
            put_text_open(out, self.account);
            out.push(b'.');
            put_text_open(out, self.table);
            out.push(b'"');
            let out = object.member("odata.id");
            out.push(b'"');
            put_text_open(out, self.base);
            out.push(b'/');
            put_entity_path(out, self.table, source.partition_key, source.row_key);
            out.push(b'"');
        }
        if self.writes_metadata() {
            let out = object.member("odata.etag");
            out.extend_from_slice(b"\"W/\\\"datetime'");
            etag::put_encoded_time(out, source.row.timestamp());
            out.extend_from_slice(b"'\\\"\"");
        }
        if self.level == MetadataLevel::Full {
            let out = object.member("odata.editLink");
            out.push(b'"');
            put_entity_path(out, self.table, source.partition_key, source.row_key);
            out.push(b'"');
        }
    }

    fn put_timestamp(&self, object: &mut Object<'_>, time: Timestamp) {
        if self.level == MetadataLevel::Full {
            object.type_of("Timestamp", EdmType::DateTime);
        }
        put_time(object.member("Timestamp"), time);
    }

    fn put_property(&self, object: &mut Object<'_>, name: &str, value: ValueRef<'_>) {
        if let Some(edm_type) = self.annotation(value) {
            object.type_of(name, edm_type);
        }
        put_value(object.member(name), value);
    }

    /// The type that stands before the value, if the reply has metadata and the form of the value does not show it.
    pub(super) fn annotation(&self, value: ValueRef<'_>) -> Option<EdmType> {
        (self.writes_metadata() && !shows_its_type(value)).then(|| value.edm_type())
    }
}

/// Whether the form of the value shows its type.
fn shows_its_type(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::String(_) | ValueRef::Boolean(_) | ValueRef::Int32(_) => true,
        ValueRef::Double(number) => number.is_finite(),
        ValueRef::Binary(_) | ValueRef::Int64(_) | ValueRef::DateTime(_) | ValueRef::Guid(_) => false,
    }
}

pub(super) fn put_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::String(text) => put_text(out, text),
        ValueRef::Boolean(true) => out.extend_from_slice(b"true"),
        ValueRef::Boolean(false) => out.extend_from_slice(b"false"),
        ValueRef::Int32(number) => put_number(out, number),
        ValueRef::Int64(number) => {
            out.push(b'"');
            put_number(out, number);
            out.push(b'"');
        }
        ValueRef::Double(number) if number.is_finite() => put_double(out, number),
        ValueRef::Double(number) if number.is_nan() => out.extend_from_slice(b"\"NaN\""),
        ValueRef::Double(number) if number > 0.0 => out.extend_from_slice(b"\"Infinity\""),
        ValueRef::Double(_) => out.extend_from_slice(b"\"-Infinity\""),
        ValueRef::DateTime(time) => put_time(out, time),
        ValueRef::Guid(guid) => {
            out.push(b'"');
            put_guid(out, guid);
            out.push(b'"');
        }
        ValueRef::Binary(bytes) => put_base64(out, bytes),
    }
}

fn put_time(out: &mut Vec<u8>, time: Timestamp) {
    out.push(b'"');
    put_iso(out, time);
    out.push(b'"');
}

fn put_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    STANDARD
        .encode_slice(bytes, &mut out[start..])
        .expect("four characters for every three bytes were made room for");
    out.push(b'"');
}
