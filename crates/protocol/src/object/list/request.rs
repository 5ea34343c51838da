//! What a listing asks for: which names, and how they are shown.

use rangehold_map::KeyRange;
use rangehold_map::key::{BucketId, bucket_objects, names_beginning_with, names_from};

use super::{Filter, Position, end_of};
use crate::object::error::{ErrorKind, ObjectError};
use crate::object::glob::Glob;
use crate::object::request::page_size;

/// Which generations are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shown {
    /// Live ones.
    #[default]
    Live,
    /// Live and older ones: `versions`.
    Versions,
    /// Soft-deleted ones that can be restored: `softDeleted`.
    SoftDeleted,
}

/// What a listing asks for.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// Names begin with this.
    pub prefix: String,
    /// Names that have this after the prefix are rolled up to the text that ends with it. Empty for none.
    pub delimiter: String,
    /// Names from this one on.
    pub start_offset: String,
    /// Names before this one. Empty for no end.
    pub end_offset: String,
    /// Names that end with their first delimiter are items too.
    pub include_trailing_delimiter: bool,
    /// Folders are listed as prefixes, also those without objects.
    pub include_folders: bool,
    /// Which generations are shown.
    pub shown: Shown,
    /// A pattern of names.
    pub glob: Option<Glob>,
    /// Which items pass; prefixes are exempt.
    pub filter: Filter,
    /// Items and prefixes of a page.
    pub max_results: usize,
    /// Where the page before ended.
    pub position: Option<Position>,
    /// The next page will be asked for by a name alone ([`Position::of_marker`]).
    pub by_marker: bool,
}

impl ListRequest {
    /// Reads the parameters of the JSON API. `get` gives the value of a parameter.
    pub fn parse<'q>(get: impl Fn(&str) -> Option<&'q str>) -> Result<Self, ObjectError> {
        let text = |name: &str| get(name).unwrap_or_default().to_owned();
        let flag = |name: &str| match get(name) {
            None | Some("" | "false" | "False") => Ok(false),
            Some("true" | "True") => Ok(true),
            Some(other) => Err(ObjectError::invalid(name, other, "Write true or false.")),
        };
        let shown = match (flag("versions")?, flag("softDeleted")?) {
            (false, false) => Shown::Live,
            (true, false) => Shown::Versions,
            (false, true) => Shown::SoftDeleted,
            (true, true) => {
                let hint = "It cannot be combined with versions.";
                return Err(ObjectError::invalid("softDeleted", "true", hint));
            }
        };
        let glob = get("matchGlob").filter(|glob| !glob.is_empty());
        let glob = glob.map(|glob| Glob::new(glob).map_err(|error| invalid_glob(&error.to_string())));
        let delimiter = text("delimiter");
        if glob.is_some() && !matches!(delimiter.as_str(), "" | "/") {
            return Err(ObjectError::invalid("delimiter", delimiter, "With matchGlob it must be '/'."));
        }
        let token = get("pageToken").filter(|token| !token.is_empty());
        Ok(Self {
            prefix: text("prefix"),
            delimiter,
            start_offset: text("startOffset"),
            end_offset: text("endOffset"),
            include_trailing_delimiter: flag("includeTrailingDelimiter")?,
            include_folders: flag("includeFoldersAsPrefixes")?,
            shown,
            glob: glob.transpose()?,
            filter: Filter::parse(get("filter").unwrap_or_default())?,
            max_results: page_size("maxResults", get("maxResults"))?,
            position: token.map(Position::parse).transpose()?,
            by_marker: false,
        })
    }

    /// The length of the prefix to which `name` is rolled up, if it is.
    pub(super) fn rolled_up(&self, name: &str) -> Option<usize> {
        if self.delimiter.is_empty() {
            return None;
        }
        let rest = name.get(self.prefix.len()..)?;
        Some(self.prefix.len() + rest.find(&self.delimiter)? + self.delimiter.len())
    }

    /// The texts with which names must begin: the prefix, and the beginning of the pattern. Of the two, the longer one says
    /// more. If neither begins with the other, no name fits both.
    fn beginnings(&self) -> [&str; 2] {
        [&self.prefix, self.glob.as_ref().map_or("", Glob::literal_prefix)]
    }

    /// Whether the page can need this name.
    pub(super) fn reaches(&self, name: &str) -> bool {
        let is_before_end = self.end_offset.is_empty() || name < self.end_offset.as_str();
        name >= self.begins_at()
            && is_before_end
            && self.beginnings().iter().all(|start| name.starts_with(start))
    }

    /// The page has no names below this one.
    pub fn begins_at(&self) -> &str {
        let position = self.position.as_ref().map_or("", |position| position.name.as_str());
        let others = [self.start_offset.as_str(), position];
        self.beginnings().into_iter().chain(others).max().unwrap_or_default()
    }

    /// The rows of a bucket that the page can need.
    pub fn keys(&self, bucket: BucketId) -> KeyRange {
        let (both, low) = (self.beginnings(), self.begins_at());
        let ends = both.into_iter().filter(|start| !start.is_empty());
        let ends = ends.map(|start| end_of(names_beginning_with(bucket, start)));
        let end = (!self.end_offset.is_empty()).then(|| names_from(bucket, &self.end_offset));
        let high = ends.chain(end).min().unwrap_or_else(|| end_of(bucket_objects(bucket)));
        let low = names_from(bucket, low);
        KeyRange::new(low.clone(), Some(high.max(low)))
    }
}

fn invalid_glob(why: &str) -> ObjectError {
    ObjectError::new(ErrorKind::Invalid, why).at("matchGlob")
}
