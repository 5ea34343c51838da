//! A page of a listing as JSON, written while its rows are read.
//!
//! What the page says of itself comes before its items, and is known after them only. So some bytes stay free before the
//! items, and a page is mostly ready without a copy: a thousand items are nearly a megabyte.

use bytes::Bytes;

use super::PageEnd;
use crate::member;
use crate::object::fields::{Fields, Members};
use crate::object::generation::{Generation, ObjectAddress, Projection};

/// Bytes that stay free before the items. A page with a long list of prefixes needs more, and is copied.
const HEAD_BYTES: usize = 2 << 10;
/// Bytes that a small page is likely to need.
const BYTES_AT_FIRST: usize = 64 << 10;
/// Bytes that a page which outgrows these is likely to need.
const BYTES_OF_FULL_PAGE: usize = 1 << 20;
/// An item needs more than this only if the client has given it long texts.
const BYTES_OF_ITEM: usize = 4 << 10;

/// The items of a page, and later the whole page.
#[derive(Debug)]
pub struct JsonPage<'a> {
    at: ObjectAddress<'a>,
    projection: Projection,
    fields: &'a Fields,
    /// The free bytes, and then the items.
    items: Vec<u8>,
}

impl<'a> JsonPage<'a> {
    /// A page without items. The name in `at` is not used.
    pub fn new(at: ObjectAddress<'a>, projection: Projection, fields: &'a Fields) -> Self {
        let mut items = Vec::with_capacity(BYTES_AT_FIRST);
        items.resize(HEAD_BYTES, b' ');
        Self { at, projection, fields, items }
    }

    /// Adds an item. Items that are encrypted with a client's key show no checksums.
    pub fn put(&mut self, name: &str, generation: &Generation) {
        let Some(fields) = self.fields.get("items") else { return };
        if self.has_items() {
            self.items.push(b',');
        }
        let room = self.items.capacity() - self.items.len();
        if room < BYTES_OF_ITEM && self.items.len() < BYTES_OF_FULL_PAGE {
            // At once: with each doubling all items would be copied.
            self.items.reserve(BYTES_OF_FULL_PAGE);
        }
        let at = ObjectAddress { name, ..self.at };
        generation.put_json(&mut self.items, &at, self.projection, fields, !generation.has_customer_key());
    }

    fn has_items(&self) -> bool {
        self.items.len() > HEAD_BYTES
    }

    /// The whole page.
    pub fn finish(mut self, end: &PageEnd) -> Bytes {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        let mut to = Members::begin(&mut head, self.fields);
        to.text(member!("kind"), "storage#objects");
        if let Some(next) = &end.next {
            to.text_with(member!("nextPageToken"), || next.token());
        }
        if !end.prefixes.is_empty() {
            to.value(member!("prefixes"), &end.prefixes);
        }
        if !self.has_items() {
            to.end();
            return Bytes::from(head);
        }
        let (out, _) = to.member(member!("items")).expect("only items that are wanted were put");
        out.push(b'[');
        self.items.extend_from_slice(b"]}");
        match HEAD_BYTES.checked_sub(head.len()) {
            Some(begin) => {
                self.items[begin..HEAD_BYTES].copy_from_slice(&head);
                Bytes::from(self.items).slice(begin..)
            }
            None => {
                head.extend_from_slice(&self.items[HEAD_BYTES..]);
                Bytes::from(head)
            }
        }
    }
}
