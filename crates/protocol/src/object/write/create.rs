//! A new live generation: an upload, a copy, or a composition.

use bytes::Bytes;
use rangehold_map::Timestamp;
use rangehold_map::key::{ObjectGeneration, ObjectRow};

use super::{Judge, Name, Outcome, RowChanges, Verdict, live, micros, row};
use crate::object::bucket::{Bucket, Enforcement};
use crate::object::checksum::{Crc32c, Md5};
use crate::object::condition::{Conditions, Purpose};
use crate::object::error::{ErrorKind, ObjectError};
use crate::object::generation::{BlobUse, Content, Draft, Encryption, Generation, KMS_VERSIONS, State};
use crate::object::micros::Micros;
use crate::object::upload::{Answer, Session};

/// The bytes of a new generation: what is stored, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    content: Content,
    size: u64,
    crc32c: Crc32c,
    md5: Option<Md5>,
    component_count: Option<u32>,
    blobs: Option<BlobUse>,
}

impl Payload {
    /// Bytes that have arrived, or that another object has. `upload` is the user that is registered with the blobs of
    /// the content. An object that was composed has no MD5.
    pub fn new(content: &Content, crc32c: Crc32c, md5: Option<Md5>, upload: &str) -> Self {
        let blobs = content.blobs();
        let uses = BlobUse { upload: upload.to_owned(), blobs };
        Self {
            content: content.clone(),
            size: content.size(),
            crc32c,
            md5,
            component_count: None,
            blobs: (!uses.blobs.is_empty()).then_some(uses),
        }
    }

    /// The same bytes, composed of so many parts.
    #[must_use]
    pub fn composed_of(self, parts: u32) -> Self {
        Self { component_count: Some(parts), md5: None, ..self }
    }

    /// Bytes of the content.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// Writes a new live generation.
#[derive(Debug, Clone, Copy)]
pub struct Create<'a> {
    /// The name that gets it.
    pub to: Name<'a>,
    /// What the client wants.
    pub draft: &'a Draft,
    /// On the live generation.
    pub conditions: &'a Conditions,
    /// The bytes.
    pub payload: &'a Payload,
    /// The entity that writes it, for example `user-a@example.com`.
    pub owner: &'a str,
    /// The upload session that ends by this write: its row is removed, and the answer is kept for a repeated request.
    pub ends_upload: Option<&'a str>,
    /// More changes of the name in the same batch: the parts of an upload.
    pub also: &'a RowChanges,
}

impl Judge for Create<'_> {
    type Answer = Generation;

    fn name(&self) -> Name<'_> {
        self.to
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys = vec![self.to.key(&ObjectRow::Head)];
        if let Some(upload) = self.ends_upload {
            keys.push(self.to.key(&ObjectRow::Upload(upload.into())));
            keys.push(self.to.key(&ObjectRow::Answer(upload.into())));
        }
        keys
    }

    /// Decides the write. The answer is the new generation; that of a repeated request is the first one.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<Generation> {
        if let Some(upload) = self.ends_upload {
            if let Some(answer) = row(rows, 2) {
                return Ok(Outcome::unchanged(Answer::decode(answer)?.generation()?));
            }
            Session::decode(row(rows, 1).ok_or_else(|| ObjectError::no_such_upload(upload))?)?;
        }
        let old = live(row(rows, 0))?;
        self.conditions.check(old.as_ref(), Purpose::Write)?;
        let now = micros(stamp);
        let mut out = Outcome::unchanged(self.generation(stamp)?);
        if let Some(old) = old {
            self.to.retire(old, true, now, &mut out)?;
        }
        let new = out.answer.clone();
        self.to.put(&new, &mut out.changes);
        if new.bytes.is_none() {
            let content = self.to.key(&ObjectRow::Content(new.id));
            out.changes.push((content, Some(self.payload.content.encode())));
        }
        if let Some(upload) = self.ends_upload {
            out.changes.push((self.to.key(&ObjectRow::Upload(upload.into())), None));
            let answer = Answer::Finished(Box::new(new)).encode(now);
            out.changes.push((self.to.key(&ObjectRow::Answer(upload.into())), Some(answer)));
        }
        out.changes.extend(self.also.iter().cloned());
        Ok(out)
    }
}

