//! What the server itself decides in a bucket's settings: defaults, times, and what may no longer be changed.
//!
//! A client merges its wishes into the old settings, and these functions go over the result. Times that a client sent
//! are not believed: each is the old one, or `now` if the thing that it dates has changed.

use super::Namespace;
use super::settings::{
    Autoclass, BucketSettings, Enforcement, IamConfiguration, Placement, RetentionPolicy, SoftDeletePolicy,
};
use crate::object::error::{ErrorKind, ObjectError};
use crate::object::int64::Int64;
use crate::object::limits::{
    LABELS_MAX, RETENTION_SECONDS_MAX, SOFT_DELETE_SECONDS, SOFT_DELETE_SECONDS_RANGE,
};
use crate::object::micros::Micros;
use crate::object::storage_class::StorageClass;

/// How long uniform access can be switched off again, in seconds: 90 days.
const UNIFORM_UNLOCKED_SECONDS: u64 = 90 * 24 * 3600;
/// Locations that are several regions.
const MULTI_REGIONS: [&str; 3] = ["ASIA", "EU", "US"];
/// Locations that are two regions.
const DUAL_REGIONS: [&str; 6] = ["ASIA1", "EUR4", "EUR5", "EUR7", "EUR8", "NAM4"];

/// Goes over the settings of a new bucket.
pub(super) fn finish_new(new: &mut BucketSettings, can_retain: bool, now: Micros) -> Result<(), ObjectError> {
    let location = new.location.as_deref().filter(|location| !location.is_empty()).unwrap_or("US");
    new.location = Some(location.to_ascii_uppercase());
    new.storage_class.get_or_insert_default();
    new.object_retention =
        can_retain.then(|| super::settings::ObjectRetention { mode: Some("Enabled".to_owned()) });
    let period = Int64(SOFT_DELETE_SECONDS);
    new.soft_delete_policy.get_or_insert_default().retention_duration_seconds.get_or_insert(period);
    let is_uniform = new.uniform_access();
    if new.hierarchical_namespace == Some(Namespace::Folders) {
        let hint = match (is_uniform, can_retain) {
            (false, _) => "It needs uniform bucket-level access.",
            (true, true) => "It cannot be combined with retention of single objects.",
            (true, false) => "",
        };
        if !hint.is_empty() {
            return Err(ObjectError::invalid("hierarchicalNamespace", "enabled", hint));
        }
    }
    finish(&BucketSettings::default(), new, now)
}

/// Goes over the settings `new` of a bucket that had `old`.
pub(super) fn finish(old: &BucketSettings, new: &mut BucketSettings, now: Micros) -> Result<(), ObjectError> {
    new.storage_class.get_or_insert_default();
    if new.rpo.is_none() && location_type(new) != "region" {
        new.rpo = Some("DEFAULT".to_owned());
    }
    new.autoclass = autoclass(old.autoclass, new.autoclass, now);
    new.retention_policy = retention(old.retention_policy, new.retention_policy, now)?;
    new.soft_delete_policy = soft_delete(old.soft_delete_policy, new.soft_delete_policy, now)?;
    new.iam_configuration = Some(access(old, new.iam_configuration.take(), now)?);
    enforcement(old, new, now)?;
    check_labels(new)?;
    check_namespace(new)?;
    check_rpo(new)?;
    new.lifecycle.iter().try_for_each(|lifecycle| lifecycle.check())
}

/// In a bucket with folders there are no older versions, and uniform access stays.
fn check_namespace(settings: &BucketSettings) -> Result<(), ObjectError> {
    if settings.hierarchical_namespace != Some(Namespace::Folders) {
        return Ok(());
    }
    let refused = |field: &str, value: &str| {
        let hint = "The bucket has a hierarchical namespace, which does not allow it.";
        Err(ObjectError::invalid(field, value, hint))
    };
    match (settings.versioning.is_some_and(|versioning| versioning.enabled), settings.uniform_access()) {
        (true, _) => refused("versioning", "enabled"),
        (false, false) => refused("iamConfiguration.uniformBucketLevelAccess", "disabled"),
        (false, true) => Ok(()),
    }
}

