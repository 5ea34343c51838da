//! The heads of a page, read one after the other.
//!
//! Most objects of a bucket differ in their numbers alone: their generations, times, sizes and checksums. What their clients
//! set, their owners and their access control lists are the same. So a reader keeps the head that it read last. If the
//! bytes behind the numbers of the next row begin as those of the last one did, they say the same, and only the
//! numbers are read: no texts are made, and no large value is moved. Heads of objects that have blobs differ, because each names its
//! own upload; they are read as a whole.

use bytes::Bytes;
use rangehold_map::key::ObjectGeneration;
use serde::Deserialize;

use super::{Generation, HEAD, Head, State};
use crate::object::checksum::{Crc32c, Md5};
use crate::object::error::ObjectError;
use crate::object::micros::Micros;
use crate::object::row::{decode_fields, fields_of};
use crate::object::storage_class::StorageClass;

/// The fields of a generation before its settings, in the order of [`Generation`].
#[derive(Deserialize)]
struct Numbers {
    id: ObjectGeneration,
    metageneration: u64,
    state: State,
    size: u64,
    crc32c: Crc32c,
    md5: Option<Md5>,
    component_count: Option<u32>,
    created: Micros,
    updated: Micros,
    class_updated: Micros,
    released: Option<Micros>,
    storage_class: StorageClass,
}

/// Reads heads without the bytes of their objects.
#[derive(Debug, Default)]
pub struct Heads {
    last: Option<Box<Head>>,
    /// The bytes of its row behind its numbers, without those of the object.
    rest: Vec<u8>,
}

impl Heads {
    /// Reads a head row. The head has no bytes of its object, also if the row has them.
    pub fn read(&mut self, row: &Bytes) -> Result<&Head, ObjectError> {
        let fields = fields_of(HEAD, row)?;
        let (numbers, rest) = decode_fields::<Numbers>(HEAD, fields)?;
        match &mut self.last {
            // The form of a row tells where its fields end, so the same bytes are the same fields, whatever comes behind.
            Some(head) if rest.starts_with(&self.rest) => numbers.put(&mut head.live),
            last => {
                let (head, object) = decode_fields::<Head>(HEAD, fields)?;
                self.rest.clear();
                self.rest.extend_from_slice(&rest[..rest.len() - object.len()]);
                *last = Some(Box::new(head));
            }
        }
        Ok(self.last.as_ref().expect("it was read just now"))
    }
}

impl Numbers {
    /// Replaces the numbers of a generation.
    fn put(self, generation: &mut Generation) {
        generation.id = self.id;
        generation.metageneration = self.metageneration;
        generation.state = self.state;
        generation.size = self.size;
        generation.crc32c = self.crc32c;
        generation.md5 = self.md5;
        generation.component_count = self.component_count;
        generation.created = self.created;
        generation.updated = self.updated;
        generation.class_updated = self.class_updated;
        generation.released = self.released;
        generation.storage_class = self.storage_class;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{generation, intent};
    use super::super::{BlobUse, Content};
    use super::*;
    use rangehold_map::blob::BlobId;

    /// Heads that differ from the first in one field each.
    fn different() -> Vec<Head> {
        let head = || Head { live: generation(1_700_000_000_000_000), intent: None };
        let changed = |change: &dyn Fn(&mut Head)| {
            let mut head = head();
            change(&mut head);
            head
        };
        let time = Micros::new(5);
        let mut heads = vec![
            head(),
            changed(&|head| head.live.id = ObjectGeneration(7)),
            changed(&|head| head.live.metageneration = 1_000),
            changed(&|head| head.live.state = State::Noncurrent(time)),
            changed(&|head| head.live.size = 1 << 40),
            changed(&|head| head.live.crc32c = Crc32c(9)),
            changed(&|head| head.live.md5 = None),
            changed(&|head| head.live.component_count = Some(2)),
            changed(&|head| head.live.created = time),
            changed(&|head| head.live.updated = time),
            changed(&|head| head.live.class_updated = time),
            changed(&|head| head.live.released = Some(time)),
            changed(&|head| head.live.storage_class = StorageClass::Archive),
            changed(&|head| head.live.settings.content_type = None),
            changed(&|head| head.live.settings.content_type = Some("text/plain2".to_owned())),
            changed(&|head| head.live.owner = "user-b@example.com".to_owned()),
            changed(&|head| {
                head.live.blobs = Some(BlobUse { upload: "u".to_owned(), blobs: vec![BlobId(9)] })
            }),
            changed(&|head| head.intent = Some(intent())),
        ];
        let bytes = Content::Inline(Bytes::from_static(b"hello"));
        heads.push(Head { live: generation(8).with_few_bytes(&bytes), intent: None });
        heads
    }

    #[test]
    fn each_head_is_read_as_by_itself_whichever_was_read_before() {
        let heads = different();
        for first in &heads {
            for second in &heads {
                let mut reader = Heads::default();
                for head in [first, second] {
                    let mut expected = head.clone();
                    expected.live.bytes = None;
                    assert_eq!(reader.read(&head.encode().into()), Ok(&expected));
                }
            }
        }
    }

    #[test]
    fn a_damaged_row_is_refused_and_the_next_one_is_read() {
        let head = Head { live: generation(5), intent: None };
        let row = Bytes::from(head.encode());
        let mut reader = Heads::default();
        for known in [false, true] {
            for end in 0..row.len() {
                assert!(reader.read(&row.slice(..end)).is_err(), "{end} bytes, known: {known}");
            }
            assert_eq!(reader.read(&row), Ok(&head));
        }
    }
}
