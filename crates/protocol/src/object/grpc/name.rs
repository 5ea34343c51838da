//! Names of resources: `projects/_/buckets/B`, and what follows it.

use crate::object::error::ObjectError;

/// The name of a bucket, as messages have it.
pub fn bucket_name(bucket: &str) -> String {
    format!("projects/_/buckets/{bucket}")
}

/// The bucket of a name such as `projects/_/buckets/B`. `field` is where the name stands.
pub(super) fn bucket_in<'n>(field: &str, name: &'n str) -> Result<&'n str, ObjectError> {
    match split(name) {
        Some((bucket, "")) => Ok(bucket),
        _ => Err(ObjectError::invalid(field, name, "Write projects/_/buckets/BUCKET.")),
    }
}

/// The bucket of a name, and what follows it and a slash.
pub(super) fn split(name: &str) -> Option<(&str, &str)> {
    let (_project, rest) = name.strip_prefix("projects/")?.split_once("/buckets/")?;
    let (bucket, rest) = rest.split_once('/').unwrap_or((rest, ""));
    (!bucket.is_empty()).then_some((bucket, rest))
}

/// The bucket and the folder of `projects/_/buckets/B/managedFolders/F`.
pub(super) fn managed_folder_in<'n>(field: &str, name: &'n str) -> Result<(&'n str, &'n str), ObjectError> {
    let hint = "Write projects/_/buckets/BUCKET/managedFolders/FOLDER.";
    below(name, "managedFolders/").ok_or_else(|| ObjectError::invalid(field, name, hint))
}

/// The bucket and the folder of `projects/_/buckets/B/folders/F`.
pub(super) fn folder_in<'n>(field: &str, name: &'n str) -> Result<(&'n str, &'n str), ObjectError> {
    let hint = "Write projects/_/buckets/BUCKET/folders/FOLDER.";
    below(name, "folders/").ok_or_else(|| ObjectError::invalid(field, name, hint))
}

fn below<'n>(name: &'n str, sort: &str) -> Option<(&'n str, &'n str)> {
    let (bucket, rest) = split(name)?;
    Some((bucket, rest.strip_prefix(sort).filter(|folder| !folder.is_empty())?))
}

/// The project of `projects/P`.
pub(super) fn project_in<'n>(field: &str, name: &'n str) -> Result<&'n str, ObjectError> {
    let project = name.strip_prefix("projects/").filter(|project| !project.is_empty());
    project
        .filter(|project| !project.contains('/'))
        .ok_or_else(|| ObjectError::invalid(field, name, "Write projects/PROJECT."))
}

/// The name of an upload: with its bucket, so that the id alone leads to the session.
pub fn upload_name(bucket: &str, id: &str) -> String {
    format!("projects/_/buckets/{bucket}/{id}")
}

/// The bucket and the id of an upload.
pub fn upload_in(name: &str) -> Result<(&str, &str), ObjectError> {
    split(name).filter(|(_, id)| !id.is_empty()).ok_or_else(|| ObjectError::no_such_upload(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_buckets() {
        assert_eq!(bucket_in("name", "projects/_/buckets/b"), Ok("b"));
        assert_eq!(bucket_in("name", "projects/p/buckets/b"), Ok("b"));
        for name in ["b", "", "projects/_/buckets/", "projects/_/buckets/b/objects/o", "buckets/b"] {
            assert!(bucket_in("name", name).is_err(), "{name}");
        }
        assert_eq!(managed_folder_in("name", "projects/_/buckets/b/managedFolders/f/g/"), Ok(("b", "f/g/")));
        assert!(managed_folder_in("name", "projects/_/buckets/b/folders/f/").is_err());
        assert_eq!(folder_in("name", "projects/_/buckets/b/folders/f/g/"), Ok(("b", "f/g/")));
        assert!(folder_in("name", "projects/_/buckets/b/folders/").is_err());
        assert_eq!(project_in("parent", "projects/p"), Ok("p"));
        assert!(project_in("parent", "projects/p/buckets/b").is_err());
        assert_eq!(upload_in(&upload_name("b", "1-eA")), Ok(("b", "1-eA")));
        assert!(upload_in("1-eA").is_err());
    }
}