/// `region`, `dual-region` or `multi-region`.
pub(super) fn location_type(settings: &BucketSettings) -> &'static str {
    let location = settings.location.as_deref().unwrap_or_default();
    let pair = |placement: &Placement| placement.data_locations.len() == 2;
    if settings.custom_placement_config.as_ref().is_some_and(pair) || DUAL_REGIONS.contains(&location) {
        "dual-region"
    } else if MULTI_REGIONS.contains(&location) {
        "multi-region"
    } else {
        "region"
    }
}

/// The classes change their times only when they are switched.
fn autoclass(old: Option<Autoclass>, new: Option<Autoclass>, now: Micros) -> Option<Autoclass> {
    let mut new = new?;
    let old = old.unwrap_or_default();
    new.toggle_time = if new.enabled == old.enabled { old.toggle_time } else { Some(now) };
    if !new.enabled {
        return Some(Autoclass { toggle_time: new.toggle_time, ..Autoclass::default() });
    }
    let class = new.terminal_storage_class.unwrap_or(StorageClass::Nearline);
    new.terminal_storage_class = Some(class);
    let same = old.terminal_storage_class == Some(class);
    new.terminal_storage_class_update_time =
        if same { old.terminal_storage_class_update_time } else { Some(now) };
    Some(new)
}

fn retention(
    old: Option<RetentionPolicy>,
    new: Option<RetentionPolicy>,
    now: Micros,
) -> Result<Option<RetentionPolicy>, ObjectError> {
    let period = |policy: Option<RetentionPolicy>| policy?.retention_period.filter(|period| period.0 > 0);
    let (before, after) = (period(old), period(new));
    let is_locked = old.and_then(|old| old.is_locked).filter(|locked| *locked);
    if is_locked.is_some() && after < before {
        let message = match after {
            Some(_) => "Cannot reduce retention duration of a locked Retention Policy for a bucket.",
            None => "The bucket has a locked Retention Policy which cannot be removed.",
        };
        return Err(ObjectError::new(ErrorKind::Retention, message));
    }
    if let Some(seconds) = after.filter(|seconds| seconds.0 > RETENTION_SECONDS_MAX) {
        let hint = "The longest period is 3155760000 seconds.";
        return Err(ObjectError::invalid("retentionPolicy", seconds.0, hint));
    }
    let since = old.and_then(|old| old.effective_time).filter(|_| before == after);
    Ok(after.map(|period| RetentionPolicy {
        retention_period: Some(period),
        effective_time: Some(since.unwrap_or(now)),
        is_locked,
    }))
}

fn soft_delete(
    old: Option<SoftDeletePolicy>,
    new: Option<SoftDeletePolicy>,
    now: Micros,
) -> Result<Option<SoftDeletePolicy>, ObjectError> {
    let seconds = |policy: Option<SoftDeletePolicy>| policy?.retention_duration_seconds;
    // A policy that is removed is one of no time at all.
    let after = seconds(new).unwrap_or_default();
    let (least, most) = SOFT_DELETE_SECONDS_RANGE;
    if after.0 != 0 && !(least..=most).contains(&after.0) {
        let hint = "Use 0, or 604800 (7 days) to 7776000 (90 days).";
        return Err(ObjectError::invalid("softDeletePolicy", after.0, hint));
    }
    let since = old.and_then(|old| old.effective_time).filter(|_| seconds(old) == Some(after));
    let effective_time = Some(since.unwrap_or(now));
    Ok(Some(SoftDeletePolicy { retention_duration_seconds: Some(after), effective_time }))
}

