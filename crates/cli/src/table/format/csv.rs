//! CSV as Storage Explorer exchanges it: a first line with names, and beside each column `NAME` a column `NAME@type`.
//!
//! A value without a type is an absent property if it is empty, and else a number or a text, as it looks. So files that
//! have no types can be imported too. A column Timestamp is ignored, since the service sets it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use rangehold_client::Entity;

use super::Rows;
use crate::table::limits::RECORD_BYTES_MAX;
use crate::typed;

/// The ending of the names of columns that hold types.
const TYPE: &str = "@type";
/// What some editors put before the first name.
const MARK: &str = "\u{feff}";

pub(super) fn write(entities: &[Entity]) -> Vec<u8> {
    let names: BTreeSet<&str> =
        entities.iter().flat_map(|entity| entity.properties.keys().map(String::as_str)).collect();
    let mut out = String::from("PartitionKey,RowKey");
    for name in &names {
        out.push_str(&format!(",{name},{name}{TYPE}"));
    }
    out.push_str("\r\n");
    for entity in entities {
        put(&mut out, &entity.keys.partition_key);
        out.push(',');
        put(&mut out, &entity.keys.row_key);
        for name in &names {
            out.push(',');
            if let Some(value) = entity.get(name) {
                put(&mut out, &typed::write(value));
                out.push(',');
                out.push_str(value.as_ref().edm_type().name());
            } else {
                out.push(',');
            }
        }
        out.push_str("\r\n");
    }
    out.into_bytes()
}

/// A field, in quotes if it has a character that means something.
fn put(out: &mut String, field: &str) {
    match field.contains([',', '"', '\r', '\n']) || field.trim() != field {
        true => out.push_str(&format!("\"{}\"", field.replace('"', "\"\""))),
        false => out.push_str(field),
    }
}

pub(super) fn read(path: &Path) -> Result<Rows> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut records = Records { bytes: BufReader::new(file).bytes(), held: None, number: 0 };
    let Some(names) = records.next()? else {
        bail!("{} is empty: the first line must have names", path.display())
    };
    let columns = Columns::of(names)?;
    Ok(Box::new(std::iter::from_fn(move || {
        let record = records.next().transpose()?;
        let number = records.number;
        Some(record.and_then(|record| columns.entity(&record).with_context(|| format!("row {number}"))))
    })))
}

/// Where what is.
struct Columns {
    names: Vec<String>,
    partition_key: usize,
    row_key: usize,
    /// A name, its column, and the column of its types.
    properties: Vec<(String, usize, Option<usize>)>,
}

impl Columns {
    fn of(mut names: Vec<String>) -> Result<Self> {
        if let Some(rest) = names[0].strip_prefix(MARK) {
            names[0] = rest.to_owned();
        }
        let at = |wanted: &str| names.iter().position(|name| name == wanted);
        let key = |name: &str| at(name).with_context(|| format!("the first line has no column {name}"));
        let is_property = |name: &str| {
            !name.ends_with(TYPE) && !matches!(name, "PartitionKey" | "RowKey" | "Timestamp" | "")
        };
        let properties = names.iter().enumerate().filter(|(_, name)| is_property(name));
        let properties =
            properties.map(|(value, name)| (name.clone(), value, at(&format!("{name}{TYPE}")))).collect();
        Ok(Self { partition_key: key("PartitionKey")?, row_key: key("RowKey")?, properties, names })
    }

    fn entity(&self, record: &[String]) -> Result<Entity> {
        if record.len() != self.names.len() {
            bail!("it has {} fields, and the first line has {}", record.len(), self.names.len());
        }
        let mut entity = Entity::new(&record[self.partition_key], &record[self.row_key]);
        for (name, value, edm_type) in &self.properties {
            let (value, edm_type) = (&record[*value], edm_type.map_or("", |at| &record[at]));
            let value = match (edm_type, value.as_str()) {
                ("", "") => continue,
                ("", value) => typed::guess(value),
                (edm_type, value) => typed::edm_type(edm_type)
                    .and_then(|edm_type| typed::read(edm_type, value))
                    .with_context(|| format!("the property {name}"))?,
            };
            entity.properties.insert(name.clone(), value);
        }
        Ok(entity)
    }
}

