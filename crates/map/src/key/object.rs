//! Objects: all rows of one object name lie together, the head first.
//!
//! A listing goes from head to head. The rows behind a head come after it, so a listing steps over a few of them,
//! and seeks past many: [`ObjectKey::past_name`] is where the next name begins.

use std::borrow::Cow;

use super::partition::{PartitionPrefix, after_prefix};
use super::{BucketId, KIND_OBJECT};
use crate::Timestamp;
use crate::codec::{MalformedKey, Reader, put_name, put_name_open, put_u64};

const HEAD: u8 = 0x00;
const CONTENT: u8 = 0x01;
const NOT_LIVE: u8 = 0x02;
const UPLOAD: u8 = 0x03;
const PART: u8 = 0x04;
const ANSWER: u8 = 0x05;
const OUTCOME: u8 = 0x06;
const TREE: u8 = 0x07;
const FOLDER: u8 = 0x08;
const FOLDER_NAME: u8 = 0x09;

/// The version of an object's payload: the time at which it was written, in microseconds since 1970. Below 2^53
/// until the year 2255.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct ObjectGeneration(pub u64);

impl ObjectGeneration {
    /// The generation that a write makes which the engine stamped with `at`. The stamps of writes of objects are
    /// whole microseconds, so no two stamps give one generation.
    pub fn of(at: Timestamp) -> Self {
        Self(u64::try_from(at.ticks() / Timestamp::TICKS_PER_US).unwrap_or_default())
    }
}

/// The rows of one object name, in their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectRow<'a> {
    /// The live generation, with an intent if one is under way.
    Head,
    /// The content of a generation: the bytes, or the blobs that have them.
    Content(ObjectGeneration),
    /// A generation that is not live: older, or soft-deleted.
    NotLive(ObjectGeneration),
    /// An upload session, by its upload id: resumable, or multipart by the XML API.
    Upload(Cow<'a, str>),
    /// A part of a multipart upload.
    Part {
        /// The upload id.
        upload: Cow<'a, str>,
        /// The number that the client gave the part.
        part: u32,
    },
    /// The first answer of an upload that ended, for a repeated last request.
    Answer(Cow<'a, str>),
    /// Whether an intent of another name, by the intent's id, was committed or undone here.
    Outcome(Cow<'a, str>),
    /// How often folders of the bucket were renamed or deleted. This row and the two below are rows of the empty name.
    Tree,
    /// A folder, by its id.
    Folder(u64),
    /// The id of a folder, by the id of the folder above it and by its name there, which ends with `/`.
    FolderName {
        /// The folder above it; 0 for the bucket itself.
        parent: u64,
        /// Its name there.
        name: Cow<'a, str>,
    },
}

impl<'a> ObjectRow<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, MalformedKey> {
        Ok(match reader.u8()? {
            HEAD => Self::Head,
            CONTENT => Self::Content(ObjectGeneration(reader.u64()?)),
            NOT_LIVE => Self::NotLive(ObjectGeneration(reader.u64()?)),
            UPLOAD => Self::Upload(reader.name()?),
            PART => {
                let upload = reader.name()?;
                let number = reader.u64()?;
                let what = "the number of a part, at most 2^32 - 1";
                let part = u32::try_from(number).map_err(|_| MalformedKey { at: reader.position(), what })?;
                Self::Part { upload, part }
            }
            ANSWER => Self::Answer(reader.name()?),
            OUTCOME => Self::Outcome(reader.name()?),
            TREE => Self::Tree,
            FOLDER => Self::Folder(reader.u64()?),
            FOLDER_NAME => Self::FolderName { parent: reader.u64()?, name: reader.name()? },
            _ => return Err(reader.unknown_row()),
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Head => out.push(HEAD),
            Self::Content(generation) => {
                out.push(CONTENT);
                put_u64(out, generation.0);
            }
            Self::NotLive(generation) => {
                out.push(NOT_LIVE);
                put_u64(out, generation.0);
            }
            Self::Upload(id) => put_id(out, UPLOAD, id),
            Self::Part { upload, part } => {
                put_id(out, PART, upload);
                put_u64(out, u64::from(*part));
            }
            Self::Answer(id) => put_id(out, ANSWER, id),
            Self::Outcome(id) => put_id(out, OUTCOME, id),
            Self::Tree => out.push(TREE),
            Self::Folder(id) => {
                out.push(FOLDER);
                put_u64(out, *id);
            }
            Self::FolderName { parent, name } => {
                out.push(FOLDER_NAME);
                put_u64(out, *parent);
                put_name(out, name);
            }
        }
    }

    /// The same row, with its own copy of its ids.
    pub fn into_owned(self) -> ObjectRow<'static> {
        let owned = |id: Cow<'a, str>| Cow::Owned(id.into_owned());
        match self {
            Self::Head => ObjectRow::Head,
            Self::Content(generation) => ObjectRow::Content(generation),
            Self::NotLive(generation) => ObjectRow::NotLive(generation),
            Self::Upload(id) => ObjectRow::Upload(owned(id)),
            Self::Part { upload, part } => ObjectRow::Part { upload: owned(upload), part },
            Self::Answer(id) => ObjectRow::Answer(owned(id)),
            Self::Outcome(id) => ObjectRow::Outcome(owned(id)),
            Self::Tree => ObjectRow::Tree,
            Self::Folder(id) => ObjectRow::Folder(id),
            Self::FolderName { parent, name } => ObjectRow::FolderName { parent, name: owned(name) },
        }
    }
}

