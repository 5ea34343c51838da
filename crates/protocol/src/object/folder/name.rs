//! Whole names, the folders in them, and stored names.

use crate::object::error::ObjectError;
use crate::object::limits::NAME_BYTES_MAX;

/// Characters of an id in a stored name.
const ID_DIGITS: usize = 16;

/// The names of the folders in which a whole name lies, from above, each with its slash; and the rest, which is the object's
/// name in the last of them. The whole name of a folder has no rest.
pub fn folders_of(whole: &str) -> (Vec<&str>, &str) {
    let mut parts: Vec<&str> = whole.split_inclusive('/').collect();
    let rest = parts.pop_if(|last| !last.ends_with('/')).unwrap_or_default();
    (parts, rest)
}

/// The whole name of the folder above a folder; empty for the bucket itself.
pub fn parent_of(whole: &str) -> &str {
    let name = whole.strip_suffix('/').unwrap_or(whole);
    name.rfind('/').map_or("", |slash| &whole[..=slash])
}

/// The whole name of a folder ends with a slash, also if a client leaves it out.
pub fn with_slash(name: &str) -> String {
    if name.ends_with('/') { name.to_owned() } else { format!("{name}/") }
}

/// Checks the whole name of a new folder.
pub fn check_folder(whole: &str) -> Result<(), ObjectError> {
    if matches!(whole, "" | "/") {
        return Err(ObjectError::required("name"));
    }
    if whole.len() > NAME_BYTES_MAX {
        return Err(ObjectError::invalid("name", whole, "A folder's name has at most 1024 bytes in UTF-8."));
    }
    if whole.contains(['\r', '\n']) {
        return Err(ObjectError::invalid("name", whole, "A folder's name has no line breaks."));
    }
    Ok(())
}

/// The stored name of an object: the id of its folder, and its name there.
pub fn stored_name(folder: u64, name: &str) -> String {
    format!("{folder:016x}/{name}")
}

/// The reverse of [`stored_name`]; `None` for a name that it does not make.
pub fn stored_parts(stored: &str) -> Option<(u64, &str)> {
    let (id, name) = stored.split_once('/')?;
    let id = Some(id).filter(|id| id.len() == ID_DIGITS)?;
    Some((u64::from_str_radix(id, 16).ok()?, name))
}
