//! What a disk may look like after the power failed.
//!
//! Everything synced is there. Of the rest, each variant below keeps a different part: file systems write things in
//! different orders, and a program must survive with all of them.
//!
//! A write that was not synced may be kept in part: a disk writes sectors of 512 bytes, in any order, so
//! each sector of it is kept or not on its own. A file whose length was written before its bytes
//! reads as zeros.

use std::fs;
use std::path::Path;

use anyhow::Result;
use rand::RngExt;
use rand::rngs::StdRng;

use super::disk::{Directories, Disk, File, Inode, ROOT, Write};

/// What a disk writes at once.
const SECTOR: usize = 512;

/// What is kept of the changes that were not synced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fashion {
    /// Nothing.
    Nothing,
    /// Names in the order they changed, up to some moment, as a journal keeps them; bytes at random.
    Journal,
    /// Any set of names and any sectors.
    Any,
    /// All names, and no bytes: files under their final names that are empty or full of zeros.
    NamesOnly,
    /// Everything, as if the process had only been killed.
    Everything,
}

impl Fashion {
    /// All variants.
    pub(super) const ALL: [Self; 5] =
        [Self::Nothing, Self::Journal, Self::Any, Self::NamesOnly, Self::Everything];
}

/// Writes the directory as it may be found after a power loss at this moment.
pub(super) fn write(disk: &Disk, fashion: Fashion, rng: &mut StdRng, to: &Path) -> Result<()> {
    let names = names(disk, fashion, rng);
    write_directory(disk, ROOT, &names, fashion, rng, to)
}

fn names(disk: &Disk, fashion: Fashion, rng: &mut StdRng) -> Directories {
    let mut names = disk.durable.clone();
    let kept = rng.random_range(0..=disk.pending.len());
    for (index, change) in disk.pending.iter().enumerate() {
        let keep = match fashion {
            Fashion::Nothing => false,
            Fashion::Journal => index < kept,
            Fashion::Any => rng.random_bool(0.5),
            Fashion::NamesOnly | Fashion::Everything => true,
        };
        if keep {
            change.apply(&mut names);
        }
    }
    names
}

fn write_directory(
    disk: &Disk,
    directory: Inode,
    names: &Directories,
    fashion: Fashion,
    rng: &mut StdRng,
    to: &Path,
) -> Result<()> {
    fs::create_dir_all(to)?;
    for (name, inode) in names.get(&directory).into_iter().flatten() {
        let path = to.join(String::from_utf8(name.clone())?);
        match disk.file(*inode) {
            Some(file) => fs::write(path, content(file, fashion, rng))?,
            None => write_directory(disk, *inode, names, fashion, rng, &path)?,
        }
    }
    Ok(())
}

/// The bytes that a file may have.
fn content(file: &File, fashion: Fashion, rng: &mut StdRng) -> Vec<u8> {
    let mut content = file.durable.clone();
    // All writes after some moment are lost, or some sectors of any write.
    let kept =
        if rng.random_bool(0.5) { rng.random_range(0..=file.pending.len()) } else { file.pending.len() };
    for (index, write) in file.pending.iter().enumerate() {
        match fashion {
            Fashion::Nothing => {}
            Fashion::Everything => write.apply(&mut content),
            Fashion::NamesOnly => zeros(write, rng).iter().for_each(|write| write.apply(&mut content)),
            Fashion::Journal | Fashion::Any if index >= kept => {}
            Fashion::Journal | Fashion::Any => {
                torn(write, rng).iter().for_each(|write| write.apply(&mut content));
            }
        }
    }
    content
}

/// Some of a write's sectors, and perhaps its length.
fn torn(write: &Write, rng: &mut StdRng) -> Vec<Write> {
    let Write::Bytes { offset, data } = write else {
        return vec![write.clone()];
    };
    let chance = [0.0, 0.5, 0.95, 1.0][rng.random_range(0..4)];
    let mut parts = zeros(write, rng);
    let mut at = 0;
    while at < data.len() {
        let place = *offset as usize + at;
        let end = (at + SECTOR - place % SECTOR).min(data.len());
        if rng.random_bool(chance) {
            parts.push(Write::Bytes { offset: place as u64, data: data[at..end].to_vec() });
        }
        at = end;
    }
    parts
}

/// A write's length without its bytes, or nothing. Never zeros over bytes that were there before.
fn zeros(write: &Write, rng: &mut StdRng) -> Vec<Write> {
    match write {
        Write::Bytes { offset, data } if rng.random_bool(0.5) => {
            vec![Write::Bytes { offset: offset + data.len() as u64, data: Vec::new() }]
        }
        Write::Bytes { .. } => Vec::new(),
        Write::Truncate(_) => vec![write.clone()],
    }
}