fn put_id(out: &mut Vec<u8>, sort: u8, id: &str) {
    out.push(sort);
    put_name(out, id);
}

/// The key of a row of an object name, as [`ObjectKey::decode`] reads it: without a copy, unless a name or an id has
/// a U+0000 or U+0001.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey<'a> {
    /// The bucket.
    pub bucket: BucketId,
    /// The object name.
    pub name: Cow<'a, str>,
    /// Which row of the name.
    pub row: ObjectRow<'a>,
}

impl<'a> ObjectKey<'a> {
    /// The stored bytes.
    pub fn encode(&self) -> Vec<u8> {
        PartitionPrefix::object(self.bucket, &self.name).object_row(&self.row)
    }

    /// Reads the stored key of an object's row. Fails on a key of another kind.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, MalformedKey> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != KIND_OBJECT {
            return Err(MalformedKey { at: 0, what: "the key of an object" });
        }
        let bucket = BucketId(reader.u64()?);
        let key = Self { bucket, name: reader.name()?, row: ObjectRow::read(&mut reader)? };
        reader.end()?;
        Ok(key)
    }

    /// The least key above all rows of this name: the next name begins there or later.
    pub fn past_name(&self) -> Vec<u8> {
        let partition = PartitionPrefix::object(self.bucket, &self.name);
        after_prefix(partition.as_bytes()).expect("the kind is not FF")
    }

    /// The same key, with its own copy of its texts.
    pub fn into_owned(self) -> ObjectKey<'static> {
        ObjectKey {
            bucket: self.bucket,
            name: Cow::Owned(self.name.into_owned()),
            row: self.row.into_owned(),
        }
    }
}

impl PartitionPrefix {
    /// The partition of an object name: all generations, uploads and parts of that name.
    pub fn object(bucket: BucketId, name: &str) -> Self {
        let mut out = Vec::with_capacity(name.len() + 20);
        out.push(KIND_OBJECT);
        put_u64(&mut out, bucket.0);
        put_name(&mut out, name);
        Self(out)
    }

    /// The stored key of a row of an object name. For [`PartitionPrefix::object`] only.
    pub fn object_row(&self, row: &ObjectRow<'_>) -> Vec<u8> {
        let mut out = self.0.clone();
        row.put(&mut out);
        out
    }
}

/// The bytes with which all rows of all objects of a bucket begin.
pub fn bucket_objects(bucket: BucketId) -> Vec<u8> {
    let mut out = Vec::with_capacity(9);
    out.push(KIND_OBJECT);
    put_u64(&mut out, bucket.0);
    out
}

/// The bytes with which the rows of all names begin that begin with `prefix`. [`after_prefix`] of it is the key just
/// past all of them.
pub fn names_beginning_with(bucket: BucketId, prefix: &str) -> Vec<u8> {
    let mut out = bucket_objects(bucket);
    put_name_open(&mut out, prefix);
    out
}

/// The least key of the rows of `name` and of all names after it. The rows of all names before it lie below. So it
/// is the first key of a listing from `name` on, and the end of a listing up to `name`.
pub fn names_from(bucket: BucketId, name: &str) -> Vec<u8> {
    names_beginning_with(bucket, name)
}

/// The bucket in the stored key of an object's row. The rest of the key is not decoded. `None` for keys of another
/// kind and for bytes that are not a key.
pub fn bucket_of(key: &[u8]) -> Option<BucketId> {
    let mut reader = Reader::new(key);
    (reader.u8().ok()? == KIND_OBJECT).then_some(())?;
    reader.u64().ok().map(BucketId)
}
