//! Which columns a file has.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{Type, TypePtr};
use rangehold_client::{EdmType, Entity};

use super::REST;
use crate::table::limits::COLUMNS_MAX;

/// The properties that have a column, and whether others are left.
pub(super) struct Columns {
    pub(super) own: Vec<(String, EdmType)>,
    pub(super) has_rest: bool,
}

impl Columns {
    /// A column for each name and type in `entities`; for the most frequent ones if there are too many.
    pub(super) fn of(entities: &[Entity]) -> Self {
        let mut counts: BTreeMap<(&str, u8), (EdmType, u64)> = BTreeMap::new();
        for (name, value) in entities.iter().flat_map(|entity| &entity.properties) {
            let edm_type = value.as_ref().edm_type();
            counts.entry((name, edm_type as u8)).or_insert((edm_type, 0)).1 += 1;
        }
        let has_rest = counts.len() > COLUMNS_MAX;
        let mut all: Vec<_> =
            counts.into_iter().map(|((name, _), (edm_type, count))| (count, name, edm_type)).collect();
        if has_rest {
            all.sort_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
            all.truncate(COLUMNS_MAX);
        }
        Self {
            own: all.into_iter().map(|(_, name, edm_type)| (name.to_owned(), edm_type)).collect(),
            has_rest,
        }
    }

    pub(super) fn schema(&self) -> Result<TypePtr> {
        let mut fields =
            vec![text("PartitionKey", Repetition::REQUIRED)?, text("RowKey", Repetition::REQUIRED)?];
        for (name, edm_type) in &self.own {
            fields.push(field(name, *edm_type)?);
        }
        if self.has_rest {
            fields.push(text(REST, Repetition::OPTIONAL)?);
        }
        Ok(Arc::new(Type::group_type_builder("entity").with_fields(fields).build()?))
    }
}

fn text(name: &str, repetition: Repetition) -> Result<TypePtr> {
    let field = Type::primitive_type_builder(name, Physical::BYTE_ARRAY);
    Ok(Arc::new(field.with_repetition(repetition).with_logical_type(Some(LogicalType::String)).build()?))
}

fn field(name: &str, edm_type: EdmType) -> Result<TypePtr> {
    let name = column_name(name, edm_type);
    let (physical, logical, length) = match edm_type {
        EdmType::String => return text(&name, Repetition::OPTIONAL),
        EdmType::Binary => (Physical::BYTE_ARRAY, None, -1),
        EdmType::Boolean => (Physical::BOOLEAN, None, -1),
        EdmType::Int32 => (Physical::INT32, None, -1),
        EdmType::Int64 | EdmType::DateTime => (Physical::INT64, None, -1),
        EdmType::Double => (Physical::DOUBLE, None, -1),
        EdmType::Guid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid), 16),
    };
    let field = Type::primitive_type_builder(&name, physical).with_repetition(Repetition::OPTIONAL);
    Ok(Arc::new(field.with_logical_type(logical).with_length(length).build()?))
}

/// Such as `amount:Int64`.
fn column_name(name: &str, edm_type: EdmType) -> String {
    format!("{name}:{}", edm_type.name().trim_start_matches("Edm."))
}
