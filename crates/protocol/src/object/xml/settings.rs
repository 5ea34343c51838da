//! Settings of buckets as documents: `GET` and `PUT` of a bucket with a parameter that names one.
//!
//! | parameter | document | field of the JSON API |
//! |---|---|---|
//! | `acl`, `defaultObjectAcl` | `AccessControlList` | the same |
//! | `billing` | `BillingConfiguration` | `billing.requesterPays` |
//! | `cors` | `CorsConfig` | `cors` |
//! | `encryptionConfig` | `EncryptionConfiguration` | `encryption.defaultKmsKeyName` |
//! | `lifecycle` | `LifecycleConfiguration` | `lifecycle` |
//! | `location` | `LocationConstraint`; is not set | `location` |
//! | `logging` | `Logging` | `logging` |
//! | `object-lock` | `ObjectLockConfiguration`; is not set | `objectRetention` |
//! | `storageClass` | `StorageClass` | `storageClass` |
//! | `tagging` | `Tagging` | `labels` |
//! | `versioning` | `VersioningConfiguration` | `versioning.enabled` |
//! | `websiteConfig` | `WebsiteConfiguration` | `website` |
//!
//! A document that is put becomes a patch of the JSON API, so both APIs check settings in one place.

use serde_json::{Map, Value, json};

use super::tree::Element;
use super::writer::Writer;
use super::{acl, lifecycle};
use crate::object::bucket::Bucket;
use crate::object::bucket::cors::CorsRule;
use crate::object::error::{ErrorKind, ObjectError};

/// A setting that has a document of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter)]
#[expect(missing_docs, reason = "the settings are those of the table above, in its order")]
pub enum Setting {
    Acl,
    DefaultAcl,
    Billing,
    Cors,
    Encryption,
    Lifecycle,
    Location,
    Logging,
    ObjectLock,
    StorageClass,
    Tagging,
    Versioning,
    Website,
}

