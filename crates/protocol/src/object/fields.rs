//! Partial responses: the parameter `fields`, by which a client says which members of a reply it wants.
//!
//! ```text
//! items(name,metadata/owner),nextPageToken
//! ```
//!
//! A path goes down by `/`, several members of one parent are in parentheses, and `*` is any member. A selector is
//! applied to each element of an array. Listings write only what is selected, by [`Members`]; smaller replies are cut
//! by [`Fields::apply`].

use serde::Serialize;
use serde_json::Value;

use super::error::ObjectError;
use crate::json::put_text;

/// Selectors deeper than this are refused.
const DEPTH_MAX: usize = 16;

/// Which members of a value are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fields {
    /// All of them.
    All,
    /// These.
    Some(Vec<(String, Fields)>),
}

impl Fields {
    /// All members.
    pub const ALL: Self = Self::All;

    /// Reads the value of the parameter. An empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, ObjectError> {
        if text.trim().is_empty() {
            return Ok(Self::All);
        }
        let fault =
            || ObjectError::invalid("fields", text, "Write a list such as items(name,size),nextPageToken.");
        let mut rest = text;
        let fields = list(&mut rest, 0).ok_or_else(fault)?;
        if rest.is_empty() { Ok(fields) } else { Err(fault()) }
    }

    /// What is wanted of the member `name`; `None` if nothing is.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::All => Some(&Self::ALL),
            Self::Some(members) => {
                members.iter().find(|(wanted, _)| wanted == name || wanted == "*").map(|(_, below)| below)
            }
        }
    }

    /// Removes from a value what is not wanted.
    pub fn apply(&self, value: &mut Value) {
        match (self, value) {
            (Self::All, _) => {}
            (Self::Some(_), Value::Array(items)) => items.iter_mut().for_each(|item| self.apply(item)),
            (Self::Some(_), Value::Object(members)) => {
                members.retain(|name, _| self.get(name).is_some());
                for (name, member) in members {
                    self.get(name).expect("others were removed").apply(member);
                }
            }
            _ => {}
        }
    }

    /// Adds what is wanted of a member to what was wanted of it before.
    fn put(&mut self, name: String, below: Self) {
        let Self::Some(members) = self else { return };
        match members.iter_mut().find(|(wanted, _)| *wanted == name) {
            None => members.push((name, below)),
            Some((_, known)) => known.join(below),
        }
    }

    fn join(&mut self, other: Self) {
        match other {
            Self::All => *self = Self::All,
            Self::Some(members) => members.into_iter().for_each(|(name, below)| self.put(name, below)),
        }
    }
}

/// Reads paths with commas between them.
fn list(rest: &mut &str, depth: usize) -> Option<Fields> {
    let mut fields = Fields::Some(Vec::new());
    loop {
        path(rest, &mut fields, depth)?;
        match rest.strip_prefix(',') {
            Some(next) => *rest = next,
            None => return Some(fields),
        }
    }
}

fn path(rest: &mut &str, fields: &mut Fields, depth: usize) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    let end = rest.find(['/', ',', '(', ')']).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    *rest = after;
    let below = if let Some(after) = rest.strip_prefix('/') {
        *rest = after;
        let mut below = Fields::Some(Vec::new());
        path(rest, &mut below, depth + 1)?;
        below
    } else if let Some(after) = rest.strip_prefix('(') {
        *rest = after;
        let below = list(rest, depth + 1)?;
        *rest = rest.strip_prefix(')')?;
        below
    } else {
        Fields::All
    };
    fields.put(name.to_owned(), below);
    Some(())
}

/// The name of a member as it stands behind another member, so that it is copied at once. [`member`](crate::member) makes it.
#[derive(Debug, Clone, Copy)]
pub struct Member(pub &'static str);

/// The name of a member of a JSON object that [`Members`](crate::object::fields::Members) writes.
#[macro_export]
macro_rules! member {
    ($name:literal) => {
        $crate::object::fields::Member(concat!(",\"", $name, "\":"))
    };
}

impl Member {
    fn name(self) -> &'static str {
        &self.0[2..self.0.len() - 2]
    }
}

