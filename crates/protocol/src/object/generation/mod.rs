//! The stored form of an object.
//!
//! Every version of an object's bytes is a *generation*. The live one is in the name's head row, as a [`Head`]; one
//! that was replaced or deleted and is still kept has a row of its own, a [`Generation`] whose `state` says so. Up to
//! [`BYTES_BESIDE_FIELDS_MAX`] bytes of an object stand in the same row behind its fields, so that a small object is one row.
//! More bytes are in a third row, as a [`Content`], which only downloads and copies read.
//!
//! | in the row | computed when it is shown |
//! |---|---|
//! | generation, metageneration, size, checksums, times, what the client set | id, links, etag, `retentionExpirationTime` |
//! | the access control list, by its name if it has one | the lines of a named list |

mod content;
mod draft;
mod heads;
mod hold;
mod json;
mod protection;
mod settings;

use bytes::Bytes;
use rangehold_map::blob::{BlobId, BlobUser};
use rangehold_map::key::{BucketId, ObjectGeneration};
use serde::{Deserialize, Serialize};

use super::acl::Acl;
use super::checksum::{Crc32c, Md5, put_base64};
use super::error::ObjectError;
use super::limits::{BYTES_BESIDE_FIELDS_MAX, INTENT_LEFT_SECONDS};
use super::micros::Micros;
use super::row::{decode_row_with_bytes, encode_row_with_bytes};
use super::storage_class::StorageClass;

pub use self::content::Content;
pub use self::draft::Draft;
pub use self::heads::Heads;
pub use self::json::{ObjectAddress, Projection};
pub use self::settings::{Context, Contexts, Retention, RetentionMode, Settings};

/// Whether a generation is what its name shows. The order of the variants is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// The name shows it.
    Live,
    /// Its bucket keeps versions, and it was replaced or deleted at this time.
    Noncurrent(Micros),
    /// It was deleted and can be restored for some time.
    SoftDeleted {
        /// When it was deleted.
        at: Micros,
        /// When it can no longer be restored.
        hard_delete: Micros,
        /// When it stopped being live before that, if its bucket kept it as an older version.
        noncurrent: Option<Micros>,
    },
}

/// How the client asked the bytes to be encrypted. This server stores them as they came, and only insists on the
/// same key. The order of the variants is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Encryption {
    /// As the service pleases.
    #[default]
    Default,
    /// With a key that the client sends with each request; this is the key's SHA-256.
    Customer([u8; 32]),
    /// With a key of a key service, by its name.
    Kms(String),
}

/// What stands between the name of a key of a key service and the number of its version.
pub(super) const KMS_VERSIONS: &str = "/cryptoKeyVersions/";

/// The blobs that hold a generation's bytes, and the name under which they are used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BlobUse {
    /// The upload that registered as their user.
    pub upload: String,
    /// Each blob once.
    pub blobs: Vec<BlobId>,
}

/// A blob that lost a user. The reference is removed after the change that says so is durable.
pub type Release = (BlobId, BlobUser);

/// One version of an object's bytes, with what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generation {
    /// Its number: the microsecond in which it was written.
    pub id: ObjectGeneration,
    /// How often its metadata was written: 1 when it is new.
    pub metageneration: u64,
    /// Live, older, or soft-deleted.
    pub state: State,
    /// Bytes of the content as it is stored.
    pub size: u64,
    /// CRC32C of these bytes.
    pub crc32c: Crc32c,
    /// MD5 of these bytes; an object that was composed has none.
    pub md5: Option<Md5>,
    /// Parts of which it was composed.
    pub component_count: Option<u32>,
    /// When the generation was made.
    pub created: Micros,
    /// When its metadata was last written.
    pub updated: Micros,
    /// When its storage class was last changed.
    pub class_updated: Micros,
    /// When an event-based hold was last released. A retention period counts from there.
    pub released: Option<Micros>,
    /// The storage class.
    pub storage_class: StorageClass,
    /// What a client may set.
    pub settings: Settings,
    /// The entity that owns it, for example `user-a@example.com`.
    pub owner: String,
    /// Its access control list.
    pub acl: Acl,
    /// How it is encrypted.
    pub encryption: Encryption,
    /// The blobs that hold its bytes; none if a row has the bytes themselves.
    pub blobs: Option<BlobUse>,
    /// The bytes themselves, if they are few: at most [`BYTES_BESIDE_FIELDS_MAX`]. Else there is a content row.
    #[serde(skip)]
    pub bytes: Option<Bytes>,
}