impl Create<'_> {
    fn generation(&self, stamp: Timestamp) -> Result<Generation, ObjectError> {
        let (bucket, draft, payload, now) = (self.to.bucket, self.draft, self.payload, micros(stamp));
        let mut settings = draft.settings.clone();
        if bucket.settings.default_event_based_hold == Some(true) {
            settings.event_based_hold = Some(true);
        }
        if let Some(retention) = settings.retention {
            check_new_retention(bucket, retention.retain_until_time, now)?;
        }
        let acl = bucket.settable(draft.acl.clone())?;
        let acl = acl.unwrap_or_else(|| bucket.default_object_acl.clone());
        let generation = Generation {
            id: ObjectGeneration::of(stamp),
            metageneration: 1,
            state: State::Live,
            size: payload.size,
            crc32c: payload.crc32c,
            md5: payload.md5,
            component_count: payload.component_count,
            created: now,
            updated: now,
            class_updated: now,
            released: None,
            storage_class: draft.storage_class.unwrap_or(bucket.storage_class()),
            settings,
            owner: self.owner.to_owned(),
            acl,
            encryption: encryption(bucket, draft)?,
            blobs: payload.blobs.clone(),
            bytes: None,
        };
        Ok(generation.with_few_bytes(&payload.content))
    }
}

fn check_new_retention(bucket: &Bucket, until: Micros, now: Micros) -> Result<(), ObjectError> {
    if !bucket.has_object_retention() {
        let hint = "The bucket was not created with object retention enabled.";
        return Err(ObjectError::invalid("retention", "a retention", hint));
    }
    match until > now {
        true => Ok(()),
        false => {
            let hint = "The time must be in the future.";
            Err(ObjectError::invalid("retention.retainUntilTime", until.text(), hint))
        }
    }
}

/// How the object is encrypted. Fails if the bucket does not allow that sort.
fn encryption(bucket: &Bucket, draft: &Draft) -> Result<Encryption, ObjectError> {
    let settings = bucket.settings.encryption.as_ref();
    let default = settings.and_then(|settings| settings.default_kms_key_name.as_deref());
    // A client that writes back what it has read names a version too. The newest one counts for what is written.
    let without_version = |key: &str| key.split_once(KMS_VERSIONS).map_or(key, |(name, _)| name).to_owned();
    let named = draft.kms_key.as_deref().map(without_version).filter(|name| !name.is_empty());
    let encryption = match (draft.customer_key, named.or_else(|| default.map(without_version))) {
        (Some(sha256), _) => Encryption::Customer(sha256),
        (None, Some(name)) => Encryption::Kms(name),
        (None, None) => Encryption::Default,
    };
    let Some(settings) = settings else { return Ok(encryption) };
    let (rule, sort) = match encryption {
        Encryption::Default => (&settings.google_managed_encryption_enforcement_config, "Google-managed"),
        Encryption::Kms(_) => (&settings.customer_managed_encryption_enforcement_config, "customer-managed"),
        Encryption::Customer(_) => {
            (&settings.customer_supplied_encryption_enforcement_config, "customer-supplied")
        }
    };
    let is_restricted = |rule: &Enforcement| rule.restriction_mode.as_deref() == Some("FullyRestricted");
    match rule.as_ref().is_some_and(is_restricted) {
        false => Ok(encryption),
        true => {
            let message =
                format!("Requested encryption type ({sort} keys) is not allowed in bucket {}.", bucket.name);
            Err(ObjectError::new(ErrorKind::BucketRule, message))
        }
    }
}