impl Setting {
    /// The parameter that chooses it, the root of its document, and its field in the JSON API.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Acl => ("acl", "AccessControlList", "acl"),
            Self::DefaultAcl => ("defaultObjectAcl", "AccessControlList", "defaultObjectAcl"),
            Self::Billing => ("billing", "BillingConfiguration", "billing"),
            Self::Cors => ("cors", "CorsConfig", "cors"),
            Self::Encryption => ("encryptionConfig", "EncryptionConfiguration", "encryption"),
            Self::Lifecycle => ("lifecycle", "LifecycleConfiguration", "lifecycle"),
            Self::Location => ("location", "LocationConstraint", "location"),
            Self::Logging => ("logging", "Logging", "logging"),
            Self::ObjectLock => ("object-lock", "ObjectLockConfiguration", "objectRetention"),
            Self::StorageClass => ("storageClass", "StorageClass", "storageClass"),
            Self::Tagging => ("tagging", "Tagging", "labels"),
            Self::Versioning => ("versioning", "VersioningConfiguration", "versioning"),
            Self::Website => ("websiteConfig", "WebsiteConfiguration", "website"),
        }
    }

    /// The parameter that chooses it.
    pub const fn parameter(self) -> &'static str {
        self.words().0
    }

    /// The field of the bucket in the JSON API.
    pub const fn field(self) -> &'static str {
        self.words().2
    }

    /// Whether it is one of the lists of who may do what.
    pub const fn is_list(self) -> bool {
        matches!(self, Self::Acl | Self::DefaultAcl)
    }

    /// Whether it can be set after the bucket was made.
    pub const fn can_be_set(self) -> bool {
        !matches!(self, Self::Location | Self::ObjectLock)
    }

    /// Reads a document as a patch of the JSON API.
    ///
    /// # Errors
    /// `ParseError` (`MalformedXML`) for another document.
    pub fn read(self, body: &[u8]) -> Result<Map<String, Value>, ObjectError> {
        let (_, root, field) = self.words();
        let value = match self {
            Self::Acl | Self::DefaultAcl => acl::read(body, self == Self::Acl)?,
            Self::Lifecycle => lifecycle::read(&Element::parse(body, root)?)?,
            _ => self.value(&Element::parse(body, root)?)?,
        };
        Ok(Map::from_iter([(field.to_owned(), value)]))
    }

    fn value(self, root: &Element) -> Result<Value, ObjectError> {
        let text = |name: &str| root.text_of(name);
        // One of two words; both are known.
        let switch = |name: &str, on: &str, off: &str| match text(name) {
            Some(word) if word == on => Ok(true),
            Some(word) if word == off => Ok(false),
            other => Err(root.unexpected(other.unwrap_or("nothing"))),
        };
        Ok(match self {
            Self::Billing => json!({ "requesterPays": switch("RequesterPays", "Enabled", "Disabled")? }),
            Self::Versioning => json!({ "enabled": switch("Status", "Enabled", "Suspended")? }),
            Self::Encryption => {
                root.only(&["DefaultKmsKeyName"])?;
                json!({ "defaultKmsKeyName": text("DefaultKmsKeyName") })
            }
            Self::Cors => root.children.iter().map(|rule| cors_rule(root, rule)).collect::<Result<_, _>>()?,
            Self::Tagging => labels(root)?,
            Self::StorageClass => json!(root.text()),
            Self::Logging => {
                pair(root, [("LogBucket", "logBucket"), ("LogObjectPrefix", "logObjectPrefix")])?
            }
            Self::Website => {
                pair(root, [("MainPageSuffix", "mainPageSuffix"), ("NotFoundPage", "notFoundPage")])?
            }
            Self::Acl | Self::DefaultAcl | Self::Lifecycle | Self::Location | Self::ObjectLock => Value::Null,
        })
    }

    /// The document of a bucket's setting.
    ///
    /// # Errors
    /// `NotFound` for the retention of objects if the bucket has none. `Invalid` for lists that uniform access puts out of
    /// use.
    pub fn render(self, bucket: &Bucket) -> Result<String, ObjectError> {
        let settings = &bucket.settings;
        if self.is_list() {
            bucket.check_lists_in_use()?;
            let owner = bucket.owner();
            return Ok(match self {
                Self::Acl => acl::rendered(Some(&owner), &bucket.acl_entries()),
                _ => acl::rendered(None, &bucket.default_acl_entries()),
            });
        }
        let of_root = |text: &str| Writer::whole(self.words().1, text);
        let mut writer = Writer::new(self.words().1, "");
        match self {
            Self::Location => return Ok(of_root(settings.location.as_deref().unwrap_or_default())),
            Self::StorageClass => return Ok(of_root(bucket.storage_class().name())),
            Self::Billing => {
                let is_on = settings.billing.is_some_and(|billing| billing.requester_pays);
                writer.text("RequesterPays", if is_on { "Enabled" } else { "Disabled" });
            }
            // A bucket that never had versions has an empty document.
            Self::Versioning => {
                let word = |is_on| if is_on { "Enabled" } else { "Suspended" };
                writer.optional("Status", settings.versioning.map(|versioning| word(versioning.enabled)));
            }
            Self::Encryption => {
                let key = settings.encryption.as_ref().and_then(|one| one.default_kms_key_name.as_deref());
                writer.optional("DefaultKmsKeyName", key);
            }
            Self::Cors => settings.cors.iter().flatten().for_each(|rule| put_cors(&mut writer, rule)),
            Self::Lifecycle => {
                let rules = settings.lifecycle.iter().flat_map(|lifecycle| &lifecycle.rule);
                rules.for_each(|rule| lifecycle::put(&mut writer, rule));
            }
            Self::Logging => {
                let logging = settings.logging.clone().unwrap_or_default();
                writer.optional("LogBucket", logging.log_bucket.as_deref());
                writer.optional("LogObjectPrefix", logging.log_object_prefix.as_deref());
            }
            Self::Tagging => {
                writer.open("TagSet");
                for (key, value) in settings.labels.iter().flatten() {
                    writer.open("Tag");
                    writer.text("Key", key);
                    writer.text("Value", value);
                    writer.close();
                }
            }
            Self::Website => {
                let website = settings.website.clone().unwrap_or_default();
                writer.optional("MainPageSuffix", website.main_page_suffix.as_deref());
                writer.optional("NotFoundPage", website.not_found_page.as_deref());
            }
            Self::ObjectLock if bucket.has_object_retention() => writer.text("ObjectLockEnabled", "Enabled"),
            Self::ObjectLock => {
                let message = "Retention of single objects is not enabled for the bucket.";
                return Err(ObjectError::new(ErrorKind::NotFound, message));
            }
            Self::Acl | Self::DefaultAcl => unreachable!("lists were rendered above"),
        }
        Ok(writer.finish())
    }
}

