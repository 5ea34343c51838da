//! Writing a file: one row group, column by column.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result};
use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    Int32Type, Int64Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use rangehold_client::{EdmType, Entity, Value};

use super::columns::Columns;

/// What a reader that knows nothing of us finds in the file.
const NOTES: [(&str, &str); 3] = [
    (
        "rangehold.columns",
        "NAME:TYPE is a property and its type in Azure Table Storage; null: the entity has no such property",
    ),
    ("rangehold.DateTime", "INT64: ticks of 100 ns since 1970-01-01T00:00:00Z, negative before"),
    (
        "rangehold.rest:json",
        "properties without a column of their own, as a JSON object with NAME@odata.type",
    ),
];

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

pub(in super::super) fn write(entities: &[Entity]) -> Result<Vec<u8>> {
    let columns = Columns::of(entities);
    let notes = NOTES.map(|(name, note)| KeyValue::new(name.to_owned(), note.to_owned()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(notes.into()))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), columns.schema()?, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    put_keys(&mut group, entities, |entity| &entity.keys.partition_key)?;
    put_keys(&mut group, entities, |entity| &entity.keys.row_key)?;
    for (name, edm_type) in &columns.own {
        put_column(&mut group, entities, name, *edm_type)?;
    }
    if columns.has_rest {
        put_rest(&mut group, entities, &columns)?;
    }
    group.close()?;
    Ok(file.into_inner()?)
}

fn put_keys(group: &mut Group<'_>, entities: &[Entity], key: impl Fn(&Entity) -> &String) -> Result<()> {
    let keys: Vec<ByteArray> = entities.iter().map(|entity| key(entity).as_str().into()).collect();
    put::<ByteArrayType>(group, &keys, None)
}

/// Appends the next column of the schema. `levels` has 1 for each entity with a value, and 0 for the others.
fn put<T: DataType>(group: &mut Group<'_>, values: &[T::T], levels: Option<&[i16]>) -> Result<()> {
    let mut column = group.next_column()?.context("the schema has as many columns as are written")?;
    column.typed::<T>().write_batch(values, levels, None)?;
    Ok(column.close()?)
}

/// Appends an optional column of the values that `pick` finds.
fn put_optional<T: DataType>(
    group: &mut Group<'_>,
    entities: &[Entity],
    pick: impl Fn(&Entity) -> Option<T::T>,
) -> Result<()> {
    let mut levels = Vec::with_capacity(entities.len());
    let mut values = Vec::new();
    for entity in entities {
        let value = pick(entity);
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    put::<T>(group, &values, Some(&levels))
}

fn put_column(group: &mut Group<'_>, entities: &[Entity], name: &str, edm_type: EdmType) -> Result<()> {
    /// The column of the values of one type.
    macro_rules! column {
        ($parquet:ty, $variant:ident($value:ident) => $stored:expr) => {
            put_optional::<$parquet>(group, entities, |entity| match entity.get(name)? {
                Value::$variant($value) => Some($stored),
                _ => None,
            })
        };
    }
    match edm_type {
        EdmType::String => column!(ByteArrayType, String(text) => text.as_str().into()),
        EdmType::Binary => column!(ByteArrayType, Binary(bytes) => bytes.clone().into()),
        EdmType::Boolean => column!(BoolType, Boolean(flag) => *flag),
        EdmType::Int32 => column!(Int32Type, Int32(number) => *number),
        EdmType::Int64 => column!(Int64Type, Int64(number) => *number),
        EdmType::Double => column!(DoubleType, Double(number) => *number),
        EdmType::DateTime => column!(Int64Type, DateTime(time) => time.ticks()),
        EdmType::Guid => {
            column!(FixedLenByteArrayType, Guid(guid) => FixedLenByteArray::from(guid.to_vec()))
        }
    }
}

/// The properties without a column, as the service writes an entity that has only them.
fn put_rest(group: &mut Group<'_>, entities: &[Entity], columns: &Columns) -> Result<()> {
    let own: BTreeSet<(&str, u8)> =
        columns.own.iter().map(|(name, edm_type)| (name.as_str(), *edm_type as u8)).collect();
    put_optional::<ByteArrayType>(group, entities, |entity| {
        let mut rest = Entity::new("", "");
        let left = entity
            .properties
            .iter()
            .filter(|(name, value)| !own.contains(&(name.as_str(), value.as_ref().edm_type() as u8)));
        rest.properties.extend(left.map(|(name, value)| (name.clone(), value.clone())));
        (!rest.properties.is_empty()).then(|| rest.to_json().into())
    })
}

#[cfg(test)]
mod tests {
    use rangehold_client::moving::Fingerprint;

    use super::*;
    use crate::table::limits::COLUMNS_MAX;

    #[test]
    fn rare_names_share_a_column_and_come_back() {
        let entities: Vec<Entity> = (0..COLUMNS_MAX + 50)
            .map(|n| {
                Entity::new("p", n.to_string()).with("Common", true).with(format!("Rare{n:05}"), n as i64)
            })
            .collect();
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), write(&entities).expect("it can be written")).expect("there is room");
        assert_eq!(Columns::of(&entities).own.len(), COLUMNS_MAX);
        let found: Result<Vec<Entity>> = super::super::read(file.path()).and_then(Iterator::collect);
        assert_eq!(Fingerprint::of(&found.expect("it can be read")), Fingerprint::of(&entities));
    }
}
