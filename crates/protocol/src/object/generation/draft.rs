//! What a client says about an object that it is about to write.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Settings;
use crate::object::acl::Acl;
use crate::object::checksum::Announced;
use crate::object::error::ObjectError;
use crate::object::micros::Micros;
use crate::object::storage_class::StorageClass;

/// A new object as its writer describes it: the JSON of an insert, the destination of a copy or compose, or the
/// headers of the XML API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Draft {
    /// What the client sets.
    pub settings: Settings,
    /// The storage class; that of the bucket if the client names none.
    pub storage_class: Option<StorageClass>,
    /// The list that the client spelled out, or chose by its name. The bucket's default if it did neither.
    pub acl: Option<Acl>,
    /// The key of a key service, by its name.
    pub kms_key: Option<String>,
    /// SHA-256 of the key that the client sends.
    pub customer_key: Option<[u8; 32]>,
}

impl Draft {
    /// Reads the JSON of an object. `now` becomes the time of its contexts. The fields `name`, `crc32c` and `md5Hash`
    /// are not part of the draft; see [`Draft::announced`].
    pub fn from_body(body: &Map<String, Value>, now: Micros) -> Result<Self, ObjectError> {
        let text = |field: &str| body.get(field).filter(|value| !value.is_null());
        let class = text("storageClass").map(|value| StorageClass::parse(value.as_str().unwrap_or_default()));
        let kms_key = text("kmsKeyName").and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            settings: Settings::from_body(body, now)?,
            storage_class: class.transpose()?,
            acl: text("acl").map(|acl| Acl::from_json(acl, false)).transpose()?,
            kms_key,
            customer_key: None,
        })
    }

    /// The checksums that the JSON of an object announces for the bytes.
    pub fn announced(body: &Map<String, Value>) -> Result<Announced, ObjectError> {
        let mut announced = Announced::default();
        if let Some(text) = body.get("crc32c").and_then(Value::as_str) {
            announced.add_crc32c(text, "crc32c")?;
        }
        if let Some(text) = body.get("md5Hash").and_then(Value::as_str) {
            announced.add_md5(text, "md5Hash")?;
        }
        Ok(announced)
    }
}
