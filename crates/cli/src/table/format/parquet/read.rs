//! Reading a file, row by row: one of ours, or one that another program made. In the latter a column without a type in
//! its name has the type that its values have.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail};
use parquet::file::reader::SerializedFileReader;
use parquet::record::{Field, Row};
use rangehold_client::{EdmType, Entity, Timestamp, Value};

use super::super::Rows;
use super::REST;
use crate::typed::edm_type;

/// Ticks in a millisecond and in a microsecond.
const TICKS: (i64, i64) = (10_000, 10);

pub(in super::super) fn read(path: &Path) -> Result<Rows> {
    let cannot = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    let rows = SerializedFileReader::new(file).with_context(cannot)?.into_iter();
    let entities = rows.enumerate().map(|(number, row)| {
        row.map_err(anyhow::Error::from).and_then(entity).with_context(|| format!("row {}", number + 1))
    });
    Ok(Box::new(entities))
}

fn entity(row: Row) -> Result<Entity> {
    let (mut partition_key, mut row_key) = (None, None);
    let mut entity = Entity::new("", "");
    for (name, field) in row.into_columns() {
        match (name.as_str(), field) {
            (_, Field::Null) | ("Timestamp", _) => {}
            ("PartitionKey", Field::Str(key)) => partition_key = Some(key),
            ("RowKey", Field::Str(key)) => row_key = Some(key),
            (key @ ("PartitionKey" | "RowKey"), other) => bail!("the {key} is not a text but {other}"),
            (REST, Field::Str(json)) => {
                entity.properties.append(&mut Entity::from_json(json.as_bytes())?.properties);
            }
            (column, field) => {
                let (name, value) =
                    property(column, field).with_context(|| format!("the column {column}"))?;
                entity.properties.insert(name.to_owned(), value);
            }
        }
    }
    entity.keys.partition_key = partition_key.context("there is no PartitionKey")?;
    entity.keys.row_key = row_key.context("there is no RowKey")?;
    Ok(entity)
}

fn property(column: &str, field: Field) -> Result<(&str, Value)> {
    let declared = column.rsplit_once(':').and_then(|(name, word)| Some((name, edm_type(word).ok()?)));
    match declared {
        Some((name, edm_type)) => Ok((name, typed(edm_type, field)?)),
        None => Ok((column, untyped(field)?)),
    }
}

fn typed(edm_type: EdmType, field: Field) -> Result<Value> {
    Ok(match (edm_type, field) {
        (EdmType::DateTime, Field::Long(ticks)) => Value::DateTime(Timestamp::from_ticks(ticks)),
        (EdmType::Guid, Field::Bytes(bytes)) => {
            Value::Guid(bytes.data().try_into().context("a GUID has 16 bytes")?)
        }
        (edm_type, field) => match untyped(field)? {
            value if value.as_ref().edm_type() == edm_type => value,
            other => bail!("{other:?} is not a value of the type {}", edm_type.name()),
        },
    })
}

fn untyped(field: Field) -> Result<Value> {
    Ok(match field {
        Field::Bool(flag) => Value::Boolean(flag),
        Field::Byte(number) => Value::Int32(number.into()),
        Field::Short(number) => Value::Int32(number.into()),
        Field::Int(number) => Value::Int32(number),
        Field::UByte(number) => Value::Int32(number.into()),
        Field::UShort(number) => Value::Int32(number.into()),
        Field::UInt(number) => Value::Int64(number.into()),
        Field::Long(number) => Value::Int64(number),
        Field::ULong(number) => Value::Int64(i64::try_from(number).context("it is above the largest Int64")?),
        Field::Float(number) => Value::Double(number.into()),
        Field::Double(number) => Value::Double(number),
        Field::Str(text) => Value::String(text),
        Field::Bytes(bytes) => Value::Binary(bytes.data().to_vec()),
        Field::TimestampMillis(time) => Value::DateTime(Timestamp::from_ticks(time.saturating_mul(TICKS.0))),
        Field::TimestampMicros(time) => Value::DateTime(Timestamp::from_ticks(time.saturating_mul(TICKS.1))),
        other => bail!("no property has the type of {other}"),
    })
}