fn access(
    old: &BucketSettings,
    new: Option<IamConfiguration>,
    now: Micros,
) -> Result<IamConfiguration, ObjectError> {
    let new = new.unwrap_or_default();
    let before = old.iam_configuration.as_ref().and_then(|iam| iam.uniform_bucket_level_access);
    let before = before.unwrap_or_default();
    // The two names say the same. If a client changed one of them, that one is its wish.
    let wishes = [new.uniform_bucket_level_access, new.bucket_policy_only].into_iter().flatten();
    let changed = wishes.clone().find(|wish| wish.enabled != before.enabled);
    let mut access = changed.or_else(|| wishes.clone().next()).unwrap_or_default();
    access.locked_time = match (access.enabled, before.enabled) {
        (true, true) => before.locked_time,
        (true, false) => Some(now.plus_seconds(UNIFORM_UNLOCKED_SECONDS)),
        (false, _) => None,
    };
    if before.enabled && !access.enabled && before.locked_time.is_some_and(|locked| locked <= now) {
        let message = "Uniform bucket-level access is locked and cannot be disabled.";
        return Err(ObjectError::new(ErrorKind::BucketRule, message));
    }
    let prevention = new.public_access_prevention.unwrap_or_else(|| "inherited".to_owned());
    let prevention = match prevention.as_str() {
        "inherited" | "unspecified" => "inherited",
        "enforced" => "enforced",
        other => {
            let hint = "Use inherited or enforced.";
            return Err(ObjectError::invalid("iamConfiguration.publicAccessPrevention", other, hint));
        }
    };
    Ok(IamConfiguration {
        bucket_policy_only: Some(access),
        uniform_bucket_level_access: Some(access),
        public_access_prevention: Some(prevention.to_owned()),
    })
}

/// A restriction has the time since when it holds.
fn enforcement(old: &BucketSettings, new: &mut BucketSettings, now: Micros) -> Result<(), ObjectError> {
    let Some(encryption) = &mut new.encryption else { return Ok(()) };
    let before = old.encryption.clone().unwrap_or_default();
    let pairs: [(Option<Enforcement>, &mut Option<Enforcement>); 3] = [
        (
            before.google_managed_encryption_enforcement_config,
            &mut encryption.google_managed_encryption_enforcement_config,
        ),
        (
            before.customer_managed_encryption_enforcement_config,
            &mut encryption.customer_managed_encryption_enforcement_config,
        ),
        (
            before.customer_supplied_encryption_enforcement_config,
            &mut encryption.customer_supplied_encryption_enforcement_config,
        ),
    ];
    for (before, after) in pairs {
        let Some(after) = after else { continue };
        let before = before.unwrap_or_default();
        after.effective_time = match after.restriction_mode.as_deref() {
            Some("FullyRestricted") if before.restriction_mode == after.restriction_mode => {
                before.effective_time
            }
            Some("FullyRestricted") => Some(now),
            Some("NotRestricted") | None => None,
            Some(other) => {
                let hint = "Use NotRestricted or FullyRestricted.";
                return Err(ObjectError::invalid("encryption.restrictionMode", other, hint));
            }
        };
    }
    Ok(())
}

fn check_labels(settings: &BucketSettings) -> Result<(), ObjectError> {
    let Some(labels) = &settings.labels else { return Ok(()) };
    if labels.len() > LABELS_MAX {
        return Err(ObjectError::invalid("labels", labels.len(), "A bucket has at most 64 labels."));
    }
    let fits = |text: &str| {
        text.chars().count() <= 63
            && text.chars().all(|c| matches!(c, '-' | '_') || (c.is_alphanumeric() && !c.is_uppercase()))
    };
    for (name, value) in labels {
        if !fits(name) || !fits(value) || !name.starts_with(|c: char| c.is_lowercase()) {
            let hint = "Names and values of labels have at most 63 lower-case letters, digits, '-' and '_'; \
                        a name begins with a letter.";
            return Err(ObjectError::invalid("labels", format_args!("{name}: {value}"), hint));
        }
    }
    Ok(())
}

fn check_rpo(settings: &BucketSettings) -> Result<(), ObjectError> {
    match settings.rpo.as_deref() {
        None | Some("DEFAULT") => Ok(()),
        Some("ASYNC_TURBO") if location_type(settings) == "dual-region" => Ok(()),
        Some(other) => Err(ObjectError::invalid(
            "rpo",
            other,
            "Use DEFAULT, or ASYNC_TURBO for a bucket in two regions.",
        )),
    }
}