impl Generation {
    /// The stored row.
    pub fn encode(&self) -> Vec<u8> {
        encode_row_with_bytes(self, self.bytes.as_ref())
    }

    /// Reads the row of a generation that is not live. Its bytes are not copied.
    pub fn decode(row: &Bytes) -> Result<Self, ObjectError> {
        decode_row_with_bytes("a generation", row, |generation: &mut Self, bytes| {
            generation.bytes = Some(bytes)
        })
    }

    /// Takes the bytes of a content, if they are few enough to stand in its own row. Else the caller writes a content row.
    #[must_use]
    pub fn with_few_bytes(self, content: &Content) -> Self {
        let bytes = match content {
            Content::Inline(bytes) if bytes.len() <= BYTES_BESIDE_FIELDS_MAX => Some(bytes.clone()),
            _ => None,
        };
        Self { bytes, ..self }
    }

    /// The entity tag: it changes with the generation and with the metageneration. As the real service's, it is
    /// base64 of a message of protocol buffers with both numbers.
    pub fn etag(&self) -> String {
        let mut out = Vec::with_capacity(32);
        self.put_etag(&mut out);
        String::from_utf8(out).expect("base64 is ASCII")
    }

    /// Appends the entity tag.
    pub(super) fn put_etag(&self, out: &mut Vec<u8>) {
        let mut message = [0; 2 + 2 * VARINT_BYTES_MAX];
        message[0] = 0x08;
        let middle = 1 + put_varint(&mut message[1..], self.id.0);
        message[middle] = 0x10;
        let end = middle + 1 + put_varint(&mut message[middle + 1..], self.metageneration);
        put_base64(out, &message[..end]);
    }

    /// What tells deleted generations of a name apart in a bucket with a hierarchical namespace.
    pub fn restore_token(&self) -> String {
        format!("{:016x}", self.id.0)
    }

    /// The entity tag in the XML API, without quotes: the MD5 as hexadecimal digits, as clients of S3 expect, or a text
    /// that begins with a dash for an object that has none because it was composed or sent in parts.
    pub fn xml_etag(&self) -> String {
        match self.md5 {
            Some(md5) => const_hex::encode(md5.0),
            None => format!("-{}", self.etag()),
        }
    }

    /// Whether it is encrypted with a key that the client sends with each request.
    pub fn has_customer_key(&self) -> bool {
        matches!(self.encryption, Encryption::Customer(_))
    }

    /// Whether it uses this blob, under the name of this upload.
    pub fn uses(&self, blob: BlobId, upload: &str) -> bool {
        let uses = self.blobs.as_ref().filter(|uses| uses.upload == upload);
        uses.is_some_and(|uses| uses.blobs.contains(&blob))
    }

    /// The blobs that lose a user when this generation of `name` is gone.
    pub fn releases(&self, bucket: BucketId, name: &str) -> Vec<Release> {
        let user = |uses: &BlobUse| BlobUser { bucket, name: name.to_owned(), upload: uses.upload.clone() };
        let blobs = self.blobs.iter().flat_map(|uses| uses.blobs.iter().map(|blob| (*blob, user(uses))));
        blobs.collect()
    }
}

/// The most bytes that 64 bits take, seven in each.
const VARINT_BYTES_MAX: usize = 10;

/// Writes a number in bytes of seven bits, the lowest first. Returns how many bytes it took.
fn put_varint(out: &mut [u8], mut value: u64) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// A change of several names that has begun with this object as a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Names the change.
    pub id: String,
    /// The name in the same bucket that gets the bytes.
    pub target: String,
    /// When the change was begun.
    pub begun: Micros,
    /// Whether the source becomes an older version, since its bucket kept versions when the change was begun.
    pub keeps: bool,
}

impl Intent {
    /// Whether no request carries the change out any more at `now`.
    pub fn is_left(&self, now: Micros) -> bool {
        self.begun.plus_seconds(INTENT_LEFT_SECONDS) <= now
    }
}

