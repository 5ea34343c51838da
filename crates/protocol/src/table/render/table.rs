//! Tables in replies: one table, or a page of them.

use super::json::Object;
use crate::json::put_text_open;
use crate::table::format::MetadataLevel;

/// Writes tables of one account for one reply.
#[derive(Debug, Clone, Copy)]
pub struct TableWriter<'a> {
    /// The part of the URI before `/Tables`: `https://host`, or `https://host/account` in path style.
    pub base: &'a str,
    /// The account's name.
    pub account: &'a str,
    /// How much metadata to write.
    pub level: MetadataLevel,
}

impl TableWriter<'_> {
    /// Writes the body of a reply with one table.
    pub fn one(&self, out: &mut Vec<u8>, name: &str) {
        let mut object = Object::begin(out);
        if self.level != MetadataLevel::None {
            self.put_metadata(object.member("odata.metadata"), "/@Element");
        }
        self.put_members(object, name);
    }

    /// Writes the beginning of a page's body.
    pub fn page_begin(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        if self.level != MetadataLevel::None {
            out.extend_from_slice(b"\"odata.metadata\":");
            self.put_metadata(out, "");
            out.push(b',');
        }
        out.extend_from_slice(b"\"value\":[");
    }

    /// Writes one table of a page; `first` for the first one.
    pub fn page_item(&self, out: &mut Vec<u8>, first: bool, name: &str) {
        if !first {
            out.push(b',');
        }
        self.put_members(Object::begin(out), name);
    }

    /// Writes the end of a page's body.
    pub fn page_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}");
    }

    fn put_metadata(&self, out: &mut Vec<u8>, kind: &str) {
        out.push(b'"');
        for part in [self.base, "/$metadata#Tables", kind] {
            put_text_open(out, part);
        }
        out.push(b'"');
    }

    /// Writes the members of one table and ends its object.
    fn put_members(&self, mut object: Object<'_>, name: &str) {
        if self.level == MetadataLevel::Full {
            object.text("odata.type", &format!("{}.Tables", self.account));
            object.text("odata.id", &super::table_uri(self.base, name));
            object.text("odata.editLink", &format!("Tables('{name}')"));
        }
        object.text("TableName", name);
        object.end();
    }
}