/// Two optional texts as an object; no object if both are absent.
fn pair(root: &Element, names: [(&str, &str); 2]) -> Result<Value, ObjectError> {
    root.only(&names.map(|(element, _)| element))?;
    let texts =
        names.iter().filter_map(|(element, field)| Some((field.to_string(), json!(root.text_of(element)?))));
    let texts: Map<String, Value> = texts.collect();
    Ok(if texts.is_empty() { Value::Null } else { texts.into() })
}

fn labels(root: &Element) -> Result<Value, ObjectError> {
    let tags = root.child("TagSet").ok_or_else(|| root.unexpected("no TagSet"))?;
    tags.only(&["Tag"])?;
    let label = |tag: &Element| {
        let key = tag.text_of("Key").ok_or_else(|| tag.unexpected("no Key"))?;
        Ok((key.to_owned(), json!(tag.text_of("Value").unwrap_or_default())))
    };
    let labels: Map<String, Value> = tags.children.iter().map(label).collect::<Result<_, ObjectError>>()?;
    Ok(labels.into())
}

fn cors_rule(root: &Element, rule: &Element) -> Result<Value, ObjectError> {
    if rule.name != "Cors" {
        return Err(root.unexpected(&rule.name));
    }
    rule.only(&["Origins", "Methods", "ResponseHeaders", "MaxAgeSec"])?;
    let mut out = json!({
        "origin": texts(rule, "Origins", "Origin"),
        "method": texts(rule, "Methods", "Method"),
        "responseHeader": texts(rule, "ResponseHeaders", "ResponseHeader"),
    });
    if let Some(seconds) = rule.text_of("MaxAgeSec") {
        out["maxAgeSeconds"] = json!(seconds.parse::<u32>().map_err(|_| rule.unexpected(seconds))?);
    }
    Ok(out)
}

fn texts<'e>(rule: &'e Element, outer: &'static str, inner: &str) -> Vec<&'e str> {
    let inside = rule.all(outer).flat_map(|list| &list.children);
    inside.filter(|one| one.name == inner).map(Element::text).collect()
}

fn put_cors(writer: &mut Writer, rule: &CorsRule) {
    writer.open("Cors");
    let lists = [
        ("Origins", "Origin", &rule.origin),
        ("Methods", "Method", &rule.method),
        ("ResponseHeaders", "ResponseHeader", &rule.response_header),
    ];
    for (outer, inner, texts) in lists.into_iter().filter(|(.., texts)| !texts.is_empty()) {
        writer.open(outer);
        texts.iter().for_each(|text| writer.text(inner, text));
        writer.close();
    }
    writer.optional("MaxAgeSec", rule.max_age_seconds.map(|seconds| seconds.to_string()).as_deref());
    writer.close();
}

#[cfg(test)]
mod tests {
    use rangehold_map::key::BucketId;
    use strum::IntoEnumIterator as _;

    use super::*;
    use crate::object::bucket::{BodyMode, BucketParameters};
    use crate::object::micros::Micros;

    fn bucket() -> Bucket {
        let body = json!({"name": "photos", "location": "eu"});
        let body = body.as_object().expect("an object");
        Bucket::insert(BucketId(1), "p", body, BucketParameters::default(), Micros::new(1)).expect("a bucket")
    }

    fn put(setting: Setting, document: &str) -> Result<Bucket, ObjectError> {
        let (patch, whole) = (setting.read(document.as_bytes())?, [setting.field().to_owned()]);
        let mode = BodyMode::Patch { whole: &whole };
        bucket().changed(&patch, mode, BucketParameters::default(), Micros::new(2))
    }