/// The records of a file, by RFC 4180: fields between commas; in quotes a field has commas and line ends as they are,
/// and two quotes for one.
struct Records {
    bytes: std::io::Bytes<BufReader<File>>,
    /// A byte that was read too early.
    held: Option<u8>,
    /// How many records were read; the first line is 1.
    number: u64,
}

impl Records {
    fn byte(&mut self) -> Result<Option<u8>> {
        match self.held.take() {
            Some(byte) => Ok(Some(byte)),
            None => Ok(self.bytes.next().transpose()?),
        }
    }

    fn next(&mut self) -> Result<Option<Vec<String>>> {
        self.number += 1;
        loop {
            match self.byte()? {
                None => return Ok(None),
                // An empty line.
                Some(b'\r' | b'\n') => {}
                Some(byte) => {
                    self.held = Some(byte);
                    let number = self.number;
                    return self.record().map(Some).with_context(|| format!("row {number}"));
                }
            }
        }
    }

    fn record(&mut self) -> Result<Vec<String>> {
        let (mut fields, mut field, mut bytes, mut is_quoted) = (Vec::new(), Vec::new(), 0, false);
        // How much of the field was in quotes: a line end after that is not a part of it.
        let mut quoted = 0;
        loop {
            let byte = self.byte()?;
            bytes += 1;
            if bytes > RECORD_BYTES_MAX {
                bail!("it is longer than {RECORD_BYTES_MAX} bytes: is a quote missing?");
            }
            match byte {
                None if is_quoted => bail!("the file ends within quotes"),
                Some(b'"') if is_quoted => match self.byte()? {
                    Some(b'"') => field.push(b'"'),
                    other => (self.held, is_quoted, quoted) = (other, false, field.len()),
                },
                Some(other) if is_quoted => field.push(other),
                Some(b'"') if field.is_empty() => is_quoted = true,
                None | Some(b',' | b'\n') => {
                    if byte != Some(b',') && field[quoted..].last() == Some(&b'\r') {
                        field.pop();
                    }
                    quoted = 0;
                    fields.push(String::from_utf8(std::mem::take(&mut field)).context("it is not UTF-8")?);
                    if byte != Some(b',') {
                        return Ok(fields);
                    }
                }
                Some(other) => field.push(other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rangehold_client::Value;

    use super::*;

    fn read_text(text: &str) -> Result<Vec<Entity>> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("there is room");
        read(file.path())?.collect()
    }

    #[test]
    fn what_storage_explorer_has_written_is_read() {
        let text = "\u{feff}PartitionKey,RowKey,Timestamp,Age,Age@type,Note,Note@type,Plain\n\
                    p,1,2025-09-22T09:45:35.2743359Z,39,Edm.Int32,,Edm.String,7\r\n\
                    p,2,,4,Int64,,,\n\
                    \n\
                    p,3,,,,\"a \"\"b\"\"\nc\",Edm.String,x";
        let found = read_text(text).expect("it is well formed");
        let all = |n: usize| found[n].properties.clone().into_iter().collect::<Vec<_>>();
        let pair = |name: &str, value: Value| (name.to_owned(), value);
        assert_eq!(
            all(0),
            [pair("Age", Value::Int32(39)), pair("Note", Value::from("")), pair("Plain", Value::Int32(7))]
        );
        assert_eq!(all(1), [pair("Age", Value::Int64(4))]);
        assert_eq!(all(2), [pair("Note", Value::from("a \"b\"\nc")), pair("Plain", Value::from("x"))]);
    }

    #[test]
    fn an_error_names_the_row_and_what_is_wrong_there() {
        for (text, parts) in [
            ("", &["is empty"][..]),
            ("PartitionKey,A\np,1", &["RowKey"]),
            ("PartitionKey,RowKey,A,A@type\np,1,x,Edm.Int32", &["row 2", "property A", "\"x\"", "Edm.Int32"]),
            ("PartitionKey,RowKey,A,A@type\np,1,x,Edm.Point", &["row 2", "Edm.Point", "Edm.Guid"]),
            ("PartitionKey,RowKey\np,1\np", &["row 3", "1 fields"]),
            ("PartitionKey,RowKey\np,\"1", &["row 2", "quotes"]),
        ] {
            let error = format!("{:#}", read_text(text).expect_err(text));
            assert!(parts.iter().all(|part| error.contains(part)), "{text:?}: {error}");
        }
    }
}