/// The head row of a name: what the name shows. A name without a live generation has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The live generation.
    pub live: Generation,
    /// The change of several names that is under way.
    pub intent: Option<Intent>,
}

/// What a head row is called in errors.
const HEAD: &str = "a head";

impl Head {
    /// The stored row.
    pub fn encode(&self) -> Vec<u8> {
        encode_row_with_bytes(self, self.live.bytes.as_ref())
    }

    /// Reads a head row. The bytes of the object are not copied.
    pub fn decode(row: &Bytes) -> Result<Self, ObjectError> {
        decode_row_with_bytes(HEAD, row, |head: &mut Self, bytes| head.live.bytes = Some(bytes))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::object) fn intent() -> Intent {
        Intent { id: "i".to_owned(), target: "t".to_owned(), begun: Micros::new(1), keeps: false }
    }

    /// A live generation of five bytes, written at the microsecond `id`.
    pub(in crate::object) fn generation(id: u64) -> Generation {
        let time = Micros::new(i64::try_from(id).expect("a time of this millennium"));
        Generation {
            id: ObjectGeneration(id),
            metageneration: 1,
            state: State::Live,
            size: 5,
            crc32c: Crc32c::of(b"hello"),
            md5: Some(Md5([7; 16])),
            component_count: None,
            created: time,
            updated: time,
            class_updated: time,
            released: None,
            storage_class: StorageClass::Standard,
            settings: Settings { content_type: Some("text/plain".to_owned()), ..Settings::default() },
            owner: "user-a@example.com".to_owned(),
            acl: Acl::default(),
            encryption: Encryption::Default,
            blobs: None,
            bytes: None,
        }
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let mut live = generation(1_700_000_000_000_000);
        live.settings.metadata.insert("a".to_owned(), "ü".to_owned());
        live.settings.custom_time = Some(Micros::new(5));
        live.blobs = Some(BlobUse { upload: "u".to_owned(), blobs: vec![BlobId(9)] });
        let head = Head { live, intent: Some(intent()) };
        let row = Bytes::from(head.encode());
        assert_eq!(Head::decode(&row), Ok(head.clone()));
        assert_eq!(Generation::decode(&head.live.encode().into()), Ok(head.live));
        assert!(Head::decode(&row.slice(..row.len() - 1)).is_err());
        assert!(Head::decode(&Bytes::new()).is_err());
        let other = Bytes::from_static(&[9, 0]);
        assert!(Head::decode(&other).expect_err("another form").message.contains("unknown form 9"));
    }

    #[test]
    fn few_bytes_stand_behind_the_fields_of_their_row() {
        for (length, is_there) in
            [(0, true), (BYTES_BESIDE_FIELDS_MAX, true), (BYTES_BESIDE_FIELDS_MAX + 1, false)]
        {
            let bytes = Bytes::from(vec![7; length]);
            let live = generation(5).with_few_bytes(&Content::Inline(bytes.clone()));
            assert_eq!(live.bytes, is_there.then_some(bytes));
            let head = Head { live, intent: Some(intent()) };
            assert_eq!(Head::decode(&head.encode().into()), Ok(head.clone()));
            assert_eq!(Generation::decode(&head.live.encode().into()), Ok(head.live));
        }
        assert_eq!(generation(5).with_few_bytes(&Content::Extents(Vec::new())).bytes, None);
    }

    #[test]
    fn a_blob_is_used_in_the_name_of_one_upload() {
        let mut live = generation(1_700_000_000_000_000);
        assert!(!live.uses(BlobId(9), "u"));
        live.blobs = Some(BlobUse { upload: "u".to_owned(), blobs: vec![BlobId(9)] });
        assert!(live.uses(BlobId(9), "u"));
        assert!(!live.uses(BlobId(9), "other") && !live.uses(BlobId(8), "u"));
    }

    #[test]
    fn a_small_row_stays_small() {
        let row = Head { live: generation(1_700_000_000_000_000), intent: None }.encode();
        assert!(row.len() < 130, "{} bytes", row.len());
    }

    #[test]
    fn the_etag_has_the_form_of_the_real_service() {
        let mut generation = generation(1_700_000_000_000_000);
        let first = generation.etag();
        assert_eq!(first, "CICA+cDBxIIDEAE=");
        generation.metageneration = 2;
        assert_ne!(generation.etag(), first);
    }
}
