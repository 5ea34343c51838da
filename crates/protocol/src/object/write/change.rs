//! Changes of what is known of a generation: its settings, its access control list, its storage class.

use bytes::Bytes;
use rangehold_map::Timestamp;
use serde_json::{Map, Value};

use super::{Judge, Name, Outcome, Verdict, micros};
use crate::object::acl::{Acl, AclEntry, Predefined};
use crate::object::bucket::BodyMode;
use crate::object::condition::{Conditions, Purpose};
use crate::object::error::ObjectError;
use crate::object::generation::{Generation, Settings};
use crate::object::micros::Micros;
use crate::object::storage_class::StorageClass;

/// A change of one line of an access control list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AclEdit {
    /// The line is added, or takes the place of an older one of its entity.
    Put(AclEntry),
    /// The line of this entity is removed.
    Remove(String),
}

impl AclEdit {
    /// The list after the change. It fails if the line that is to be removed does not exist.
    pub fn applied(&self, acl: &Acl, project_number: u64, owner: Option<&str>) -> Result<Acl, ObjectError> {
        match self {
            Self::Put(entry) => acl.with(entry.clone(), project_number, owner),
            Self::Remove(entity) => acl.without(entity, project_number, owner).ok_or_else(|| {
                let message = format!("The list has no entry of {entity}.");
                ObjectError::new(crate::object::error::ErrorKind::NotFound, message)
            }),
        }
    }
}

/// What changes.
#[derive(Debug, Clone, Copy)]
pub enum Edit<'a> {
    /// The settings, and the list if the body has one, as a patch or update says.
    Body {
        /// The JSON of the request.
        body: &'a Map<String, Value>,
        /// Whether the body names what changes, or is the whole.
        mode: BodyMode<'a>,
        /// `predefinedAcl`.
        acl: Option<Predefined>,
        /// `overrideUnlockedRetention`.
        may_override: bool,
    },
    /// One line of the access control list.
    Acl(&'a AclEdit),
    /// The storage class, as a lifecycle rule says.
    Class(StorageClass),
}

/// Changes a generation, live or older.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The name.
    pub of: Name<'a>,
    /// The generation; the live one if `None`.
    pub generation: Option<u64>,
    /// On that generation.
    pub conditions: &'a Conditions,
    /// What changes.
    pub edit: Edit<'a>,
}

impl Judge for Change<'_> {
    type Answer = Generation;

    fn name(&self) -> Name<'_> {
        self.of
    }

    /// The rows that the judge reads.
    fn keys(&self) -> Vec<Vec<u8>> {
        self.of.keys_of(self.generation)
    }

    /// Decides the change. The answer is the generation as it is afterwards.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<Generation> {
        let mut generation = self.of.find(self.generation, rows)?;
        self.conditions.check(Some(&generation), Purpose::Write)?;
        self.apply(&mut generation, micros(stamp))?;
        let mut out = Outcome::unchanged(generation);
        self.of.put(&out.answer, &mut out.changes);
        Ok(out)
    }
}

impl Change<'_> {
    fn apply(&self, generation: &mut Generation, now: Micros) -> Result<(), ObjectError> {
        let bucket = self.of.bucket;
        match self.edit {
            Edit::Body { body, mode, acl, may_override } => {
                let settings = match mode {
                    BodyMode::Patch { whole } => generation.settings.patched_with(body, whole, now)?,
                    BodyMode::Update => updated(&generation.settings, body, now)?,
                };
                let listed = body.get("acl").filter(|acl| !acl.is_null());
                let listed = listed.map(|acl| Acl::from_json(acl, false)).transpose()?;
                if let Some(acl) = bucket.settable(acl.map(Acl::Predefined).or(listed))? {
                    generation.acl = acl;
                }
                generation.change_settings(settings, may_override, bucket.has_object_retention(), now)
            }
            Edit::Acl(edit) => {
                bucket.check_lists_in_use()?;
                let owner = Some(generation.owner.as_str());
                let acl = edit.applied(&generation.acl, bucket.project_number, owner)?;
                bucket.check_public(&acl)?;
                generation.acl = acl;
                touch(generation, now);
                Ok(())
            }
            Edit::Class(class) => {
                generation.storage_class = class;
                generation.class_updated = now;
                touch(generation, now);
                Ok(())
            }
        }
    }
}

/// The settings after an update: what the body does not name is gone. Contexts keep their times, and a custom time
/// that the body does not name stays, since it can never be removed.
fn updated(old: &Settings, body: &Map<String, Value>, now: Micros) -> Result<Settings, ObjectError> {
    let mut kept = Settings { custom_time: old.custom_time, ..Settings::default() };
    if body.get("contexts").is_some_and(|contexts| !contexts.is_null()) {
        kept.contexts = old.contexts.clone();
        let named = body["contexts"].get("custom").and_then(Value::as_object);
        kept.contexts.custom.retain(|name, _| named.is_some_and(|named| named.contains_key(name)));
    }
    kept.patched(body, now)
}

fn touch(generation: &mut Generation, now: Micros) {
    generation.metageneration += 1;
    generation.updated = now;
}
