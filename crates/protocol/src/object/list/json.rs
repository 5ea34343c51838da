//! A page of a listing as JSON, written while its rows are read.

use super::PageEnd;
use crate::object::fields::{Fields, Members};
use crate::object::generation::{Generation, ObjectAddress, Projection};

/// Bytes that a page is likely to need.
const BYTES_AT_FIRST: usize = 64 << 10;

/// The items of a page, and later the whole page.
#[derive(Debug)]
pub struct JsonPage<'a> {
    at: ObjectAddress<'a>,
    projection: Projection,
    fields: &'a Fields,
    items: Vec<u8>,
}

impl<'a> JsonPage<'a> {
    /// A page without items. The name in `at` is not used.
    pub fn new(at: ObjectAddress<'a>, projection: Projection, fields: &'a Fields) -> Self {
        Self { at, projection, fields, items: Vec::with_capacity(BYTES_AT_FIRST) }
    }

    /// Adds an item. Items that are encrypted with a client's key show no checksums.
    pub fn put(&mut self, name: &str, generation: &Generation) {
        let Some(fields) = self.fields.get("items") else { return };
        if !self.items.is_empty() {
            self.items.push(b',');
        }
        let at = ObjectAddress { name, ..self.at };
        generation.put_json(&mut self.items, &at, self.projection, fields, !generation.has_customer_key());
    }

    /// The whole page.
    pub fn finish(self, end: &PageEnd) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.items.len() + 256);
        let mut to = Members::begin(&mut out, self.fields);
        to.text("kind", "storage#objects");
        if let Some(next) = &end.next {
            to.text_with("nextPageToken", || next.token());
        }
        if !end.prefixes.is_empty() {
            to.value("prefixes", &end.prefixes);
        }
        if !self.items.is_empty()
            && let Some((out, _)) = to.member("items")
        {
            out.push(b'[');
            out.extend_from_slice(&self.items);
            out.push(b']');
        }
        to.end();
        out
    }
}
