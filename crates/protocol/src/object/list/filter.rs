//! The parameter `filter`: which contexts an object must have, or must not have.
//!
//! | term | holds for an object |
//! |---|---|
//! | `contexts."k"="v"` | that has the context `k` with the value `v` |
//! | `contexts."k":*` | that has the context `k` |
//! | `-` before one of these | for which it does not hold |
//!
//! Terms with `AND` or a space between them must all hold.

use crate::object::error::ObjectError;
use crate::object::generation::Contexts;

/// One term.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    is_negated: bool,
    key: String,
    /// The value; any if `None`.
    value: Option<String>,
}

/// A filter by contexts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter(Vec<Term>);

impl Filter {
    /// Reads the value of the parameter.
    pub fn parse(text: &str) -> Result<Self, ObjectError> {
        let mut terms = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (term, after) = term(rest).ok_or_else(|| {
                let hint = "Write terms such as contexts.\"key\"=\"value\" or -contexts.\"key\":*.";
                ObjectError::invalid("filter", text, hint)
            })?;
            terms.push(term);
            let after = after.trim_start();
            rest = after.strip_prefix("AND ").unwrap_or(after).trim_start();
        }
        Ok(Self(terms))
    }

    /// Whether an object with these contexts passes.
    pub fn passes(&self, contexts: &Contexts) -> bool {
        self.0.iter().all(|term| {
            let found = contexts.custom.get(&term.key);
            let holds = match &term.value {
                None => found.is_some(),
                Some(value) => found.is_some_and(|context| context.value == *value),
            };
            holds != term.is_negated
        })
    }
}

fn term(text: &str) -> Option<(Term, &str)> {
    let bare = text.strip_prefix('-');
    let rest = bare.unwrap_or(text).strip_prefix("contexts.")?;
    let (key, rest) = quoted(rest)?;
    let (value, rest) = match rest.strip_prefix(":*") {
        Some(rest) => (None, rest),
        None => {
            let (value, rest) = quoted(rest.strip_prefix('=')?)?;
            (Some(value), rest)
        }
    };
    Some((Term { is_negated: bare.is_some(), key, value }, rest))
}

/// A text in double quotes, and what follows. A backslash takes the next character as it is.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut characters = text.strip_prefix('"')?.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((out, &text[at + 2..])),
            '\\' => out.push(characters.next()?.1),
            other => out.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::generation::Context;

    #[test]
    fn terms_select_by_contexts() {
        let with = |value: &str| {
            let context = Context { value: value.to_owned(), ..Context::default() };
            Contexts { custom: [("t".to_owned(), context)].into() }
        };
        let objects = [with("match"), with("other"), Contexts::default()];
        for (filter, passes) in [
            ("contexts.\"t\"=\"match\"", [true, false, false]),
            ("contexts.\"t\":*", [true, true, false]),
            ("-contexts.\"t\"=\"match\"", [false, true, true]),
            ("-contexts.\"t\":*", [false, false, true]),
            ("contexts.\"t\":* AND -contexts.\"t\"=\"match\"", [false, true, false]),
            ("contexts.\"t\":* -contexts.\"t\"=\"match\"", [false, true, false]),
            ("", [true, true, true]),
        ] {
            let parsed = Filter::parse(filter).expect("a good filter");
            assert_eq!(objects.each_ref().map(|contexts| parsed.passes(contexts)), passes, "{filter}");
        }
    }

    #[test]
    fn malformed_filters_are_refused() {
        for filter in ["contexts", "contexts.t=\"a\"", "contexts.\"t\"", "contexts.\"t\"=\"a", "size>5", "OR"]
        {
            assert_eq!(Filter::parse(filter).map_err(|error| error.kind.status()), Err(400), "{filter}");
        }
    }
}
