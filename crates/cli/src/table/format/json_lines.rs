//! JSON Lines: one entity on each line, with `NAME@odata.type` where the value does not tell its type.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use rangehold_client::Entity;

use super::Rows;
use crate::table::limits::LINE_BYTES_MAX;

pub(super) fn write(entities: &[Entity]) -> Vec<u8> {
    let mut out = Vec::new();
    for entity in entities {
        out.extend(entity.to_json());
        out.push(b'\n');
    }
    out
}

pub(super) fn read(path: &Path) -> Result<Rows> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut lines = Lines { file: BufReader::new(file), number: 0 };
    Ok(Box::new(std::iter::from_fn(move || lines.next().transpose())))
}

struct Lines {
    file: BufReader<File>,
    number: u64,
}

impl Lines {
    fn next(&mut self) -> Result<Option<Entity>> {
        loop {
            let mut line = Vec::new();
            self.file.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
            self.number += 1;
            if line.is_empty() {
                return Ok(None);
            }
            if line.len() as u64 == LINE_BYTES_MAX {
                bail!("line {} is longer than {LINE_BYTES_MAX} bytes, so it is not an entity", self.number);
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(Entity::from_json(&line).with_context(|| format!("line {}", self.number))?));
            }
        }
    }
}
