//! A page of entities.
//!
//! Most entities of a page have the same properties in the same order. So the writer keeps how each member of the last entity
//! began, `,"Age@odata.type":"Edm.Int64","Age":`, and copies that as long as the stored name and the type are the same:
//! the name is checked and escaped once for the page.

use super::entity::{EntityWriter, Source, put_value};
use super::json::Object;
use crate::table::row::{DamagedRow, RowView, StoredProperty};
use crate::table::value::EdmType;

/// Writes the entities of one page. [`EntityWriter::page`] makes it.
#[derive(Debug)]
pub struct PageWriter<'a> {
    writer: EntityWriter<'a>,
    is_empty: bool,
    /// How the members of the last entity began, by their positions.
    beginnings: Vec<Beginning>,
}

impl<'a> EntityWriter<'a> {
    /// Writes the beginning of a page's body.
    pub fn page(self, out: &mut Vec<u8>) -> PageWriter<'a> {
        out.push(b'{');
        if self.writes_metadata() {
            out.extend_from_slice(b"\"odata.metadata\":");
            self.put_metadata(out, "");
            out.push(b',');
        }
        out.extend_from_slice(b"\"value\":[");
        PageWriter { writer: self, is_empty: true, beginnings: Vec::new() }
    }
}

impl PageWriter<'_> {
    /// Writes one entity of the page. If the row is damaged, `out` holds a part of it.
    pub fn item(
        &mut self,
        out: &mut Vec<u8>,
        partition_key: &str,
        row_key: &str,
        row: &RowView<'_>,
    ) -> Result<(), DamagedRow> {
        if !std::mem::replace(&mut self.is_empty, false) {
            out.push(b',');
        }
        let (writer, source) = (self.writer, Source { partition_key, row_key, row });
        let mut object = Object::begin(out);
        writer.put_links(&mut object, source);
        if let Some(select) = writer.select {
            writer.put_selected(&mut object, source, select)?;
        } else {
            writer.put_own(&mut object, source);
            for (index, property) in row.stored_properties().enumerate() {
                let property = property?;
                let value = property.value()?;
                let beginning = self.beginning(index, &property, writer.annotation(value))?;
                put_value(object.member_begun(&beginning.text), value);
            }
        }
        object.end();
        Ok(())
    }

    /// Writes the end of the page's body.
    pub fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}");
    }

    /// How the member at this position begins.
    fn beginning(
        &mut self,
        index: usize,
        property: &StoredProperty<'_>,
        annotation: Option<EdmType>,
    ) -> Result<&Beginning, DamagedRow> {
        if self.beginnings.len() == index {
            self.beginnings.push(Beginning::default());
        }
        let beginning = &mut self.beginnings[index];
        let is_known = !beginning.text.is_empty()
            && beginning.name == property.name_bytes()
            && beginning.annotation == annotation;
        if !is_known {
            beginning.be_of(property, annotation)?;
        }
        Ok(beginning)
    }
}

/// How a member begins that stands behind another one.
#[derive(Debug, Default)]
struct Beginning {
    name: Vec<u8>,
    annotation: Option<EdmType>,
    text: Vec<u8>,
}

impl Beginning {
    fn be_of(
        &mut self,
        property: &StoredProperty<'_>,
        annotation: Option<EdmType>,
    ) -> Result<(), DamagedRow> {
        let name = property.name()?;
        self.name.clear();
        self.name.extend_from_slice(property.name_bytes());
        self.annotation = annotation;
        self.text.clear();
        let mut object = Object::go_on(&mut self.text);
        if let Some(edm_type) = annotation {
            object.type_of(name, edm_type);
        }
        object.member(name);
        Ok(())
    }
}
