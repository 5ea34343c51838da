//! The query parameters of the JSON API and the XML API.

use percent_encoding::percent_decode_str;

use crate::object::acl::Predefined;
use crate::object::condition::{Conditions, Tags};
use crate::object::error::ObjectError;
use crate::object::generation::Projection;
use crate::object::limits::PAGE_ITEMS_MAX;

/// What is said of a number that cannot be read. Google's client for Java looks for the first two words.
const NO_NUMBER: &str = "Invalid argument: write a whole number from 0.";

/// Query parameters, decoded, in the order in which they came. Names are case-sensitive.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl std::fmt::Debug for Query {
    /// Shows the names only, because a value may be a signature.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.pairs.iter().map(|(name, _)| name)).finish()
    }
}

impl Query {
    /// Reads the text after the `?` of a URI. `+` means a space. Bytes that are not UTF-8 are refused.
    pub fn parse(raw: &str) -> Result<Self, ObjectError> {
        let decode = |text: &str| {
            let text = text.replace('+', " ");
            let decoded = percent_decode_str(&text).decode_utf8().map(|decoded| decoded.into_owned());
            decoded.map_err(|_| ObjectError::invalid("query", &text, "Percent-encode UTF-8."))
        };
        let mut pairs = Vec::new();
        for item in raw.split('&').filter(|item| !item.is_empty()) {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(Self { pairs })
    }

    /// Adds a parameter.
    pub fn push(&mut self, name: &str, value: &str) {
        self.pairs.push((name.to_owned(), value.to_owned()));
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.pairs.iter().filter(move |(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// All parameters, as name and value, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a parameter that must be there.
    pub fn required(&self, name: &str) -> Result<&str, ObjectError> {
        self.get(name).filter(|value| !value.is_empty()).ok_or_else(|| ObjectError::required(name))
    }

    /// A parameter that is a whole number from 0.
    pub fn number(&self, name: &str) -> Result<Option<u64>, ObjectError> {
        let parse = |value: &str| value.parse().map_err(|_| ObjectError::invalid(name, value, NO_NUMBER));
        self.get(name).filter(|value| !value.is_empty()).map(parse).transpose()
    }

    /// The parameter that says how many items a page may have: see [`page_size`].
    pub fn page_size(&self, name: &str) -> Result<usize, ObjectError> {
        page_size(name, self.get(name))
    }

    /// A parameter that is `true` or `false`; `false` if it is absent.
    pub fn flag(&self, name: &str) -> Result<bool, ObjectError> {
        match self.get(name) {
            None | Some("" | "false" | "False") => Ok(false),
            Some("true" | "True") => Ok(true),
            Some(other) => Err(ObjectError::invalid(name, other, "Write true or false.")),
        }
    }

    /// The conditions of the query (`ifGenerationMatch` and so on), and those of the headers `If-Match` and
    /// `If-None-Match`.
    pub fn conditions(
        &self,
        if_match: Option<&str>,
        if_none_match: Option<&str>,
    ) -> Result<Conditions, ObjectError> {
        Ok(Conditions {
            generation_match: self.number("ifGenerationMatch")?,
            generation_not_match: self.number("ifGenerationNotMatch")?,
            metageneration_match: self.number("ifMetagenerationMatch")?,
            metageneration_not_match: self.number("ifMetagenerationNotMatch")?,
            tag_match: if_match.map(Tags::parse),
            tag_not_match: if_none_match.map(Tags::parse),
        })
    }

    /// The conditions on the source of a copy, rewrite or move (`ifSourceGenerationMatch` and so on).
    pub fn source_conditions(&self) -> Result<Conditions, ObjectError> {
        Ok(Conditions {
            generation_match: self.number("ifSourceGenerationMatch")?,
            generation_not_match: self.number("ifSourceGenerationNotMatch")?,
            metageneration_match: self.number("ifSourceMetagenerationMatch")?,
            metageneration_not_match: self.number("ifSourceMetagenerationNotMatch")?,
            ..Conditions::default()
        })
    }

    /// `projection`, or `default` if the request does not say it.
    pub fn projection(&self, default: Projection) -> Result<Projection, ObjectError> {
        match self.get("projection") {
            None | Some("") => Ok(default),
            Some("full") => Ok(Projection::Full),
            Some("noAcl") => Ok(Projection::NoAcl),
            Some(other) => Err(ObjectError::invalid("projection", other, "Use full or noAcl.")),
        }
    }

    /// A parameter that names a predefined access control list, of a bucket itself or of objects.
    pub fn predefined(&self, name: &str, for_bucket: bool) -> Result<Option<Predefined>, ObjectError> {
        let text = self.get(name).filter(|text| !text.is_empty());
        text.map(|text| Predefined::parse(name, text, for_bucket)).transpose()
    }
}

/// Reads the parameter `name`, which says how many items a page may have. More than a page can have means as many as it can
/// have, and 0 means that the client leaves the number to the service.
pub fn page_size(name: &str, text: Option<&str>) -> Result<usize, ObjectError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(PAGE_ITEMS_MAX) };
    match text.parse::<usize>() {
        Ok(0) => Ok(PAGE_ITEMS_MAX),
        Ok(number) => Ok(number.min(PAGE_ITEMS_MAX)),
        Err(_) => Err(ObjectError::invalid(name, text, NO_NUMBER)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_typed() {
        let query =
            Query::parse("name=a%2Fb+c&ifGenerationMatch=0&permissions=x&permissions=y&versions=true&e")
                .expect("a query");
        assert_eq!(query.get("name"), Some("a/b c"));
        assert_eq!(query.get("Name"), None);
        assert_eq!(query.all("permissions").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(query.flag("versions"), Ok(true));
        assert_eq!(query.flag("absent"), Ok(false));
        assert_eq!(query.get("e"), Some(""));
        let conditions = query.conditions(Some("\"t\""), None).expect("conditions");
        assert_eq!(conditions.generation_match, Some(0));
        assert!(conditions.tag_match.is_some() && conditions.tag_not_match.is_none());
        assert!(!format!("{query:?}").contains("a/b"));
    }

    #[test]
    fn wrong_values_are_refused_by_their_name() {
        let query =
            Query::parse("maxResults=-1&versions=2&projection=half&predefinedAcl=x").expect("a query");
        let location = |error: Option<ObjectError>| error.map(|error| error.location);
        assert_eq!(location(query.number("maxResults").err()), Some("maxResults".to_owned()));
        assert_eq!(location(query.flag("versions").err()), Some("versions".to_owned()));
        assert_eq!(location(query.projection(Projection::Full).err()), Some("projection".to_owned()));
        assert_eq!(
            location(query.predefined("predefinedAcl", false).err()),
            Some("predefinedAcl".to_owned())
        );
        assert_eq!(location(query.required("project").err()), Some("project".to_owned()));
        assert!(Query::parse("a=%FF").is_err());
    }
}