    #[test]
    fn a_document_that_is_put_is_read_back_as_it_was() {
        for (setting, inside) in [
            (Setting::Billing, "<RequesterPays>Enabled</RequesterPays>"),
            (Setting::Versioning, "<Status>Suspended</Status>"),
            (Setting::Encryption, "<DefaultKmsKeyName>projects/p/key</DefaultKmsKeyName>"),
            (
                Setting::Cors,
                "<Cors><Origins><Origin>*</Origin></Origins><Methods><Method>GET</Method><Method>PUT</Method></Methods>\
                 <ResponseHeaders><ResponseHeader>x-a</ResponseHeader></ResponseHeaders><MaxAgeSec>60</MaxAgeSec></Cors>",
            ),
            (Setting::Tagging, "<TagSet><Tag><Key>team</Key><Value>red</Value></Tag></TagSet>"),
            (Setting::Logging, "<LogBucket>logs</LogBucket><LogObjectPrefix>a</LogObjectPrefix>"),
            (Setting::Website, "<MainPageSuffix>index.html</MainPageSuffix>"),
            (
                Setting::Lifecycle,
                "<Rule><Action><SetStorageClass>NEARLINE</SetStorageClass></Action><Condition><Age>30</Age>\
                 <IsLive>true</IsLive><MatchesPrefix>a</MatchesPrefix><MatchesPrefix>b</MatchesPrefix></Condition></Rule>\
                 <Rule><Action><Delete></Delete></Action><Condition><NumberOfNewerVersions>3</NumberOfNewerVersions>\
                 </Condition></Rule>",
            ),
            (Setting::StorageClass, "COLDLINE"),
        ] {
            let document = format!("<{0}>{inside}</{0}>", setting.words().1);
            let changed = put(setting, &document).unwrap_or_else(|error| panic!("{document}: {error}"));
            let shown = setting.render(&changed).expect("a document");
            assert_eq!(shown, format!("<?xml version='1.0' encoding='UTF-8'?>{document}"));
        }
        let changed = put(Setting::Cors, "<CorsConfig/>").expect("no rules");
        assert_eq!(changed.settings.cors, Some(Vec::new()));
    }

    #[test]
    fn every_setting_of_a_new_bucket_can_be_asked_for() {
        for setting in Setting::iter().filter(|setting| *setting != Setting::ObjectLock) {
            let shown = setting.render(&bucket()).expect("a document");
            assert!(shown.contains(setting.words().1), "{shown}");
        }
        assert!(Setting::Location.render(&bucket()).expect("a document").contains(">EU<"));
        assert_eq!(Setting::ObjectLock.render(&bucket()).expect_err("not enabled").kind.status(), 404);
    }

    #[test]
    fn documents_of_another_form_are_refused() {
        for (setting, document) in [
            (Setting::Versioning, "<VersioningConfiguration/>"),
            (Setting::Versioning, "<VersioningConfiguration><Status>On</Status></VersioningConfiguration>"),
            (Setting::Cors, "<CORSConfiguration/>"),
            (Setting::Cors, "<CorsConfig><Rule/></CorsConfig>"),
            (Setting::Cors, "<CorsConfig><Cors><MaxAgeSec>x</MaxAgeSec></Cors></CorsConfig>"),
            (Setting::Tagging, "<Tagging/>"),
            (Setting::StorageClass, "<StorageClass>WARM</StorageClass>"),
            (Setting::Lifecycle, "<LifecycleConfiguration><Rule><ID>a</ID></Rule></LifecycleConfiguration>"),
            (
                Setting::Lifecycle,
                "<LifecycleConfiguration><Rule><Action><Delete/></Action></Rule></LifecycleConfiguration>",
            ),
            (Setting::Website, "<WebsiteConfiguration><IndexDocument/></WebsiteConfiguration>"),
            (Setting::Billing, "text"),
        ] {
            assert_eq!(put(setting, document).expect_err(document).kind.status(), 400, "{document}");
        }
    }
}
