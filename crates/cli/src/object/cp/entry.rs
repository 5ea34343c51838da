//! A file or an object with its name below the place from which a copy begins.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use futures::StreamExt;
use futures::stream::BoxStream;
use rangehold_client::object::{Bucket, Crc32c, Object};

use crate::object::find::below;
use crate::object::walk::files;

/// Bytes that are read at once to make a checksum.
const STEP: usize = 256 << 10;

/// Something that is copied, or that is at the target.
#[derive(Debug, Clone)]
pub(in crate::object) struct Entry {
    /// The name below the beginning, with slashes.
    pub(in crate::object) name: String,
    pub(in crate::object) body: Body,
}

/// Where its bytes are.
#[derive(Debug, Clone)]
pub(in crate::object) enum Body {
    File { path: PathBuf, size: u64 },
    Object(Box<Object>),
}

impl Entry {
    pub(in crate::object) fn file(name: &str, path: PathBuf, size: u64) -> Self {
        Self { name: name.to_owned(), body: Body::File { path, size } }
    }

    pub(in crate::object) fn object(name: &str, object: Object) -> Self {
        Self { name: name.to_owned(), body: Body::Object(Box::new(object)) }
    }
}

impl Body {
    pub(in crate::object) fn size(&self) -> u64 {
        match self {
            Self::File { size, .. } => *size,
            Self::Object(object) => object.size,
        }
    }

    /// Whether it is an object of this name.
    pub(in crate::object) fn has_name(&self, name: &str) -> bool {
        matches!(self, Self::Object(object) if object.name == name)
    }

    /// The checksum; reads the file. `None` for an object whose checksum the service does not tell.
    async fn crc32c(&self) -> Result<Option<Crc32c>> {
        match self {
            Self::Object(object) => Ok(object.crc32c),
            Self::File { path, .. } => sum_of(path, None).await.map(|(sum, _)| Some(sum)),
        }
    }

    /// Whether both have the same bytes, by size and checksum.
    pub(in crate::object) async fn has_bytes_of(&self, other: &Self) -> Result<bool> {
        if self.size() != other.size() {
            return Ok(false);
        }
        let (own, other) = (self.crc32c().await?, other.crc32c().await?);
        Ok(own.is_some() && own == other)
    }
}

/// The checksum of a file, or of its first bytes, and how many bytes that were.
pub(in crate::object) async fn sum_of(path: &Path, first: Option<u64>) -> Result<(Crc32c, u64)> {
    let path = path.to_owned();
    let read = move || -> Result<(Crc32c, u64)> {
        let cannot = || format!("cannot read {}", path.display());
        let mut file = std::fs::File::open(&path).with_context(cannot)?.take(first.unwrap_or(u64::MAX));
        let (mut sum, mut bytes, mut step) = (Crc32c::default(), 0, vec![0; STEP]);
        loop {
            match file.read(&mut step).with_context(cannot)? {
                0 => return Ok((sum, bytes)),
                read => (sum, bytes) = (sum.append(&step[..read]), bytes + read as u64),
            }
        }
    };
    tokio::task::spawn_blocking(read).await.context("the checksum of a file was not made")?
}

/// The files below a folder.
pub(in crate::object) fn files_below(folder: &Path, may_lack: bool) -> BoxStream<'static, Result<Entry>> {
    files(folder, may_lack).map(|file| file.map(|file| Entry::file(&file.name, file.path, file.size))).boxed()
}

/// The objects below a prefix.
pub(in crate::object) fn objects_below(bucket: &Bucket, prefix: &str) -> BoxStream<'static, Result<Entry>> {
    let length = prefix.len();
    let objects = below(bucket, prefix, false);
    objects
        .map(move |object| object.map(|object| Entry::object(&object.name.clone()[length..], object)))
        .boxed()
}
