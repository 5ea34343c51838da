//! `$select`: the properties that a reply shows.
//!
//! A property that an entity lacks is shown as null (recorded). So the list is kept as the client gave it,
//! and each entity of a reply has its members in that order.

use super::limits::SELECT_NAMES_MAX;
use super::names::check_property_name;
use crate::error::{ErrorCode, TableError};

/// The names that a client asked for, each once, in its order; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select(Vec<String>);

impl Select {
    /// Reads the decoded value of `$select`. `None` where the client asks for everything: the text is
    /// blank, or `*` is among the names. Fails with `InvalidInput` for a text that cannot be a property's
    /// name, and for more than [`SELECT_NAMES_MAX`] names.
    pub fn parse(text: &str) -> Result<Option<Self>, TableError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let mut names: Vec<String> = Vec::new();
        let mut everything = false;
        for name in text.split(',').map(str::trim) {
            if name == "*" {
                everything = true;
            } else if check_property_name(name).is_err() || names.len() == SELECT_NAMES_MAX {
                return Err(ErrorCode::InvalidInput.into());
            } else if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Ok((!everything).then_some(Self(names)))
    }

    /// The names, in the client's order.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_and_drops_repetitions() {
        for (text, names) in [
            ("age,sex", vec!["age", "sex"]),
            (" sex , age,sex", vec!["sex", "age"]),
            ("PartitionKey", vec!["PartitionKey"]),
        ] {
            assert_eq!(Select::parse(text).unwrap().unwrap().names(), names, "{text}");
        }
        for everything in ["", " ", "*", "age,*"] {
            assert_eq!(Select::parse(everything), Ok(None), "{everything}");
        }
        let names = |count: usize| (0..count).map(|i| format!("n{i}")).collect::<Vec<_>>().join(",");
        assert!(Select::parse(&names(1024)).is_ok());
        for wrong in ["a b", "a,", ",", "a-b", "\"", &names(1025)] {
            let error = Select::parse(wrong).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidInput, "{wrong:.20}");
        }
    }
}