/// A JSON object that is being written, without the members that nobody wants.
pub struct Members<'o> {
    out: &'o mut Vec<u8>,
    fields: &'o Fields,
    is_empty: bool,
}

impl<'o> Members<'o> {
    /// Begins an object at the end of `out`.
    pub fn begin(out: &'o mut Vec<u8>, fields: &'o Fields) -> Self {
        out.push(b'{');
        Self { out, fields, is_empty: true }
    }

    /// Ends the object.
    pub fn end(self) {
        self.out.push(b'}');
    }

    /// Begins a member. The caller appends its value to the bytes that are returned, and only what is wanted of it.
    /// `None` if nothing is.
    pub fn member(&mut self, name: Member) -> Option<(&mut Vec<u8>, &'o Fields)> {
        let below = self.fields.get(name.name())?;
        let is_first = std::mem::replace(&mut self.is_empty, false);
        self.out.extend_from_slice(&name.0.as_bytes()[usize::from(is_first)..]);
        Some((self.out, below))
    }

    /// A member whose value is a text.
    pub fn text(&mut self, name: Member, text: &str) {
        if let Some((out, _)) = self.member(name) {
            put_text(out, text);
        }
    }

    /// A member whose value is a text that takes time to make.
    pub fn text_with(&mut self, name: Member, text: impl FnOnce() -> String) {
        if let Some((out, _)) = self.member(name) {
            put_text(out, &text());
        }
    }

    /// A member whose value is a text that `put` writes without quotes, already escaped.
    pub fn text_of(&mut self, name: Member, put: impl FnOnce(&mut Vec<u8>)) {
        if let Some((out, _)) = self.member(name) {
            out.push(b'"');
            put(out);
            out.push(b'"');
        }
    }

    /// A member of any sort.
    pub fn value<T: Serialize>(&mut self, name: Member, value: &T) {
        match self.member(name) {
            None => {}
            Some((out, Fields::All)) => {
                serde_json::to_writer(out, value).expect("the value can be written as JSON");
            }
            Some((out, fields)) => {
                let mut value = serde_json::to_value(value).expect("the value can be written as JSON");
                fields.apply(&mut value);
                serde_json::to_writer(out, &value).expect("a value can be written as JSON");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied(fields: &str) -> Value {
        let mut value = json!({
            "kind": "k", "nextPageToken": "t",
            "items": [{"name": "a", "metadata": {"x": 1, "y": 2}}, {"name": "b", "size": "5"}]
        });
        Fields::parse(fields).expect("good fields").apply(&mut value);
        value
    }

    #[test]
    fn members_are_selected_on_all_levels() {
        assert_eq!(
            applied("items(name,metadata/x),nextPageToken"),
            json!({"nextPageToken": "t", "items": [{"name": "a", "metadata": {"x": 1}}, {"name": "b"}]})
        );
        assert_eq!(applied("items/name"), json!({"items": [{"name": "a"}, {"name": "b"}]}));
        assert_eq!(
            applied("items/name,items/size"),
            json!({"items": [{"name": "a"}, {"name": "b", "size": "5"}]})
        );
        assert_eq!(
            applied("items/*/x"),
            json!({"items": [{"name": "a", "metadata": {"x": 1}}, {"name": "b", "size": "5"}]})
        );
        assert_eq!(applied("nothing"), json!({}));
        assert_eq!(applied(""), applied("*"));
    }

    #[test]
    fn malformed_selectors_are_refused() {
        let deep = "a/".repeat(40) + "a";
        for fields in [",", "a(", "a(b", "a)", "a//b", "a(b)c", "/", "()", &deep] {
            assert_eq!(Fields::parse(fields).map_err(|error| error.kind.status()), Err(400), "{fields}");
        }
    }
}
